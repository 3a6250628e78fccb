"""The clauses of queries have these arguments, and so have the relations and joins in FROM."""

from __future__ import annotations

from sqlglot import exp

from fivm_dbt.sql.arguments import READ, UNUSUAL, Node, Read, Refused, foreign, read

_QUERIES = (exp.Select, exp.SetOperation, exp.Subquery)

_MODIFIERS: dict[str, Read | Refused] = {
    **read("with_", "order", "limit", "offset"),
    # In which order rows come and on which machine they lie is no part of a result.
    **read("sort", "distribute", "cluster"),
    "sample": Refused("a sample differs at every evaluation", code="FIVM106"),
    "connect": Refused("CONNECT BY cannot be maintained", "materialise the result as a table"),
    "locks": Refused("locking clauses have no meaning here"),
    "prewhere": foreign("PREWHERE", "use WHERE"),
    "settings": foreign("SETTINGS"),
    "format": foreign("FORMAT"),
    "options": foreign("OPTION"),
    "for_": foreign("FOR"),
}

_OF_SELECT = ("match", "laterals", "joins", "pivots", "where", "group", "having", "qualify", "windows")


def _set_operation() -> Node:
    refused = {
        name: foreign(f"{name.upper()} around a set operation", "use a subquery") for name in _OF_SELECT
    }
    words = {
        "side": foreign("FULL, LEFT or RIGHT before a set operation"),
        "kind": foreign("INNER or OUTER before a set operation"),
        "on": foreign("a list of columns after a set operation", "select them in both branches"),
    }
    return Node(
        {
            **_MODIFIERS,
            **refused,
            **words,
            "this": Read(exp.Query),
            "expression": Read(exp.Query),
            **read("distinct", "by_name"),
        }
    )


QUERIES: dict[type[exp.Expr], Node] = {
    exp.Select: Node(
        {
            **_MODIFIERS,
            **read(*_OF_SELECT),
            "pivots": foreign("PIVOT behind a SELECT", "put it into FROM"),
            **read("expressions", "from_", "distinct", "hint"),
            "into": Refused("SELECT INTO is not a query"),
            "kind": foreign("SELECT AS STRUCT", "use struct(...)"),
            "operation_modifiers": Refused("this modifier of SELECT is not supported"),
            "exclude": foreign("EXCLUDE", "use * EXCEPT (...)"),
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
                name: foreign(f"{name.upper()} behind a subquery", "put it into a SELECT around it")
                for name in _OF_SELECT
            },
            **read("this", "alias", "joins", "laterals", "pivots"),
        }
    ),
    exp.Values: Node(read("expressions", "alias", "order", "limit", "offset", "pivots")),
    exp.With: Node(
        {
            "expressions": READ,
            "recursive": Refused(
                "recursive queries cannot be maintained", "materialise the result as a table"
            ),
            "search": foreign("SEARCH"),
            "cycle": foreign("CYCLE"),
            "udfs": foreign("a function in WITH"),
        }
    ),
    exp.CTE: Node(
        {
            **read("this", "alias"),
            "scalar": foreign("a value in WITH", "write WITH name AS (SELECT ...)"),
            "materialized": foreign("MATERIALIZED"),
            "key_expressions": foreign("USING KEY"),
        }
    ),
    exp.From: Node({"this": READ}),
    exp.Where: Node({"this": READ}),
    exp.Having: Node({"this": READ}),
    exp.Qualify: Node({"this": READ}),
    exp.Group: Node(
        {
            **read("expressions", "grouping_sets", "cube", "rollup"),
            "totals": foreign("WITH TOTALS", "use GROUP BY ... WITH ROLLUP"),
            "all": Read(values=(True,)),
        }
    ),
    exp.GroupingSets: Node({"expressions": READ}, under=exp.Group),
    exp.Cube: Node({"expressions": READ}, under=(exp.Group, exp.GroupingSets)),
    exp.Rollup: Node({"expressions": READ}, under=(exp.Group, exp.GroupingSets)),
    exp.Order: Node(
        {
            "expressions": READ,
            "this": foreign("ORDER BY inside of a call", "use WITHIN GROUP (ORDER BY ...)"),
            "siblings": foreign("SIBLINGS"),
        },
        under=(*_QUERIES, exp.Values, exp.Window, exp.WithinGroup, exp.MatchRecognize),
        called="ORDER BY",
    ),
    exp.Sort: Node({"expressions": READ, "this": UNUSUAL, "siblings": UNUSUAL}, under=_QUERIES),
    exp.Distribute: Node({"expressions": READ, "this": UNUSUAL, "siblings": UNUSUAL}, under=_QUERIES),
    exp.Cluster: Node({"expressions": READ}, under=_QUERIES),
    exp.Ordered: Node(
        {"this": READ, "desc": READ, "nulls_first": READ, "with_fill": foreign("WITH FILL")},
    ),
    exp.Limit: Node(
        {
            "expression": READ,
            "this": UNUSUAL,
            "offset": foreign("LIMIT with two numbers", "write LIMIT ... OFFSET ..."),
            "limit_options": foreign(
                "PERCENT, ROWS or WITH TIES in LIMIT", "use row_number() or rank() and a filter"
            ),
            "expressions": foreign("LIMIT ... BY", "use row_number() and a filter"),
        },
        under=(*_QUERIES, exp.Values),
    ),
    exp.Offset: Node(
        {"expression": READ, "this": UNUSUAL, "expressions": foreign("OFFSET ... BY")},
        under=(*_QUERIES, exp.Values),
    ),
    exp.Distinct: Node(
        {
            "expressions": READ,
            "on": foreign("DISTINCT ON", "use QUALIFY row_number() OVER (PARTITION BY ... ORDER BY ...) = 1"),
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
            **read("db", "catalog", "joins", "laterals", "pivots"),
            "version": Refused("time travel on an input cannot be maintained", "read the plain table"),
            "when": Refused("time travel on an input cannot be maintained", "read the plain table"),
            "sample": Refused("a sample on an input cannot be maintained", "read the plain table"),
            "hints": foreign("WITH (...) after a table"),
            "system_time": Refused("time travel on an input cannot be maintained", "read the plain table"),
            "format": foreign("FORMAT after a table"),
            "pattern": foreign("PATTERN after a table"),
            "ordinality": foreign("WITH ORDINALITY", "use posexplode"),
            "only": foreign("ONLY before a table"),
            "partition": foreign("PARTITION after a table", "use WHERE"),
            "changes": foreign("CHANGES after a table"),
            "rows_from": foreign("ROWS FROM"),
            "indexed": foreign("INDEXED BY"),
        }
    ),
    exp.TableAlias: Node({"this": Read(exp.Identifier), "columns": Read(exp.Identifier)}),
    exp.Join: Node(
        {
            **read("this", "on", "side", "kind", "using", "method"),
            "global_": foreign("GLOBAL JOIN"),
            "hint": foreign("a hint between the words of JOIN"),
            "match_condition": foreign("MATCH_CONDITION"),
            "nearest": foreign("a join with the nearest row"),
            "directed": foreign("DIRECTED"),
            "expressions": foreign("a list of joins"),
            "pivots": foreign("PIVOT behind a join", "put the join into parentheses"),
        }
    ),
    exp.Lateral: Node(
        {
            **read("this", "view", "outer"),
            "alias": Read(exp.TableAlias),
            "cross_apply": foreign("APPLY", "use JOIN LATERAL"),
            "ordinality": foreign("WITH ORDINALITY", "use posexplode"),
        }
    ),
    exp.Pivot: Node(
        {
            **read("alias", "expressions", "fields", "unpivot", "columns", "include_nulls"),
            # Notes of the reader of Spark SQL for writers of other dialects.
            **read("pivot_column_naming", "prefixed_pivot_columns"),
            **read("identify_pivot_strings", "value_columns_first"),
            "this": foreign("PIVOT as a statement"),
            "using": foreign("USING in PIVOT"),
            "group": foreign("GROUP BY in PIVOT"),
            "default_on_null": foreign("DEFAULT ON NULL", "use coalesce in the select list"),
            "into": foreign("INTO in PIVOT"),
            "with_": foreign("WITH in PIVOT"),
        }
    ),
    exp.PivotAlias: Node({"this": READ, "alias": READ}),
    exp.MatchRecognize: Node(
        read("partition_by", "order", "measures", "rows", "after", "pattern", "define", "alias"),
        under=exp.Select,
    ),
    exp.MatchRecognizeMeasure: Node({"this": READ, "window_frame": READ}, under=exp.MatchRecognize),
}
"""Relations, joins and what turns them."""
