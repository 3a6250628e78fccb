"""Statements on state tables: build, delta, touched partitions, MERGE, view."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sqlglot import exp

from fivm_dbt.catalog.types import BIGINT
from fivm_dbt.delta.key_sets import KeySet
from fivm_dbt.delta.prune import prune_terms
from fivm_dbt.delta.term import Term, at_side
from fivm_dbt.ir.nodes import Lookup, Side
from fivm_dbt.ir.scalar import Scalar, column_ast, identifier, raise_error
from fivm_dbt.naming import COUNT, PARTITION, STEP
from fivm_dbt.plan.binding import Binding, staged_input, staged_state
from fivm_dbt.plan.plan import Plan, StateTable, View
from fivm_dbt.rings.products import sum_of_products
from fivm_dbt.rings.registry import ROWS, Component
from fivm_dbt.spark.clock import at_time
from fivm_dbt.spark.reads import in_partitions, side_reader, table
from fivm_dbt.spark.select import select, select_columns

NEGATIVE = "FIVM401"
OVERFLOW = "FIVM402"

_UNSTORABLE = frozenset(" ,;{}()\n\t=")


def build_query(plan: Plan, view: View, binding: Binding) -> exp.Select:
    """A view's state from scratch: the payload of its whole query at the new versions."""
    term = Term(at_side(view.core, Side.NEW), Scalar.number(1))
    query = _payload_query(plan, view, binding, (term,), keep_zero=view.state.is_global)
    if view.state.keys:
        # Else every task of the aggregation would write a file into every partition.
        together = exp.Anonymous(this="REBALANCE", expressions=[exp.column(PARTITION)])
        query.set("hint", exp.Hint(expressions=[together]))
    return query


def delta_query(plan: Plan, view: View, binding: Binding) -> exp.Select:
    """A state's delta: all terms of all changed relations, added up per key, without keys whose change is zero.

    Where it is asked for what some relations have changed, it is added up by these too.
    """
    terms = prune_terms(view.terms, binding.moved)
    return _payload_query(plan, view, binding, terms, keep_zero=False, step=view.step)


def key_set_query(plan: Plan, view: View, key_set: KeySet, binding: Binding) -> exp.Query | None:
    """The keys that the changes affect, each once; None where nothing changed that gives any."""
    terms = prune_terms((Term(key_set.node, Scalar.number(1)),), binding.moved)
    return select(at_time(terms[0].node, binding), side_reader(plan, view, binding)) if terms else None


def partitions_query(plan: Plan, looked_up: Sequence[tuple[Lookup, StateTable]], buckets: int) -> exp.Query:
    """Which partitions the keys of staged sets lie in: number of the look-up, partition as text."""
    queries = []
    for number, (lookup, state) in enumerate(looked_up):
        columns = [exp.alias_(column_ast("", theirs), identifier(ours)) for ours, theirs in lookup.keys]
        keys = exp.select(*columns).from_(table(staged_input(plan, lookup.key_set))).subquery("looked_up")
        value = exp.cast(partition_value(state, buckets), "string", dialect="spark")
        queries.append(
            exp.select(exp.alias_(exp.Literal.number(number), "number"), exp.alias_(value, "partition"))
            .from_(keys)
            .distinct()
        )
    return queries[0] if len(queries) == 1 else exp.union(*queries, distinct=False, copy=False)


def _payload_query(
    plan: Plan,
    view: View,
    binding: Binding,
    terms: tuple[Term, ...],
    *,
    keep_zero: bool,
    step: Scalar | None = None,
) -> exp.Select:
    state, reader = view.state, side_reader(plan, view, binding)
    steps = [] if step is None else [exp.alias_(step.ast(), STEP)]
    branches = [
        select_columns([*_branch_columns(state, t.multiplicity), *steps], at_time(t.node, binding), reader)
        for t in terms
    ]
    rows = branches[0] if len(branches) == 1 else exp.union(*branches, distinct=False, copy=False)
    keys = [column_ast("", k.name) for k in state.keys] + [exp.column(STEP) for _ in steps]
    sums = {name: _total(name, state) for name in state.payload_names}
    query = exp.select(*(k.copy() for k in keys), *(exp.alias_(s.copy(), n) for n, s in sums.items()))
    query = query.select(exp.alias_(partition_value(state, binding.buckets), PARTITION), copy=False)
    query = query.from_(rows.subquery(identifier("term"), copy=False), copy=False)
    if keys:
        query = query.group_by(*keys, copy=False)
    if keep_zero:
        return query
    moved = [exp.NullSafeNEQ(this=s.copy(), expression=exp.Literal.number(0)) for s in sums.values()]
    return query.having(exp.or_(*moved, copy=False), copy=False)


def _branch_columns(state: StateTable, multiplicity: Scalar) -> list[exp.Expr]:
    columns = [exp.alias_(k.value.ast(), identifier(k.name)) for k in state.keys]
    columns.append(exp.alias_(_rows(state, multiplicity), COUNT))
    return columns + [exp.alias_(p.term(multiplicity).ast(), p.name) for p in state.payload]


def _rows(state: StateTable, multiplicity: Scalar) -> exp.Expr:
    """How many rows of the query a signed row stands for."""
    if state.rows is None:
        return _as_bigint(multiplicity)
    return sum_of_products((state.rows,), multiplicity, ROWS.ring, BIGINT).ast()


def _as_bigint(multiplicity: Scalar) -> exp.Expr:
    ast = ROWS.term(multiplicity).ast()
    # A literal would make the column an int, and the sum of ints in a union with bigints a matter of coercion.
    return exp.cast(ast, BIGINT.text, dialect="spark") if multiplicity.as_number is not None else ast


def _total(name: str, state: StateTable) -> exp.Expr:
    """The sum of a component over a key's rows; over no rows at all (a global aggregate) it is zero."""
    total: exp.Expr = exp.Sum(this=exp.column(name))
    if not state.is_global:
        return total
    empty = exp.EQ(this=exp.Count(this=exp.Star()), expression=exp.Literal.number(0))
    zero = exp.cast(exp.Literal.number(0), _column_type(name, state), dialect="spark")
    return exp.Case(ifs=[exp.If(this=empty, true=zero)], default=total)


def _column_type(name: str, state: StateTable) -> str:
    component = _component(name, state)
    return component.type.text if component is not None else BIGINT.text


def _component(name: str, state: StateTable) -> Component | None:
    return next((p.component for p in state.payload if p.name == name), None)


def partition_value(state: StateTable, buckets: int) -> exp.Expr:
    """The hidden partition column over the key columns."""
    by = state.partitioning
    if by.expression is not None:
        return by.expression.ast()
    if not state.keys or 1 in (buckets, by.buckets):
        return exp.cast(exp.Literal.number(0), "int", dialect="spark")
    names = state.grouped_by or tuple(k.name for k in state.keys)
    hashed = exp.Anonymous(this="XXHASH64", expressions=[column_ast("", name) for name in names])
    bucket = exp.Anonymous(this="PMOD", expressions=[hashed, exp.Literal.number(buckets)])
    return exp.cast(bucket, "int", dialect="spark")


def table_properties(properties: Mapping[str, str]) -> list[exp.Property]:
    """The entries of TBLPROPERTIES."""
    return [
        exp.Property(this=exp.Literal.string(k), value=exp.Literal.string(v)) for k, v in properties.items()
    ]


def column_mapping(names: Iterable[str]) -> dict[str, str]:
    """The property without which Delta refuses a table with such column names, as it does those with a space."""
    return {"delta.columnMapping.mode": "name"} if any(c in _UNSTORABLE for n in names for c in n) else {}


def create_table(
    name: str, query: exp.Query, properties: dict[str, str], partitioned_by: str | None
) -> exp.Create:
    """``CREATE OR REPLACE TABLE name USING DELTA ... AS query``, atomic in Delta."""
    parts: list[exp.Expr] = [exp.FileFormatProperty(this=exp.Identifier(this="DELTA"))]
    if partitioned_by:
        parts.append(
            exp.PartitionedByProperty(this=exp.Tuple(expressions=[exp.to_identifier(partitioned_by)]))
        )
    parts += table_properties(properties)
    return exp.Create(
        this=table(name),
        kind="TABLE",
        replace=True,
        expression=query,
        properties=exp.Properties(expressions=parts),
    )


def create_view(name: str, query: exp.Query, properties: dict[str, str]) -> exp.Create:
    """``CREATE OR REPLACE VIEW name TBLPROPERTIES (...) AS query``."""
    parts = table_properties(properties)
    return exp.Create(
        this=table(name),
        kind="VIEW",
        replace=True,
        expression=query,
        properties=exp.Properties(expressions=parts),
    )


def touched_query(plan: Plan, view: View) -> exp.Select:
    """Per touched partition its value and how many keys of the staged delta lie in it, in a stable order."""
    value = exp.column(PARTITION)
    query = exp.select(value, exp.alias_(exp.Count(this=exp.Star()), "rows_touched")).from_(
        table(staged_state(plan, view))
    )
    return query.group_by(value).order_by(exp.Ordered(this=value, nulls_first=True))


def merge(
    plan: Plan, view: View, partitions: Sequence[exp.Expr] | None, *, only_these: bool = False
) -> exp.Merge:
    """Add the staged delta to a view's state, in the given partitions only (literals; None: no restriction).

    ``only_these`` says that the delta has rows for other partitions too, which are left for other statements.

    Keys compare null-safe. A row whose multiplicity reaches zero is deleted; one that would go below zero, and a
    decimal that overflows, abort the statement before anything is committed.
    """
    state = view.state
    source: exp.Expr = table(staged_state(plan, view)).as_("delta", copy=False)
    if view.step is not None:
        source = _over_all_steps(plan, view).subquery("delta")
    elif only_these and partitions is not None:
        rows = exp.select("*").from_(source.copy()).where(in_partitions("delta", partitions))
        source = rows.subquery("delta")
    conditions: list[exp.Expr] = [
        exp.NullSafeEQ(this=column_ast("target", k.name), expression=column_ast("delta", k.name))
        for k in state.keys
    ]
    if partitions is not None:
        conditions.append(in_partitions("target", partitions))
    count = exp.Add(this=column_ast("target", COUNT), expression=column_ast("delta", COUNT))
    whens = [_update(state, count), _insert(state)]
    if not state.is_global:
        whens.insert(0, _delete(count))
    return exp.Merge(
        this=table(state.relation).as_("target", copy=False),
        using=source,
        on=exp.and_(*conditions) if conditions else exp.Boolean(this=True),
        whens=exp.Whens(expressions=whens),
    )


def _over_all_steps(plan: Plan, view: View) -> exp.Select:
    """The staged delta of a view by its keys alone, without what one step has undone of another."""
    keys = [column_ast("", name) for name in (*(k.name for k in view.state.keys), PARTITION)]
    sums = {name: exp.Sum(this=exp.column(name)) for name in view.state.payload_names}
    query = exp.select(*(k.copy() for k in keys), *(exp.alias_(s.copy(), n) for n, s in sums.items()))
    moved = [exp.NullSafeNEQ(this=s, expression=exp.Literal.number(0)) for s in sums.values()]
    return query.from_(table(staged_state(plan, view))).group_by(*keys).having(exp.or_(*moved))


def _delete(count: exp.Expr) -> exp.When:
    gone = exp.EQ(this=count.copy(), expression=exp.Literal.number(0))
    return exp.When(matched=True, condition=gone, then=exp.var("DELETE"))


def _update(state: StateTable, count: exp.Expr) -> exp.When:
    negative = exp.LT(this=count.copy(), expression=exp.Literal.number(0))
    checked = _unless(
        negative, count.copy(), BIGINT.text, f"{NEGATIVE} {state.relation}: a multiplicity below zero"
    )
    assignments = [exp.EQ(this=exp.column(COUNT), expression=checked)]
    for payload in state.payload:
        assignments.append(
            exp.EQ(this=exp.column(payload.name), expression=_added(payload.name, payload.component, state))
        )
    return exp.When(matched=True, then=exp.Update(expressions=assignments))


def _added(name: str, component: Component, state: StateTable) -> exp.Expr:
    if not component.type.is_decimal:
        return exp.Add(this=column_ast("target", name), expression=column_ast("delta", name))
    # decimal(37, s) + decimal(37, s) is decimal(38, s); of wider operands Spark would round the last digits.
    narrow = f"decimal(37,{component.type.scale})"
    sides = [exp.cast(column_ast(side, name), narrow, dialect="spark") for side in ("target", "delta")]
    return _never_null(exp.Add(this=sides[0], expression=sides[1]), component.type.text, state)


def _insert(state: StateTable) -> exp.When:
    columns = [*(k.name for k in state.keys), *state.payload_names, PARTITION]
    values: list[exp.Expr] = [column_ast("delta", k.name) for k in state.keys]
    missing = exp.LTE(this=column_ast("delta", COUNT), expression=exp.Literal.number(0))
    message = f"{NEGATIVE} {state.relation}: a key is to be removed that is not there"
    values.append(_unless(missing, column_ast("delta", COUNT), BIGINT.text, message))
    for payload in state.payload:
        value = column_ast("delta", payload.name)
        values.append(
            _never_null(value, payload.component.type.text, state)
            if payload.component.type.is_decimal
            else value
        )
    values.append(column_ast("delta", PARTITION))
    then = exp.Insert(
        this=exp.Tuple(expressions=[exp.column(identifier(c)) for c in columns]),
        expression=exp.Tuple(expressions=values),
    )
    return exp.When(matched=False, condition=_is_more_than_rounding(state), then=then)


def _is_more_than_rounding(state: StateTable) -> exp.Expr | None:
    """Of a key that comes and goes within one delta, doubles may leave a rest: it is no row. None without doubles."""
    exact = [p.name for p in state.payload if not p.component.type.is_floating]
    if len(exact) == len(state.payload):
        return None
    zero = exp.Literal.number(0)
    return exp.or_(
        *(exp.NEQ(this=column_ast("delta", n), expression=zero.copy()) for n in (COUNT, *exact)), copy=False
    )


def _unless(alarm: exp.Expr, value: exp.Expr, type_: str, message: str) -> exp.Expr:
    """``value``, but an error with ``message`` where ``alarm`` holds."""
    return exp.Case(ifs=[exp.If(this=alarm, true=raise_error(message, type_))], default=value)


def _never_null(value: exp.Expr, type_: str, state: StateTable) -> exp.Expr:
    message = f"{OVERFLOW} {state.relation}: a decimal sum overflowed"
    return exp.Coalesce(this=value, expressions=[raise_error(message, type_)])
