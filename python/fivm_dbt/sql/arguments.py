"""What of sqlglot's trees is read: each argument of each node of a query's syntax, and where a node may stand.

sqlglot reads the SQL of thirty systems. An argument that nobody reads would be dropped without a word, so all that is
not in this table is refused (:mod:`check_syntax`); functions and operators are written back as they are, and refused
only where Spark does not have their decorations. A test compares the table with the classes of the installed version.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from sqlglot import exp

Kinds = type[exp.Expr] | tuple[type[exp.Expr], ...]


@dataclass(frozen=True)
class Read:
    """An argument that lowering reads, or that is written back to Spark as it is.

    ``kinds`` are the only nodes, ``values`` the only words or flags that it may be.
    """

    kinds: Kinds | None = None
    values: tuple[object, ...] | None = None


@dataclass(frozen=True)
class Refused:
    """An argument that is not read: what is said, and what to do instead."""

    what: str
    remedy: str = "leave it out"
    code: Literal["FIVM105", "FIVM106"] = "FIVM105"


@dataclass(frozen=True)
class Node:
    """The arguments of a node, and the parents under which alone it may stand; none given means any."""

    arguments: Mapping[str, Read | Refused]
    under: Kinds | None = None
    remedy: str = "write it as Spark SQL does"
    called: str = ""


def _foreign(what: str, remedy: str = "leave it out") -> Refused:
    return Refused(f"{what} is not Spark SQL", remedy)


READ = Read()
UNUSUAL = _foreign("this clause")
"""What the grammar of another system has, and Spark's has not."""

_QUERIES = (exp.Select, exp.SetOperation, exp.Subquery)
_SOURCES = (exp.From, exp.Join, exp.Lateral, exp.Subquery)

_MODIFIERS: dict[str, Read | Refused] = {
    "with_": READ,
    "order": READ,
    "limit": READ,
    "offset": READ,
    # In which order rows come and on which machine they lie is no part of a result.
    "sort": READ,
    "distribute": READ,
    "cluster": READ,
    "sample": Refused("a sample differs at every evaluation", code="FIVM106"),
    "connect": Refused("CONNECT BY cannot be maintained", "materialise the result as a table"),
    "locks": Refused("locking clauses have no meaning here"),
    "prewhere": _foreign("PREWHERE", "use WHERE"),
    "settings": _foreign("SETTINGS"),
    "format": _foreign("FORMAT"),
    "options": _foreign("OPTION"),
    "for_": _foreign("FOR"),
}

_OF_SELECT = ("match", "laterals", "joins", "pivots", "where", "group", "having", "qualify", "windows")


def _set_operation() -> Node:
    refused = {
        name: _foreign(f"{name.upper()} around a set operation", "use a subquery") for name in _OF_SELECT
    }
    words = {
        "side": _foreign("FULL, LEFT or RIGHT before a set operation"),
        "kind": _foreign("INNER or OUTER before a set operation"),
        "on": _foreign("a list of columns after a set operation", "select them in both branches"),
    }
    return Node(
        {
            **_MODIFIERS,
            **refused,
            **words,
            "this": Read(exp.Query),
            "expression": Read(exp.Query),
            "distinct": READ,
            "by_name": READ,
        }
    )


def _binary(*kinds: type[exp.Expr]) -> dict[type[exp.Expr], Node]:
    return {kind: Node(dict.fromkeys(kind.arg_types, READ)) for kind in kinds}


QUERIES: dict[type[exp.Expr], Node] = {
    exp.Select: Node(
        {
            **_MODIFIERS,
            **dict.fromkeys(_OF_SELECT, READ),
            "pivots": _foreign("PIVOT behind a SELECT", "put it into FROM"),
            "expressions": READ,
            "from_": READ,
            "distinct": READ,
            "hint": READ,
            "into": Refused("SELECT INTO is not a query"),
            "kind": _foreign("SELECT AS STRUCT", "use struct(...)"),
            "operation_modifiers": Refused("this modifier of SELECT is not supported"),
            "exclude": _foreign("EXCLUDE", "use * EXCEPT (...)"),
        },
        under=(exp.Subquery, exp.SetOperation, exp.CTE, exp.Exists, exp.In, exp.Any, exp.All),
        remedy="put it into parentheses",
    ),
    exp.Union: _set_operation(),
    exp.Except: _set_operation(),
    exp.Intersect: _set_operation(),
    exp.Subquery: Node(
        {
            **_MODIFIERS,
            **{
                name: _foreign(f"{name.upper()} behind a subquery", "put it into a SELECT around it")
                for name in _OF_SELECT
            },
            "this": READ,
            "alias": READ,
            "joins": READ,
            "laterals": READ,
            "pivots": READ,
        }
    ),
    exp.Values: Node({name: READ for name in ("expressions", "alias", "order", "limit", "offset", "pivots")}),
    exp.With: Node(
        {
            "expressions": READ,
            "recursive": Refused(
                "recursive queries cannot be maintained", "materialise the result as a table"
            ),
            "search": _foreign("SEARCH"),
            "cycle": _foreign("CYCLE"),
            "udfs": _foreign("a function in WITH"),
        }
    ),
    exp.CTE: Node(
        {
            "this": READ,
            "alias": READ,
            "scalar": _foreign("a value in WITH", "write WITH name AS (SELECT ...)"),
            "materialized": _foreign("MATERIALIZED"),
            "key_expressions": _foreign("USING KEY"),
        }
    ),
    exp.From: Node({"this": READ}),
    exp.Where: Node({"this": READ}),
    exp.Having: Node({"this": READ}),
    exp.Qualify: Node({"this": READ}),
    exp.Group: Node(
        {
            "expressions": READ,
            "grouping_sets": READ,
            "cube": READ,
            "rollup": READ,
            "totals": _foreign("WITH TOTALS", "use GROUP BY ... WITH ROLLUP"),
            "all": Read(values=(True,)),
        }
    ),
    exp.GroupingSets: Node({"expressions": READ}, under=exp.Group),
    exp.Cube: Node({"expressions": READ}, under=(exp.Group, exp.GroupingSets)),
    exp.Rollup: Node({"expressions": READ}, under=(exp.Group, exp.GroupingSets)),
    exp.Order: Node(
        {
            "expressions": READ,
            "this": _foreign("ORDER BY inside of a call", "use WITHIN GROUP (ORDER BY ...)"),
            "siblings": _foreign("SIBLINGS"),
        },
        under=(*_QUERIES, exp.Values, exp.Window, exp.WithinGroup, exp.MatchRecognize),
        called="ORDER BY",
    ),
    exp.Sort: Node({"expressions": READ, "this": UNUSUAL, "siblings": UNUSUAL}, under=_QUERIES),
    exp.Distribute: Node({"expressions": READ, "this": UNUSUAL, "siblings": UNUSUAL}, under=_QUERIES),
    exp.Cluster: Node({"expressions": READ}, under=_QUERIES),
    exp.Ordered: Node(
        {"this": READ, "desc": READ, "nulls_first": READ, "with_fill": _foreign("WITH FILL")},
    ),
    exp.Limit: Node(
        {
            "expression": READ,
            "this": UNUSUAL,
            "offset": _foreign("LIMIT with two numbers", "write LIMIT ... OFFSET ..."),
            "limit_options": _foreign(
                "PERCENT, ROWS or WITH TIES in LIMIT", "use row_number() or rank() and a filter"
            ),
            "expressions": _foreign("LIMIT ... BY", "use row_number() and a filter"),
        },
        under=(*_QUERIES, exp.Values),
    ),
    exp.Offset: Node(
        {"expression": READ, "this": UNUSUAL, "expressions": _foreign("OFFSET ... BY")},
        under=(*_QUERIES, exp.Values),
    ),
    exp.Distinct: Node(
        {
            "expressions": READ,
            "on": _foreign(
                "DISTINCT ON", "use QUALIFY row_number() OVER (PARTITION BY ... ORDER BY ...) = 1"
            ),
        }
    ),
    exp.Hint: Node({"expressions": READ}, under=exp.Select),
    exp.JoinHint: Node({"this": READ, "expressions": READ}, under=exp.Hint),
}
"""Clauses of queries."""

FROM: dict[type[exp.Expr], Node] = {
    exp.Table: Node(
        {
            "this": READ,
            "alias": Read(exp.TableAlias),
            "db": READ,
            "catalog": READ,
            "joins": READ,
            "laterals": READ,
            "pivots": READ,
            "version": Refused("time travel on an input cannot be maintained", "read the plain table"),
            "when": Refused("time travel on an input cannot be maintained", "read the plain table"),
            "sample": Refused("a sample on an input cannot be maintained", "read the plain table"),
            "hints": _foreign("WITH (...) after a table"),
            "system_time": Refused("time travel on an input cannot be maintained", "read the plain table"),
            "format": _foreign("FORMAT after a table"),
            "pattern": _foreign("PATTERN after a table"),
            "ordinality": _foreign("WITH ORDINALITY", "use posexplode"),
            "only": _foreign("ONLY before a table"),
            "partition": _foreign("PARTITION after a table", "use WHERE"),
            "changes": _foreign("CHANGES after a table"),
            "rows_from": _foreign("ROWS FROM"),
            "indexed": _foreign("INDEXED BY"),
        }
    ),
    exp.TableAlias: Node({"this": Read(exp.Identifier), "columns": Read(exp.Identifier)}),
    exp.Join: Node(
        {
            "this": READ,
            "on": READ,
            "side": READ,
            "kind": READ,
            "using": READ,
            "method": READ,
            "global_": _foreign("GLOBAL JOIN"),
            "hint": _foreign("a hint between the words of JOIN"),
            "match_condition": _foreign("MATCH_CONDITION"),
            "nearest": _foreign("a join with the nearest row"),
            "directed": _foreign("DIRECTED"),
            "expressions": _foreign("a list of joins"),
            "pivots": _foreign("PIVOT behind a join", "put the join into parentheses"),
        }
    ),
    exp.Lateral: Node(
        {
            "this": READ,
            "view": READ,
            "outer": READ,
            "alias": Read(exp.TableAlias),
            "cross_apply": _foreign("APPLY", "use JOIN LATERAL"),
            "ordinality": _foreign("WITH ORDINALITY", "use posexplode"),
        }
    ),
    exp.Pivot: Node(
        {
            **{
                name: READ
                for name in ("alias", "expressions", "fields", "unpivot", "columns", "include_nulls")
            },
            # Notes of the reader of Spark SQL for writers of other dialects.
            "pivot_column_naming": READ,
            "prefixed_pivot_columns": READ,
            "identify_pivot_strings": READ,
            "value_columns_first": READ,
            "this": _foreign("PIVOT as a statement"),
            "using": _foreign("USING in PIVOT"),
            "group": _foreign("GROUP BY in PIVOT"),
            "default_on_null": _foreign("DEFAULT ON NULL", "use coalesce in the select list"),
            "into": _foreign("INTO in PIVOT"),
            "with_": _foreign("WITH in PIVOT"),
        }
    ),
    exp.PivotAlias: Node({"this": READ, "alias": READ}),
    exp.MatchRecognize: Node(
        {
            name: READ
            for name in ("partition_by", "order", "measures", "rows", "after", "pattern", "define", "alias")
        },
        under=exp.Select,
    ),
    exp.MatchRecognizeMeasure: Node({"this": READ, "window_frame": READ}, under=exp.MatchRecognize),
}
"""Relations, joins and what turns them."""

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
            **{name: READ for name in ("this", "table", "db", "catalog")},
            "join_mark": _foreign("(+) for an outer join", "use LEFT JOIN or RIGHT JOIN"),
            "shadow": UNUSUAL,
        }
    ),
    exp.Star: Node(
        {
            "except_": READ,
            "replace": _foreign("* REPLACE / RENAME", "list the columns"),
            "rename": _foreign("* REPLACE / RENAME", "list the columns"),
            "ilike": _foreign("* ILIKE", "list the columns"),
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
            "expressions": READ,
            "nested": READ,
            "values": _foreign("a type with values"),
            "kind": UNUSUAL,
            "nullable": READ,
            "collate": READ,
        },
        called="a type",
    ),
    exp.DataTypeParam: Node({"this": READ, "expression": _foreign("a unit of a length")}, under=exp.DataType),
    exp.ColumnDef: Node(
        {
            "this": READ,
            "kind": READ,
            "constraints": READ,
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
            "this": READ,
            "expressions": READ,
            "offset": READ,
            "safe": READ,
            "returns_list_for_maps": READ,
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
    **{
        kind: Node(dict.fromkeys(kind.arg_types, READ))
        for kind in (exp.JSONPath, exp.JSONPathRoot, exp.JSONPathKey)
    },
    **{
        kind: Node(dict.fromkeys(kind.arg_types, READ))
        for kind in (exp.JSONPathSubscript, exp.JSONPathWildcard, exp.JSONPathSlice)
    },
    exp.Between: Node(
        {
            "this": READ,
            "low": READ,
            "high": READ,
            "symmetric": _foreign("SYMMETRIC or ASYMMETRIC", "compare twice"),
        }
    ),
    exp.In: Node(
        {
            "this": READ,
            "expressions": READ,
            "query": READ,
            "unnest": _foreign("IN UNNEST", "use array_contains"),
            "field": _foreign("IN without parentheses", "write (...)"),
            "is_global": _foreign("GLOBAL IN"),
        }
    ),
    exp.Not: Node({"this": READ}),
    exp.Neg: Node({"this": READ}),
    exp.BitwiseNot: Node({"this": READ}),
    **_binary(exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.IntDiv, exp.DPipe),
    **_binary(exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseLeftShift, exp.BitwiseRightShift),
    **_binary(exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ, exp.GT, exp.GTE, exp.LT, exp.LTE),
    **_binary(exp.Is, exp.Like, exp.ILike, exp.Escape),
    exp.Filter: Node({"this": READ, "expression": READ}),
    exp.WithinGroup: Node({"this": READ, "expression": READ}),
    exp.IgnoreNulls: Node({"this": READ}),
    exp.RespectNulls: Node({"this": READ}),
    exp.Window: Node(
        {
            **{name: READ for name in ("this", "partition_by", "order", "spec", "alias")},
            "over": Read(values=("OVER",)),
            "first": _foreign("KEEP (DENSE_RANK ...)", "use max_by or min_by"),
        }
    ),
    exp.WindowSpec: Node(
        {
            "kind": Read(values=("rows", "range")),
            **{name: READ for name in ("start", "start_side", "end", "end_side")},
            "exclude": _foreign("EXCLUDE in a window frame", "use two frames"),
        },
        under=exp.Window,
        called="a window frame",
    ),
}
"""Expressions and what decorates them."""

SYNTAX: dict[type[exp.Expr], Node] = {**QUERIES, **FROM, **VALUES}

_CAST: dict[str, Read | Refused] = {
    "format": _foreign("FORMAT in CAST", "use to_date, to_timestamp or date_format"),
    "action": _foreign("an action in CAST"),
    "default": _foreign("DEFAULT in CAST", "use coalesce(try_cast(...), ...)"),
}

CALLS: dict[type[exp.Expr], dict[str, Read | Refused]] = {
    exp.Cast: _CAST,
    exp.TryCast: _CAST,
    exp.Trim: {"collation": _foreign("COLLATE in TRIM", "COLLATE the string")},
    exp.Ceil: {"to": _foreign("TO in CEIL", "use date_trunc")},
    exp.Floor: {"to": _foreign("TO in FLOOR", "use date_trunc")},
    exp.Chr: {"charset": _foreign("USING in CHAR", "use decode")},
    exp.GroupConcat: {"on_overflow": _foreign("ON OVERFLOW")},
    exp.Array: {"bracket_notation": _foreign("[...] for an array", "use array(...)")},
}
"""Arguments of calls that are more than a list of values, and refused. All other arguments of a call are values."""

FOREIGN: dict[type[exp.Expr], Refused] = {
    exp.Fetch: _foreign("FETCH FIRST", "use LIMIT"),
    exp.HavingMax: _foreign("HAVING MAX or MIN inside of a call", "use max_by or min_by"),
    exp.Slice: _foreign("[a:b] for a part of an array", "use slice(...)"),
    exp.Unnest: _foreign("UNNEST", "use explode"),
    exp.JSONObject: _foreign("JSON_OBJECT", "use to_json(struct(...))"),
    exp.JSONArray: _foreign("JSON_ARRAY", "use to_json(array(...))"),
    exp.JSONCast: _foreign("a cast to JSON", "use to_json"),
    exp.Convert: _foreign("CONVERT", "use CAST"),
    exp.ParameterizedAgg: _foreign("a call with two lists of arguments"),
    exp.CombinedParameterizedAgg: _foreign("a call with two lists of arguments"),
    exp.AnonymousAggFunc: _foreign("an aggregate of another system"),
    exp.CombinedAggFunc: _foreign("an aggregate of another system", "use FILTER (WHERE ...)"),
    **{
        kind: _foreign(kind.sql_name())
        for kind in (
            exp.JSONTable,
            exp.OpenJSON,
            exp.XMLTable,
            exp.XMLElement,
            exp.JSONObjectAgg,
            exp.JSONArrayAgg,
        )
    },
    exp.GapFill: _foreign("GAP_FILL"),
    exp.MatchAgainst: _foreign("MATCH ... AGAINST", "use LIKE or RLIKE"),
}
"""Nodes with a grammar of their own in other systems, and none in Spark. A node in no table is refused too."""
