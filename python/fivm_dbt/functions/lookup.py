"""A node of the syntax tree calls a function; this module finds its row."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.functions.aggregates import AGGREGATES
from fivm_dbt.functions.arrays import COLLECTIONS
from fivm_dbt.functions.documents import DOCUMENTS
from fivm_dbt.functions.function import Aggregate, Arguments, Function, Kind, Order
from fivm_dbt.functions.learning import LEARNING
from fivm_dbt.functions.numbers import NUMBERS
from fivm_dbt.functions.sketches import SKETCHES
from fivm_dbt.functions.special import GENERATORS, OTHER_EACH_TIME, TABLES, WINDOW_FUNCTIONS
from fivm_dbt.functions.strings import STRINGS
from fivm_dbt.functions.times import TIMES
from fivm_dbt.ir.calls import function_name, given

TABLE: tuple[Function, ...] = (
    *AGGREGATES,
    *STRINGS,
    *NUMBERS,
    *TIMES,
    *COLLECTIONS,
    *DOCUMENTS,
    *SKETCHES,
    *WINDOW_FUNCTIONS,
    *GENERATORS,
    *TABLES,
    *OTHER_EACH_TIME,
)
"""All functions of Spark."""

_READ_AS: dict[type[exp.Expr], str] = {
    exp.ApproxDistinct: "approx_count_distinct",
    exp.ApproxQuantile: "approx_percentile",
    exp.ArgMax: "max_by",
    exp.ArgMin: "min_by",
    exp.ArrayAgg: "collect_list",
    exp.ArraySize: "size",
    exp.ArraySlice: "slice",
    exp.ArraySort: "sort_array",
    exp.ArrayToString: "array_join",
    exp.ArrayUniqueAgg: "collect_set",
    exp.AtTimeZone: "from_utc_timestamp",
    exp.BitwiseAnd: "&",
    exp.BitwiseAndAgg: "bit_and",
    exp.BitwiseCount: "bit_count",
    exp.BitwiseLeftShift: "shiftleft",
    exp.BitwiseNot: "~",
    exp.BitwiseOr: "|",
    exp.BitwiseOrAgg: "bit_or",
    exp.BitwiseRightShift: "shiftright",
    exp.BitwiseXor: "^",
    exp.BitwiseXorAgg: "bit_xor",
    exp.Bracket: "element_at",
    exp.DPipe: "concat",
    exp.DateTrunc: "trunc",
    exp.DayOfMonth: "day",
    exp.DayOfWeek: "dayofweek",
    exp.DayOfYear: "dayofyear",
    exp.DecodeCase: "decode",
    exp.EndsWith: "endswith",
    exp.Format: "format_string",
    exp.FromBase64: "unbase64",
    exp.FromTimeZone: "to_utc_timestamp",
    exp.GenerateSeries: "sequence",
    exp.GroupConcat: "listagg",
    exp.IsNan: "isnan",
    exp.JSONExtractScalar: "get_json_object",
    exp.JSONFormat: "to_json",
    exp.JSONKeys: "json_object_keys",
    exp.LogicalAnd: "bool_and",
    exp.LogicalOr: "bool_or",
    exp.Map: "map_from_arrays",
    exp.Pad: "lpad",
    exp.Quantile: "percentile",
    exp.RegexpSplit: "split",
    exp.SafeAdd: "try_add",
    exp.SafeDivide: "try_divide",
    exp.SafeMultiply: "try_multiply",
    exp.SafeSubtract: "try_subtract",
    exp.StartsWith: "startswith",
    exp.StrPosition: "instr",
    exp.TimestampAdd: "dateadd",
    exp.TimestampFromParts: "make_timestamp",
    exp.TimestampTrunc: "date_trunc",
    exp.ToBase64: "base64",
    exp.TsOrDsAdd: "date_add",
    exp.TsOrDsToDate: "to_date",
    exp.VarMap: "map",
    exp.Variance: "var_samp",
    exp.VariancePop: "var_pop",
    exp.WeekOfYear: "weekofyear",
}
"""What sqlglot has classes of other names for."""

_BY_NAME: dict[str, Function] = {
    name: function for function in (*TABLE, *LEARNING) for name in function.names
}
_BY_NAME |= {
    str(kind.sql_name()).lower(): _BY_NAME[name]
    for kind, name in _READ_AS.items()
    if issubclass(kind, exp.Func) and str(kind.sql_name()).lower() not in _BY_NAME
}

NAMES: tuple[str, ...] = tuple(sorted(name for function in TABLE for name in function.names))

AROUND = (exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)
"""What may stand around the call of an aggregate function and belongs to it."""


def find(node: exp.Expr) -> Function | None:
    """The row of the function that ``node`` calls, None for other nodes and for functions that are not in the table.

    >>> import sqlglot
    >>> find(sqlglot.parse_one("approx_count_distinct(a)", dialect="spark")).nothing
    '0'
    """
    return _BY_NAME.get(_READ_AS.get(type(node)) or function_name(node) or "")


def named(name: str) -> Function | None:
    """The row of a function by one of its names, sqlglot's among them."""
    return _BY_NAME.get(name.lower())


def is_of(node: exp.Expr, *orders: Order) -> bool:
    """Whether a call has a result in which the order of rows decides one of these."""
    return order_of(node) in orders


def order_of(node: exp.Expr) -> Order:
    """What the order of the rows decides in the result of a call."""
    function = find(node)
    return Order.FREE if function is None else function.order


def is_kind(node: exp.Expr, kind: Kind) -> bool:
    """Whether ``node`` calls a function of one kind."""
    function = find(node)
    return function is not None and function.kind is kind


def aggregate_of(node: exp.Expr) -> Aggregate | None:
    """The row of an aggregate that ``node`` calls."""
    function = find(node)
    return function if isinstance(function, Aggregate) else None


def type_of_call(node: exp.Expr, type_of: Callable[[exp.Expr], SparkType | None]) -> SparkType | None:
    """The type of a call as the table has it, None where it does not know."""
    function = find(node)
    return function.type_over(Arguments(node, arguments(node), type_of)) if function is not None else None


def arguments(node: exp.Expr) -> tuple[exp.Expr, ...]:
    """What a function is called with, as far as possible in the order of Spark's text."""
    found = given(node)
    if found and isinstance(found[0], exp.Distinct):
        found[:1] = found[0].expressions
    within = node.parent
    if isinstance(within, exp.WithinGroup) and not is_of(node, Order.TEXT):
        found.insert(0, within.expression.expressions[0].this)
    return tuple(found)
