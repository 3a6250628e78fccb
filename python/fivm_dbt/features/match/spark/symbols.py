"""The rows of a partition are written as a string of symbols, in which a regular expression finds the matches.

::

    symbol(row) = letter of Σ 2 ** i over the conditions that the row meets
    symbols     = the letters of the rows, in their order
    span        = struct(start, length)      the rows of a match

With AFTER MATCH SKIP PAST LAST ROW matches do not overlap, so that one pass marks the beginnings and the ends of all.
Else each row is asked, by a look-ahead that takes nothing, for the match that begins there.
"""

from __future__ import annotations

from sqlglot import exp

from fivm_dbt.catalog.types import INT
from fivm_dbt.features.match.ir.match import ROW, SYMBOL, Recognizer
from fivm_dbt.features.match.ir.regular import SYMBOLS, Regular
from fivm_dbt.features.match.ir.types import array_type, struct_type
from fivm_dbt.features.match.spark.fold_sql import (
    array,
    call,
    cast,
    concat,
    field,
    function,
    if_else,
    number,
    struct,
    transform,
)
from fivm_dbt.ir.scalar import ColumnId, Scalar, column_ast
from fivm_dbt.naming import PREFIX

SPAN = f"{PREFIX}span"
_SO_FAR, _PIECE, _NTH = (f"{PREFIX}{name}" for name in ("so_far", "piece", "nth"))
_BEGIN, _END = "<", ">"
"""Around each match: no symbol is one of them."""
SPAN_TYPE = struct_type([("start", INT), ("length", INT)])


def symbol(recognizer: Recognizer, found: Regular) -> exp.Expr:
    """The letter of a row, over its columns."""
    conditions = dict(recognizer.conditions)

    def place(column: ColumnId) -> Scalar | None:
        return Scalar.column("", column[1]) if column[0] == ROW else None

    letters = SYMBOLS[: 2 ** len(found.tested)]
    ordinal = number(1)
    for n, variable in enumerate(found.tested):
        bit = if_else(conditions[variable].substitute(place).ast(), number(2**n), number(0))
        ordinal = exp.Add(this=ordinal, expression=bit)
    return call("SUBSTRING", exp.Literal.string(letters), ordinal, number(1))


def symbols(rows: exp.Expr) -> exp.Expr:
    """The letters of an array of rows."""
    return call("ARRAY_JOIN", transform(rows, ROW, field(ROW, SYMBOL)), exp.Literal.string(""))


def spans(recognizer: Recognizer, found: Regular, string: exp.Expr) -> exp.Expr:
    """The matches in a string of symbols, in their order: an array of struct(start, length)."""
    if recognizer.skip.mode == "past last row":
        return _marked(found.text, string)
    return _at_each_row(found.text, string)


def _marked(text: str, string: exp.Expr) -> exp.Expr:
    """Each piece but the first begins with a match, which ends at its mark."""
    pieces = call("REGEXP_REPLACE", string, _text(text), _text(f"{_BEGIN}$0{_END}"))
    pieces = call("SPLIT", pieces, _text(_BEGIN))
    zero = cast(
        struct(at=number(1), found=exp.Array()), struct_type([("at", INT), ("found", array_type(SPAN_TYPE))])
    )
    piece, at = column_ast("", _PIECE), field(_SO_FAR, "at")
    length = cast(exp.Sub(this=call("INSTR", piece, _text(_END)), expression=number(1)), INT)
    has_match = exp.GTE(this=length, expression=number(0))
    rows = cast(
        exp.Sub(this=call("LENGTH", piece.copy()), expression=if_else(has_match, number(1), number(0))), INT
    )
    span = struct(start=at, length=length.copy())
    longer = concat(field(_SO_FAR, "found"), array(span))
    step = struct(
        at=exp.Add(this=at.copy(), expression=rows),
        found=if_else(has_match.copy(), longer, field(_SO_FAR, "found")),
    )
    done = function(field(_SO_FAR, "found"), _SO_FAR)
    return call("AGGREGATE", pieces, zero, function(step, _SO_FAR, _PIECE), done)


def _at_each_row(text: str, string: exp.Expr) -> exp.Expr:
    matches = call("REGEXP_EXTRACT_ALL", string, _text(f"(?=({text})|)"), number(1))
    start = cast(exp.Add(this=column_ast("", _NTH), expression=number(1)), INT)
    length = cast(call("LENGTH", column_ast("", _PIECE)), INT)
    all_ = call("TRANSFORM", matches, function(struct(start=start, length=length), _PIECE, _NTH))
    is_there = exp.GT(this=field(SPAN, "length"), expression=number(0))
    return call("FILTER", all_, function(is_there, SPAN))


def part_of(string: exp.Expr, span: str) -> exp.Expr:
    """The letters of a match."""
    return call("SUBSTRING", string, field(span, "start"), field(span, "length"))


def _text(value: str) -> exp.Expr:
    return exp.Literal.string(value)
