"""An aggregate over no rows has a value."""

from __future__ import annotations

import sqlglot
from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.functions.function import Aggregate, Function
from fivm_dbt.functions.lookup import find, named
from fivm_dbt.ir.scalar import as_type, cast_ast


def value_over_nothing(call: exp.Expr, type_: SparkType | None = None) -> exp.Expr | None:
    """What a call of an aggregate, FILTER and WITHIN GROUP around it or not, is over no rows: maybe NULL.

    None where it is not written down, or ``call`` is no aggregate. An empty list has the type ``type_`` if given.

    >>> call = sqlglot.parse_one("count(distinct a) filter (where b)", dialect="spark")
    >>> value_over_nothing(call).sql("spark")
    'CAST(0 AS BIGINT)'
    >>> value_over_nothing(sqlglot.parse_one("array_agg(a)"), SparkType("array<int>")).sql("spark")
    'CAST(ARRAY() AS ARRAY<INT>)'
    """
    while isinstance(call, (exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)):
        call = call.this
    return _over_nothing(find(call), type_)


def named_over_nothing(name: str, type_: SparkType | None = None) -> exp.Expr | None:
    """The same of a call of which the function's name is known."""
    return _over_nothing(named(name), type_)


def _over_nothing(function: Function | None, type_: SparkType | None) -> exp.Expr | None:
    if not isinstance(function, Aggregate) or not function.nothing:
        return None
    value = sqlglot.parse_one(function.nothing, dialect="spark")
    if function.nothing == "0":
        return as_type(value, "bigint")
    return cast_ast(value, type_) if isinstance(value, exp.Array) and type_ is not None else value
