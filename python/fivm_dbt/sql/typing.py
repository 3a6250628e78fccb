"""Types of scalar expressions: Spark's own answer where there is a connection, Spark's rules where there is none.

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
from fivm_dbt.catalog.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    product_digits,
    sum_digits,
)
from fivm_dbt.errors import FivmError
from fivm_dbt.ir.clock import CLOCK_TYPES
from fivm_dbt.ir.dialect import SparkText
from fivm_dbt.ir.scalar import ColumnId, Scalar, cast_ast, column_ast, identifier
from fivm_dbt.sql.aggregates import Call, called, read_call, static_aggregate_type
from fivm_dbt.sql.functions import function_name
from fivm_dbt.sql.parse import span_of

Fields = Mapping[ColumnId, SparkType]
Describe = Callable[[str], tuple[Column, ...]]

VOID = SparkType("void")
_WIDER = ("tinyint", "smallint", "int", "bigint")

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

_FIXED: dict[str, SparkType] = {
    **dict.fromkeys(
        "upper lower trim ltrim rtrim concat concat_ws substring substr replace regexp_replace regexp_extract lpad "
        "rpad initcap left right reverse repeat date_format md5 sha sha1 sha2 hex translate time_to_str split_part "
        "format_string string str_to_map_key from_unixtime to_char to_varchar".split(),
        STRING,
    ),
    **dict.fromkeys(
        "length char_length year month day dayofmonth day_of_month dayofweek day_of_week dayofyear day_of_year "
        "hour minute second quarter weekofyear week_of_year datediff date_diff ascii instr locate str_position "
        "weekday sign_int unix_date".split(),
        INT,
    ),
    **dict.fromkeys(
        "to_date ts_or_ds_to_date ts_or_ds_add trunc date_add date_sub add_months last_day next_day make_date "
        "date_from_parts tsordstodate tsordsadd".split(),
        DATE,
    ),
    **dict.fromkeys(
        "date_trunc timestamp_trunc to_timestamp make_timestamp timestamp_micros".split(), TIMESTAMP
    ),
    **dict.fromkeys(
        "sqrt exp ln log log10 log2 power pow sin cos tan asin acos atan atan2 degrees radians cbrt".split(),
        DOUBLE,
    ),
    **dict.fromkeys("like rlike ilike contains startswith endswith isnull isnotnull isnan".split(), BOOLEAN),
    **dict.fromkeys("xxhash64 unix_timestamp to_unix_timestamp unix_micros crc32".split(), BIGINT),
}


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

    def aggregate_type(self, written: Scalar, call: Call, fields: Fields) -> SparkType | None:
        """The result type of an aggregate call."""
        known = static_aggregate_type(call, lambda ast: self.types([Scalar(ast.copy())], fields)[0])
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
    if isinstance(node, (exp.Paren, exp.Neg)):
        return static_type(node.this, fields)
    if isinstance(node, exp.Literal):
        return literal_type(node)
    if isinstance(node, exp.Null):
        return VOID
    if isinstance(node, exp.Cast):
        return SparkType.of(node.to.sql(dialect="spark"))
    if isinstance(node, (exp.Boolean, exp.Predicate, exp.Connector, exp.Not, exp.Is, exp.Between, exp.In)):
        return BOOLEAN
    if isinstance(node, (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.IntDiv)):
        return _arithmetic(node, fields)
    if isinstance(node, exp.DPipe):
        return STRING
    if isinstance(node, exp.Dot):
        owner = static_type(node.this, fields)
        return owner.field(node.expression.name) if owner is not None else None
    return _call_type(node, fields)


def cast(scalar: Scalar, source: SparkType, target: SparkType) -> Scalar:
    """``scalar`` as ``target``; unchanged where it has that type."""
    return scalar if source == target else Scalar(exp.cast(scalar.ast(), target.text, dialect="spark"))


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
    if isinstance(node, exp.If):
        branches = [node.args["true"], *([node.args["false"]] if node.args.get("false") else [])]
        return common_type([static_type(b, fields) for b in branches])
    if isinstance(node, (exp.Coalesce, exp.Greatest, exp.Least)):
        return common_type([static_type(a, fields) for a in [node.this, *node.expressions]])
    if isinstance(node, exp.DateDiff) and node.args.get("unit"):
        return BIGINT
    if isinstance(node, exp.DateTrunc):  # Spark's TRUNC; DATE_TRUNC is a TimestampTrunc
        return DATE
    if isinstance(node, exp.TimestampTrunc):
        return TIMESTAMP
    if isinstance(node, exp.Window):
        return _window_type(node, fields)
    if isinstance(node, (exp.Round, exp.Ceil, exp.Floor)):
        return _rounded_type(node, fields)
    if isinstance(node, (exp.Nullif, exp.Abs)):
        return static_type(node.this, fields)
    if isinstance(node, exp.Struct):
        return _struct_type(node, fields)
    name = function_name(node)
    return _FIXED.get(name) if name else None


def _struct_type(node: exp.Struct, fields: Fields) -> SparkType | None:
    """The type of a struct all of whose fields are named."""
    parts = []
    for part in node.expressions:
        type_ = static_type(part.expression, fields) if isinstance(part, exp.PropertyEQ) else None
        if type_ is None:
            return None
        parts.append(f"{part.name}:{type_.text}")
    return SparkType(f"struct<{','.join(parts)}>")


def _rounded_type(node: exp.Round | exp.Ceil | exp.Floor, fields: Fields) -> SparkType | None:
    """ROUND keeps the type but for a decimal's scale; CEIL and FLOOR give whole numbers."""
    type_ = static_type(node.this, fields)
    digits = node.args.get("decimals")
    if type_ is None:
        return None
    if not type_.is_decimal:
        return type_ if isinstance(node, exp.Round) else BIGINT
    whole = type_.precision - type_.scale + 1
    if digits is None:
        return SparkType.decimal(whole, 0)
    places = Scalar(digits.copy()).as_number
    if places is None:
        return None
    kept = min(max(places, 0), type_.scale)
    return SparkType.decimal(max(whole, 1 - places) + kept, kept)


def _window_type(node: exp.Window, fields: Fields) -> SparkType | None:
    inner = called(node.this)
    name = function_name(inner)
    if name in ("row_number", "rank", "dense_rank", "ntile"):
        return INT
    if name in ("percent_rank", "cume_dist"):
        return DOUBLE
    if name in ("lag", "lead", "nth_value", "first_value", "last_value", "first", "last"):
        return static_type(inner.this, fields)
    return static_aggregate_type(read_call(inner), lambda ast: static_type(ast, fields))


def _arithmetic(node: exp.Binary, fields: Fields) -> SparkType | None:
    left, right = static_type(node.left, fields), static_type(node.right, fields)
    if left is None or right is None:
        return None
    if left.text == "date" and right.is_integral and isinstance(node, (exp.Add, exp.Sub)):
        return DATE
    if left == VOID or right == VOID:
        left, right = (right, right) if left == VOID else (left, left)
    if not (left.is_numeric and right.is_numeric):
        return None
    if isinstance(node, exp.IntDiv):
        return BIGINT
    if left.is_floating or right.is_floating:
        both_float = left.text == right.text == "float" and not isinstance(node, exp.Div)
        return SparkType("float") if both_float else DOUBLE
    if left.is_integral and right.is_integral:
        return DOUBLE if isinstance(node, exp.Div) else _widest(left, right)
    return decimal_result(type(node), _as_decimal(left, node.left), _as_decimal(right, node.right))


def _as_decimal(type_: SparkType, node: exp.Expr) -> SparkType:
    """An integral operand beside a decimal: a literal takes as many digits as it has."""
    literal = node.unnest()
    if type_.is_integral and isinstance(literal, exp.Literal):
        return SparkType.decimal(len(literal.this), 0)
    return type_


def decimal_result(operator: type[exp.Expr], left: SparkType, right: SparkType) -> SparkType:
    """Spark's result type of decimal arithmetic.

    >>> str(decimal_result(exp.Mul, SparkType.of("decimal(12,2)"), SparkType.of("decimal(13,2)")))
    'decimal(26,4)'
    """
    (p1, s1), (p2, s2) = (left.precision, left.scale), (right.precision, right.scale)
    if operator in (exp.Add, exp.Sub):
        precision, scale = sum_digits(left, right)
    elif operator is exp.Mul:
        precision, scale = product_digits(left, right)
    elif operator is exp.Div:
        scale = max(6, s1 + p2 + 1)
        precision = p1 - s1 + s2 + scale
    else:
        scale = max(s1, s2)
        precision = min(p1 - s1, p2 - s2) + scale
    return adjusted(precision, scale)


def adjusted(precision: int, scale: int) -> SparkType:
    """A decimal type cut to 38 digits: the scale gives way, but keeps at least 6."""
    if precision <= 38:
        return SparkType.decimal(precision, scale)
    whole = precision - scale
    return SparkType.decimal(38, max(38 - whole, min(scale, 6)))


def common_type(types: Sequence[SparkType | None], *, to_string: bool = True) -> SparkType | None:
    """The type to which Spark widens all of ``types`` (CASE, COALESCE, UNION), None if unknown.

    Without ``to_string`` a string beside something else has no type in common with it, as in VALUES.

    >>> str(common_type([SparkType("int"), SparkType.of("decimal(5,2)")]))
    'decimal(12,2)'
    >>> str(common_type([SparkType("int"), STRING])), common_type([BOOLEAN, STRING])
    ('string', None)
    """
    if any(t is None for t in types):
        return None
    known = [t for t in types if t is not None and t != VOID]
    if not known:
        return VOID
    result = known[0]
    for other in known[1:]:
        wider = _wider_pair(result, other)
        if wider is None and to_string:
            wider = _as_string(result, other)
        if wider is None:
            return None
        result = wider
    return result


def _wider_pair(a: SparkType, b: SparkType) -> SparkType | None:
    if a == b:
        return a
    if a.is_string and b.is_string:
        return STRING
    if a.is_integral and b.is_integral:
        return _widest(a, b)
    if a.is_numeric and b.is_numeric:
        if a.is_floating or b.is_floating:
            # A float beside an integer stays a float; beside a decimal both become doubles.
            return DOUBLE if DOUBLE in (a, b) or a.is_decimal or b.is_decimal else SparkType("float")
        scale = max(a.scale, b.scale)
        whole = max(a.precision - a.scale, b.precision - b.scale)
        return SparkType.decimal(whole + scale, scale) if whole + scale <= 38 else None
    if {a.text, b.text} == {"date", "timestamp"}:
        return TIMESTAMP
    return None


def _as_string(a: SparkType, b: SparkType) -> SparkType | None:
    """STRING where one is a string, and the other one has a text; with ANSI off."""
    other = b if a.is_string else a
    has_text = other.is_numeric or other.text in ("date", "timestamp", "timestamp_ntz")
    return STRING if (a.is_string or b.is_string) and has_text else None


def _widest(a: SparkType, b: SparkType) -> SparkType:
    return a if _WIDER.index(a.text) >= _WIDER.index(b.text) else b
