"""What operators and clauses add to the core: rules, SQL and views, found by class.

Features are packages that the core does not import. They are loaded when something is looked up for the first time, and
put what they have into the registries of the core.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import TypeVar

V = TypeVar("V")
F = TypeVar("F")


class Registry(dict[type, V]):
    """Values by class; a class without one has that of the nearest class above it.

    >>> names: Registry[str] = Registry()
    >>> names[int] = "number"
    >>> names.of(True), names.of("text")
    ('number', None)
    """

    def of(self, value: object) -> V | None:
        """What is registered for the class of ``value``."""
        load_features()
        return next((self[kind] for kind in type(value).__mro__ if kind in self), None)

    def add(self, *kinds: type) -> Callable[[F], F]:
        """A decorator that registers a function for these classes."""

        def registered(function: F) -> F:
            self.update(dict.fromkeys(kinds, function))  # type: ignore[arg-type]
            return function

        return registered


@cache
def load_features() -> None:
    """Let all features register what they have. A second call does nothing."""
    import_module("fivm_dbt.features")
