"""The matches that a regular expression finds have the registers that measures read.

Where PATTERN is variables in a row, the rows of each are a slice of the match. The automaton tells everything else,
run over the rows of a match alone: it prefers what the expression has preferred, because whatever it would prefer to
that has failed within the partition.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from fivm_dbt.catalog.types import BIGINT, INT
from fivm_dbt.features.match.ir.match import POSITION, ROW, Recognizer, Register
from fivm_dbt.features.match.ir.regular import Regular
from fivm_dbt.features.match.ir.types import found_type
from fivm_dbt.features.match.spark.fold import Fold
from fivm_dbt.features.match.spark.fold_sql import (
    call,
    cast,
    element,
    field,
    function,
    if_else,
    is_there,
    let,
    number,
    size,
    struct,
    transform,
)
from fivm_dbt.features.match.spark.symbols import SPAN, part_of, spans, symbols
from fivm_dbt.features.match.spark.threads import added, of_row
from fivm_dbt.ir.scalar import column_ast
from fivm_dbt.naming import PREFIX

_STRING, _NTH, _PLACE, _SUM, _MATCHED = (
    f"{PREFIX}{name}" for name in ("string", "nth", "place", "sum", "matched")
)


@dataclass(frozen=True)
class Found:
    """Expressions for the matches in an array of rows, each with its symbol."""

    recognizer: Recognizer
    regular: Regular
    columns: tuple[str, ...]

    def matches(self, rows: exp.Expr) -> exp.Expr:
        """An array of struct(number, match) in a whole partition, in their order."""
        found = let(_STRING, symbols(rows), self._found(rows))
        if self.regular.longest is None:
            return found
        is_long = exp.GT(this=size(rows.copy()), expression=number(self.regular.longest))
        return if_else(is_long, Fold(self.recognizer).matches(rows.copy()), found)

    def _found(self, rows: exp.Expr) -> exp.Expr:
        matched = spans(self.recognizer, self.regular, column_ast("", _STRING))
        ordinal = exp.Add(this=column_ast("", _NTH), expression=number(1))
        match = self._sliced(rows) if self.recognizer.is_sliced else self._run(rows)
        each = struct(number=cast(ordinal, BIGINT), match=match)
        found = call("TRANSFORM", matched, function(each, SPAN, _NTH))
        return cast(found, found_type(self.recognizer))

    def _run(self, rows: exp.Expr) -> exp.Expr:
        """The match as the automaton finds it, over nothing but its rows."""
        place = exp.Add(this=column_ast("", _PLACE), expression=number(1))
        row = struct(**{POSITION: cast(place, INT)}, **{name: field(ROW, name) for name in self.columns})
        matched = call("TRANSFORM", _rows_of(rows), function(row, ROW, _PLACE))
        automaton = replace(self.recognizer.automaton, at_start=True)
        alone = replace(self.recognizer, automaton=automaton)
        first = element(Fold(alone).matches(matched), 1)
        return exp.Dot(this=first, expression=exp.to_identifier("match"))

    # Slices

    def _sliced(self, rows: exp.Expr) -> exp.Expr:
        """The match with its registers, each over the rows of its variable."""
        rec, captured = self.recognizer, dict(self.regular.captured)
        values = {r.name: self._register(r) for r in rec.held}
        body: exp.Expr = struct(state=number(0), held=struct(**values))
        for variable in dict.fromkeys(r.variable for r in rec.held):
            if variable is not None and len(captured) > 1:
                body = let(self._name(variable), self._rows_of_variable(captured[variable]), body)
        return let(_MATCHED, _rows_of(rows), body)

    def _rows_of_variable(self, captured: str) -> exp.Expr:
        text = part_of(column_ast("", _STRING), SPAN)
        before, own = (
            call("LENGTH", call("REGEXP_EXTRACT", text.copy(), exp.Literal.string(captured), number(group)))
            for group in (1, 2)
        )
        begin = exp.Add(this=before, expression=number(1))
        return call("SLICE", column_ast("", _MATCHED), begin, own)

    def _name(self, variable: str | None) -> str:
        """What the rows of a variable are called; of a variable that stands alone, or of none, it is all rows."""
        names = [name for name, _ in self.regular.captured]
        return f"{PREFIX}of_{names.index(variable)}" if variable is not None and len(names) > 1 else _MATCHED

    def _register(self, register: Register) -> exp.Expr:
        rows = column_ast("", self._name(register.variable))
        if register.kind == "count" and register.value is None:
            return cast(size(rows), register.type)
        assert register.value is not None
        value = register.value.substitute(of_row).ast()
        if register.kind == "count":
            return cast(size(call("FILTER", rows, function(is_there(value), ROW))), register.type)
        if register.kind in ("first", "last"):
            place = 1 if register.kind == "first" else -1
            return cast(element(transform(_slice_at(rows, place), ROW, value), 1), register.type)
        return self._folded(register, rows, value)

    def _folded(self, register: Register, rows: exp.Expr, value: exp.Expr) -> exp.Expr:
        """A sum, a least or a greatest value, added up as the automaton adds it up."""
        old, typed = column_ast("", _SUM), cast(value.copy(), register.type)
        new: exp.Expr
        if register.kind == "sum":
            is_first = exp.Is(this=old.copy(), expression=exp.Null())
            more = if_else(is_first, typed, added(old.copy(), value.copy(), register.type))
            new = if_else(is_there(value), more, old)
        else:
            least = "LEAST" if register.kind == "min" else "GREATEST"
            new = cast(call(least, old, value), register.type)
        return call("AGGREGATE", rows, cast(exp.Null(), register.type), function(new, _SUM, ROW))


def _rows_of(rows: exp.Expr) -> exp.Expr:
    return call("SLICE", rows.copy(), field(SPAN, "start"), field(SPAN, "length"))


def _slice_at(rows: exp.Expr, place: int) -> exp.Expr:
    """The first row, or the last one, if there is one."""
    if place == 1:
        return call("SLICE", rows, number(1), number(1))
    begin = call("GREATEST", size(rows), number(1))
    return call("SLICE", rows.copy(), begin, number(1))
