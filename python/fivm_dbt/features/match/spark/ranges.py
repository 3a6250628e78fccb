"""Where a match is all rows between two separators, matches are groups: gaps and islands.

``SELECT items FROM (SELECT keys, registers FROM (numbered rows) WHERE separates = 0 GROUP BY keys, range HAVING
COUNT(*) >= n)``. Registers are aggregates then, and nothing is collected.
"""

from __future__ import annotations

from sqlglot import exp

from fivm_dbt.features.match.ir.match import FINAL, POSITION, Match, Register
from fivm_dbt.features.match.spark.fold_sql import cast
from fivm_dbt.features.match.spark.numbered import RANGE, SEPARATES, aliased, key_names, numbered_columns
from fivm_dbt.ir.scalar import ColumnId, Scalar, column_ast
from fivm_dbt.spark.select import Reader, select_columns

_AGGREGATES = {
    "first": "MIN_BY",
    "last": "MAX_BY",
    "count": "COUNT",
    "sum": "SUM",
    "min": "MIN",
    "max": "MAX",
}


def select_ranges(node: Match, reader: Reader) -> exp.Select:
    """The query whose rows are those of ``node``, of which :attr:`~Match.are_whole_ranges` holds."""
    keys = key_names(node)
    numbered = select_columns(numbered_columns(node, keys), node.input, reader)
    registers = [
        aliased(_register(r), r.name) for r in node.recognizer.held if r.name in node.registers_shown
    ]
    ranges = exp.select(*map(exp.column, keys), *registers, copy=False)
    ranges = ranges.from_(numbered.subquery("numbered_rows", copy=False), copy=False)
    is_taken = exp.EQ(this=exp.column(SEPARATES), expression=exp.Literal.number(0))
    ranges = ranges.where(is_taken, copy=False).group_by(*map(exp.column, [*keys, RANGE]), copy=False)
    least = node.recognizer.automaton.shortest
    if least > 1:
        long_enough = exp.GTE(this=exp.Count(this=exp.Star()), expression=exp.Literal.number(least))
        ranges = ranges.having(long_enough, copy=False)
    shown = [aliased(exp.column(k), i.name) for k, i in zip(keys, node.partition, strict=True)]
    shown += [aliased(i.value.substitute(_of_range).ast(), i.name) for i in node.items]
    query = exp.select(*(shown or [exp.alias_(exp.Literal.number(1), "one")]), copy=False)
    return query.from_(ranges.subquery("matched", copy=False), copy=False)


def _of_range(column: ColumnId) -> Scalar | None:
    return Scalar.column("", column[1]) if column[0] == FINAL else None


def _register(register: Register) -> exp.Expr:
    """A register as an aggregate over the rows of a range: all are rows of the one variable."""
    if register.value is None:
        return cast(exp.Count(this=exp.Star()), register.type)
    value = register.value.substitute(lambda column: Scalar.column("", column[1])).ast()
    arguments = [value]
    if register.kind in ("first", "last"):
        arguments.append(column_ast("", POSITION))
    return cast(exp.func(_AGGREGATES[register.kind], *arguments, dialect="spark"), register.type)
