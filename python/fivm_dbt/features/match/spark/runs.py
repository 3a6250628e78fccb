"""A SELECT makes the marks of a pattern's runs: one fold over a key's parts folds their rows.

``SELECT keys, EXPLODE(marks) FROM (SELECT keys, fold(base, parts) FROM (SELECT keys, SORT_ARRAY(COLLECT_LIST(part))
FROM (SELECT keys, part, SORT_ARRAY(COLLECT_LIST(row)) FROM (numbered rows) GROUP BY keys, part) GROUP BY keys))``. The
marks are exploded in the select list: DuckDB binds a lateral view over a fold for seconds. Positions are those in the
part: what is carried into the next one is moved before its first row, so that it does not tell how many rows have been
before.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import INT
from fivm_dbt.features.match.ir.match import FINAL, FOUND, KEYS, POSITION, ROW_PART, RUNNING
from fivm_dbt.features.match.ir.runs import AT, BASE, DECIDED, HEADS, MARK, OPEN, OWN, PART, SLOT, STATE, Runs
from fivm_dbt.features.match.ir.types import array_type, plain, struct_type
from fivm_dbt.features.match.spark.chain import Chain
from fivm_dbt.features.match.spark.fold import Fold, fold_of
from fivm_dbt.features.match.spark.fold_sql import (
    array,
    call,
    cast,
    concat,
    element,
    field,
    function,
    if_else,
    let,
    none_of,
    number,
    size,
    struct,
    transform,
)
from fivm_dbt.features.match.spark.lines import LINES, Lines
from fivm_dbt.features.match.spark.settling import FOLD
from fivm_dbt.ir.scalar import ColumnId, Scalar, cast_ast, column_ast, identifier
from fivm_dbt.naming import PREFIX
from fivm_dbt.spark.select import WRITERS, Reader, select, select_columns

_RUN, _PIECE, _MADE, _AFTER, _MARK, _HEAD, _PLACE, _NTH = (
    f"{PREFIX}{name}" for name in ("run", "piece", "made", "after", "mark", "head", "place", "nth")
)
_RUNS = f"{PREFIX}runs"
PARTS_AT_ONCE = 32
"""Spark copies what a fold has made at each of its steps, all marks so far. With a fold over so many parts at a time,
and one over these, a mark of P parts is copied 16 + P / 64 times, not P / 2 times."""
_ROWS, _PARTS, _FOUND, _SO_FAR = "part_rows", "parts", "found_marks", "marks"
_BEGAN, _BY_KEY = "began", "by_key"


@WRITERS.add(Runs)
def select_runs(node: Runs, reader: Reader) -> exp.Select:
    """The query whose rows are those of ``node``: of its rows, and of what its keys begin with."""
    source, *began = node.inputs
    query = _Query(node)
    rows = select_columns(query.numbered(), source, reader)
    return query.select(rows, select(began[0], reader) if began else None)


@dataclass(frozen=True)
class _Query:
    node: Runs

    @property
    def fold(self) -> Fold | Chain:
        return fold_of(self.node.recognizer)

    @property
    def lines(self) -> Lines:
        return Lines(self.node)

    @property
    def keys(self) -> list[exp.Expr]:
        return [column_ast("", k.name) for k in self.node.keys]

    def select(self, rows: exp.Select, began: exp.Query | None) -> exp.Select:
        parts = self._parts(rows)
        folded = exp.select(*self._begun(parts, began), copy=False)
        source: exp.Expr = parts.subquery(_BY_KEY, copy=False)
        if began is None:
            folded = folded.from_(source, copy=False)
        else:
            same = [
                exp.NullSafeEQ(this=column_ast(_BEGAN, k.name), expression=column_ast(_BY_KEY, k.name))
                for k in self.node.keys
            ]
            folded = folded.from_(began.subquery(_BEGAN, copy=False), copy=False)
            folded = folded.join(source, on=exp.and_(*same, copy=False), join_type="left", copy=False)
        found = exp.select(
            *self.keys, column_ast("", BASE), column_ast("", HEADS), _aliased(self._run(), _FOUND), copy=False
        ).from_(folded.subquery("began_runs", copy=False), copy=False)
        marks = exp.select(
            *self.keys, _aliased(exp.func("EXPLODE", self._marks(), dialect="spark"), MARK), copy=False
        )
        return marks.from_(found.subquery("found_runs", copy=False), copy=False)

    # Rows and parts

    def numbered(self) -> list[exp.Expr]:
        """A row's columns, with its number in its part of its key."""
        node = self.node
        values = {i.name: i.value for i in node.columns}
        order = [
            exp.Ordered(this=values[o.column].ast(), desc=o.desc, nulls_first=o.nulls_first)
            for o in node.order
        ]
        by = [*(k.value.ast() for k in node.keys), node.part.ast()]
        ordinal = exp.Window(this=exp.RowNumber(), partition_by=by, order=exp.Order(expressions=order))
        return [
            *(_aliased(k.value.ast(), k.name) for k in node.keys),
            _aliased(node.part.ast(), PART),
            _aliased(node.own.ast(), OWN),
            _aliased(node.at.value.ast(), AT),
            _aliased(ordinal, POSITION),
            *(_aliased(i.value.ast(), self._row_name(i.name)) for i in node.columns),
        ]

    def _row_name(self, column: str) -> str:
        """Row columns stand beside keys of the same name."""
        return f"row_{column}"

    def _parts(self, numbered: exp.Select) -> exp.Select:
        part_of_row = {ROW_PART: column_ast("", PART)} if self.node.recognizer.per_part else {}
        row = struct(
            **{POSITION: column_ast("", POSITION)},
            **part_of_row,
            **{i.name: column_ast("", self._row_name(i.name)) for i in self.node.columns},
        )
        part = column_ast("", PART)
        by_part = exp.select(
            *self.keys,
            part,
            *(_aliased(exp.Max(this=column_ast("", name)), name) for name in (OWN, AT)),
            _aliased(_collected(row), _ROWS),
            copy=False,
        ).from_(numbered.subquery("numbered_rows", copy=False), copy=False)
        by_part = by_part.group_by(*self.keys, part.copy(), copy=False)
        piece = struct(**{name: column_ast("", name) for name in (PART, OWN, AT, _ROWS)})
        by_key = exp.select(*self.keys, _aliased(_collected(piece), _PARTS), copy=False)
        by_key = by_key.from_(by_part.subquery("by_part", copy=False), copy=False)
        return by_key.group_by(*self.keys, copy=False)

    def _begun(self, parts: exp.Select, began: exp.Query | None) -> list[exp.Expr]:
        """The keys, what they begin with, and their parts."""
        if began is None:
            base: exp.Expr = cast(exp.Null(), self.node.base_type)
            heads: exp.Expr = cast(exp.Array(), self.node.heads_type)
            return [*self.keys, _aliased(base, BASE), _aliased(heads, HEADS), column_ast("", _PARTS)]
        keys = [_aliased(column_ast(_BEGAN, k.name), k.name) for k in self.node.keys]
        there = call("COALESCE", column_ast(_BY_KEY, _PARTS), exp.Array())
        heads = call("COALESCE", column_ast(_BEGAN, HEADS), exp.Array())
        return [*keys, column_ast(_BEGAN, BASE), _aliased(heads, HEADS), _aliased(there, _PARTS)]

    # The fold over parts

    def _run(self) -> exp.Expr:
        """The marks of a key from its base on, without what only the last one has."""
        node = self.node
        is_new = exp.Is(this=field(BASE, PART), expression=exp.Null())
        nothing = struct(**self.fold.nothing(), **({"tail": exp.Array()} if node.tail else {}))
        marks = array_type(node.base_type)
        first = if_else(is_new.copy(), cast(nothing, node.state_type), field(BASE, STATE))
        before = if_else(is_new, cast(exp.Array(), marks), array(column_ast("", BASE)))
        zero = struct(**{STATE: first, _SO_FAR: before})
        typed = cast(zero, struct_type([(STATE, node.state_type), (_SO_FAR, marks)]))
        before_last = exp.paren(exp.Sub(this=size(column_ast("", _PARTS)), expression=number(1)))
        last = cast(exp.IntDiv(this=before_last, expression=number(PARTS_AT_ONCE)), INT)
        several = call("SEQUENCE", number(0), call("GREATEST", number(0), last))
        run = call("AGGREGATE", several, typed, function(self._next_parts(), _RUNS, _NTH))
        return exp.Dot(this=run, expression=identifier(_SO_FAR))

    def _next_parts(self) -> exp.Expr:
        """The run after some more parts. What the fold over them begins with has no marks but the base."""
        position, so_far = exp.column(identifier(_NTH)), field(_RUNS, _SO_FAR)
        is_first = exp.EQ(this=position.copy(), expression=number(0))
        start = exp.Add(this=exp.Mul(this=position, expression=number(PARTS_AT_ONCE)), expression=number(1))
        parts = call("SLICE", column_ast("", _PARTS), start, number(PARTS_AT_ONCE))
        begun = struct(
            **{STATE: field(_RUNS, STATE), _SO_FAR: if_else(is_first, so_far, none_of(so_far.copy()))}
        )
        run = call("AGGREGATE", parts, begun, function(self._step(), _RUN, _PIECE))
        made = field(_RUN, _SO_FAR)
        marks = if_else(is_first.copy(), made, concat(so_far.copy(), made.copy()))
        return let(_RUN, run, struct(**{STATE: field(_RUN, STATE), _SO_FAR: marks}))

    def _step(self) -> exp.Expr:
        """The run after a part."""
        began = self.fold.resumed(field(_RUN, STATE))
        rows, tail = field(_PIECE, _ROWS), field(_RUN, STATE, "tail")
        fold = call("AGGREGATE", self.lines.taken(rows, tail), began, self.fold.step())
        made = {"fold": fold, **({"lines": field(LINES)} if self.node.tail else {})}
        step = let(_MADE, struct(**made), self._with_mark())
        return let(LINES, self.lines.together(rows, tail), step) if self.node.tail else step

    def _with_mark(self) -> exp.Expr:
        last = element(field(_RUN, _SO_FAR), -1)
        is_same = call(
            "COALESCE",
            exp.EQ(this=_dot(last, PART), expression=field(_PIECE, PART)),
            exp.false(),
        )
        found = self._shown(field(_MADE, "fold", "found"))
        matches = cast(exp.Array(), array_type(self.node.match_type))
        before = if_else(is_same, _dot(last.copy(), DECIDED), matches)
        shorter = call(
            "SLICE",
            field(_RUN, _SO_FAR),
            number(1),
            exp.Sub(this=size(field(_RUN, _SO_FAR)), expression=number(1)),
        )
        others = if_else(is_same.copy(), shorter, field(_RUN, _SO_FAR))
        state = self._kept(self.lines.number_taken(field(_PIECE, _ROWS), field(_RUN, STATE, "tail")))
        mark = struct(
            **{name: field(_PIECE, name) for name in (PART, OWN, AT)},
            **{STATE: field(_AFTER), DECIDED: concat(before, found)},
        )
        run = struct(**{STATE: field(_AFTER), _SO_FAR: concat(others, array(mark))})
        return let(_AFTER, state, run)

    def _kept(self, rows: exp.Expr) -> exp.Expr:
        """The state behind the part, of which so many rows are taken."""
        state = self.fold.kept(field(_MADE, "fold"), rows, is_numbered=self.node.is_numbered)
        if self.node.tail:
            state["tail"] = self.lines.last(field(_MADE, "lines"))
        return struct(**state)

    def _shown(self, found: exp.Expr) -> exp.Expr:
        """The measures of each match that was found, or with ALL ROWS PER MATCH of each of its rows."""

        def place(column: ColumnId) -> Scalar | None:
            relation, name = column
            if relation == FINAL:
                return Scalar(field(FOUND, "match", "held", name))
            return Scalar(field(relation, name)) if relation in (RUNNING, FOUND) else None

        values = [cast_ast(i.value.substitute(place).ast(), plain(i.type)) for i in self.node.items]
        named = {f"item_{n}": value for n, value in enumerate(values, start=1)}
        measures = struct(**(named or {"item_0": cast(number(0), SparkType("bigint"))}))
        if not self.node.recognizer.all_rows:
            return transform(found, FOUND, measures)
        rows = transform(field(FOUND, "match", "path"), RUNNING, measures)
        return call("FLATTEN", transform(found, FOUND, rows))

    # The marks as they are kept

    def _marks(self) -> exp.Expr:
        """Each mark with its slot; the last one with what is open and with the heads of all periods."""
        found = column_ast("", _FOUND)
        position = exp.column(identifier(_PLACE))
        is_last = exp.EQ(this=position, expression=exp.Sub(this=size(found), expression=number(1)))
        opened = self._shown(let(FOLD, self._at_end(), self.fold.given_up()))
        no_match = none_of(field(_MARK, DECIDED))
        latest = self.node.latest.substitute(lambda c: Scalar.column("", c[1]) if c[0] == KEYS else None)
        mark = struct(
            **{SLOT: if_else(is_last, latest.ast(), field(_MARK, OWN))},
            **{name: field(_MARK, name) for name, _ in self.node.base_fields},
            **{OPEN: if_else(is_last.copy(), opened, no_match)},
            **{HEADS: if_else(is_last.copy(), self._heads(), none_of(column_ast("", HEADS)))},
        )
        return call("TRANSFORM", found.copy(), function(mark, _MARK, _PLACE))

    def _at_end(self) -> exp.Expr:
        """The fold behind a mark's part, if no row comes any more: rows that wait have none behind them."""
        fold = self.fold.resumed(field(_MARK, STATE))
        if not self.node.ahead:
            return fold
        tail = field(_MARK, STATE, "tail")
        return let(LINES, tail, call("AGGREGATE", self.lines.waiting(), fold, self.fold.step()))

    def _heads(self) -> exp.Expr:
        """The first part of each period: those up to the base's stay, behind it each new slot is one."""
        is_before = exp.LTE(this=field(_HEAD, PART), expression=field(BASE, PART))
        stay = call("FILTER", column_ast("", HEADS), function(is_before, _HEAD))
        position = exp.column(identifier(_NTH))
        before = call("ELEMENT_AT", column_ast("", _FOUND), call("GREATEST", position, number(1)))
        begins = if_else(
            exp.EQ(this=position.copy(), expression=number(0)),
            exp.Is(this=field(BASE, PART), expression=exp.Null()),
            exp.NEQ(this=field(_HEAD, OWN), expression=_dot(before, OWN)),
        )
        heads = call("FILTER", column_ast("", _FOUND), function(begins, _HEAD, _NTH))
        head = struct(**{name: field(_HEAD, name) for name in (PART, OWN)})
        return concat(stay, transform(heads, _HEAD, head))


def _collected(row: exp.Expr) -> exp.Expr:
    return exp.func("SORT_ARRAY", exp.func("COLLECT_LIST", row, dialect="spark"), dialect="spark")


def _dot(value: exp.Expr, *path: str) -> exp.Expr:
    for name in path:
        value = exp.Dot(this=value.copy(), expression=identifier(name))
    return value


def _aliased(value: exp.Expr, name: str) -> exp.Expr:
    return exp.alias_(value, identifier(name), copy=False)
