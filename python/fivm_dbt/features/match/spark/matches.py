"""A SELECT finds the matches of a pattern: a partition becomes an array, and a function of it gives its matches.

``SELECT items FROM (SELECT keys, matches(rows) AS matches FROM (SELECT keys, SORT_ARRAY(COLLECT_LIST(row)) AS rows
FROM (numbered rows) GROUP BY keys)) LATERAL VIEW EXPLODE(matches)``, and with ALL ROWS PER MATCH also over the steps of
each match. The function is a fold (:mod:`fivm_dbt.features.match.spark.fold`) or, where the recognizer has a regular
expression, over the rows with their symbols (:mod:`fivm_dbt.features.match.spark.found`). Matches that are all rows
between two separators need no array (:mod:`fivm_dbt.features.match.spark.ranges`).
"""

from __future__ import annotations

from sqlglot import exp

from fivm_dbt.features.match.ir.match import FINAL, FOUND, KEYS, POSITION, ROW_PART, RUNNING, SYMBOL, Match
from fivm_dbt.features.match.ir.regular import Regular
from fivm_dbt.features.match.ir.separated import Separated
from fivm_dbt.features.match.spark.fold import fold_of
from fivm_dbt.features.match.spark.fold_sql import field
from fivm_dbt.features.match.spark.found import Found
from fivm_dbt.features.match.spark.numbered import RANGE, SEPARATES, aliased, key_names, numbered_columns
from fivm_dbt.features.match.spark.ranges import select_ranges
from fivm_dbt.features.match.spark.symbols import symbol
from fivm_dbt.ir.node import Item
from fivm_dbt.ir.scalar import ColumnId, Scalar, column_ast, identifier
from fivm_dbt.spark.select import WRITERS, Reader, select_columns

_ROWS, _MATCHES = "sorted_rows", "matches"


@WRITERS.add(Match)
def select_matches(node: Match, reader: Reader) -> exp.Select:
    """The query whose rows are those of ``node``."""
    if node.are_whole_ranges:
        return select_ranges(node, reader)
    keys = key_names(node)
    numbered = select_columns(numbered_columns(node, keys), node.input, reader)
    by_key = _collected(node, keys, numbered.subquery("numbered_rows", copy=False))
    matches = _matches_in(node, exp.column(_ROWS))
    matched = exp.select(*map(exp.column, keys), aliased(matches, _MATCHES), copy=False)
    matched = matched.from_(by_key.subquery("partitions", copy=False), copy=False)
    query = exp.select(*_shown(node, keys), copy=False).from_(
        matched.subquery("matched", copy=False), copy=False
    )
    query = query.lateral(_exploded(exp.column(_MATCHES), FOUND), copy=False)
    if node.recognizer.all_rows:
        query = query.lateral(_exploded(field(FOUND, "match", "path"), RUNNING), copy=False)
    return query


def _collected(node: Match, keys: list[str], numbered: exp.Subquery) -> exp.Select:
    """An array of rows for each partition, or for each range between separators that is long enough for a match."""
    by = [*keys, *([] if node.separates is None else [RANGE])]
    shown = [POSITION, *_row_columns(node)]
    source = numbered
    if isinstance(node.recognizer.regular, Regular):
        letter = aliased(symbol(node.recognizer, node.recognizer.regular), SYMBOL)
        columns = [*map(exp.column, by), *(column_ast("", name) for name in shown), letter]
        lettered = exp.select(*columns, copy=False).from_(numbered, copy=False)
        if node.separates is not None:
            is_taken = exp.EQ(this=exp.column(SEPARATES), expression=exp.Literal.number(0))
            lettered = lettered.where(is_taken, copy=False)
        source = lettered.subquery("lettered_rows", copy=False)
        shown.append(SYMBOL)
    row = exp.Struct(expressions=[_named(name, column_ast("", name)) for name in shown])
    rows = exp.func("SORT_ARRAY", exp.func("COLLECT_LIST", row, dialect="spark"), dialect="spark")
    query = exp.select(*map(exp.column, keys), aliased(rows, _ROWS), copy=False).from_(source, copy=False)
    if by:
        query = query.group_by(*map(exp.column, by), copy=False)
    shortest = node.recognizer.automaton.shortest
    if node.separates is not None and shortest > 1:
        long_enough = exp.GTE(this=exp.Count(this=exp.Star()), expression=exp.Literal.number(shortest))
        query = query.having(long_enough, copy=False)
    return query


@WRITERS.add(Separated)
def select_separated(node: Separated, reader: Reader) -> exp.Select:
    """The query whose rows are those of ``node``, over all rows."""
    return select_matches(node.match, reader)


def _matches_in(node: Match, rows: exp.Expr) -> exp.Expr:
    recognizer = node.recognizer
    if isinstance(recognizer.regular, Regular):
        return Found(recognizer, recognizer.regular, tuple(_row_columns(node))).matches(rows)
    return fold_of(recognizer).matches(rows)


def _row_columns(node: Match) -> list[str]:
    """What is collected of each row: where no automaton reads rows, what registers read."""
    part = [ROW_PART] if node.part is not None else []
    columns = [*part, *(i.name for i in node.columns), *(s.name for s in node.shifts)]
    read = node.recognizer.read_by_slices
    return columns if read is None else [name for name in columns if name in read]


def _shown(node: Match, keys: list[str]) -> list[exp.Expr]:
    shown = [aliased(exp.column(k), i.name) for k, i in zip(keys, node.partition, strict=True)]
    columns = shown + [aliased(_value(item), item.name) for item in node.items]
    return columns or [exp.alias_(exp.Literal.number(1), "one")]


def _value(item: Item) -> exp.Expr:
    """An item over the exploded matches, and their steps."""

    def place(column: ColumnId) -> Scalar | None:
        relation, name = column
        if relation == FINAL:
            return Scalar(field(FOUND, "match", "held", name))
        return Scalar(field(relation, name)) if relation in (RUNNING, FOUND, KEYS) else None

    return item.value.substitute(place).ast()


def _exploded(array: exp.Expr, name: str) -> exp.Lateral:
    alias = exp.TableAlias(this=identifier(f"{name}_rows"), columns=[identifier(name)])
    return exp.Lateral(this=exp.func("EXPLODE", array, dialect="spark"), view=True, alias=alias)


def _named(name: str, value: exp.Expr) -> exp.PropertyEQ:
    return exp.PropertyEQ(this=identifier(name), expression=value)
