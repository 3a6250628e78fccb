"""One pass checks what was read: lowering reads every argument of every node, or the query is refused."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot import exp

from fivm_dbt.errors import FivmError, Span
from fivm_dbt.functions.function import Kind
from fivm_dbt.functions.lookup import is_kind
from fivm_dbt.ir.calls import function_name
from fivm_dbt.sql.arguments import Kinds, Read, Refused
from fivm_dbt.sql.covariances import names_variables
from fivm_dbt.sql.decorations import check_decoration
from fivm_dbt.sql.parse import span_of
from fivm_dbt.sql.syntax import CALLS, FOREIGN, SYNTAX

_NOT_SPARK = "write it as Spark SQL does"


def check_syntax(query: exp.Query) -> None:
    """Raises FIVM105 for the first node, from outside in, of which something would be dropped.

    >>> from fivm_dbt.sql.parse import parse
    >>> check_syntax(parse("select distinct on (g) g, x from r"))
    Traceback (most recent call last):
    ...
    fivm_dbt.errors.FivmError: FIVM105 construct not supported incrementally: DISTINCT ON is not Spark SQL
    what to do: use QUALIFY row_number() OVER (PARTITION BY ... ORDER BY ...) = 1
    more about it: fivm error FIVM105
    """
    for node in query.walk(bfs=False):
        _check(node)
        check_decoration(node)


def _check(node: exp.Expr) -> None:
    kind = type(node)
    foreign = FOREIGN.get(kind)
    if foreign is not None:
        raise _refusal(node, foreign.what, foreign.remedy, foreign.code)
    known = SYNTAX.get(kind)
    if known is None:
        if not isinstance(node, exp.Func):
            raise _refusal(node, f"{_words(node)} is not Spark SQL", _NOT_SPARK)
        rules: dict[str, Read | Refused] = CALLS.get(kind, {})
        for key, value in _given(node):
            rule = rules.get(key)
            if isinstance(rule, Refused):
                raise _refusal(_shown(value, node), rule.what, rule.remedy, rule.code)
        return
    is_name = isinstance(node, exp.Alias) and node.parent is not None and names_variables(node.parent)
    misplaced = known.under is not None and not isinstance(node.parent, known.under) and not is_name
    if misplaced and node.parent is not None:
        raise _refusal(node, f"{_words(node)} cannot stand in {_words(node.parent)}", known.remedy)
    _check_place(node)
    for key, value in _given(node):
        rule = known.arguments.get(key)
        if rule is None:
            what = f"{key.strip('_').upper().replace('_', ' ')} of {_words(node)} is not read"
            raise _refusal(_shown(value, node), what, "leave it out")
        if isinstance(rule, Refused):
            raise _refusal(_shown(value, node), rule.what, rule.remedy, rule.code)
        if not _is_allowed(rule, value):
            what = f"{_words(node)} with {_written(value)} is not Spark SQL"
            raise _refusal(_shown(value, node), what, known.remedy)


def _given(node: exp.Expr) -> Iterator[tuple[str, object]]:
    """The arguments that say something: neither absent nor an empty list nor a flag that is not set.

    Some flags say something by being unset.
    """
    for key, value in node.args.items():
        if value is not None and value != [] and (value is not False or (type(node), key) in _SAID_BY_FALSE):
            yield key, value


_SAID_BY_FALSE = {
    (exp.Group, "all"),  # GROUP BY DISTINCT
    (exp.CTE, "materialized"),  # NOT MATERIALIZED
    (exp.Between, "symmetric"),  # ASYMMETRIC
}


def _is_allowed(rule: Read, value: object) -> bool:
    values = value if isinstance(value, list) else [value]
    if rule.kinds is not None and all(isinstance(v, rule.kinds) for v in values):
        return True
    if rule.values is not None:
        return all((v.lower() if isinstance(v, str) else v) in _lower(rule.values) for v in values)
    return rule.kinds is None


def _lower(values: tuple[object, ...]) -> list[object]:
    return [v.lower() if isinstance(v, str) else v for v in values]


_SOURCES: Kinds = (exp.From, exp.Join, exp.Lateral, exp.Subquery)


def _check_place(node: exp.Expr) -> None:
    """What depends on two arguments, or on where a node stands."""
    of_from = any(node.args.get(key) for key in ("joins", "laterals", "pivots"))
    if isinstance(node, exp.Subquery) and of_from and not isinstance(node.parent, _SOURCES):
        raise _refusal(node, "a clause of FROM behind a query in parentheses", "put it into FROM")
    if isinstance(node, exp.Subquery) and node.args.get("alias") and not isinstance(node.parent, _SOURCES):
        raise _refusal(node, "a name for a query that is a value is not Spark SQL here", "leave the name out")
    if isinstance(node, exp.Select) and not node.expressions:
        raise _refusal(node, "a SELECT without columns is not Spark SQL", "list the columns")
    if isinstance(node, exp.WindowSpec):
        for bound in (node.args.get("start"), node.args.get("end")):
            if isinstance(bound, exp.Expr) and bound.find(exp.Column) is not None:
                raise _refusal(bound, "a column as the bound of a frame is not Spark SQL", "write a number")
    if isinstance(node, exp.Table) and node.args.get("joins") and not isinstance(node.parent, exp.Subquery):
        raise _refusal(node, "a join inside of a join without parentheses is not Spark SQL", "write (...)")
    if (
        isinstance(node, exp.Group)
        and "all" in node.args
        and node.args["all"] is not None
        and node.expressions
    ):
        raise _refusal(node, "ALL or DISTINCT before a list in GROUP BY is not Spark SQL", "leave it out")
    if isinstance(node, exp.Aliases) and not is_kind(node.this, Kind.GENERATOR):
        raise _refusal(
            node, "an alias in parentheses behind what is no generator", "leave the parentheses out"
        )
    if isinstance(node, exp.With):
        seen: set[str] = set()
        for cte in node.expressions:
            if cte.alias.lower() in seen:
                raise _refusal(cte, f"two queries in WITH are called {cte.alias}", "give each its own name")
            seen.add(cte.alias.lower())
    if isinstance(node, exp.Pivot):
        for fields in node.args.get("fields") or []:
            if fields.find(exp.Query) is not None:
                raise _refusal(
                    fields, "a query among the values of PIVOT is not Spark SQL", "list the values"
                )


def _shown(value: object, node: exp.Expr) -> exp.Expr:
    """Where an argument stands: its own place, or that of the node."""
    first: object = value[0] if isinstance(value, list) and value else value
    if isinstance(first, exp.Expr) and span_of(first) and not isinstance(node, exp.Table):
        return first
    if isinstance(node, exp.Select) and node.expressions:
        listed: exp.Expr = node.expressions[0]
        return listed
    return node


def _refusal(node: exp.Expr, what: str, remedy: str, code: str = "FIVM105") -> FivmError:
    return FivmError(code, what, remedy=remedy, span=_span(node))


def _span(node: exp.Expr) -> Span | None:
    """Where a node stands, or the nearest one around it of which that is known."""
    at: exp.Expr | None = node
    while at is not None:
        span = span_of(at)
        if span is not None:
            return span
        at = at.parent
    return None


def _words(node: exp.Expr) -> str:
    """What a node is called in SQL, as near as the name of its class comes.

    >>> _words(exp.WithinGroup()), _words(exp.Upper()), _words(exp.Order())
    ('WITHIN GROUP', 'upper', 'ORDER BY')
    """
    known = SYNTAX.get(type(node))
    if known is not None and known.called:
        return known.called
    name = function_name(node)
    return name or re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(node).__name__).upper()


def _written(value: object) -> str:
    first = value[0] if isinstance(value, list) else value
    return (
        first.sql(dialect="spark")
        if isinstance(first, exp.Expr)
        else str(getattr(first, "value", first)).upper()
    )
