"""Scalar expressions have types: Spark's own answer with a connection, Spark's rules without one.

Rules of implicit conversion with ANSI off (as dbt-spark runs) and of decimal arithmetic with precision loss allowed,
after Spark's documentation of its data types.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.annotate_types import annotate_types

from fivm_dbt.catalog import Column, SparkType
from fivm_dbt.catalog.types import BIGINT, BOOLEAN, DOUBLE, INT, STRING
from fivm_dbt.errors import FivmError
from fivm_dbt.functions.arithmetic import interval_type, operation
from fivm_dbt.functions.lookup import AROUND, type_of_call
from fivm_dbt.functions.widening import VOID, common_type
from fivm_dbt.ir.clock import CLOCK_TYPES
from fivm_dbt.ir.dialect import SparkText
from fivm_dbt.ir.scalar import ColumnId, Scalar, as_type, cast_ast, column_ast, identifier
from fivm_dbt.sql.parse import span_of

Fields = Mapping[ColumnId, SparkType]
Describe = Callable[[str], tuple[Column, ...]]

_UNSURE = frozenset(
    {
        exp.DataType.Type.UNKNOWN,
        exp.DataType.Type.DOUBLE,
        exp.DataType.Type.FLOAT,
        exp.DataType.Type.BIGINT,
        exp.DataType.Type.DECIMAL,
        exp.DataType.Type.NULL,
    }
)


class Typer:
    """Types scalars over known fields; asks ``describe`` (Spark) when given, else applies the rules here."""

    def __init__(self, describe: Describe | None = None) -> None:
        self._describe = describe

    def types(self, scalars: Sequence[Scalar], fields: Fields) -> tuple[SparkType | None, ...]:
        """The type of each scalar; None where the rules do not know and nobody can be asked."""
        if not scalars:
            return ()
        fields = {**fields, **CLOCK_TYPES}
        if self._describe is None or all(s.is_column for s in scalars):
            return tuple(static_type(s.ast(), fields) or _annotated(s, fields) for s in scalars)
        try:
            columns = self._describe(_question(scalars, fields))
        except Exception as error:
            shown = ", ".join(s.sql for s in scalars)
            why = str(error).strip().split("\n")[0]
            raise FivmError(
                "FIVM109",
                f"Spark does not accept {shown} as expressions over one row: {why}",
                remedy="correct the expression; aggregates of your own are not maintained",
            ) from error
        return tuple(column.type for column in columns[1:])

    def common(self, types: Sequence[SparkType | None], *, to_string: bool = True) -> SparkType | None:
        """The type to which Spark widens all of ``types`` in UNION, VALUES and COALESCE; None where there is none."""
        # NULL alone has a type of its own, which every other one takes in.
        written = [t for t in types if t != VOID]
        known = [t for t in written if t is not None]
        if self._describe is None or len(known) < len(written) or len(set(known)) <= 1:
            return common_type(types, to_string=to_string)
        if not to_string and len({t.is_string for t in known}) > 1:
            return None
        nulls = [exp.select(exp.alias_(cast_ast(exp.Null(), t), "c")) for t in known]
        with suppress(Exception):  # whatever Spark says: there is no such type
            return self._describe(exp.union(*nulls, distinct=False).sql(dialect="spark"))[0].type
        return None

    def aggregate_type(self, written: Scalar, call: exp.Expr, fields: Fields) -> SparkType | None:
        """The result type of an aggregate call; ``written`` is all of it, with FILTER and the like."""
        known = type_of_call(call, lambda ast: self.types([Scalar(ast.copy())], fields)[0])
        if known is not None or self._describe is None:
            return known
        question = _question([written], {**fields, **CLOCK_TYPES}, in_front=False)
        return self._describe(question)[0].type


def _annotated(scalar: Scalar, fields: Fields) -> SparkType | None:
    """The type that sqlglot finds where no rule here does: of arrays, structs, and functions on them.

    Its numbers are left alone: it widens them in other ways than Spark.
    """
    if isinstance(scalar.ast(), exp.Null) or not scalar.columns <= fields.keys():
        return None
    try:
        question = sqlglot.parse_one(_question([scalar], fields, in_front=False), dialect=SparkText)
    except SqlglotError:
        return None
    annotated = annotate_types(question, dialect="spark")
    assert isinstance(annotated, exp.Select)
    type_ = annotated.selects[0].type
    if type_ is None or type_.this in _UNSURE:
        return None
    found = SparkType.of(type_.sql(dialect="spark"))
    return None if "unknown" in found.text or found.text in ("null", "void") else found


def _question(scalars: Sequence[Scalar], fields: Fields, *, in_front: bool = True) -> str:
    """A query over no table whose columns have the scalars' types: every field is a typed NULL.

    The plain column in front makes Spark refuse an aggregate function that we do not know to be one.
    """
    used = sorted({c for scalar in scalars for c in scalar.columns})
    row = exp.select(exp.alias_(exp.Literal.number(1), "one")).subquery("fivm_row")
    query = exp.select(*([column_ast("fivm_row", "one")] if in_front else [])).from_(row)
    query = query.select(*(exp.alias_(s.ast(), f"c{i}") for i, s in enumerate(scalars)))
    for table in sorted({table for table, _ in used}):
        columns = [
            exp.alias_(cast_ast(exp.Null(), fields[(t, name)]), identifier(name))
            for t, name in used
            if t == table
        ]
        source = exp.select(*columns).subquery(identifier(table))
        query = query.join(source, join_type="cross")
    return query.sql(dialect="spark")


def static_type(node: exp.Expr, fields: Fields) -> SparkType | None:
    """The type of an expression by Spark's rules, None if they are not written down here."""
    if isinstance(node, exp.Column):
        return fields[(node.table, node.name)]
    if isinstance(node, exp.Paren):
        return static_type(node.this, fields)
    if isinstance(node, exp.Neg):
        type_ = static_type(node.this, fields)
        return DOUBLE if type_ is not None and type_.is_string else type_
    if isinstance(node, exp.Literal):
        return literal_type(node)
    if isinstance(node, exp.Null):
        return VOID
    if isinstance(node, exp.Cast):
        return SparkType.of(node.to.sql(dialect="spark"))
    if isinstance(node, (exp.Boolean, exp.Predicate, exp.Connector, exp.Not, exp.Is, exp.Between, exp.In)):
        return BOOLEAN
    if isinstance(node, (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.IntDiv)):
        sides = [(static_type(side, fields), side) for side in (node.left, node.right)]
        return operation(type(node), *sides)
    if isinstance(node, exp.Dot):
        owner = static_type(node.this, fields)
        return owner.field(node.expression.name) if owner is not None else None
    return _call_type(node, fields)


def cast(scalar: Scalar, source: SparkType, target: SparkType) -> Scalar:
    """``scalar`` as ``target``; unchanged where it has that type."""
    return scalar if source == target else Scalar(as_type(scalar.ast(), target.text))


def known_type(type_: SparkType | None, node: exp.Expr) -> SparkType:
    """``type_``, or FIVM109 pointing at ``node``."""
    if type_ is None:
        raise FivmError(
            "FIVM109",
            f"the type of {node.sql('spark')} is not known without a connection",
            span=span_of(node),
            remedy="wrap it in CAST(... AS type)",
        )
    return type_


def literal_type(node: exp.Literal) -> SparkType | None:
    """Spark's type of a literal: int, bigint, or the narrowest decimal; strings are strings."""
    if node.is_string:
        return STRING
    text = node.this
    if text.isdigit():
        return INT if int(text) < 2**31 else BIGINT if int(text) < 2**63 else SparkType.decimal(len(text), 0)
    whole, dot, fraction = text.partition(".")
    if dot and (whole + fraction).isdigit():
        digits = len(whole.lstrip("0")) + len(fraction)
        return SparkType.decimal(max(digits, len(fraction), 1), len(fraction))
    return DOUBLE if "e" in text.lower() else None


def _call_type(node: exp.Expr, fields: Fields) -> SparkType | None:
    if isinstance(node, exp.Case):
        results = [branch.args["true"] for branch in node.args["ifs"]]
        default = node.args.get("default")
        return common_type([static_type(r, fields) for r in [*results, *([default] if default else [])]])
    if isinstance(node, exp.Interval):
        return interval_type(node)
    while isinstance(node, (exp.Window, *AROUND)):
        node = node.this
    return type_of_call(node, lambda part: static_type(part, fields))
