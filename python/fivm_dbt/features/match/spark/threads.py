"""The threads of a pattern wait in states of its automaton, and a row moves them on."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.features.match.ir.automaton import ACCEPT
from fivm_dbt.features.match.ir.match import ROW, TESTED, Recognizer, Register
from fivm_dbt.features.match.ir.types import array_type, held_type
from fivm_dbt.features.match.spark.fold_sql import (
    call,
    cast,
    field,
    function,
    has_none,
    if_else,
    is_there,
    number,
    numbers,
    struct,
    transform,
)
from fivm_dbt.ir.scalar import ColumnId, Scalar, identifier
from fivm_dbt.naming import PREFIX

THREAD, OTHER, STATE, INDEX = (f"{PREFIX}{name}" for name in ("thread", "other", "state", "index"))


@dataclass(frozen=True)
class Threads:
    """Expressions over arrays of ``struct(state, tested, held, path)``, in order of preference.

    A thread in the state ACCEPT is one of a pattern with ``$``: it is a match if no row comes any more.
    """

    recognizer: Recognizer

    def first(self) -> exp.Expr:
        """The threads of what begins at a row, before it is taken."""
        values: dict[str, exp.Expr] = {"state": exp.column(identifier(STATE))}
        if self.recognizer.tested:
            values["tested"] = self._empty(self.recognizer.tested)
        values["held"] = self._empty(self.recognizer.held)
        if self.recognizer.all_rows:
            values["path"] = cast(exp.Array(), array_type(held_type(self.recognizer)))
        return transform(numbers(self.recognizer.automaton.first), STATE, struct(**values))

    def moved(self, threads: exp.Expr) -> exp.Expr:
        """The threads that take the row, each as one for every move, in order of preference."""
        if self.recognizer.automaton.at_end:
            # They would have been matches if no row had come.
            goes_on = exp.NEQ(this=field(THREAD, "state"), expression=number(ACCEPT))
            threads = call("FILTER", threads, function(goes_on, THREAD))
        return self.waiting(self.took(threads), self.recognizer.automaton.follow)

    def took(self, threads: exp.Expr) -> exp.Expr:
        """The threads that take the row, each in the state in which it waited for it."""
        rec = self.recognizer
        if rec.tested:
            threads = transform(threads, THREAD, self.with_(tested=self._updated(rec.tested, "tested")))
        if rec.conditions:
            threads = call("FILTER", threads, function(self._condition(), THREAD))
        threads = transform(threads, THREAD, self.with_(held=self._updated(rec.held, "held")))
        if rec.all_rows:
            step = exp.Array(expressions=[field(THREAD, "held")])
            longer = call("CONCAT", field(THREAD, "path"), step)
            threads = transform(threads, THREAD, self.with_(path=longer))
        return threads

    def waiting(self, threads: exp.Expr, follow: tuple[tuple[int, ...], ...]) -> exp.Expr:
        """A thread for each of the moves of each."""
        moves = exp.Array(expressions=[numbers(m) for m in follow])
        each = transform(
            call("ELEMENT_AT", moves, field(THREAD, "state")),
            STATE,
            self.with_(state=exp.column(identifier(STATE))),
        )
        return call("FLATTEN", transform(threads, THREAD, each))

    def merged(self, threads: exp.Expr) -> exp.Expr:
        """Of threads that wait in one state and that no condition can tell apart, the most preferred."""
        same: exp.Expr = exp.EQ(this=field(OTHER, "state"), expression=field(THREAD, "state"))
        if self.recognizer.tested:
            alike = exp.NullSafeEQ(this=field(OTHER, "tested"), expression=field(THREAD, "tested"))
            same = exp.and_(same, alike)
        before = call("SLICE", threads.copy(), number(1), exp.column(identifier(INDEX)))
        return call("FILTER", threads, function(has_none(before, OTHER, same), THREAD, INDEX))

    def with_(self, **changed: exp.Expr) -> exp.Struct:
        names = ["state", *(["tested"] if self.recognizer.tested else []), "held"]
        names += ["path"] if self.recognizer.all_rows else []
        return struct(**{name: changed.get(name, field(THREAD, name)) for name in names})

    def _condition(self) -> exp.Expr:
        def place(column: ColumnId) -> Scalar | None:
            relation, name = column
            if relation == TESTED:
                return Scalar(field(THREAD, "tested", name))
            return Scalar(field(ROW, name)) if relation == ROW else None

        branches = []
        for variable, condition in self.recognizer.conditions:
            holds = call("COALESCE", condition.substitute(place).ast(), exp.false())
            branches.append(exp.If(this=self._waits_for(variable), true=holds))
        return exp.Case(ifs=branches, default=exp.true())

    def _waits_for(self, variable: str) -> exp.Expr:
        states = self.recognizer.automaton.states_of(variable)
        return exp.In(this=field(THREAD, "state"), expressions=[number(s) for s in states])

    # Registers

    def _empty(self, registers: tuple[Register, ...]) -> exp.Struct:
        return struct(
            **{r.name: cast(number(0) if r.kind == "count" else exp.Null(), r.type) for r in registers}
        )

    def _updated(self, registers: tuple[Register, ...], of: str) -> exp.Struct:
        return struct(**{r.name: self._with_row(r, of) for r in registers})

    def _with_row(self, register: Register, of: str) -> exp.Expr:
        """The register after the row, if it is one of its variable's."""
        old = field(THREAD, of, register.name)
        if register.kind == "classifier":
            return self._classifier()
        conditions = []
        if register.variable is not None:
            conditions.append(self._waits_for(register.variable))
        value = register.value.substitute(of_row).ast() if register.value is not None else None
        counter = field(THREAD, of, register.counter) if register.counter is not None else None
        is_nothing = exp.EQ(this=counter, expression=number(0)) if counter is not None else None
        new: exp.Expr
        if register.kind == "count":
            if value is not None:
                conditions.append(is_there(value))
            new = exp.Add(this=old.copy(), expression=number(1))
        elif value is None:
            raise ValueError(f"register {register.name} is of no value")
        elif register.kind == "first":
            assert is_nothing is not None
            conditions.append(is_nothing)
            new = cast(value, register.type)
        elif register.kind == "sum":
            assert is_nothing is not None
            conditions.append(is_there(value))
            new = if_else(
                is_nothing,
                cast(value.copy(), register.type),
                added(old.copy(), value.copy(), register.type),
            )
        elif register.kind == "last":
            new = cast(value, register.type)
        else:
            new = cast(
                call("LEAST" if register.kind == "min" else "GREATEST", old.copy(), value), register.type
            )
        return if_else(exp.and_(*conditions), new, old) if conditions else new

    def _classifier(self) -> exp.Expr:
        symbols = self.recognizer.automaton.symbols
        names = exp.Array(expressions=[exp.Literal.string(s) for s in symbols])
        return call("ELEMENT_AT", names, field(THREAD, "state"))


def of_row(column: ColumnId) -> Scalar | None:
    relation, name = column
    return Scalar(field(ROW, name)) if relation == ROW else None


def added(old: exp.Expr, value: exp.Expr, type_: SparkType) -> exp.Expr:
    """``old + value`` in the type of the sum; Spark rounds the last digits of sums of wider decimals."""
    if not type_.is_decimal:
        return exp.Add(this=old, expression=exp.paren(value))
    narrow = SparkType.decimal(min(type_.precision, 37), type_.scale)
    return cast(exp.Add(this=cast(old, narrow), expression=cast(value, narrow)), type_)
