"""An operator has the rule of its class, or of the nearest class above it that has one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from fivm_dbt.delta.term import Derive, Term
from fivm_dbt.ir.node import Node
from fivm_dbt.registry import Registry

DeltaRule = Callable[[Any, Derive], tuple[Term, ...]]
Told = Callable[[Any, bool], str]
R = TypeVar("R", bound=DeltaRule)

DELTAS: Registry[DeltaRule] = Registry()
"""``Δ Op`` by operator, filled by :func:`delta_of`."""
_TOLD: Registry[Told] = Registry()
_LINEAR = "ring delta, linear"


def delta_of(*operators: type[Node], how: str | None = None) -> Callable[[R], R]:
    """Makes a function the delta rule of these operators; ``how`` tells people what it does."""

    def registered(rule: R) -> R:
        DELTAS.update(dict.fromkeys(operators, rule))
        if how is not None:
            _TOLD.update(dict.fromkeys(operators, lambda node, is_own: how))
        return rule

    return registered


told_of = _TOLD.add
"""Makes a function tell people how operators of these classes are maintained.

It is given the operator, and whether its old rows are those of the view's own state.
"""


def rule_of(node: Node) -> DeltaRule:
    """The delta rule of an operator. Raises TypeError where there is none."""
    rule = DELTAS.of(node)
    if rule is None:
        raise TypeError(f"no delta rule for {type(node).__name__}")
    return rule


def told(node: Node, *, is_own: bool) -> str:
    """How an operator is maintained, for people; ``is_own`` says that its old rows are those of the own state."""
    found = _TOLD.of(node)
    if found is not None:
        return found(node, is_own)
    return _LINEAR if node.is_linear else "re-evaluated"
