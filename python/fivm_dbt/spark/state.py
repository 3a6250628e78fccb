"""State tables have statements: build, delta, touched partitions, MERGE, view."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from fivm_dbt.catalog.types import BIGINT
from fivm_dbt.delta.key_sets import KeySet
from fivm_dbt.delta.old_from_new import old_from_new
from fivm_dbt.delta.products import Part, ProductDelta
from fivm_dbt.delta.prune import prune_terms
from fivm_dbt.delta.term import Term, at_side
from fivm_dbt.ir.node import Node, Side
from fivm_dbt.ir.reads import Lookup
from fivm_dbt.ir.scalar import Scalar, as_type, column_ast, identifier, raise_error
from fivm_dbt.naming import COUNT, PARTITION, STEP
from fivm_dbt.plan.model.head import NextHead
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.plan.model.state import StateTable
from fivm_dbt.plan.model.view import View
from fivm_dbt.rings.component import ROWS
from fivm_dbt.spark.clock import at_time
from fivm_dbt.spark.copies import select_by_copies
from fivm_dbt.spark.near_changes import first_and_last
from fivm_dbt.spark.panes import select_by_panes
from fivm_dbt.spark.partition_text import partition_text
from fivm_dbt.spark.pieces import any_moved, is_any, table, union_all
from fivm_dbt.spark.properties import storage, table_properties
from fivm_dbt.spark.reads import bound_number, presented, side_reader
from fivm_dbt.spark.select import Reader, select, select_columns
from fivm_dbt.spark.shared_values import select_shared
from fivm_dbt.spark.states import as_stored, lay_out_rows, with_head
from fivm_dbt.spark.vectors import added_by_places, has_vectors
from fivm_dbt.steps.binding import Binding, BoundInput, staged_input, staged_state

TWICE = "FIVM405"


def build_query(plan: Plan, view: View, binding: Binding) -> exp.Select:
    """A view's state from scratch: the payload of its whole query at the new versions."""
    query = result_query(plan, view, binding)
    return as_set(view.state, query) if view.state.is_set else query


def build_states_query(plan: Plan, binding: Binding, staged: Collection[View], head: NextHead) -> exp.Select:
    """The rows of the table of all states. Those of some views lie ``staged``, since others are built of them."""
    rows: list[tuple[View, exp.Expr]] = [
        (v, table(staged_state(plan, v)) if v in staged else build_query(plan, v, binding).subquery("built"))
        for v in plan.stored
    ]
    return lay_out_rows(plan, plan.stored, with_head(plan, as_stored(plan, rows), head))


def result_query(plan: Plan, view: View, binding: Binding) -> exp.Select:
    """The rows of a view's state, with their multiplicities: its whole query at the new versions."""
    term = Term(at_side(view.core, Side.NEW), Scalar.number(1))
    return _payload_query(plan, view, binding, (term,), keep_zero=view.state.is_global)


def joined_on_read(plan: Plan) -> exp.Query:
    """The query of a model whose result is no table, over its inner views as they are.

    They are one table, of which Delta reads one version throughout a query.
    """
    bound = tuple(BoundInput(view.name, "newest", None, 0) for view in plan.helpers)
    result = result_query(plan, plan.top, Binding(bound, frozenset(), 1))
    return presented(plan.presentation, result.subquery("result", copy=False))


def as_set(state: StateTable, counted: exp.Select) -> exp.Select:
    """Rows with their multiplicities as those of a table that has none: an alarm where one is not 1."""
    shown = [column_ast("", k.name) for k in state.keys]
    checked = checked_partition(state)
    return exp.select(*shown, checked).from_(counted.subquery("counted", copy=False))


def checked_partition(state: StateTable, *others: exp.Expr) -> exp.Expr:
    """The partition of a row that is there once; an alarm where its multiplicity is not 1, and none of ``others``
    holds."""
    is_one = exp.EQ(this=exp.column(COUNT), expression=exp.Literal.number(1))
    is_right = exp.or_(*(o.copy() for o in others), is_one, copy=False)
    alarm = raise_error(twice(state), "string")
    case = exp.Case(ifs=[exp.If(this=is_right, true=exp.column(PARTITION))], default=alarm)
    return exp.alias_(case, PARTITION)


def twice(state: StateTable) -> str:
    """The alarm for a row that is there twice, or is to be removed and not there."""
    return f"{TWICE} {state.relation}: a row that a promised key says is there once"


def delta_query(plan: Plan, view: View, binding: Binding) -> exp.Select:
    """A state's delta: all terms of all changed relations, added up per key, without keys whose change is zero.

    Where it is asked for what some relations have changed, it is added up by these too.
    """
    eager = view.eager_delta(binding.met(view))
    if eager is not None:
        counted = replace(view, state=eager.state)
        return _payload_query(plan, counted, binding, eager.terms, keep_zero=False)
    terms = binding.terms(view)
    if view.state.is_exact:
        # Doubles would not give back in full what is added to them.
        terms = tuple(old_from_new(term, binding.undone(plan)) for term in terms)
    return _payload_query(plan, view, binding, terms, keep_zero=False, step=view.step)


def part_query(plan: Plan, view: View, part: Part, binding: Binding) -> exp.Select:
    """A factor of a view's delta that is a product: a connected part of its join, added up by terms and keys."""
    keys = [exp.alias_(k.value.ast(), identifier(k.name)) for k in part.keys]
    rows_of = Term(part.node, Scalar.number(1))
    if all(t.numbers.is_exact for t in part.totals):
        rows_of = old_from_new(rows_of, binding.undone(plan))
    items = [total.item(rows_of.multiplicity) for total in part.totals]
    values = [exp.alias_(item.value.ast(), identifier(item.name)) for item in items]
    rows = select_columns([*keys, *values], at_time(rows_of.node, binding), side_reader(plan, view, binding))
    sums = {t.name: t.numbers.partial(Scalar.column("", t.name)).ast() for t in part.totals}
    group = [column_ast("", k.name) for k in part.keys]
    query = exp.select(*(g.copy() for g in group), *(exp.alias_(s, identifier(n)) for n, s in sums.items()))
    query = query.from_(rows.subquery(identifier("part"), copy=False), copy=False)
    if group:
        query = query.group_by(*group, copy=False)
    return query.having(is_any(sums.values()), copy=False)


def key_set_query(plan: Plan, view: View, key_set: KeySet, binding: Binding) -> exp.Query | None:
    """The keys that the changes affect, each once; None where nothing changed that gives any."""
    terms = prune_terms((Term(key_set.node, Scalar.number(1)),), binding.met(view))
    return select(at_time(terms[0].node, binding), side_reader(plan, view, binding)) if terms else None


def partitions_query(
    plan: Plan,
    looked_up: Sequence[tuple[Lookup, StateTable]],
    buckets: int,
    inlined: Mapping[str, exp.Query],
) -> exp.Query:
    """Which partitions the keys of sets lie in, staged or ``inlined``: number of the look-up, partition as text."""
    queries = []
    for number, (lookup, state) in enumerate(looked_up):
        columns = [exp.alias_(column_ast("", theirs), identifier(ours)) for ours, theirs in lookup.keys]
        own = inlined.get(lookup.key_set)
        rows = table(staged_input(plan, lookup.key_set)) if own is None else own.subquery("affected")
        keys = exp.select(*columns).from_(rows).subquery("looked_up")
        value = partition_value(state, buckets)
        queries.append(
            exp.select(exp.alias_(exp.Literal.number(number), "number"), exp.alias_(value, "partition"))
            .from_(keys)
            .distinct()
        )
    return union_all(queries)


def _payload_query(
    plan: Plan,
    view: View,
    binding: Binding,
    terms: tuple[Term, ...],
    *,
    keep_zero: bool,
    step: Scalar | None = None,
) -> exp.Select:
    state, reader = view.state, side_reader(plan, view, binding, by_parts=True)
    steps = [] if step is None else [exp.alias_(step.ast(), STEP)]
    branches, by_places = [], []
    for term in terms:
        columns, node = [*_branch_columns(state, term), *steps], at_time(term.node, binding)
        copies = None if state.is_grouped else select_by_copies(state, term, node, columns, reader)
        if copies is not None:
            by_places.append(copies)
        else:
            branches.append(_branch(state, columns, node, reader))
    branches += [
        select_columns(_product_columns(state, product), product.node, reader)
        for product in binding.products(view)
    ]
    if state.is_grouped and len(branches) == 1:
        return branches[0]
    keys = [column_ast("", k.name) for k in state.keys] + [exp.column(STEP) for _ in steps]
    rows: exp.Query | None = union_all(branches) if branches else None
    is_added = has_vectors(state)
    if is_added:
        rows = added_by_places(state, rows, keys, by_places)
    assert rows is not None, "rows that are added up by places have vectors"
    # Rows with vectors are added up by the keys already.
    is_done = is_added and bool(keys)
    sums = {n: exp.column(n) if is_done else _total(n, state) for n in state.payload_names}
    query = exp.select(*(k.copy() for k in keys), *(_named(s.copy(), n) for n, s in sums.items()))
    query = query.select(exp.alias_(partition_value(state, binding.buckets), PARTITION), copy=False)
    query = query.from_(rows.subquery(identifier("term"), copy=False), copy=False)
    if keys and not is_done:
        query = query.group_by(*keys, copy=False)
    if keep_zero:
        return query
    moved = any_moved(state, sums)
    return query.where(moved, copy=False) if is_done else query.having(moved, copy=False)


def _named(value: exp.Expr, name: str) -> exp.Expr:
    return value if isinstance(value, exp.Column) and value.name == name else exp.alias_(value, name)


def _branch(state: StateTable, columns: list[exp.Expr], node: Node, reader: Reader) -> exp.Select:
    """What a term contributes: of rows in sliding windows the sums of panes."""
    found = select_by_panes(state, node, columns, reader)
    if found is not None:
        return found
    return (select_shared if has_vectors(state) else select_columns)(columns, node, reader)


def _branch_columns(state: StateTable, term: Term) -> list[exp.Expr]:
    columns = [exp.alias_(term.own(k.value).ast(), identifier(k.name)) for k in state.keys]
    columns.append(exp.alias_(_rows(state, term), COUNT))
    return columns + [exp.alias_(term.own(p.term(term.multiplicity)).ast(), p.name) for p in state.payload]


def _product_columns(state: StateTable, product: ProductDelta) -> list[exp.Expr]:
    """What a combination of the parts' rows contributes."""
    once = Scalar.number(1)
    columns = [exp.alias_(v.ast(), identifier(k.name)) for k, v in zip(state.keys, product.keys, strict=True)]
    columns.append(exp.alias_(ROWS.numbers.sum_of((product.rows,), once).ast(), COUNT))
    for payload, products in zip(state.payload, product.payload, strict=True):
        columns.append(exp.alias_(payload.numbers.sum_of(products, once).ast(), payload.name))
    return columns


def _rows(state: StateTable, term: Term) -> exp.Expr:
    """How many rows of the query a signed row stands for."""
    if state.rows is None:
        return _as_bigint(term.multiplicity)
    return term.own(ROWS.numbers.sum_of((state.rows,), term.multiplicity)).ast()


def _as_bigint(multiplicity: Scalar) -> exp.Expr:
    ast = ROWS.term(multiplicity).ast()
    # A literal would make the column an int, and the sum of ints in a union with bigints a matter of coercion.
    return as_type(ast, BIGINT.text) if multiplicity.as_number is not None else ast


def _total(name: str, state: StateTable) -> exp.Expr:
    """The sum of a component over a key's rows; over no rows at all (a global aggregate) it is zero."""
    numbers = state.numbers(name)
    total = numbers.total(exp.column(name))
    if not state.is_global:
        return total
    empty = exp.EQ(this=exp.Count(this=exp.Star()), expression=exp.Literal.number(0))
    return exp.Case(ifs=[exp.If(this=empty, true=numbers.zero())], default=total)


def partition_value(state: StateTable, buckets: int) -> exp.Expr:
    """The hidden partition column over the key columns."""
    by = state.partitioning
    if by.expression is not None:
        return partition_text(by.expression.ast(), by.type)
    if not state.keys or 1 in (buckets, by.buckets):
        return exp.Literal.string("0")
    names = state.grouped_by or tuple(k.name for k in state.keys)
    hashed = exp.Anonymous(this="XXHASH64", expressions=[column_ast("", name) for name in names])
    bucket = exp.Anonymous(this="PMOD", expressions=[hashed, exp.Literal.number(buckets)])
    return as_type(bucket, "string")


def create_table(
    name: str,
    query: exp.Query,
    properties: dict[str, str],
    partitioned_by: Sequence[str] = (),
    *,
    is_replacing: bool = True,
) -> exp.Create:
    """``CREATE OR REPLACE TABLE name USING ... AS query``, which is one commit.

    The columns that it is partitioned by come last in ``query``: else the third such statement corrupts its metadata.
    """
    return exp.Create(
        this=table(name),
        kind="TABLE",
        replace=is_replacing,
        expression=query,
        properties=storage(properties, partitioned_by),
    )


def create_view(name: str, query: exp.Query, properties: dict[str, str]) -> exp.Create:
    """``CREATE OR REPLACE VIEW name TBLPROPERTIES (...) AS query``."""
    return exp.Create(
        this=table(name),
        kind="VIEW",
        replace=True,
        expression=query,
        properties=exp.Properties(expressions=table_properties(properties)),
    )


def touched_query(plan: Plan, view: View) -> exp.Select:
    """Per touched partition its value and how many keys of the staged delta lie in it, in a stable order.

    Then, for each column whose times are asked for, its first and its last one; and of a bounded state the
    least change of a multiplicity and the bounds of the change.
    """
    value = exp.column(PARTITION)
    times = [e for n, t in plan.times_of(view.name) for e in first_and_last(column_ast("", n), t)]
    bounding = view.state.bounding
    ends: list[exp.Expr] = []
    if bounding is not None:
        bound = bound_number(bounding.name, bounding.type)
        ends = [exp.Min(this=exp.column(COUNT)), exp.Min(this=bound), exp.Max(this=bound.copy())]
    query = exp.select(value, exp.alias_(exp.Count(this=exp.Star()), "rows_touched"), *times, *ends)
    query = query.from_(table(staged_state(plan, view)))
    return query.group_by(value).order_by(exp.Ordered(this=value, nulls_first=True))
