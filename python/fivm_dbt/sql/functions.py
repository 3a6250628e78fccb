"""Some functions are not plain row-level ones: non-deterministic, aggregating, generating, or of a window."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.errors import FivmError
from fivm_dbt.functions.function import Aggregate, Kind, Other
from fivm_dbt.functions.lookup import NAMES, aggregate_of, find
from fivm_dbt.sql.parse import span_of
from fivm_dbt.sql.typing import Describe
from fivm_dbt.suggest import did_you_mean

_WITHOUT_PARENTHESES = ("current_date", "current_timestamp")
_NOW_WITHOUT_ARGUMENTS = ("unix_timestamp", "to_unix_timestamp")
_ALIKE = 0.75
"""There are so many names that nearly every other one is a little like one of them."""

_SPECIAL_TIMES = frozenset("now today tomorrow yesterday".split())


def is_special_time(text: str) -> bool:
    """Whether Spark reads a string as a time by the clock.

    That are ``now``, ``today`` and so on, maybe with a time zone, and a time of day, which is one of today.

    >>> [is_special_time(text) for text in ("Today", "10:11", "T10", "1:2:3+02:00")]
    [True, True, True, True]
    >>> [is_special_time(text) for text in ("2024-01-31 10:11", "1:N")]
    [False, False]
    """
    word = text.strip().lower().split(" ")[0]
    return word in _SPECIAL_TIMES or re.match(r"(t\d{1,2}|\d{1,2}:\d{1,2})(?!\w)", word) is not None


def is_aggregate(node: exp.Expr) -> bool:
    """Whether ``node`` is a call of an aggregate function."""
    return isinstance(node, exp.AggFunc) or aggregate_of(node) is not None


def clock_column(node: exp.Expr) -> str | None:
    """The column of the clock that a call means, None for everything else: also where its place is not known."""
    function = find(node)
    has_arguments = bool(node.expressions) or (not isinstance(node, exp.Anonymous) and bool(node.this))
    if function is None or function.other is not Other.CLOCK or has_arguments or span_of(node) is None:
        return None
    return function.type.text if isinstance(function.type, SparkType) else None


def is_non_deterministic(node: exp.Expr) -> bool:
    """Whether two evaluations of ``node`` may differ: random values, clocks, session and file names."""
    if isinstance(node, exp.TsOrDsToDate) or (
        isinstance(node, exp.Cast) and node.to.is_type(*exp.DataType.TEMPORAL_TYPES)
    ):
        text = node.this
        return isinstance(text, exp.Literal) and text.is_string and is_special_time(text.this)
    function = find(node)
    if function is not None and function.name in _NOW_WITHOUT_ARGUMENTS:
        return not any(isinstance(child, exp.Expr) for child in node.iter_expressions())
    if isinstance(node, exp.Column) and not node.table:
        return node.name.lower() in _WITHOUT_PARENTHESES
    return function is not None and function.other is not None and function.kind is Kind.SCALAR


def refusal(node: exp.Expr) -> FivmError | None:
    """Why a function is not maintained, None where it is or ``node`` calls none."""
    function = find(node)
    if function is None or not function.refused:
        return None
    code = "FIVM106" if isinstance(function, Aggregate) else "FIVM105"
    what = f"{function.name} is not maintained: {function.refused}"
    return FivmError(
        code, what, span=span_of(node), remedy="compute it in a table model upstream, or leave it out"
    )


def check_functions(query: exp.Expr, describe: Describe | None) -> None:
    """Raises FIVM105 (FIVM106) for a function that is refused, or that Spark does not have.

    Spark may know functions of the user's: ``describe`` asks it about each, where there is a connection.

    >>> import sqlglot
    >>> check_functions(sqlglot.parse_one("select uper(a) from r"), None)
    Traceback (most recent call last):
    ...
    fivm_dbt.errors.FivmError: FIVM105 construct not supported incrementally: uper is no function of Spark
    what to do: did you mean upper?
    more about it: fivm error FIVM105
    """
    own = "functions of your own are known where there is a connection"
    if describe is not None:
        own = "correct the name, or register the function before dbt runs"
    asked: dict[str, bool] = {}
    for node in query.walk():
        refused = refusal(node)
        if refused is not None:
            raise refused
        if not _is_unknown(node):
            continue
        if node.name not in asked:
            asked[node.name] = describe is not None and _is_of_user(node.name, describe)
        if not asked[node.name]:
            raise FivmError(
                "FIVM105",
                f"{node.name} is no function of Spark",
                span=span_of(node),
                remedy=did_you_mean(node.name, NAMES, _ALIKE) or own,
            )


def own_functions(query: exp.Expr) -> Iterator[exp.Expr]:
    """The calls of functions that Spark does not have, by names without a schema."""
    return filter(_is_unknown, query.walk(bfs=False))


def _is_of_user(name: str, describe: Describe) -> bool:
    """Whether the session has a function of this name; how many arguments it takes is not known here."""
    try:
        describe(exp.select(exp.Anonymous(this=name)).sql(dialect="spark"))
    except Exception as error:  # a wrong number of arguments, as a rule
        return "UNRESOLVED_ROUTINE" not in str(error)
    return True


def _is_unknown(node: exp.Expr) -> bool:
    """Whether a call is of a function that is not in the table; in FROM and in patterns others are asked."""
    if not isinstance(node, exp.Anonymous) or find(node) is not None:
        return False
    return not isinstance(node.parent, (exp.Dot, exp.Table, exp.Lateral)) and (
        node.find_ancestor(exp.MatchRecognize) is None
    )
