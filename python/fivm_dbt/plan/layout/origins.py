"""The columns of a model's views are computed of columns of its inputs, which can be measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from fivm_dbt.catalog import SparkType
from fivm_dbt.delta.term import scans
from fivm_dbt.ir.node import Node
from fivm_dbt.ir.reads import Scan
from fivm_dbt.ir.scalar import Scalar


@dataclass(frozen=True)
class Origin:
    """A column of an input, of which a value is computed; it ``is_same`` where that is what is in the column."""

    relation: str
    column: str
    type: SparkType
    is_same: bool


@dataclass
class Origins:
    """Of the views of one model, each after those that it scans."""

    _inputs: dict[str, frozenset[str]] = field(default_factory=dict)
    _columns: dict[str, dict[str, Origin]] = field(default_factory=dict)
    """By view what its columns are computed of."""

    def add(self, name: str, node: Node, names: Sequence[str]) -> None:
        """Note where the rows of a view come from, which shows the fields of ``node`` by these ``names``."""
        self._inputs[name] = self.inputs(node)
        found = ((shown, self.of(node, f.scalar)) for shown, f in zip(names, node.fields, strict=True))
        self._columns[name] = {shown: origin for shown, origin in found if origin is not None}

    def has(self, name: str) -> bool:
        """Whether a relation is one of these views."""
        return name in self._inputs

    def inputs(self, node: Node) -> frozenset[str]:
        """The inputs, also those of the views that are scanned."""
        read = {scan.relation for scan in scans(node)}
        return frozenset().union(*(self._inputs.get(name, frozenset({name})) for name in read))

    def of(self, node: Node, value: Scalar) -> Origin | None:
        """What a value over the columns of ``node`` is computed of; None where that is not one column of an input."""
        found = self._of(node, value)
        return found if found is None or value.is_column else _computed(found)

    def _of(self, node: Node, value: Scalar) -> Origin | None:
        if len(value.columns) != 1:
            return None
        (column,) = value.columns
        if not node.inputs:
            return next((self._of_scan(scan, column[1]) for scan in scans(node)), None)
        shown = node.shown_as(column)
        if shown is not None:
            return self.of(node.inputs[0], shown)
        below = next((child for child in node.inputs if column in child.ids), None)
        return None if below is None else self.of(below, value)

    def _of_scan(self, scan: Scan, column: str) -> Origin | None:
        if scan.relation in self._columns:
            return self._columns[scan.relation].get(column)
        type_ = dict(scan.columns).get(column)
        return None if type_ is None else Origin(scan.relation, column, type_, is_same=True)


def _computed(origin: Origin) -> Origin:
    return Origin(origin.relation, origin.column, origin.type, is_same=False)
