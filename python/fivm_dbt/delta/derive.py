"""The delta of a query for the changes of all its inputs at once, bottom-up, one rule per operator."""

from __future__ import annotations

from collections.abc import Callable

from fivm_dbt.delta.aggregate import delta_of_aggregate
from fivm_dbt.delta.buckets import delta_of_buckets
from fivm_dbt.delta.clock_filter import delta_of_clock_filter, delta_of_clock_map
from fivm_dbt.delta.explode import delta_of_explode
from fivm_dbt.delta.filter import delta_of_filter
from fivm_dbt.delta.higher_order import delta_of_higher_order
from fivm_dbt.delta.join import delta_of_join
from fivm_dbt.delta.map import delta_of_map
from fivm_dbt.delta.match import delta_of_match
from fivm_dbt.delta.outer_join import delta_of_outer_join
from fivm_dbt.delta.scan import delta_of_scan
from fivm_dbt.delta.term import Derive, Term
from fivm_dbt.delta.union_all import delta_of_union_all
from fivm_dbt.delta.window import delta_of_window
from fivm_dbt.ir.aggregate import Aggregate
from fivm_dbt.ir.buckets import Buckets
from fivm_dbt.ir.higher_order import HigherOrder
from fivm_dbt.ir.match import Match
from fivm_dbt.ir.node import Node
from fivm_dbt.ir.nodes import (
    ClockFilter,
    ClockMap,
    Explode,
    Filter,
    Join,
    Map,
    OuterJoin,
    Scan,
    SemiJoin,
    UnionAll,
    Values,
    Window,
)
from fivm_dbt.ir.sessions import Sessions
from fivm_dbt.ir.time_windows import TimeWindows

RULES: dict[type[Node], Callable[..., tuple[Term, ...]]] = {
    Filter: delta_of_filter,
    ClockFilter: delta_of_clock_filter,
    ClockMap: delta_of_clock_map,
    Map: delta_of_map,
    Join: delta_of_join,
    UnionAll: delta_of_union_all,
    Aggregate: delta_of_aggregate,
    OuterJoin: delta_of_outer_join,
    SemiJoin: delta_of_outer_join,
    Window: delta_of_window,
    Sessions: delta_of_window,
    Match: delta_of_match,
    Explode: delta_of_explode,
    TimeWindows: delta_of_explode,
    Buckets: delta_of_buckets,
    HigherOrder: delta_of_higher_order,
}


def derive(node: Node, static: frozenset[str] = frozenset()) -> tuple[Term, ...]:
    """The terms of Δ``node``; inputs in ``static`` never change and have no term.

    ``Δquery = query(new inputs) − query(old inputs)`` as bags, for any changes of any inputs (F-IVM, section 4).
    """

    def recurse(inner: Node) -> tuple[Term, ...]:
        if isinstance(inner, Scan):
            return delta_of_scan(inner, static)
        if isinstance(inner, Values):
            return ()
        rule = RULES.get(type(inner))
        if rule is None:
            raise TypeError(f"no delta rule for {type(inner).__name__}")
        return rule(inner, recurse)

    return recurse(node)


__all__ = ["RULES", "Derive", "derive"]
