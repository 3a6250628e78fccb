"""Words inside and behind the brackets decorate a call: this table says which functions may have them."""

from __future__ import annotations

from sqlglot import exp

from fivm_dbt.errors import FivmError
from fivm_dbt.functions.function import Aggregate, Kind, Order
from fivm_dbt.functions.lookup import aggregate_of, find, is_kind
from fivm_dbt.ir.calls import function_name
from fivm_dbt.sql.functions import is_aggregate
from fivm_dbt.sql.parse import unsupported

_DECORATIONS = (exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)


def check_decoration(node: exp.Expr) -> None:
    """Raises FIVM105 where a call has a decoration that is not of its function in Spark."""
    if isinstance(node, exp.Func):
        _check_arguments(node)
    if isinstance(node, exp.Distinct) and isinstance(node.parent, exp.Func):
        if not is_aggregate(node.parent):
            raise _refusal(node, node.parent, "DISTINCT")
        outer: exp.Expr = node.parent
        while isinstance(outer.parent, _DECORATIONS) and outer.parent.this is outer:
            outer = outer.parent
        if isinstance(outer.parent, exp.Window) and outer.parent.this is outer:
            what = "DISTINCT in a window function is not Spark SQL"
            raise unsupported(outer, what, "use size(collect_set(...)) over the same window")
    elif isinstance(node, exp.Star):
        _check_star(node)
    elif isinstance(node, exp.Filter):
        call = _called(node)
        if not is_aggregate(call):
            raise _refusal(node, call, "FILTER")
        for part in node.expression.walk(prune=lambda n: isinstance(n, exp.Query)):
            if is_aggregate(part) or isinstance(part, exp.Window):
                what = f"{part.sql('spark')} in the condition of FILTER is not Spark SQL"
                raise unsupported(part, what, "compute it in a subquery below")
    elif isinstance(node, exp.WithinGroup):
        call = _called(node)
        known = find(call)
        if not (isinstance(known, Aggregate) and known.within_group):
            raise _refusal(node, call, "WITHIN GROUP")
    elif isinstance(node, (exp.IgnoreNulls, exp.RespectNulls)):
        call = _called(node)
        known = find(call)
        words = "IGNORE NULLS" if isinstance(node, exp.IgnoreNulls) else "RESPECT NULLS"
        is_list = known is not None and known.order is Order.LIST
        if is_list and isinstance(node, exp.RespectNulls):
            raise unsupported(
                node, f"{function_name(call)} with RESPECT NULLS is not maintained", "leave RESPECT NULLS out"
            )
        if known is None or not (is_list or known.takes_nulls):  # lists leave NULLs out anyway
            raise _refusal(node, call, words)
    elif isinstance(node, exp.Window) and isinstance(node.parent, exp.Expr) and node.args.get("over"):
        call = _called(node)
        if not is_aggregate(call) and not is_kind(call, Kind.WINDOW):
            raise _refusal(node, call, "OVER")


def _check_star(star: exp.Star) -> None:
    """``*`` is a list of columns in SELECT, and all rows in COUNT."""
    written = star.parent if isinstance(star.parent, exp.Column) else star
    assert isinstance(written, exp.Expr)
    if not isinstance(written.parent, (exp.Select, exp.Count)):
        raise unsupported(written, "* stands for the columns of a select list only", "list the columns")


def _check_arguments(call: exp.Expr) -> None:
    """Aggregates without an argument, and functions of a window without a window, which have nothing to work on."""
    name = function_name(call) or ""
    if is_kind(call, Kind.WINDOW):
        outer = call
        while isinstance(outer.parent, _DECORATIONS):
            outer = outer.parent
        if not isinstance(outer.parent, exp.Window):
            raise unsupported(call, f"{name} without OVER is not Spark SQL", "write OVER (... ORDER BY ...)")
    elif (known := aggregate_of(call)) is not None and known.needs_argument:
        given = [
            part for part in call.iter_expressions() if not isinstance(part, exp.Distinct) or part.expressions
        ]
        if not given:
            raise unsupported(call, f"{name} without an argument is not Spark SQL", "write its argument")


def _called(node: exp.Expr) -> exp.Expr:
    """The call behind its decorations."""
    call = node.this
    while isinstance(call, _DECORATIONS):
        call = call.this
    assert isinstance(call, exp.Expr)
    return call


def _refusal(node: exp.Expr, call: exp.Expr, words: str) -> FivmError:
    name = function_name(call) or call.sql(dialect="spark")
    return unsupported(node, f"{name} with {words} is not Spark SQL", f"leave {words} out")
