"""Types of operands may give an expression another meaning in DuckDB: FIVM602 refuses it before anything runs.

Spark converts a text beside a number to a number, a float beside a decimal to a double, and cuts the scale of decimals
with more than 38 digits. DuckDB takes other types or fails. A statement has no types; the query of a plan has.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass

import sqlglot
from sqlglot import exp

from fivm_dbt.catalog import Column, SparkType
from fivm_dbt.catalog.types import product_digits, sum_digits
from fivm_dbt.engines.duckdb.orders import LESS, named_struct_in_order, order_key, ordered_values
from fivm_dbt.engines.duckdb.unsupported import CODE
from fivm_dbt.errors import FivmError
from fivm_dbt.functions.lookup import arguments as arguments_of
from fivm_dbt.functions.widening import VOID
from fivm_dbt.ir.aggregate import Aggregate
from fivm_dbt.ir.calls import function_name
from fivm_dbt.ir.clock import CLOCK_TYPES
from fivm_dbt.ir.dialect import SparkText
from fivm_dbt.ir.node import Node
from fivm_dbt.ir.scalar import ColumnId, Scalar
from fivm_dbt.rings.covariances import is_moments
from fivm_dbt.sql.typing import static_type

Types = Mapping[ColumnId, SparkType]

_COMPARISONS = (
    exp.EQ,
    exp.NEQ,
    exp.GT,
    exp.GTE,
    exp.LT,
    exp.LTE,
    exp.NullSafeEQ,
    exp.NullSafeNEQ,
    exp.Nullif,
)
_SORTED = (exp.ArraySort, exp.ArrayMax, exp.ArrayMin)
_ORDERS = (*LESS, exp.Between, exp.Greatest, exp.Least, *_SORTED)
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.IntDiv)
_PLAIN = {
    "integer": re.compile(r"-?\d{1,18}"),
    "number": re.compile(r"-?\d{1,18}(\.\d+)?"),
    "date": re.compile(r"\d{4}-\d{2}-\d{2}"),
    "timestamp": re.compile(r"\d{4}-\d{2}-\d{2}( \d{2}:\d{2}:\d{2}(\.\d{1,6})?)?"),
    "boolean": re.compile(r"true|false"),
}
"""Texts that both read alike, by the kind of what they stand beside."""


def check_meaning(query: Node, sql: str) -> None:
    """Raise FIVM602 for what DuckDB does not evaluate as Spark does, in a plan's query or in its text."""
    named = named_struct_in_order(sqlglot.parse_one(sql, dialect=SparkText))
    if named is not None:
        raise _refused(f"{_shown(named)} in an order: in a struct NULL comes last there")
    for node in query.walk():
        types = {f.id: f.type for child in node.inputs for f in child.fields} | dict(CLOCK_TYPES)
        soft = frozenset(i for child in node.inputs for i in _soft(child))
        for scalar in _scalars(node):
            if scalar.columns <= types.keys():
                _check(scalar.ast(), types, soft)
        if isinstance(node, Aggregate):
            for call in node.calls:
                _check_aggregate(call.function, call.argument_type)


def check_columns(planned: Sequence[Column], shown: Sequence[Column]) -> None:
    """Raise FIVM602 where DuckDB has a query's columns in another order, as those of ``t.*`` over USING."""
    wanted, found = ([c.name.lower() for c in side] for side in (planned, shown))
    if wanted != found and sorted(wanted) == sorted(found):
        raise _refused(f"the columns are {', '.join(found)} there instead of {', '.join(wanted)}")


def _refused(what: str) -> FivmError:
    return FivmError(CODE, what, remedy="fivm replay --engine spark, or CAST to the type that is meant")


def _scalars(node: Node) -> Iterator[Scalar]:
    """All expressions of a node itself."""
    assert is_dataclass(node)
    for field in fields(node):
        yield from _within(getattr(node, field.name))


def _within(value: object) -> Iterator[Scalar]:
    if isinstance(value, Scalar):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from _within(part)
    elif is_dataclass(value) and not isinstance(value, (Node, type)):
        for field in fields(value):
            yield from _within(getattr(value, field.name))


def _soft(node: Node) -> frozenset[ColumnId]:
    """Fields that are doubles in DuckDB and not in Spark: quotients of decimals, CEIL and FLOOR of doubles."""
    below = frozenset(i for child in node.inputs for i in _soft(child))
    found = set(below)
    items = [(i.name, i.value, i.type) for i in getattr(node, "items", ())]
    if isinstance(node, Aggregate):
        items += [(k.name, k.value, k.type) for k in node.keys]
        found |= {(node.alias, c.name) for c in node.calls if c.function == "avg" and c.type.is_decimal}
    for name, value, type_ in items:
        if not type_.is_floating and _is_soft(value.ast(), below):
            found.add((getattr(node, "alias", ""), name))
    return frozenset(found)


def _is_soft(node: exp.Expr, soft: frozenset[ColumnId]) -> bool:
    if isinstance(node, (exp.Cast, exp.TryCast)):
        return False
    if isinstance(node, (exp.Div, exp.Ceil, exp.Floor)):
        return True
    if isinstance(node, exp.Column):
        return (node.table, node.name) in soft
    return any(_is_soft(child, soft) for child in node.iter_expressions())


def _check(node: exp.Expr, types: Types, soft: frozenset[ColumnId]) -> None:
    for part in node.walk():
        if isinstance(part, _ORDERS):
            _check_orders(part, types)
        if isinstance(part, _COMPARISONS):
            _check_alike(part, [part.this, part.expression], types)
        elif isinstance(part, exp.In) and part.expressions:
            _check_alike(part, [part.this, *part.expressions], types)
        elif isinstance(part, exp.Between):
            _check_alike(part, [part.this, part.args["low"], part.args["high"]], types)
        elif isinstance(part, _ARITHMETIC):
            _check_alike(part, [part.this, part.expression], types)
            _check_arithmetic(part, types)
        elif isinstance(part, (exp.Coalesce, exp.Greatest, exp.Least)):
            _check_alike(part, [part.this, *part.expressions], types, has_common_type=True)
        elif isinstance(part, exp.Array):
            _check_alike(part, part.expressions, types, has_common_type=True)
        elif isinstance(part, (exp.Case, exp.If)):
            _check_branches(part, types)
        elif isinstance(part, exp.DecodeCase):
            raise _refused(_shown(part))
        elif isinstance(part, (exp.DPipe, exp.Concat, exp.ConcatWs)):
            arguments = [part.this, part.expression] if isinstance(part, exp.DPipe) else part.expressions
            for argument in arguments:
                _check_text(part, argument, types, soft)
        elif isinstance(part, (exp.Cast, exp.TryCast)) and part.to.is_type("text"):
            is_floating = _typed(part.this, types).is_floating
            if (
                isinstance(part.this, (exp.Array, exp.Struct, exp.Map))
                or "<" in _typed(part.this, types).text
            ):
                raise _refused(f"{_shown(part)}: the text of a nested value")
            if not is_floating and _is_soft(part.this, soft):
                raise _refused(f"{_shown(part)}: it is a double there")
            if is_floating and part.this.find(exp.Round):
                raise _refused(f"{_shown(part)}: it may be -0.0 there")
        elif isinstance(part, (exp.Ceil, exp.Floor)) and part.args.get("decimals"):
            if _typed(part.this, types).is_floating:
                raise _refused(f"{_shown(part)}, of a double")
        elif isinstance(part, exp.Bracket):
            _check_key(part, types)
        elif function_name(part) in ("hash", "xxhash64", "typeof"):
            raise _refused(_shown(part))
        elif isinstance(part, (exp.Max, exp.Min, exp.Avg)):
            _check_aggregate(part.key, _nested(part.this, types))
            _check_order(part, part.this, types)
        elif isinstance(part, exp.Ordered):
            _check_order(part, part.this, types)
        elif function_name(part) in ("max_by", "min_by", "arg_max", "arg_min"):
            _check_order(part, arguments_of(part)[1], types)
        elif isinstance(part, exp.Anonymous) and part.name.lower() == "try_sum":
            _check_aggregate("try_sum", _typed(part.expressions[0], types))


def _check_branches(part: exp.Case | exp.If, types: Types) -> None:
    if isinstance(part, exp.If):
        if isinstance(part.parent, exp.Case):
            return
        branches = [part.args["true"], part.args.get("false")]
    else:
        branches = [*(b.args["true"] for b in part.args["ifs"]), part.args.get("default")]
        if part.this is not None:
            _check_alike(part, [part.this, *(b.this for b in part.args["ifs"])], types)
    _check_alike(part, [b for b in branches if b is not None], types, has_common_type=True)


def _typed(node: exp.Expr, types: Types) -> SparkType:
    """Spark's type; void where it is not known here."""
    return static_type(node, types) or VOID


def _nested(node: exp.Expr, types: Types) -> SparkType:
    """The type of an argument; of an array or a struct made on the spot as far as its parts say."""
    known = _typed(node, types)
    if known == VOID and isinstance(node, (exp.Array, exp.Struct)):
        return SparkType(f"array<{','.join(_typed(c, types).text for c in node.find_all(exp.Column))}>")
    return known


def _shown(node: exp.Expr) -> str:
    return node.sql(dialect="spark", comments=False)


def _kind(type_: SparkType) -> str | None:
    """What is converted to each other by nobody; None of nested types and where the type is not known."""
    if type_.is_string:
        return "string"
    if type_.is_integral:
        return "integer"
    if type_.is_numeric:
        return "number"
    if type_.text == "boolean":
        return "boolean"
    if type_.is_temporal:
        return "date" if type_.text == "date" else "timestamp"
    return None


def _check_alike(
    part: exp.Expr, operands: Sequence[exp.Expr], types: Types, *, has_common_type: bool = False
) -> None:
    """Texts beside other types, but for literals that both read alike; floats beside decimals."""
    typed = [(o, _typed(o, types)) for o in operands]
    kinds = {_kind(t) for _, t in typed} - {None, "string"}
    texts = [o for o, t in typed if t.is_string]
    if texts and kinds:
        is_plain = not has_common_type and all(
            isinstance(o.unnest(), exp.Literal)
            and all(_PLAIN[kind or ""].fullmatch(o.unnest().name) is not None for kind in kinds)
            for o in texts
        )
        if not is_plain:
            named = dict.fromkeys(t.text for _, t in typed if _kind(t) is not None)
            raise _refused(f"{_shown(part)}, of {' and '.join(named)}")
    found = {t.text for _, t in typed}
    if "float" in found and any(t.is_decimal for _, t in typed):
        raise _refused(f"{_shown(part)}, of float and decimal")


def _check_arithmetic(part: exp.Binary, types: Types) -> None:
    left, right = _typed(part.left, types), _typed(part.right, types)
    if left.text == right.text == "date":
        raise _refused(f"{_shown(part)}: an interval")
    if not (left.is_decimal or right.is_decimal) or left.is_floating or right.is_floating:
        return
    if left == VOID or right == VOID or not (left.is_numeric and right.is_numeric):
        return
    digits = 0
    if isinstance(part, exp.Mul):
        digits = product_digits(left, right)[0] - _unused(part.left) - _unused(part.right)
    elif isinstance(part, (exp.Add, exp.Sub)):
        digits = sum_digits(left, right)[0]
    if digits > 38:
        raise _refused(f"{_shown(part)}, of {left} and {right}: more than 38 digits")


def _unused(node: exp.Expr) -> int:
    """How many digits fewer an integer literal has than its type."""
    literal = node.unnest()
    is_whole = isinstance(literal, exp.Literal) and not literal.is_string and literal.is_int
    return 10 - len(literal.name) if is_whole and len(literal.name) <= 10 else 0


def _check_text(part: exp.Expr, argument: exp.Expr, types: Types, soft: frozenset[ColumnId]) -> None:
    type_ = _typed(argument, types)
    is_long = type_.is_decimal and type_.scale > 6
    if type_.is_floating or is_long or (type_.is_numeric and _is_soft(argument, soft)):
        raise _refused(f"{_shown(part)}, with a {type_} as a text")


def _check_key(part: exp.Bracket, types: Types) -> None:
    """A key of a map that is no text looks like the index of an array."""
    owner = part.this
    is_map = isinstance(owner, (exp.Map, exp.VarMap)) or _typed(owner, types).text.startswith("map<")
    (key,) = part.expressions if len(part.expressions) == 1 else (exp.Literal.string(""),)
    if is_map and not (isinstance(key, exp.Literal) and key.is_string):
        raise _refused(f"{_shown(part)}, of a map")


def _check_orders(part: exp.Expr, types: Types) -> None:
    """Two structs that are written are compared field by field, all other values as DuckDB orders them."""
    if isinstance(part, _SORTED):
        (_, element), *_ = _typed(part.this, types).element_columns() or [("", VOID)]
        is_seen = isinstance(part, exp.ArraySort) and not element.text.startswith("array<")
        for type_ in [type_ for _, type_ in element.struct_fields] if is_seen else [element]:
            _check_whole(part, type_)
        return
    sides = list(part.iter_expressions())
    if isinstance(part, LESS) and all(order_key(side) is not None for side in sides):
        sides = [value for side in sides for value in ordered_values(side)]
    for side in sides:
        _check_whole(part, _typed(side, types))


def _check_order(part: exp.Expr, by: exp.Expr, types: Types) -> None:
    for value in ordered_values(by):
        type_ = _typed(value, types)
        is_list = isinstance(value, exp.Column) and not re.search(r"<.*<", type_.text)
        if not (is_list and type_.text.startswith("array<")):  # a list that was collected has no NULL
            _check_whole(part, type_)


def _check_whole(part: exp.Expr, type_: SparkType) -> None:
    """What is compared has no parts, which may be NULL."""
    if type_.text.startswith(("array<", "struct<")) and type_.text != _WINDOW and not is_moments(type_):
        raise _refused(f"{_shown(part)}: in {type_} NULL comes last there")


_WINDOW = "struct<start:timestamp,end:timestamp>"
"""Both times of a window are there."""


def _check_aggregate(function: str, type_: SparkType | None) -> None:
    if type_ is None:
        return
    if function == "avg" and type_.is_decimal and type_.precision > 18:
        raise _refused(f"AVG of {type_}")
    if function == "try_sum" and type_.text == "bigint":
        raise _refused("TRY_SUM of bigint")
    if function in ("min", "max") and re.search(r"<.*\b(float|double)\b", type_.text):
        raise _refused(f"{function.upper()} of {type_}")
