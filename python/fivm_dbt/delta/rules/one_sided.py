"""LEFT, SEMI and ANTI joins are linear in the left side, and local to left rows that a right row matches.

FULL and RIGHT joins, EXISTS, IN and their negations are made of these when a query is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from fivm_dbt.delta.rule import delta_of, told_of
from fivm_dbt.delta.term import Derive, Term, at_side, read_by, scans
from fivm_dbt.ir.comparison import Comparison
from fivm_dbt.ir.node import Item, Node, Side
from fivm_dbt.ir.nodes import Filter, Map, UnionAll
from fivm_dbt.ir.one_sided import IfChanged, OneSided, SemiJoin
from fivm_dbt.ir.reads import Scan
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.naming import PREFIX, is_kept, old_rows


@delta_of(OneSided)
def delta_one_sided(node: OneSided, delta: Derive) -> tuple[Term, ...]:
    """``Δ(L op R) = ΔL op new R  +  (old L ⋉ ΔR) op new R  −  (old L ⋉ ΔR) op old R``.

    The first part is linear: every left row is treated by itself. The others are the left rows that were there and for
    which something can be different, because they match a row of R that came or went. Each side is stated once, so
    that nothing counts twice when both change.
    """
    terms, changed = list(_of_left(node, delta)), delta(node.right)
    if changed:
        affected = SemiJoin(at_side(node.left, Side.OLD), *_on_changed(node, tuple(t.node for t in changed)))
        terms += (
            Term(node.with_inputs((affected, at_side(node.right, side))), Scalar.number(sign))
            for side, sign in ((Side.NEW, 1), (Side.OLD, -1))
        )
    return tuple(terms)


@delta_of(SemiJoin)
def delta_semi_join(node: SemiJoin, delta: Derive) -> tuple[Term, ...]:
    """The same, and where R is an input or a view by what of its rows came and what went:

    ``Δ(L ▷ R) = ΔL ▷ new R  +  (old L ⋉ ΔR⁻) ▷ new R  −  (old L ⋉ ΔR⁺) ▷ old R``; of ⋉ the opposite in the last two.
    """
    changed, scan = delta(node.right), _only_scan(node.right)
    if len(changed) != 1 or scan is None:
        # Of several some are of the clock, by which rows come and go that nobody has changed.
        return delta_one_sided(node, delta)
    return (*_of_left(node, delta), *_by_who_has_a_partner(node, changed[0], scan))


def _of_left(node: OneSided, delta: Derive) -> Iterator[Term]:
    new_right = at_side(node.right, Side.NEW)
    return (Term(node.with_inputs((t.node, new_right)), t.multiplicity) for t in delta(node.left))


def _by_who_has_a_partner(node: SemiJoin, change: Term, scan: Scan) -> Iterator[Term]:
    """A left row that matches a row of R that went had a partner: it comes to ``L ▷ R`` if it has none now.

    One that matches a row that came has a partner: it leaves ``L ▷ R`` if it had none. Where rows of R only come, as
    facts do, the first part has no rows and is not computed.
    """
    went = _signed(change, "<")
    if not is_kept(scan.relation):
        went = IfChanged(went, (old_rows(scan.relation),))
    count = 1 if node.anti else -1
    for rows, side, sign in ((went, Side.NEW, count), (_signed(change, ">"), Side.OLD, -count)):
        matched = SemiJoin(at_side(node.left, Side.OLD), *_on_changed(node, (rows,)))
        alone = SemiJoin(matched, at_side(node.right, side), node.predicates, anti=True)
        yield Term(alone, Scalar.number(sign))


def _only_scan(right: Node) -> Scan | None:
    """The scan of which rows are made one by one; None of any other rows.

    Each row that goes was there then, and each that comes is there: a change is staged net.
    """
    found = scans(right)
    is_plain = all(node.is_row_level for node in right.walk() if node.inputs)
    return found[0] if len(found) == 1 and is_plain else None


def _signed(change: Term, sign: Literal["<", ">"]) -> Node:
    """The rows of a change that come, or those that go."""
    return Filter(change.node, (Comparison(change.multiplicity, sign, Scalar.number(0)).scalar,))


def _on_changed(node: OneSided, changed: tuple[Node, ...]) -> tuple[Node, tuple[Scalar, ...]]:
    """Changed right rows, under a name of their own, and the conditions of the join on them."""
    fields = node.right.fields
    alias = f"{fields[0].table}_changed" if fields else f"{PREFIX}changed"
    items = tuple(Item(f.name, f.scalar, f.type) for f in fields)
    branches = tuple(Map(rows, alias, items) for rows in changed)
    rows = branches[0] if len(branches) == 1 else UnionAll(branches, alias)
    meaning = {f.id: Scalar.column(alias, f.name) for f in fields}
    return rows, tuple(p.substitute(meaning.get) for p in node.predicates)


@told_of(OneSided)
def told_of_one_sided(node: OneSided, is_own: bool) -> str:
    affected = f"affected left rows of the right side, re-evaluated over {read_by(node)}"
    return f"ring delta in the left side; {affected}"
