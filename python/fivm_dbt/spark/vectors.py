"""Many rows with vectors are added up by the places of the elements, which takes any number of rows (ADR 0083).

    γ_K(Σ v) = γ_K(list of e by i)(γ_K,i(Σ e)(explode v))

One SUM adds all elements up, so that Spark plans and compiles one and not one for each.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from fivm_dbt.ir.scalar import column_ast, identifier
from fivm_dbt.naming import PREFIX
from fivm_dbt.plan.model.state import StateTable
from fivm_dbt.rings.vectors import Vectors, transformed
from fivm_dbt.spark.pieces import union_all

_PLACE, _ELEMENT = f"{PREFIX}place", f"{PREFIX}element"


def has_vectors(state: StateTable) -> bool:
    """Whether some components of a state are vectors."""
    return bool(_vectors(state))


def added_by_places(
    state: StateTable,
    rows: exp.Query | None,
    groups: Sequence[exp.Expr],
    by_places: Sequence[exp.Query] = (),
) -> exp.Query:
    """Rows with the components of a state, which has vectors, added up by some columns.

    Beside ``rows`` there may be others that have been added up ``by_places``: a row for each place, as
    :func:`sums_by_places` has them.
    """
    vectors = _vectors(state)
    exploded = [] if rows is None else [_exploded(state, rows, groups)]
    added = _summed(state, union_all([*exploded, *by_places]), groups)
    shown = [exp.alias_(_collected(n, vectors.get(n)), identifier(n)) for n in state.payload_names]
    query = exp.select(*(g.copy() for g in groups), *shown).from_(added.subquery("added", copy=False))
    if groups:
        return query.group_by(*(g.copy() for g in groups), copy=False)
    # Of no rows there is none, as the statement around it expects.
    some = exp.GT(this=exp.Count(this=exp.Star()), expression=exp.Literal.number(0))
    return query.having(some, copy=False)


def sums_by_places(state: StateTable, rows: exp.Query, groups: Sequence[exp.Expr]) -> exp.Select:
    """``γ_K,i(Σ e)(explode v)``: a row for each group and place, with the elements at this place added up."""
    return _summed(state, _exploded(state, rows, groups), groups)


def columns_by_places(state: StateTable, relation: str) -> list[exp.Expr]:
    """The columns of :func:`sums_by_places` but its groups, in the order in which they are added up again."""
    vectors = _vectors(state)
    plain = [n for n in state.payload_names if n not in vectors]
    return [column_ast(relation, name) for name in (*plain, _PLACE, *vectors)]


def _vectors(state: StateTable) -> dict[str, Vectors]:
    return {n: v for n in state.payload_names if isinstance(v := state.numbers(n), Vectors)}


def _summed(state: StateTable, exploded: exp.Query, groups: Sequence[exp.Expr]) -> exp.Select:
    vectors = _vectors(state)
    by = [*(g.copy() for g in groups), exp.column(_PLACE)]
    sums = [
        exp.alias_((v.element if v is not None else state.numbers(n)).total(exp.column(n)), identifier(n))
        for n in state.payload_names
        for v in [vectors.get(n)]
    ]
    added = exp.select(*(b.copy() for b in by), *sums).from_(exploded.subquery("elements", copy=False))
    return added.group_by(*by, copy=False)


def _exploded(state: StateTable, rows: exp.Query, groups: Sequence[exp.Expr]) -> exp.Select:
    """A row for each place of the vectors; one that is shorter has NULL there."""
    names = list(_vectors(state))
    first, *others = names
    plain = [n for n in state.payload_names if n not in names]
    array: exp.Expr = exp.column(first)
    elements: dict[str, exp.Expr] = {first: exp.column(_ELEMENT)}
    if others:
        array = exp.Anonymous(this="ARRAYS_ZIP", expressions=[exp.column(n) for n in names])
        elements = {n: exp.column(n, table=_ELEMENT) for n in names}
    alias = exp.TableAlias(
        this=exp.to_identifier("places"), columns=[exp.to_identifier(_PLACE), exp.to_identifier(_ELEMENT)]
    )
    shown = [exp.alias_(value, identifier(n)) for n, value in elements.items()]
    columns = [*(g.copy() for g in groups), *(column_ast("", n) for n in plain), exp.column(_PLACE), *shown]
    query = exp.select(*columns).from_(rows.subquery("contributions", copy=False))
    lateral = exp.Lateral(this=exp.Posexplode(this=array), view=True, alias=alias)
    query.set("laterals", [lateral])
    return query


def _collected(name: str, vector: Vectors | None) -> exp.Expr:
    """The elements in the order of their places; of a number, which each place has, one of them."""
    if vector is None:
        return exp.Max(this=exp.column(name))
    fields = [
        exp.PropertyEQ(this=exp.to_identifier("place"), expression=exp.column(_PLACE)),
        exp.PropertyEQ(this=exp.to_identifier("element"), expression=exp.column(name)),
    ]
    listed = exp.ArrayAgg(this=exp.Struct(expressions=fields), nulls_excluded=True)
    ordered = transformed(
        exp.Anonymous(this="ARRAY_SORT", expressions=[listed]),
        lambda e: exp.Dot(this=e, expression=exp.to_identifier("element")),
        "e",
    )
    size = exp.Literal.number(vector.size)
    return exp.Anonymous(this="SLICE", expressions=[ordered, exp.Literal.number(1), size])
