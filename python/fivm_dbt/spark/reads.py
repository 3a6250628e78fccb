"""A scan is read by version, as a presented state, from an own snapshot, or from a staged delta.

Old rows are those of the old version, or, counted, those of the new one less the staged delta.

Nothing is ever read unpinned: Spark mixes up a change range and a plain read of the same table in one statement.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

import sqlglot
from sqlglot import exp

from fivm_dbt.catalog import Presentation, SparkType
from fivm_dbt.catalog.types import BIGINT, TIMESTAMP
from fivm_dbt.ir.dialect import SparkText
from fivm_dbt.ir.node import Side
from fivm_dbt.ir.reads import Lookup, Read, Scan
from fivm_dbt.ir.scalar import as_type, column_ast, conjuncts, identifier
from fivm_dbt.naming import COUNT, PARTITION, STEP, VIEW, old_rows
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.plan.model.view import View
from fivm_dbt.spark.added import added_up, read_summed, stored_and_staged, summed
from fivm_dbt.spark.formats import FORMAT
from fivm_dbt.spark.near_changes import in_ranges, near_changes
from fivm_dbt.spark.part_time import instant, whole
from fivm_dbt.spark.pieces import table, union_all
from fivm_dbt.spark.select import Reader
from fivm_dbt.spark.states import stored
from fivm_dbt.steps.binding import Binding, BoundInput, staged_input, staged_state


def presented(presentation: Presentation, source: exp.Expr) -> exp.Select:
    """A fivm model's rows with its root state read from ``source``."""
    query = _shown(presentation)
    if not presentation.is_summed:
        return query.from_(source, copy=False)
    inner = next(query.find_all(exp.Table))
    inner.replace(source)
    return query


def shown_summed(plan: Plan) -> exp.Select:
    """What a model shows of its table with what has been appended to it, of each key one row."""
    query, root = _shown(plan.presentation), plan.top
    of_root = {VIEW}
    where = query.args.pop("where", None)
    tests = [] if where is None else conjuncts(where.this)
    rest = [t for t in tests if {c.name for c in t.find_all(exp.Column)} != of_root]
    rows = summed(root, stored(plan, root, None, has_tail=True), with_partition=False)
    query = query.from_(rows.subquery("state", copy=False), copy=False)
    return query.where(*rest, copy=False) if rest else query


def _shown(presentation: Presentation) -> exp.Select:
    query = sqlglot.parse_one(presentation.sql, dialect=SparkText)
    assert isinstance(query, exp.Select)
    return query


def shown_columns(view: View, names: Sequence[str]) -> list[exp.Expr]:
    """The columns of a view over a row of its state's delta, those of ``names`` that it has there."""
    shown = dict(view.rows or ())
    return [exp.alias_(shown[n].ast(), identifier(n)) for n in names if n in shown]


def side_reader(plan: Plan, view: View, binding: Binding, *, by_parts: bool = False) -> Reader:
    """Reads the sides of a refresh for the delta of ``view``. What did not change is the same on both sides.

    What is read ``by_parts`` is multiplied and added up: of views for which that does, payloads are not added up
    before.
    """
    return _Sides(plan, view, binding, view.by_parts if by_parts else frozenset()).read


class _Sides:
    def __init__(self, plan: Plan, view: View, binding: Binding, by_parts: frozenset[str]) -> None:
        self._plan = plan
        self._of = view
        self._binding = binding
        self._by_parts = by_parts

    def read(self, node: Read) -> exp.Expr:
        tests = near_changes(node.times, self._binding)
        if node.lookup is not None:
            tests = [t for t in (self._in_touched(node.lookup),) if t is not None] + tests
        return self._scan(node.source, exp.and_(*tests, copy=False) if tests else None)

    def _in_touched(self, node: Lookup) -> exp.Expr | None:
        literals = self._binding.partitions(node.key_set, node.scan.relation)
        return None if literals is None else in_partitions("", [p.ast() for p in literals])

    def _scan(self, scan: Scan, where: exp.Expr | None) -> exp.Expr:
        alias = identifier(scan.alias)
        where = self._also_within(scan.relation, where)
        if scan.side is Side.DELTA:
            return _aliased(self._staged(scan), alias)
        if scan.side is Side.COUNTED:
            return self._counted(scan, where).subquery(alias, copy=False)
        if scan.relation == self._of.name:
            has_tail = self._of.name in self._binding.tails
            return read_summed(
                self._plan, self._of, self._binding.version_before, where, scan.alias, has_tail=has_tail
            )
        bound = self._binding.input(scan.relation)
        is_old = scan.side is Side.OLD and scan.relation in self._binding.changed
        helper = self._plan.helper(scan.relation)
        if helper is not None:
            return self._view(helper, bound, scan, where, is_old=is_old)
        if is_old and bound.capture == "snapshot":
            assert bound.snapshot is not None
            return _aliased(FORMAT.pinned(self._plan.snapshot_table(scan.relation), bound.snapshot), alias)
        version = bound.old if is_old else bound.new
        assert version is not None, f"no version of {scan.relation}"
        return read_version(self._plan, scan.relation, version, scan.alias, where)

    def _also_within(self, relation: str, where: exp.Expr | None) -> exp.Expr | None:
        """A condition on the rows of a relation, and that they are in the part that is built."""
        w = self._binding.within_of(self._of, relation)
        test = None if w is None else in_ranges(w.column, w.type, w.ranges, or_null=True)
        return where if test is None else exp.and_(where, test, copy=False)

    def _view(
        self, helper: View, bound: BoundInput, scan: Scan, where: exp.Expr | None, *, is_old: bool
    ) -> exp.Expr:
        if bound.capture == "built":
            return read_state(helper.presentation, table(staged_state(self._plan, helper)), scan.alias, where)
        if bound.capture == "newest":
            return read_view(self._plan, helper, None, scan.alias, where)
        with_delta = scan.relation in self._binding.changed and not is_old
        version = bound.old if is_old else bound.new
        return read_view(
            self._plan,
            helper,
            self._binding.version_before if with_delta else version,
            scan.alias,
            where,
            with_delta=with_delta,
            has_tail=helper.name in self._binding.tails,
            is_summed=not (helper.is_payload and helper.name in self._by_parts),
        )

    def _counted(self, scan: Scan, where: exp.Expr | None) -> exp.Query:
        """The rows after the refresh, each once, and those of the change with the opposite multiplicity."""
        shown = [column_ast("", name) for name, _ in scan.columns if name != COUNT]
        once = as_type(exp.Literal.number(1), BIGINT.text)
        version = self._binding.input(scan.relation).new
        new = exp.select(*shown, exp.alias_(once, COUNT)).from_(
            read_version(self._plan, scan.relation, version, "new", where and where.copy()), copy=False
        )
        less = exp.select(*shown, exp.alias_(exp.Neg(this=exp.column(COUNT)), COUNT))
        less = less.from_(table(staged_input(self._plan, scan.relation)), copy=False)
        return union_all([new, less.where(where, copy=False) if where is not None else less])

    def _staged(self, scan: Scan) -> exp.Expr:
        losing = next((i.name for i in self._plan.inputs if old_rows(i.name) == scan.relation), None)
        if losing is not None:
            gone = exp.LT(this=exp.column(COUNT), expression=exp.Literal.number(0))
            return (
                exp.select("*")
                .from_(table(staged_input(self._plan, losing)))
                .where(gone)
                .subquery(copy=False)
            )
        helper = self._plan.helper(scan.relation)
        bound = next((b for b in self._binding.inputs if b.name == scan.relation), None)
        if helper is None or helper.rows is None or bound is None or bound.capture != "staged":
            return table(staged_input(self._plan, scan.relation))
        # The rows of this view's state are its own: what was staged to be merged is its change.
        columns = shown_columns(helper, [name for name, _ in scan.columns])
        times = exp.alias_(exp.Literal.number(1), COUNT) if helper.is_payload else exp.column(COUNT)
        if helper.step is not None:
            columns.append(exp.column(STEP))
        rows = exp.select(*columns, times).from_(table(staged_state(self._plan, helper)))
        return rows.subquery(copy=False)


def in_partitions(alias: str, partitions: Sequence[exp.Expr]) -> exp.Expr:
    """``alias.partition IN (texts)``: Delta prunes files by it."""
    if not partitions:
        return exp.Boolean(this=False)
    return exp.In(this=column_ast(alias, PARTITION), expressions=[p.copy() for p in partitions])


def written(rows: Sequence[Sequence[exp.Expr]], columns: Mapping[str, str], alias: str) -> exp.Select:
    """``SELECT CAST(alias.column AS type) AS column, ... FROM VALUES (...), ... AS alias(column, ...)``.

    Rows of literals, casts of which are taken for what they cast. Of a union with a SELECT per row Spark would analyse
    each by itself, a tenth of a second long.
    """
    tuples = [
        exp.Tuple(expressions=[v.this if isinstance(v, exp.Cast) else v for v in row], copy=False)
        for row in rows
    ]
    named = exp.TableAlias(this=exp.to_identifier(alias), columns=[identifier(name) for name in columns])
    shown = [
        exp.alias_(as_type(column_ast(alias, name), type_), identifier(name))
        for name, type_ in columns.items()
    ]
    return exp.select(*shown, copy=False).from_(exp.Values(expressions=tuples, alias=named), copy=False)


@dataclass(frozen=True)
class Bounds:
    """The least and the greatest value of a column in a change: numbers, or microseconds of its time."""

    column: str
    type: SparkType
    low: int
    high: int


def bound_number(column: str, type_: SparkType) -> exp.Expr:
    """The number by which a column has its bounds."""
    value = column_ast("", column)
    return exp.Anonymous(this="UNIX_MICROS", expressions=[value]) if type_ == TIMESTAMP else value


def in_bounds(alias: str, bounds: Bounds) -> exp.Expr:
    """The column of ``alias`` lies within bounds: Delta skips files by it."""
    low, high = (_bound(n, bounds.type) for n in (bounds.low, bounds.high))
    own = column_ast(alias, bounds.column)
    return exp.and_(exp.GTE(this=own, expression=low), exp.LTE(this=own.copy(), expression=high), copy=False)


def _bound(number: int, type_: SparkType) -> exp.Expr:
    if type_ == TIMESTAMP:
        return instant(datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=number), type_)
    return whole(number)


def read_version(plan: Plan, name: str, version: int, alias: str, where: exp.Expr | None = None) -> exp.Expr:
    """An input at a version, where ``where`` holds: a pinned table, or a fivm model by its presentation."""
    presentation = plan.input(name).relation.presentation
    if presentation is None:
        return _restricted(FORMAT.pinned(name, version), where, identifier(alias))
    return read_state(presentation, FORMAT.pinned(presentation.root, version), alias, where)


def read_view(
    plan: Plan,
    view: View,
    version: int | None,
    alias: str,
    where: exp.Expr | None = None,
    *,
    with_delta: bool = False,
    has_tail: bool = False,
    is_summed: bool = True,
) -> exp.Expr:
    """An inner view at a version of its state, where ``where`` holds; with what is staged for it, as it will be.

    Of a key there is one row where it ``is_summed``, else one for each part of its payload. Without a version it is
    read as it is, for readers of the model.
    """
    inner: list[exp.Expr] = []
    outer: list[exp.Expr] = []
    if where is not None:
        inner, outer = _by_the_state(where, _shown(view.presentation))
    test = exp.and_(*inner, copy=False) if inner else None
    if with_delta:
        own = stored(plan, view, version, test, has_tail=has_tail)
        add = added_up if is_summed else stored_and_staged
        source = add(plan, view, own, test).subquery("state", copy=False)
    else:
        read = read_summed if is_summed else stored
        source = read(plan, view, version, test, "state", has_tail=has_tail)
    return read_state(view.presentation, source, alias, exp.and_(*outer, copy=False) if outer else None)


def read_state(presentation: Presentation, source: exp.Expr, alias: str, where: exp.Expr | None) -> exp.Expr:
    """What a model or a view shows of its state in ``source``, where ``where`` holds."""
    query = presented(presentation, source)
    if where is None:
        return query.subquery(identifier(alias), copy=False)
    inner, outer = _by_the_state(where, query)
    query = query.where(*inner, copy=False) if inner else query
    if outer:
        query = exp.select("*").from_(query.subquery("shown", copy=False)).where(*outer, copy=False)
    return query.subquery(identifier(alias), copy=False)


def _by_the_state(where: exp.Expr, query: exp.Select) -> tuple[list[exp.Expr], list[exp.Expr]]:
    """Conditions on shown columns that are columns of the state, with their names there; and the other ones."""
    shown = {s.alias_or_name: s.unalias() for s in query.selects}
    stored = {name: s.name for name, s in shown.items() if isinstance(s, exp.Column)} | {PARTITION: PARTITION}
    inner, outer = [], []
    for test in conjuncts(where):
        columns = list(test.find_all(exp.Column))
        if all(c.name in stored for c in columns):
            for column in columns:
                column.set("this", identifier(stored[column.name]))
            inner.append(test)
        else:
            outer.append(test)
    return inner, outer


def whole_as_text(plan: Plan, name: str, version: int) -> str:
    """An input at a version as an item of FROM, to be put in the place of its name in a text."""
    presentation = plan.input(name).relation.presentation
    if presentation is None:
        return FORMAT.pinned(name, version).sql(dialect="spark")
    return f"({presented(presentation, FORMAT.pinned(presentation.root, version)).sql(dialect='spark')})"


def _restricted(source: exp.Expr, where: exp.Expr | None, alias: exp.Identifier) -> exp.Expr:
    if where is None:
        return _aliased(source, alias)
    return exp.select("*").from_(source).where(where, copy=False).subquery(alias, copy=False)


def _aliased(source: exp.Expr, alias: exp.Identifier) -> exp.Expr:
    source.set("alias", exp.TableAlias(this=alias))
    return source
