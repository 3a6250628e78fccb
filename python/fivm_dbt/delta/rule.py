"""Which rule an operator has: that of its class, or of the nearest class above it that has one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from fivm_dbt.delta.term import Derive, Term
from fivm_dbt.ir.node import Node

DeltaRule = Callable[[Any, Derive], tuple[Term, ...]]
Told = Callable[[Any, bool], str]
R = TypeVar("R", bound=DeltaRule)
T = TypeVar("T", bound=Told)

DELTAS: dict[type[Node], DeltaRule] = {}
"""``Δ Op`` by operator, filled by :func:`delta_of`."""
_TOLD: dict[type[Node], Told] = {}
_LINEAR = "ring delta, linear"


def delta_of(*operators: type[Node], how: str | None = None) -> Callable[[R], R]:
    """Makes a function the delta rule of these operators; ``how`` tells people what it does."""

    def registered(rule: R) -> R:
        DELTAS.update(dict.fromkeys(operators, rule))
        if how is not None:
            _TOLD.update(dict.fromkeys(operators, lambda node, is_own: how))
        return rule

    return registered


def told_of(*operators: type[Node]) -> Callable[[T], T]:
    """Makes a function tell people how these operators are maintained.

    It is given the operator, and whether its old rows are those of the view's own state.
    """

    def registered(told: T) -> T:
        _TOLD.update(dict.fromkeys(operators, told))
        return told

    return registered


def rule_of(node: Node) -> DeltaRule:
    """The delta rule of an operator. Raises TypeError where there is none."""
    rule = next((DELTAS[kind] for kind in type(node).__mro__ if kind in DELTAS), None)
    if rule is None:
        raise TypeError(f"no delta rule for {type(node).__name__}")
    return rule


def told(node: Node, *, is_own: bool) -> str:
    """How an operator is maintained, for people; ``is_own`` says that its old rows are those of the own state."""
    found = next((_TOLD[kind] for kind in type(node).__mro__ if kind in _TOLD), None)
    if found is not None:
        return found(node, is_own)
    return _LINEAR if node.is_linear else "re-evaluated"
