"""The fold of a pattern is written in expressions over arrays and structs."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.ir.scalar import grouped, identifier


def field(*path: str) -> exp.Expr:
    """``a.b.c``: a field of a struct."""
    result: exp.Expr = exp.column(identifier(path[0]))
    for name in path[1:]:
        result = exp.Dot(this=result, expression=identifier(name))
    return result


def struct(**values: exp.Expr) -> exp.Struct:
    parts = [exp.PropertyEQ(this=identifier(name), expression=value) for name, value in values.items()]
    return exp.Struct(expressions=parts)


def cast(value: exp.Expr, type_: SparkType) -> exp.Expr:
    return exp.Cast(this=value, to=_data_type(type_.text).copy())


@cache
def _data_type(text: str) -> exp.DataType:
    """The types of a fold are long, and stand in many places."""
    return exp.DataType.build(text, dialect="spark")


def call(name: str, *arguments: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=list(arguments))


def function(body: exp.Expr, *names: str) -> exp.Lambda:
    return exp.Lambda(this=body, expressions=[identifier(name) for name in names])


def transform(array: exp.Expr, name: str, body: exp.Expr) -> exp.Expr:
    return call("TRANSFORM", array, function(body, name))


def if_else(condition: exp.Expr, then: exp.Expr, otherwise: exp.Expr) -> exp.Case:
    return exp.Case(ifs=[exp.If(this=condition, true=then)], default=otherwise)


def is_there(value: exp.Expr) -> exp.Expr:
    return exp.Not(this=exp.Is(this=grouped(value.copy()), expression=exp.Null()))


def size(array: exp.Expr) -> exp.Expr:
    return call("SIZE", array)


def number(value: int) -> exp.Expr:
    return exp.Literal.number(value)


def numbers(values: Iterable[int]) -> exp.Expr:
    return exp.Array(expressions=[number(v) for v in values])


def element(array: exp.Expr, position: int) -> exp.Expr:
    """The element at a position, from 1, or from the end if negative; NULL where there is none."""
    place = number(position) if position > 0 else exp.Neg(this=number(-position))
    # Without TRY it would be an error in ANSI mode.
    return call("TRY_ELEMENT_AT", array, place)


def concat(*arrays: exp.Expr) -> exp.Expr:
    return call("CONCAT", *arrays)


def array(*elements: exp.Expr) -> exp.Expr:
    return exp.Array(expressions=list(elements))


def none_of(array_: exp.Expr) -> exp.Expr:
    """An empty array of the same type, which need not be written."""
    return call("SLICE", array_, number(1), number(0))


def let(name: str, value: exp.Expr, body: exp.Expr) -> exp.Expr:
    """``body``, in which ``name`` stands for ``value``, which is computed once."""
    return element(transform(array(value), name, body), 1)


def has_none(array_: exp.Expr, name: str, condition: exp.Expr) -> exp.Expr:
    """Whether the condition holds for no element, which it calls ``name``."""
    return exp.EQ(this=size(call("FILTER", array_, function(condition, name))), expression=number(0))
