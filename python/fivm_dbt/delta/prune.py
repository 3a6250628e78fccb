"""A delta is bound to what did change: terms of unchanged inputs, and of a clock that stood still, vanish."""

from __future__ import annotations

from dataclasses import replace

from fivm_dbt.delta.term import Term


def prune_terms(terms: tuple[Term, ...], changed: frozenset[str]) -> tuple[Term, ...]:
    """The terms that can have rows when just the relations in ``changed`` changed, without their empty branches."""
    left = ((term, term.node.left_by(changed)) for term in terms)
    return tuple(replace(term, node=node) for term, node in left if node is not None)
