"""A state whose topmost operator is recomputed per key reads its old rows from itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fivm_dbt.catalog.types import BIGINT
from fivm_dbt.delta.derive import derive
from fivm_dbt.delta.local import affected_keys, if_any_changed, recomputed
from fivm_dbt.delta.term import Term
from fivm_dbt.ir.local import Local
from fivm_dbt.ir.node import Item, Node, Side
from fivm_dbt.ir.nodes import Filter, Map
from fivm_dbt.ir.one_sided import IfChanged, Restrict
from fivm_dbt.ir.reads import Scan
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.naming import COUNT
from fivm_dbt.registry import Registry

OWN_STATE = "own_state"
"""What a state is called in the delta of its own view."""

OwnRowsRule = Callable[[Map, Any, str, tuple[str, ...], tuple[Term, ...]], tuple[Term, ...]]
DELTAS_OF_OWN_ROWS: Registry[OwnRowsRule] = Registry()
"""By class, the delta of an operator that is made anew from its own rows.

It is given the rows that the state keeps, the operator, the state's relation, the columns of its key there, and ``ΔR``.
"""

TogetherRule = Callable[[Map, Any, Node, tuple[Term, ...]], Node | None]
TOGETHER: Registry[TogetherRule] = Registry()
"""By class, the new rows of an operator from its stored ones and ``ΔR``, where rows of R only come; None where these do
not tell them.
"""


def delta_over_own_state(
    rows: Map,
    local: Local,
    state: str,
    keys: tuple[str, ...],
    static: frozenset[str],
    losing: frozenset[str] | None,
) -> tuple[Term, ...]:
    """``ΔOp = Op(new R ⋉ keys(ΔR)) − State[K ∈ keys(ΔR)]``.

    The state holds ``Op(old R)``, so nothing of the old inputs is read, and an operator may give other bits at every
    evaluation, as sums of doubles do: what was stored is what is taken away. Rows of R go only with some of ``losing``,
    where that is known: where they only come, an operator of :data:`TOGETHER` need not be recomputed.
    """
    changed = derive(local.input, static)
    if not changed:
        return ()
    if local.is_of_own_rows:
        rule = DELTAS_OF_OWN_ROWS.of(local)
        if rule is None:
            raise TypeError(f"no delta rule for the own rows of {type(local).__name__}")
        return rule(rows, local, state, keys, changed)
    affected = affected_keys(local, changed)
    again = recomputed(local, changed, Side.NEW)
    if isinstance(rows.input, Filter):
        again = Filter(again, rows.input.predicates)
    keys_of = tuple(
        (Scalar.column(OWN_STATE, k), f.scalar) for k, f in zip(keys, affected.fields, strict=False)
    )

    def restricted(stored: Scan) -> Node:
        return if_any_changed(stored, local, changed) or Restrict(stored, affected, keys_of)

    gone = taken_away(rows, state, restricted)
    anew: tuple[Node, ...] = (Map(again, rows.alias, rows.items),)
    put_together = TOGETHER.of(local)
    if losing and put_together is not None:
        columns = tuple((i.name, i.type) for i in rows.items)
        stored = restricted(Scan(state, OWN_STATE, columns, Side.OLD))
        together = put_together(rows, local, stored, changed)
        if together is not None:
            lost = tuple(sorted(losing))
            anew = (IfChanged(anew[0], lost), IfChanged(together, lost, is_opposite=True))
    return (*(Term(node, Scalar.number(1)) for node in anew), gone)


def taken_away(rows: Map, state: str, restricted: Callable[[Scan], Node]) -> Term:
    """What a state has of ``rows``, as ``restricted``, with the opposite multiplicity: ``− State[...]``."""
    columns = tuple((i.name, i.type) for i in rows.items)
    stored = Scan(state, OWN_STATE, (*columns, (COUNT, BIGINT)), Side.OLD)
    count = Item(COUNT, Scalar.column(OWN_STATE, COUNT), BIGINT)
    items = tuple(Item(name, Scalar.column(OWN_STATE, name), type_) for name, type_ in columns)
    gone = Map(restricted(stored), rows.alias, (*items, count))
    return Term(gone, Scalar.parse(f"-{Scalar.column(rows.alias, COUNT).sql}"))
