"""LEFT, SEMI and ANTI joins are linear in the left side, and local to left rows that a right row matches.

FULL and RIGHT joins, EXISTS, IN and their negations are made of these when a query is read.
"""

from __future__ import annotations

from fivm_dbt.delta.rule import delta_of, told_of
from fivm_dbt.delta.term import Derive, Term, at_side, read_by
from fivm_dbt.ir.node import Item, Node, Side
from fivm_dbt.ir.nodes import Map, UnionAll
from fivm_dbt.ir.one_sided import OneSided, SemiJoin
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.naming import PREFIX


@delta_of(OneSided)
def delta_one_sided(node: OneSided, delta: Derive) -> tuple[Term, ...]:
    """``Δ(L op R) = ΔL op new R  +  (old L ⋉ ΔR) op new R  −  (old L ⋉ ΔR) op old R``.

    The first part is linear: every left row is treated by itself. The others are the left rows that were there and for
    which something can be different, because they match a row of R that came or went. Each side is stated once, so
    that nothing counts twice when both change.
    """
    new_right = at_side(node.right, Side.NEW)
    terms = [Term(node.with_inputs((t.node, new_right)), t.multiplicity) for t in delta(node.left)]
    changed = delta(node.right)
    if changed:
        affected = _affected(node, changed)
        terms.append(Term(node.with_inputs((affected, new_right)), Scalar.number(1)))
        terms.append(Term(node.with_inputs((affected, at_side(node.right, Side.OLD))), Scalar.number(-1)))
    return tuple(terms)


def _affected(node: OneSided, changed: tuple[Term, ...]) -> Node:
    """``old L ⋉ ΔR``: the left rows that match a changed right row."""
    fields = node.right.fields
    alias = f"{fields[0].table}_changed" if fields else f"{PREFIX}changed"
    items = tuple(Item(f.name, f.scalar, f.type) for f in fields)
    branches = tuple(Map(term.node, alias, items) for term in changed)
    rows = branches[0] if len(branches) == 1 else UnionAll(branches, alias)
    meaning = {f.id: Scalar.column(alias, f.name) for f in fields}
    predicates = tuple(p.substitute(meaning.get) for p in node.predicates)
    return SemiJoin(at_side(node.left, Side.OLD), rows, predicates)


@told_of(OneSided)
def told_of_one_sided(node: OneSided, is_own: bool) -> str:
    affected = f"affected left rows of the right side, re-evaluated over {read_by(node)}"
    return f"ring delta in the left side; {affected}"
