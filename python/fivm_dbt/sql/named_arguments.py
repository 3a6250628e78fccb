"""A call with named arguments gets every argument at its place instead of behind its name."""

from __future__ import annotations

from typing import TypeVar

import sqlglot
from sqlglot import exp

from fivm_dbt.functions.function import Function
from fivm_dbt.functions.lookup import arguments, find
from fivm_dbt.ir.calls import function_name
from fivm_dbt.sql.parse import unsupported
from fivm_dbt.suggest import did_you_mean

Tree = TypeVar("Tree", bound=exp.Expr)


def with_arguments_in_order(query: Tree) -> Tree:
    """``query``, which is changed. FIVM105 for names that a function does not have, as Spark refuses them.

    >>> text = "select mask(digitChar => '0', str => s), explode(collection => tags) from r"
    >>> print(with_arguments_in_order(sqlglot.parse_one(text, dialect="spark")).sql("spark"))
    SELECT MASK(s, 'X', 'x', '0'), EXPLODE(tags) FROM r
    """
    # A call with several has one entry.
    for call in {id(named.parent): named.parent for named in query.find_all(exp.Kwarg)}.values():
        assert call is not None, "a named argument stands in a call"
        ordered = _ordered(call)
        if isinstance(call, exp.Anonymous):
            call.set("expressions", ordered)
        else:
            (argument,) = ordered  # those that sqlglot has classes for take one
            call.set("this", argument)
    return query


def _ordered(call: exp.Expr) -> list[exp.Expr]:
    function = find(call)
    if function is None or not function.parameters or isinstance(call.parent, exp.Dot):
        what = f"named arguments of {function_name(call) or call.key} are not read"
        raise unsupported(call, what, "write the arguments by their positions")
    if isinstance(call.parent, exp.Lateral) and call.parent.args.get("view"):
        what = "named arguments in LATERAL VIEW are not Spark SQL"
        raise unsupported(
            call, what, "write the arguments by their positions, or LATERAL explode(...) behind a comma"
        )
    given = arguments(call)
    places: dict[int, exp.Expr] = {}
    for number, argument in enumerate(given):
        place, value = number, argument
        if isinstance(argument, exp.Kwarg):
            place, value = _place(function, argument, call), argument.expression
        elif number and isinstance(given[number - 1], exp.Kwarg):
            raise unsupported(
                call, f"an argument of {function.name} behind a named one has no name", "name it too"
            )
        if place in places:
            raise unsupported(
                call, f"{function.parameters[place]} of {function.name} is given twice", "once is enough"
            )
        places[place] = value
    return [places[n] if n in places else _default(function, n, call) for n in range(max(places) + 1)]


def _place(function: Function, named: exp.Kwarg, call: exp.Expr) -> int:
    lower = [p.lower() for p in function.parameters]
    if named.name.lower() in lower:
        return lower.index(named.name.lower())
    what = f"{function.name} has no argument {named.name}; it has {', '.join(function.parameters)}"
    raise unsupported(call, what, did_you_mean(named.name, function.parameters) or "correct the name")


def _default(function: Function, place: int, call: exp.Expr) -> exp.Expr:
    optional = place - len(function.parameters) + len(function.defaults)
    if optional < 0:
        raise unsupported(call, f"{function.parameters[place]} of {function.name} is not given", "give it")
    return sqlglot.parse_one(function.defaults[optional], dialect="spark")
