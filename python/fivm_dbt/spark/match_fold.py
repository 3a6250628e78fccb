"""The fold that runs a pattern's automaton over the ordered rows of a partition, in Spark's higher-order functions.

All starts are advanced row by row, each with its threads in order of preference, as in a Pike VM::

    thread  = struct(state, tested, held, path)      waits in a state for the next row
    start   = struct(start, best, threads)           the match so far of what begins at a row, and who may better it
    fold    = struct(next, found, starts)            rows before ``next`` begin no further match

One step takes a row: a new start, then each thread that may take the row becomes one for each of its moves. A thread
that accepts is the best so far of its start and cuts off those behind it. Then the starts are settled in their order:
the first of them is chosen as soon as it has no thread left that could better it. At the end the threads left are given
up. The state of the fold is all that has to be known of the rows so far.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import BIGINT, INT
from fivm_dbt.ir.match import IS_LAST, POSITION, ROW, TESTED, Recognizer, Register
from fivm_dbt.ir.scalar import ColumnId, Scalar, grouped, identifier, raise_error
from fivm_dbt.naming import PREFIX
from fivm_dbt.patterns.automaton import ACCEPT

_FOLD, _START, _THREAD, _OTHER, _STATE, _INDEX = (
    f"{PREFIX}{name}" for name in ("fold", "start", "thread", "other", "state", "index")
)


def field(*path: str) -> exp.Expr:
    """``a.b.c``: a field of a struct."""
    result: exp.Expr = exp.column(identifier(path[0]))
    for name in path[1:]:
        result = exp.Dot(this=result, expression=identifier(name))
    return result


@dataclass(frozen=True)
class Fold:
    """The expression for the matches in an array of rows."""

    recognizer: Recognizer

    def matches(self, rows: exp.Expr) -> exp.Expr:
        """``AGGREGATE(rows, nothing, take a row, give up)``: an array of struct(number, match), in their order."""
        nothing = _struct(next=_number(1), found=exp.Array(), starts=exp.Array())
        zero = _cast(nothing, self._fold_type)
        step = self._settled(self._taken())
        given_up = self._settled(self._given_up())
        return _call(
            "AGGREGATE",
            rows,
            zero,
            _lambda(step, _FOLD, ROW),
            _lambda(exp.Dot(this=given_up, expression=identifier("found")), _FOLD),
        )

    # Types

    @property
    def _thread_type(self) -> SparkType:
        held = _struct_type((r.name, r.type) for r in self.recognizer.held)
        fields = [("state", INT), ("held", held)]
        if self.recognizer.tested:
            fields.insert(1, ("tested", _struct_type((r.name, r.type) for r in self.recognizer.tested)))
        if self.recognizer.all_rows:
            fields.append(("path", _array_type(held)))
        return _struct_type(fields)

    @property
    def _start_type(self) -> SparkType:
        thread = self._thread_type
        return _struct_type([("start", INT), ("best", thread), ("threads", _array_type(thread))])

    @property
    def _fold_type(self) -> SparkType:
        found = _struct_type([("number", BIGINT), ("match", self._thread_type)])
        starts = _array_type(self._start_type)
        return _struct_type([("next", INT), ("found", _array_type(found)), ("starts", starts)])

    # One row

    def _taken(self) -> exp.Expr:
        """The starts after the row: a stage for what each needs of the one before."""
        starts = self._with_new_start()
        moved = _struct(
            start=field(_START, "start"),
            best=field(_START, "best"),
            threads=self._moved(field(_START, "threads")),
        )
        starts = _transform(starts, _START, moved)
        threads = field(_START, "threads")
        states = _transform(threads, _THREAD, field(_THREAD, "state"))
        cut = _call("COALESCE", _call("ARRAY_POSITION", states, _number(ACCEPT)), _number(0))
        with_cut = _struct(
            start=field(_START, "start"),
            best=field(_START, "best"),
            threads=threads.copy(),
            cut=_cast(cut, INT),
        )
        starts = _transform(starts, _START, with_cut)
        is_cut = exp.GT(this=field(_START, "cut"), expression=_number(0))
        accepted = _call("ELEMENT_AT", field(_START, "threads"), field(_START, "cut"))
        before = exp.Sub(this=field(_START, "cut"), expression=_number(1))
        left = _if(
            is_cut.copy(),
            _call("SLICE", field(_START, "threads"), _number(1), before),
            field(_START, "threads"),
        )
        cut_off = _struct(
            start=field(_START, "start"), best=_if(is_cut, accepted, field(_START, "best")), threads=left
        )
        starts = _transform(starts, _START, cut_off)
        if not self.recognizer.automaton.may_meet:
            return starts
        merged = _struct(
            start=field(_START, "start"),
            best=field(_START, "best"),
            threads=self._merged(field(_START, "threads")),
        )
        return _transform(starts, _START, merged)

    def _with_new_start(self) -> exp.Expr:
        """The starts and one at this row, unless it is within a match."""
        automaton = self.recognizer.automaton
        values: dict[str, exp.Expr] = {"state": exp.column(identifier(_STATE))}
        if self.recognizer.tested:
            values["tested"] = self._empty(self.recognizer.tested)
        values["held"] = self._empty(self.recognizer.held)
        if self.recognizer.all_rows:
            values["path"] = _cast(
                exp.Array(), _array_type(_struct_type((r.name, r.type) for r in self.recognizer.held))
            )
        threads = _transform(_numbers(automaton.first), _STATE, _struct(**values))
        new = _struct(start=field(ROW, POSITION), best=_cast(exp.Null(), self._thread_type), threads=threads)
        may_begin: exp.Expr = exp.GTE(this=field(ROW, POSITION), expression=field(_FOLD, "next"))
        if automaton.at_start:
            may_begin = exp.EQ(this=field(ROW, POSITION), expression=_number(1))
        starts = field(_FOLD, "starts")
        return _if(may_begin, _call("CONCAT", starts, exp.Array(expressions=[new])), starts.copy())

    def _moved(self, threads: exp.Expr) -> exp.Expr:
        """The threads that take the row, each as one for every move, in order of preference."""
        rec = self.recognizer
        if rec.tested:
            threads = _transform(threads, _THREAD, self._thread(tested=self._updated(rec.tested, "tested")))
        if rec.conditions:
            threads = _call("FILTER", threads, _lambda(self._condition(), _THREAD))
        threads = _transform(threads, _THREAD, self._thread(held=self._updated(rec.held, "held")))
        if rec.all_rows:
            step = exp.Array(expressions=[field(_THREAD, "held")])
            longer = _call("CONCAT", field(_THREAD, "path"), step)
            threads = _transform(threads, _THREAD, self._thread(path=longer))
        moves = exp.Array(expressions=[_numbers(m) for m in rec.automaton.follow])
        each = _transform(
            _call("ELEMENT_AT", moves, field(_THREAD, "state")),
            _STATE,
            self._thread(state=exp.column(identifier(_STATE))),
        )
        moved = _call("FLATTEN", _transform(threads, _THREAD, each))
        if not rec.automaton.at_end:
            return moved
        goes_on = exp.NEQ(this=field(_THREAD, "state"), expression=_number(ACCEPT))
        return _call("FILTER", moved, _lambda(exp.or_(goes_on, field(ROW, IS_LAST)), _THREAD))

    def _merged(self, threads: exp.Expr) -> exp.Expr:
        """Of threads that wait in one state and that no condition can tell apart, the most preferred."""
        same: exp.Expr = exp.EQ(this=field(_OTHER, "state"), expression=field(_THREAD, "state"))
        if self.recognizer.tested:
            alike = exp.NullSafeEQ(this=field(_OTHER, "tested"), expression=field(_THREAD, "tested"))
            same = exp.and_(same, alike)
        before = _call("SLICE", threads.copy(), _number(1), exp.column(identifier(_INDEX)))
        is_there = _call("EXISTS", before, _lambda(same, _OTHER))
        return _call("FILTER", threads, _lambda(exp.Not(this=is_there), _THREAD, _INDEX))

    def _thread(self, **changed: exp.Expr) -> exp.Struct:
        names = ["state", *(["tested"] if self.recognizer.tested else []), "held"]
        names += ["path"] if self.recognizer.all_rows else []
        return _struct(**{name: changed.get(name, field(_THREAD, name)) for name in names})

    def _condition(self) -> exp.Expr:
        def place(column: ColumnId) -> Scalar | None:
            relation, name = column
            if relation == TESTED:
                return Scalar(field(_THREAD, "tested", name))
            return Scalar(field(ROW, name)) if relation == ROW else None

        branches = []
        for variable, condition in self.recognizer.conditions:
            holds = _call("COALESCE", condition.substitute(place).ast(), exp.false())
            branches.append(exp.If(this=self._waits_for(variable), true=holds))
        return exp.Case(ifs=branches, default=exp.true())

    def _waits_for(self, variable: str) -> exp.Expr:
        states = self.recognizer.automaton.states_of(variable)
        return exp.In(this=field(_THREAD, "state"), expressions=[_number(s) for s in states])

    # Registers

    def _empty(self, registers: tuple[Register, ...]) -> exp.Struct:
        return _struct(
            **{r.name: _cast(_number(0) if r.kind == "count" else exp.Null(), r.type) for r in registers}
        )

    def _updated(self, registers: tuple[Register, ...], of: str) -> exp.Struct:
        return _struct(**{r.name: self._with_row(r, of) for r in registers})

    def _with_row(self, register: Register, of: str) -> exp.Expr:
        """The register after the row, if it is one of its variable's."""
        old = field(_THREAD, of, register.name)
        if register.kind == "classifier":
            return self._classifier()
        conditions = []
        if register.variable is not None:
            conditions.append(self._waits_for(register.variable))
        value = register.value.substitute(_of_row).ast() if register.value is not None else None
        counter = field(_THREAD, of, register.counter) if register.counter is not None else None
        is_nothing = exp.EQ(this=counter, expression=_number(0)) if counter is not None else None
        new: exp.Expr
        if register.kind == "count":
            if value is not None:
                conditions.append(_is_there(value))
            new = exp.Add(this=old.copy(), expression=_number(1))
        elif value is None:
            raise ValueError(f"register {register.name} is of no value")
        elif register.kind == "first":
            assert is_nothing is not None
            conditions.append(is_nothing)
            new = _cast(value, register.type)
        elif register.kind == "sum":
            assert is_nothing is not None
            conditions.append(_is_there(value))
            new = _if(
                is_nothing,
                _cast(value.copy(), register.type),
                _added(old.copy(), value.copy(), register.type),
            )
        elif register.kind == "last":
            new = _cast(value, register.type)
        else:
            new = _cast(
                _call("LEAST" if register.kind == "min" else "GREATEST", old.copy(), value), register.type
            )
        return _if(exp.and_(*conditions), new, old) if conditions else new

    def _classifier(self) -> exp.Expr:
        symbols = self.recognizer.automaton.symbols
        names = exp.Array(expressions=[exp.Literal.string(s) for s in symbols])
        return _call("ELEMENT_AT", names, field(_THREAD, "state"))

    # Which matches are chosen

    def _given_up(self) -> exp.Expr:
        """The starts at the end of the partition, without the threads that waited for another row."""
        threads = _cast(exp.Array(), _array_type(self._thread_type))
        last = _struct(start=field(_START, "start"), best=field(_START, "best"), threads=threads)
        return _transform(field(_FOLD, "starts"), _START, last)

    def _settled(self, starts: exp.Expr) -> exp.Expr:
        """``starts`` in their order: those within a chosen match are dropped, decided ones chosen unless an earlier
        one is undecided."""
        so_far = _struct(
            next=field(_FOLD, "next"),
            found=field(_FOLD, "found"),
            starts=_cast(exp.Array(), _array_type(self._start_type)),
        )
        is_decided = exp.EQ(this=_size(field(_START, "threads")), expression=_number(0))
        has_no_match = exp.Is(this=field(_START, "best", "held", POSITION), expression=exp.Null())
        is_covered: exp.Expr = exp.LT(this=field(_START, "start"), expression=field(_OTHER, "next"))
        dropped = exp.or_(is_covered, self._will_be_covered(), exp.and_(is_decided.copy(), has_no_match))
        is_first = exp.EQ(this=_size(field(_OTHER, "starts")), expression=_number(0))
        number = exp.Add(this=_size(field(_OTHER, "found")), expression=_number(1))
        found = _struct(number=_cast(number, BIGINT), match=field(_START, "best"))
        chosen = _struct(
            next=self._next(),
            found=_call("CONCAT", field(_OTHER, "found"), exp.Array(expressions=[found])),
            starts=field(_OTHER, "starts"),
        )
        start = exp.Array(expressions=[exp.column(identifier(_START))])
        kept = _struct(
            next=field(_OTHER, "next"),
            found=field(_OTHER, "found"),
            starts=_call("CONCAT", field(_OTHER, "starts"), start),
        )
        branches = [
            exp.If(this=dropped, true=exp.column(identifier(_OTHER))),
            exp.If(this=exp.and_(is_decided, is_first), true=chosen),
        ]
        settle = exp.Case(ifs=branches, default=kept)
        return _call("AGGREGATE", starts, so_far, _lambda(settle, _OTHER, _START))

    def _will_be_covered(self) -> exp.Expr | None:
        """Whether the first undecided start has a match already that covers this one: its match can only grow."""
        if self.recognizer.skip.mode != "past last row":
            return None
        first = _call("ELEMENT_AT", field(_OTHER, "starts"), _number(1))
        end: exp.Expr = first
        for name in ("best", "held", POSITION):
            end = exp.Dot(this=end, expression=identifier(name))
        is_later = exp.GT(this=_size(field(_OTHER, "starts")), expression=_number(0))
        within = exp.LTE(this=field(_START, "start"), expression=_call("COALESCE", end, _number(0)))
        return exp.Case(ifs=[exp.If(this=is_later, true=within)], default=exp.false())

    def _next(self) -> exp.Expr:
        """Where the next match may begin behind a chosen one."""
        skip = self.recognizer.skip
        start = field(_START, "start")
        if skip.mode == "to next row":
            return exp.Add(this=start, expression=_number(1))
        if skip.target is None:
            return exp.Add(this=field(_START, "best", "held", POSITION), expression=_number(1))
        target = field(_START, "best", "held", skip.target)
        message = (
            f"MATCH_RECOGNIZE: AFTER MATCH SKIP {skip.mode.upper()} {skip.written} "
            "leads to no row behind the first one of a match"
        )
        is_behind = exp.GT(this=target, expression=start)
        return _if(is_behind, target.copy(), raise_error(message, INT.text))


def _of_row(column: ColumnId) -> Scalar | None:
    relation, name = column
    return Scalar(field(ROW, name)) if relation == ROW else None


def _added(old: exp.Expr, value: exp.Expr, type_: SparkType) -> exp.Expr:
    """``old + value`` in the type of the sum; Spark rounds the last digits of sums of wider decimals."""
    if not type_.is_decimal:
        return exp.Add(this=old, expression=exp.paren(value))
    narrow = SparkType.decimal(min(type_.precision, 37), type_.scale)
    return _cast(exp.Add(this=_cast(old, narrow), expression=_cast(value, narrow)), type_)


def _struct(**values: exp.Expr) -> exp.Struct:
    parts = [exp.PropertyEQ(this=identifier(name), expression=value) for name, value in values.items()]
    return exp.Struct(expressions=parts)


def _struct_type(fields: Iterable[tuple[str, SparkType]]) -> SparkType:
    return SparkType(f"struct<{','.join(f'{name}:{type_}' for name, type_ in fields)}>")


def _array_type(element: SparkType) -> SparkType:
    return SparkType(f"array<{element}>")


def _cast(value: exp.Expr, type_: SparkType) -> exp.Expr:
    return exp.Cast(this=value, to=_data_type(type_.text).copy())


@cache
def _data_type(text: str) -> exp.DataType:
    """The types of the fold are long, and stand in many places."""
    return exp.DataType.build(text, dialect="spark")


def _call(name: str, *arguments: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=list(arguments))


def _lambda(body: exp.Expr, *names: str) -> exp.Lambda:
    return exp.Lambda(this=body, expressions=[identifier(name) for name in names])


def _transform(array: exp.Expr, name: str, body: exp.Expr) -> exp.Expr:
    return _call("TRANSFORM", array, _lambda(body, name))


def _if(condition: exp.Expr, then: exp.Expr, otherwise: exp.Expr) -> exp.Case:
    return exp.Case(ifs=[exp.If(this=condition, true=then)], default=otherwise)


def _is_there(value: exp.Expr) -> exp.Expr:
    return exp.Not(this=exp.Is(this=grouped(value.copy()), expression=exp.Null()))


def _size(array: exp.Expr) -> exp.Expr:
    return _call("SIZE", array)


def _number(value: int) -> exp.Expr:
    return exp.Literal.number(value)


def _numbers(values: Iterable[int]) -> exp.Expr:
    return exp.Array(expressions=[_number(v) for v in values])
