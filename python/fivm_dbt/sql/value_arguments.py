"""Expressions have these arguments, and so has what decorates them."""

from __future__ import annotations

from sqlglot import exp

from fivm_dbt.sql.arguments import READ, UNUSUAL, Node, Read, foreign, read


def _all_read(*kinds: type[exp.Expr]) -> dict[type[exp.Expr], Node]:
    return {kind: Node(dict.fromkeys(kind.arg_types, READ)) for kind in kinds}


_TYPES = tuple(
    getattr(exp.DType, name)
    for name in (
        "BOOLEAN TINYINT SMALLINT INT BIGINT FLOAT DOUBLE DECIMAL TEXT VARCHAR CHAR BINARY DATE TIME TIMESTAMP "
        "TIMESTAMPLTZ TIMESTAMPNTZ TIMESTAMPTZ INTERVAL ARRAY MAP STRUCT VARIANT NULL GEOGRAPHY GEOMETRY"
    ).split()
)

VALUES: dict[type[exp.Expr], Node] = {
    exp.Alias: Node(
        {"this": READ, "alias": READ},
        # VALUES 1, 2 AS t (x) is read with the name in the last of its rows.
        under=(exp.Select, exp.Pivot, exp.In, exp.Tuple, exp.MatchRecognize, exp.MatchRecognizeMeasure),
        remedy="leave the name out",
        called="a name with AS",
    ),
    exp.Aliases: Node({"this": READ, "expressions": READ}, under=exp.Select),
    exp.Column: Node(
        {
            **read("this", "table", "db", "catalog"),
            "join_mark": foreign("(+) for an outer join", "use LEFT JOIN or RIGHT JOIN"),
            "shadow": UNUSUAL,
        }
    ),
    exp.Star: Node(
        {
            "except_": READ,
            "replace": foreign("* REPLACE / RENAME", "list the columns"),
            "rename": foreign("* REPLACE / RENAME", "list the columns"),
            "ilike": foreign("* ILIKE", "list the columns"),
        }
    ),
    exp.Identifier: Node({"this": READ, "quoted": READ, "global_": UNUSUAL, "temporary": UNUSUAL}),
    exp.Literal: Node({"this": READ, "is_string": READ}),
    exp.Boolean: Node({"this": READ}),
    exp.Null: Node({}),
    exp.Var: Node({"this": READ}),
    exp.Placeholder: Node({"this": READ, "kind": UNUSUAL, "widget": UNUSUAL, "jdbc": READ}),
    exp.Parameter: Node({"this": READ, "expression": UNUSUAL}),
    exp.HexString: Node({"this": READ, "is_integer": UNUSUAL}),
    exp.RawString: Node({"this": READ}),
    exp.Interval: Node(
        {
            "this": Read((exp.Literal, exp.Neg)),
            "unit": Read((exp.Var, exp.IntervalSpan)),
            "fraction_in_string": UNUSUAL,
        },
        remedy="write a number between INTERVAL and its unit, and multiply it",
    ),
    exp.IntervalSpan: Node({"this": READ, "expression": READ}, under=(exp.Interval, exp.DataType)),
    exp.DataType: Node(
        {
            "this": Read(exp.Interval, _TYPES),
            **read("expressions", "nested"),
            "values": foreign("a type with values"),
            "kind": UNUSUAL,
            **read("nullable", "collate"),
        },
        called="a type",
    ),
    exp.DataTypeParam: Node({"this": READ, "expression": foreign("a unit of a length")}, under=exp.DataType),
    exp.ColumnDef: Node(
        {
            **read("this", "kind", "constraints"),
            **{name: UNUSUAL for name in ("exists", "position", "default", "output")},
        },
        under=(exp.DataType, exp.Schema),
    ),
    exp.ColumnConstraint: Node({"kind": READ, "this": UNUSUAL}, under=exp.ColumnDef),
    exp.NotNullColumnConstraint: Node({"allow_null": UNUSUAL}, under=exp.ColumnConstraint),
    exp.Paren: Node({"this": READ}, called="parentheses"),
    exp.Tuple: Node({"expressions": READ}),
    exp.Dot: Node({"this": READ, "expression": READ}),
    exp.Bracket: Node(
        {
            **read("this", "expressions", "offset", "safe", "returns_list_for_maps"),
            "json_access": UNUSUAL,
        }
    ),
    exp.Lambda: Node({"this": READ, "expressions": READ}, under=exp.Func),
    exp.PropertyEQ: Node({"this": READ, "expression": READ}, under=(exp.Struct, exp.Pivot)),
    exp.Kwarg: Node({"this": READ, "expression": READ}, under=exp.Func, called="a named argument"),
    exp.Any: Node({"this": READ}),
    exp.All: Node({"this": READ}),
    exp.AtTimeZone: Node({"this": READ, "zone": READ}),  # what from_utc_timestamp is read as
    exp.FromTimeZone: Node({"this": READ, "zone": READ}),
    **_all_read(exp.JSONPath, exp.JSONPathRoot, exp.JSONPathKey),
    **_all_read(exp.JSONPathSubscript, exp.JSONPathWildcard, exp.JSONPathSlice),
    exp.Between: Node(
        {
            **read("this", "low", "high"),
            "symmetric": foreign("SYMMETRIC or ASYMMETRIC", "compare twice"),
        }
    ),
    exp.In: Node(
        {
            **read("this", "expressions", "query"),
            "unnest": foreign("IN UNNEST", "use array_contains"),
            "field": foreign("IN without parentheses", "write (...)"),
            "is_global": foreign("GLOBAL IN"),
        }
    ),
    exp.Not: Node({"this": READ}),
    exp.Neg: Node({"this": READ}),
    exp.BitwiseNot: Node({"this": READ}),
    **_all_read(exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.IntDiv, exp.DPipe),
    **_all_read(exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseLeftShift, exp.BitwiseRightShift),
    **_all_read(exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ, exp.GT, exp.GTE, exp.LT, exp.LTE),
    **_all_read(exp.Is, exp.Like, exp.ILike, exp.Escape),
    exp.Filter: Node({"this": READ, "expression": READ}),
    exp.WithinGroup: Node({"this": READ, "expression": READ}),
    exp.IgnoreNulls: Node({"this": READ}),
    exp.RespectNulls: Node({"this": READ}),
    exp.Window: Node(
        {
            **read("this", "partition_by", "order", "spec", "alias"),
            "over": Read(values=("OVER",)),
            "first": foreign("KEEP (DENSE_RANK ...)", "use max_by or min_by"),
        }
    ),
    exp.WindowSpec: Node(
        {
            "kind": Read(values=("rows", "range")),
            **read("start", "start_side", "end", "end_side"),
            "exclude": foreign("EXCLUDE in a window frame", "use two frames"),
        },
        under=exp.Window,
        called="a window frame",
    ),
}
"""Expressions and what decorates them."""
