"""The tables of syntax list what of sqlglot's trees is read: arguments of nodes, and places of nodes.

sqlglot reads the SQL of thirty systems. An argument that nobody reads would be dropped without a word, so all that is
in no table is refused (:mod:`check_syntax`); functions and operators are written back as they are, and refused only
where Spark does not have their decorations. A test compares the tables with the classes of the installed version.
"""

from __future__ import annotations

from sqlglot import exp

from fivm_dbt.sql.arguments import Node, Read, Refused, foreign
from fivm_dbt.sql.clause_arguments import FROM, QUERIES
from fivm_dbt.sql.value_arguments import VALUES

SYNTAX: dict[type[exp.Expr], Node] = {**QUERIES, **FROM, **VALUES}

_CAST: dict[str, Read | Refused] = {
    "format": foreign("FORMAT in CAST", "use to_date, to_timestamp or date_format"),
    "action": foreign("an action in CAST"),
    "default": foreign("DEFAULT in CAST", "use coalesce(try_cast(...), ...)"),
}

CALLS: dict[type[exp.Expr], dict[str, Read | Refused]] = {
    exp.Cast: _CAST,
    exp.TryCast: _CAST,
    exp.Trim: {"collation": foreign("COLLATE in TRIM", "COLLATE the string")},
    exp.Ceil: {"to": foreign("TO in CEIL", "use date_trunc")},
    exp.Floor: {"to": foreign("TO in FLOOR", "use date_trunc")},
    exp.Chr: {"charset": foreign("USING in CHAR", "use decode")},
    exp.GroupConcat: {"on_overflow": foreign("ON OVERFLOW")},
    exp.Array: {"bracket_notation": foreign("[...] for an array", "use array(...)")},
}
"""Arguments of calls that are more than a list of values, and refused. All other arguments of a call are values."""

FOREIGN: dict[type[exp.Expr], Refused] = {
    exp.Fetch: foreign("FETCH FIRST", "use LIMIT"),
    exp.HavingMax: foreign("HAVING MAX or MIN inside of a call", "use max_by or min_by"),
    exp.Slice: foreign("[a:b] for a part of an array", "use slice(...)"),
    exp.Unnest: foreign("UNNEST", "use explode"),
    exp.JSONObject: foreign("JSON_OBJECT", "use to_json(struct(...))"),
    exp.JSONArray: foreign("JSON_ARRAY", "use to_json(array(...))"),
    exp.JSONCast: foreign("a cast to JSON", "use to_json"),
    exp.Convert: foreign("CONVERT", "use CAST"),
    exp.ParameterizedAgg: foreign("a call with two lists of arguments"),
    exp.CombinedParameterizedAgg: foreign("a call with two lists of arguments"),
    exp.AnonymousAggFunc: foreign("an aggregate of another system"),
    exp.CombinedAggFunc: foreign("an aggregate of another system", "use FILTER (WHERE ...)"),
    **{k: foreign(k.sql_name()) for k in (exp.JSONTable, exp.OpenJSON, exp.XMLTable, exp.XMLElement)},
    **{k: foreign(k.sql_name()) for k in (exp.JSONObjectAgg, exp.JSONArrayAgg)},
    exp.GapFill: foreign("GAP_FILL"),
    exp.MatchAgainst: foreign("MATCH ... AGAINST", "use LIKE or RLIKE"),
}
"""Nodes with a grammar of their own in other systems, and none in Spark. A node in no table is refused too."""
