"""A pattern's fold (:mod:`fivm_dbt.features.match.spark.fold`) carries values of these types."""

from __future__ import annotations

from collections.abc import Iterable

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import BIGINT, INT, STRING
from fivm_dbt.features.match.ir.match import Recognizer
from fivm_dbt.ir.node import Item


def struct_type(fields: Iterable[tuple[str, SparkType]]) -> SparkType:
    return SparkType(f"struct<{','.join(f'{name}:{type_}' for name, type_ in fields)}>")


def array_type(element: SparkType) -> SparkType:
    return SparkType(f"array<{element}>")


def plain(type_: SparkType) -> SparkType:
    """The type in an expression: lengths of strings are those of tables."""
    return STRING if type_.is_string else type_


def held_type(recognizer: Recognizer) -> SparkType:
    """The registers that measures read."""
    return struct_type((r.name, r.type) for r in recognizer.held)


def thread_type(recognizer: Recognizer) -> SparkType:
    """``struct(state, tested, held, path)``: what waits in a state for the next row."""
    held = held_type(recognizer)
    fields = [("state", INT), ("held", held)]
    if recognizer.tested:
        fields.insert(1, ("tested", struct_type((r.name, r.type) for r in recognizer.tested)))
    if recognizer.all_rows:
        fields.append(("path", array_type(held)))
    return struct_type(fields)


def starts_type(recognizer: Recognizer) -> SparkType:
    """``array(struct(start, best, threads))``: what is undecided."""
    thread = thread_type(recognizer)
    return array_type(struct_type([("start", INT), ("best", thread), ("threads", array_type(thread))]))


def found_type(recognizer: Recognizer) -> SparkType:
    """``array(struct(number, match))``."""
    return array_type(struct_type([("number", BIGINT), ("match", thread_type(recognizer))]))


def fold_type(recognizer: Recognizer) -> SparkType:
    """``struct(next, count, found, starts)``, or ``struct(part, thread, found)`` of a chain: the fold after a row."""
    found = found_type(recognizer)
    if recognizer.per_part:
        return struct_type([("part", BIGINT), ("thread", thread_type(recognizer)), ("found", found)])
    fields = [
        ("next", INT),
        ("count", BIGINT),
        ("found", found),
        ("starts", starts_type(recognizer)),
    ]
    return struct_type(fields)


def state_type(recognizer: Recognizer, tail: tuple[Item, ...]) -> SparkType:
    """``struct(next, count, starts, tail)``: what has to be known of the rows so far; ``tail`` are columns that PREV
    asks for, of the last rows."""
    fields = [("part", BIGINT), ("thread", thread_type(recognizer))]
    if not recognizer.per_part:
        fields = [("next", INT), ("count", BIGINT), ("starts", starts_type(recognizer))]
    if tail:
        fields.append(("tail", array_type(struct_type((i.name, plain(i.type)) for i in tail))))
    return struct_type(fields)
