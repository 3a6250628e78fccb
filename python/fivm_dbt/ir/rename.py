"""A query that uses a relation twice needs the same operators under other aliases."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

from fivm_dbt.ir.node import Node
from fivm_dbt.ir.scalar import ColumnId, Scalar

N = TypeVar("N", bound=Node)


def renamed(node: N, fresh: Callable[[str], str]) -> tuple[N, dict[str, str]]:
    """A copy of ``node`` with what ``fresh`` gives for each alias, and which alias became which."""
    names = {alias: fresh(alias) for alias in dict.fromkeys(_aliases(node))}
    known: dict[Scalar, Scalar] = {}

    def moved_once(scalar: Scalar) -> Scalar:
        """Payloads are products of few values in many combinations."""
        if scalar not in known:
            known[scalar] = moved(scalar, names)
        return known[scalar]

    copy: N = _rebuilt(node, names, moved_once)
    return copy, names


def moved(scalar: Scalar, names: Mapping[str, str]) -> Scalar:
    """``scalar`` with its columns taken from the renamed relations."""

    def replacement(column: ColumnId) -> Scalar | None:
        table, name = column
        return Scalar.column(names[table], name) if table in names else None

    return scalar.substitute(replacement)


def substituted(node: N, inputs: tuple[Node, ...], meaning: Mapping[ColumnId, Scalar]) -> N:
    """``node`` over ``inputs``, with what ``meaning`` says in place of columns that the new inputs call otherwise."""
    return rebuilt(node, inputs, lambda s: s.substitute(meaning.get)) if meaning else node.with_inputs(inputs)


def rebuilt(node: N, inputs: tuple[Node, ...], change: Callable[[Scalar], Scalar]) -> N:
    """``node`` over ``inputs``, with each of its own expressions changed."""
    taken = iter(inputs)

    def part(value: Any) -> Any:
        if isinstance(value, Node):
            return next(taken)
        if isinstance(value, tuple) and value and isinstance(value[0], Node):
            return tuple(next(taken) for _ in value)
        return with_scalars(value, change)

    copy: N = type(node)(**{f.name: part(getattr(node, f.name)) for f in fields(node)})  # type: ignore[arg-type]
    return copy


def with_meaning(value: Any, meaning: Mapping[ColumnId, Scalar]) -> Any:
    """A part of an operator, such as its items or calls, with ``meaning`` in place of columns."""
    return with_scalars(value, lambda scalar: scalar.substitute(meaning.get))


def with_scalars(value: Any, change: Callable[[Scalar], Scalar]) -> Any:
    """A part of an operator, or an operator as it stands over its inputs, with each of its expressions changed."""
    if isinstance(value, Scalar):
        return change(value)
    if isinstance(value, tuple):
        return tuple(v if isinstance(v, Node) else with_scalars(v, change) for v in value)
    if is_dataclass(value) and not isinstance(value, type):
        parts = {f.name: getattr(value, f.name) for f in fields(value)}
        new = {k: v if isinstance(v, Node) else with_scalars(v, change) for k, v in parts.items()}
        return value if all(new[k] is v for k, v in parts.items()) else type(value)(**new)
    return value


def _aliases(value: Any) -> Iterator[str]:
    """The aliases of all nodes in ``value``, also of those that are no inputs of an operator."""
    if isinstance(value, tuple):
        for item in value:
            yield from _aliases(item)
    elif is_dataclass(value) and not isinstance(value, (type, Scalar)):
        alias = getattr(value, "alias", None) if isinstance(value, Node) else None
        if alias is not None:
            yield alias
        for f in fields(value):
            yield from _aliases(getattr(value, f.name))


def _rebuilt(value: Any, names: Mapping[str, str], move: Callable[[Scalar], Scalar]) -> Any:
    if isinstance(value, Scalar):
        return move(value)
    if isinstance(value, tuple):
        return tuple(_rebuilt(item, names, move) for item in value)
    if is_dataclass(value) and not isinstance(value, type):
        parts = {f.name: getattr(value, f.name) for f in fields(value)}
        new = {name: _rebuilt(part, names, move) for name, part in parts.items()}
        if isinstance(value, Node) and "alias" in parts:
            new["alias"] = names[parts["alias"]]
        return type(value)(**new)
    return value
