"""A text run as it stands may be answered anew at each run, or may not have one answer."""

from __future__ import annotations

from sqlglot import exp

from fivm_dbt.errors import FivmError
from fivm_dbt.ir.calls import function_name
from fivm_dbt.ir.places import notes
from fivm_dbt.sql.aggregates import check_deterministic, read_call
from fivm_dbt.sql.functions import (
    clock_column,
    is_aggregate,
    is_non_deterministic,
    is_special_time,
)


def clock_read(query: exp.Query, names: frozenset[str]) -> frozenset[str]:
    """The columns of the clock in whose place a text can have literals; ``names`` are the columns of its inputs.

    None where something else in it is another each time: then it is evaluated as it stands.

    >>> from fivm_dbt.sql.parse import parse
    >>> clock_read(parse("select a from r where d < current_date"), frozenset({"a", "d"}))
    frozenset({'date'})
    """
    if why_other_each_time(query, names) is not None:
        return frozenset()
    return frozenset(kind for node in query.walk() if (kind := clock_column(node)) is not None)


def why_other_each_time(query: exp.Query, names: frozenset[str]) -> str | None:
    """Why the result may change while neither an input nor the clock does: random values, a sample, an unknown time.

    >>> from fivm_dbt.sql.parse import parse
    >>> why_other_each_time(parse("select a from r where a < rand()"), frozenset({"a"}))
    'RAND() gives another value at every evaluation'
    >>> why_other_each_time(parse("select a from r where d > now()"), frozenset({"a"})) is None
    True
    """
    taken = names | {a.alias.lower() for a in query.find_all(exp.Alias)}
    taken |= {c.name.lower() for a in query.find_all(exp.TableAlias) for c in a.columns}
    for node in query.walk():
        if isinstance(node, exp.TableSample):
            return "a sample differs at every evaluation"
        if isinstance(node, exp.Literal) and isinstance(node.parent, exp.Predicate):
            if node.is_string and is_special_time(node.this):
                return f"{node.sql('spark')} is read by the clock where it is compared with a time"
        elif clock_column(node) is not None:
            if notes(node).get("bare") and function_name(node) in taken:
                return f"{node.sql('spark')} is a column here, or the clock"
        elif is_non_deterministic(node):
            return f"{node.sql('spark')} gives another value at every evaluation"
    return None


def why_not_repeatable(query: exp.Query, names: frozenset[str]) -> str | None:
    """Why two evaluations over the same rows, at one time, may differ in more than the last digits of doubles.

    >>> from fivm_dbt.sql.parse import parse
    >>> why_not_repeatable(parse("select first(a) as f from r"), frozenset({"a"}))
    'FIRST(a) depends on the order in which rows are read'
    >>> why_not_repeatable(parse("select max(a) as m from r"), frozenset({"a"})) is None
    True
    """
    why = why_other_each_time(query, names)
    if why is not None:
        return why
    for node in query.walk():
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
