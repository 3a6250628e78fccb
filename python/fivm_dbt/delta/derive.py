"""The delta of a query is derived bottom-up, for all changed inputs at once, by one rule per operator."""

from __future__ import annotations

from dataclasses import dataclass

from fivm_dbt.delta import rules
from fivm_dbt.delta.rule import rule_of
from fivm_dbt.delta.term import Term
from fivm_dbt.ir.node import Node


@dataclass(frozen=True)
class _Derivation:
    """The deltas of operators where inputs in ``static`` never change."""

    static: frozenset[str]

    def __call__(self, node: Node) -> tuple[Term, ...]:
        return rule_of(node)(node, self)


def derive(node: Node, static: frozenset[str] = frozenset()) -> tuple[Term, ...]:
    """The terms of Δ``node``; inputs in ``static`` never change and have no term.

    ``Δquery = query(new inputs) − query(old inputs)`` as bags, for any changes of any inputs (F-IVM, section 5).
    """
    return _Derivation(static)(node)


__all__ = ["derive", "rules"]
