"""What can be said about a text that is run as it stands: is it answered anew at each run, does it have one answer?"""

from __future__ import annotations

from sqlglot import exp

from fivm_dbt.errors import FivmError
from fivm_dbt.sql.aggregates import check_deterministic, read_call
from fivm_dbt.sql.functions import is_aggregate, is_non_deterministic


def changes_by_itself(query: exp.Query) -> bool:
    """Whether the result may change while no input does: with the clock, random values, or a sample.

    >>> from fivm_dbt.sql.parse import parse
    >>> changes_by_itself(parse("select a from r where a < now()")), changes_by_itself(parse("select a from r limit 3"))
    (True, False)
    """
    return any(isinstance(n, exp.TableSample) or is_non_deterministic(n) for n in query.walk())


def why_not_repeatable(query: exp.Query) -> str | None:
    """Why two evaluations over the same rows may differ in more than the last digits of doubles; None where not.

    >>> from fivm_dbt.sql.parse import parse
    >>> why_not_repeatable(parse("select first(a) as f from r"))
    'FIRST(a) depends on the order in which rows are read'
    >>> why_not_repeatable(parse("select max(a) as m from r")) is None
    True
    """
    for node in query.walk():
        if isinstance(node, exp.TableSample):
            return "a sample differs at every evaluation"
        if is_non_deterministic(node):
            return f"{node.sql('spark')} gives another value at every evaluation"
        if isinstance(node, exp.Query) and _takes_any_rows(node):
            return "LIMIT without ORDER BY takes any rows"
        if is_aggregate(node) and (why := _by_order_of_rows(node)) is not None:
            return why
    return None


def reads_a_past(query: exp.Query) -> exp.Expr | None:
    """A table in the text that is read at a version or through its changes: no read of ours may stand beside it."""
    for table in query.find_all(exp.Table):
        is_changes = isinstance(table.this, exp.Func) and table.this.name.lower().startswith("table_changes")
        if is_changes or table.args.get("version") is not None or table.args.get("when") is not None:
            return table
    return None


def _takes_any_rows(query: exp.Query) -> bool:
    is_limited = query.args.get("limit") is not None or query.args.get("offset") is not None
    return is_limited and query.args.get("order") is None


def _by_order_of_rows(node: exp.Expr) -> str | None:
    try:
        check_deterministic(node, read_call(node))
    except FivmError as error:
        return error.message
    return None
