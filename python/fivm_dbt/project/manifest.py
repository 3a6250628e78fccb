"""dbt's manifest declares things about the relations of a model: keys, foreign keys, seeds, types.

Manifest nodes are used by their attributes alone, so that this module needs no dbt.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from graphlib import TopologicalSorter
from typing import Any

from fivm_dbt.catalog import Column, Dependency, EventTime, ForeignKey, Presentation, Relation, Retention
from fivm_dbt.config import load_config
from fivm_dbt.declares import Declares, ForeignKeyOf
from fivm_dbt.errors import FivmError, expected_one_of
from fivm_dbt.naming import canonical, relation_name
from fivm_dbt.parts.length import Length, duration
from fivm_dbt.parts.parted import PART_TIMESTAMP, TimeParts
from fivm_dbt.plan.model.inputs import Reader
from fivm_dbt.project.constraints import (
    column_constraints,
    constraint_keys,
    is_strict,
    kind,
    lower,
    primary,
)

HELPER = "fivm_helper"
"""The materialization of the nodes that stand for inner views of fivm models."""

DECLARES = "fivm_declares"
"""The key of ``meta`` under which a relation says what dbt's constraints and tests do not."""

MAINTAINED = ("fivm", "viewdf")
"""The materializations of this package."""

_COMPOSITE_TESTS = ("unique_combination_of_columns",)


@dataclass(frozen=True)
class Declared:
    """What a project says about a relation: its node (None outside the project), keys and the like.

    ``stated`` are all columns named under ``fivm_declares``.
    """

    node: Any | None = None
    keys: tuple[tuple[str, ...], ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    dependencies: tuple[Dependency, ...] = ()
    stated: frozenset[str] = frozenset()
    event_time: EventTime | None = None

    @property
    def is_seed(self) -> bool:
        return self.node is not None and self.node.resource_type == "seed"

    @property
    def is_fivm(self) -> bool:
        return self.node is not None and _materialized(self.node) in MAINTAINED

    @property
    def materialized(self) -> str:
        """What dbt makes of it; empty for a source."""
        return "" if self.node is None else _materialized(self.node)

    @property
    def file_format(self) -> str | None:
        """The format that the project asks for; None is the session's default."""
        given = None if self.node is None else self.node.config.get("file_format")
        return None if given is None else str(given).lower()

    @property
    def is_viewdf(self) -> bool:
        return self.node is not None and _materialized(self.node) == "viewdf"

    def time_parts(self, zone: str, length: Length | None = None) -> TimeParts | None:
        """How the relation is divided by time, None where nothing says so; ``length`` is that of a viewdf model.

        Its column is dbt's ``event_time``. Raises FIVM201.
        """
        if self.node is None:
            return None
        if self.is_viewdf:
            return TimeParts(PART_TIMESTAMP, length, None, is_computed=True)
        column = getattr(self.node.config, "event_time", None)
        if not column:
            return None
        config = load_config(_own_keys(self.node), model=self.node.name)
        given = config.fivm_part_length
        return TimeParts(
            str(column),
            None if given is None else Length.of(given, config.fivm_time_zone or zone),
            None if config.fivm_lateness is None else duration(config.fivm_lateness),
        )

    def retention(self, zone: str, length: Length | None) -> Retention | None:
        """How parts of the relation are dropped, None where none are; ``length`` is that of a viewdf model. FIVM201."""
        parts = self.time_parts(zone, length)
        given = None if self.node is None else _own_keys(self.node).get("fivm_retention")
        if self.node is None or given is None:
            return None
        if parts is None:
            raise FivmError(
                "FIVM201",
                f"fivm_retention of {self.node.name}: nothing says when its rows were",
                remedy="set its event_time, and fivm_part_length",
            )
        return Retention(parts.column, parts.length or Length.of("day", zone), duration(given))

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns with a declared data_type, all or none."""
        columns = [] if self.node is None else list(self.node.columns.values())
        if not columns or any(not column.data_type for column in columns):
            return ()
        return tuple(Column.of(column.name, column.data_type) for column in columns)

    def relation(
        self,
        name: str,
        columns: tuple[Column, ...],
        presentation: Presentation | None = None,
        *,
        is_factorized: bool = False,
        retention: Retention | None = None,
    ) -> Relation:
        """The relation ``name`` of these columns. Raises FIVM201 where something is declared of another column."""
        known = [c.name.lower() for c in columns]
        if retention is not None and retention.column.lower() not in known:
            raise FivmError(
                "FIVM201",
                f"event_time of {name}: there is no column {retention.column} ({expected_one_of(known)})",
                remedy="correct the name",
            )
        if self.node is not None and (unknown := sorted(self.stated - set(known))):
            raise FivmError(
                "FIVM201",
                f"{DECLARES} of {self.node.name}: there is no column {unknown[0]} ({expected_one_of(known)})",
                remedy="correct the name",
            )
        return Relation(
            name=name,
            columns=columns,
            kind="factorized" if is_factorized else "table" if presentation is None else "fivm",
            is_recreated=self.is_seed,
            keys=self.keys,
            foreign_keys=self.foreign_keys,
            presentation=presentation,
            dependencies=self.dependencies,
            event_time=self.event_time,
            retention=retention,
        )

    def is_called(self, written: str) -> bool:
        """Whether a user's ``written`` name means this dbt node: ``orders`` or ``source.orders``."""
        if self.node is None:
            return False
        names = {self.node.name, f"{getattr(self.node, 'source_name', '')}.{self.node.name}"}
        return written in names


class Nodes:
    """The relations of a project by the names under which SQL reads them."""

    def __init__(self, manifest: Any) -> None:
        self._manifest = manifest
        self._by_name: dict[str, Any] = {}
        for node in [*manifest.nodes.values(), *manifest.sources.values()]:
            for name in _names(node):
                self._by_name.setdefault(name, node)

    def declared(self, relation: str) -> Declared:
        """What is declared about the relation that SQL reads as ``relation``."""
        node = self._by_name.get(without_catalog(relation))
        if node is None:
            return Declared()
        keys, foreign = set(constraint_keys(node)), set(self._constraint_foreign_keys(node))
        unique, not_null = column_constraints(node)
        for test in self._tests_of(node):
            name, column = test.test_metadata.name, test.test_metadata.kwargs.get("column_name")
            if name == "unique" and column:
                unique.add(str(column).lower())
            elif name == "not_null" and column:
                not_null.add(str(column).lower())
            elif name in _COMPOSITE_TESTS:
                combined = test.test_metadata.kwargs.get("combination_of_columns", ())
                keys.add(tuple(str(c).lower() for c in combined))
            elif name == "relationships" and column:
                foreign |= set(self._foreign_key(test.test_metadata.kwargs))
        # NULLs escape a unique test, and a key with NULLs determines nothing.
        keys |= {(column,) for column in unique}
        usable = {key for key in keys if key and set(key) <= not_null | set(primary(node))}
        stated = _stated(node)
        foreign |= {self._stated_foreign_key(node, given) for given in stated.foreign_keys}
        return Declared(
            node,
            tuple(sorted(usable | set(stated.keys))),
            foreign_keys=tuple(sorted(foreign, key=lambda f: (f.columns, f.target))),
            dependencies=stated.dependencies,
            stated=stated.columns,
            event_time=_event_time(node),
        )

    def node(self, name: str) -> Any | None:
        """The node called ``name`` in dbt, or read as ``name`` in SQL."""
        models = (n for n in self._manifest.nodes.values() if n.resource_type == "model")
        return next((n for n in models if n.name == name), None) or self._by_name.get(without_catalog(name))

    def written(self) -> list[Any]:
        """The nodes that dbt writes a relation of: models, seeds and snapshots, in the order of their names."""
        own = (n for n in self._manifest.nodes.values() if n.resource_type in ("model", "seed", "snapshot"))
        found = [n for n in own if n.relation_name and _materialized(n) not in ("ephemeral", HELPER)]
        return sorted(found, key=lambda n: str(n.unique_id))

    def in_order(self, selected: Collection[str] | None = None) -> list[Any]:
        """The nodes that dbt writes a relation of, each after those that it reads; of the ``selected``, if given.

        They are selected by their unique ids, or names.
        """
        nodes = self._manifest.nodes
        graph = {i: [d for d in _reads(node) if d in nodes] for i, node in sorted(nodes.items())}
        place = {
            unique_id: number for number, unique_id in enumerate(TopologicalSorter(graph).static_order())
        }
        found = [n for n in self.written() if selected is None or {n.unique_id, n.name} & {*selected}]
        return sorted(found, key=lambda n: place[n.unique_id])

    def viewdf_models(self) -> list[Any]:
        """The viewdf models of the project, in the order of their names."""
        return [n for n in self.fivm_models() if _materialized(n) == "viewdf"]

    def unique_id(self, relation: str) -> str | None:
        """The id of the node that SQL reads as ``relation``."""
        node = self._by_name.get(without_catalog(relation))
        return None if node is None else str(node.unique_id)

    def inputs_of(self, node: Any, *, with_views: bool = False) -> Iterator[str]:
        """The names of the relations that a node reads, through views and ephemeral models, without its own helpers.

        With ``with_views`` also those of the views. A viewdf model does not look through them.
        """
        by_parts = _materialized(node) == "viewdf"
        for unique_id in node.depends_on.nodes:
            upstream = self._manifest.nodes.get(unique_id) or self._manifest.sources.get(unique_id)
            if upstream is None:
                continue
            if with_views and is_view(upstream):
                yield canonical(upstream.relation_name)
            if _materialized(upstream) == "ephemeral" or (is_view(upstream) and not by_parts):
                yield from self.inputs_of(upstream, with_views=with_views)
            elif upstream.relation_name and _materialized(upstream) != HELPER:
                yield canonical(upstream.relation_name)

    def fivm_models(self) -> list[Any]:
        """All models of the project with this materialization, in the order of their names."""
        models = [n for n in self._manifest.nodes.values() if _materialized(n) in MAINTAINED]
        return sorted(models, key=lambda n: str(n.unique_id))

    def retained(self) -> list[Any]:
        """Sources, and models that are not fivm's, with a declared retention, in the order of their names."""
        nodes = [*self._manifest.sources.values(), *self._manifest.nodes.values()]
        own = (n for n in nodes if n.resource_type in ("source", "seed", "model", "snapshot"))
        found = [n for n in own if _materialized(n) not in MAINTAINED and "fivm_retention" in _own_keys(n)]
        return sorted(found, key=lambda n: str(n.unique_id))

    def readers_of(self, relation: str) -> list[Any]:
        """The fivm and viewdf models that read a relation, perhaps through ephemeral models."""
        return [m for m in self.fivm_models() if canonical(relation) in self.inputs_of(m)]

    def disabled_fivm_models(self) -> list[Any]:
        """Models of the project with this materialization that are switched off."""
        nodes = [n for versions in getattr(self._manifest, "disabled", {}).values() for n in versions]
        return [n for n in nodes if n.resource_type == "model" and _materialized(n) in MAINTAINED]

    def _tests_of(self, node: Any) -> Iterator[Any]:
        """Tests on the whole of a relation that fail the build: what they state may be relied on."""
        for test in self._manifest.nodes.values():
            if test.resource_type != "test" or getattr(test, "test_metadata", None) is None:
                continue
            if self._owner(test) == node.unique_id and is_strict(test.config):
                yield test

    def _owner(self, test: Any) -> str | None:
        if getattr(test, "attached_node", None):
            return str(test.attached_node)
        candidates = list(test.depends_on.nodes)
        target = self._target(test.test_metadata.kwargs.get("to"))
        others = [c for c in candidates if target is None or c != target.unique_id]
        return str(others[0]) if len(others) == 1 else None

    def _target(self, expression: Any) -> Any | None:
        if not isinstance(expression, str) or not expression.strip().startswith(("ref(", "source(")):
            return None
        return self._manifest.find_node_from_ref_or_source(expression)

    def _foreign_key(self, kwargs: dict[str, Any]) -> Iterator[ForeignKey]:
        target = self._target(kwargs.get("to"))
        if target is not None and kwargs.get("field"):
            column, key = str(kwargs["column_name"]).lower(), str(kwargs["field"]).lower()
            yield ForeignKey((column,), _canonical(target), (key,))

    def _constraint_foreign_keys(self, node: Any) -> Iterator[ForeignKey]:
        for constraint in getattr(node, "constraints", None) or ():
            to = getattr(constraint, "to", None)
            if kind(constraint) != "foreign_key" or not to or not constraint.to_columns:
                continue
            target = self._target(to) or self._by_name.get(without_catalog(to))
            if target is not None:
                columns, key = lower(constraint.columns), lower(constraint.to_columns)
                yield ForeignKey(columns, _canonical(target), key)

    def _stated_foreign_key(self, node: Any, given: ForeignKeyOf) -> ForeignKey:
        target = self._target(given.to)
        if target is None and given.to.strip().startswith(("ref(", "source(")):
            raise FivmError(
                "FIVM201",
                f"{DECLARES} of {node.name}: there is no {given.to}",
                remedy="correct the name of the foreign key's target",
            )
        to = _canonical(target) if target is not None else without_catalog(given.to)
        return ForeignKey(given.columns, to, given.to_columns)


def _stated(node: Any) -> Declares:
    """What stands under ``meta``. Raises FIVM201 where it cannot be read."""
    meta = _own_keys(node)
    stated = load_config({key: value for key, value in meta.items() if key == DECLARES}, model=node.name)
    return stated.fivm_declares or Declares()


def _event_time(node: Any) -> EventTime | None:
    """dbt's ``event_time``; how long parts are by ``meta``, or else ``batch_size``; and how late rows come."""
    column = getattr(node.config, "event_time", None)
    if not column:
        return None
    meta, size = _own_keys(node), getattr(node.config, "batch_size", None)
    given = meta.get("fivm_part_length", None if size is None else getattr(size, "value", size))
    lateness = meta.get("fivm_lateness")
    return EventTime(
        str(column), None if given is None else str(given), None if lateness is None else str(lateness)
    )


def _own_keys(node: Any) -> dict[str, Any]:
    """What stands under ``meta`` of a node, in its config or beside it."""
    return {**getattr(node, "meta", {}), **getattr(node.config, "meta", {})}


def kept_in(node: Any) -> str | None:
    """The schema of what is kept of a fivm model, where it is not the model's own."""
    schema = _own_keys(node).get("fivm_helper_schema")
    return None if schema is None else str(schema)


def reader_of(node: Any) -> Reader:
    """A fivm model as one that reads others."""
    return Reader.of(without_catalog(node.relation_name), kept_in(node))


def without_catalog(relation: str) -> str:
    """The canonical name without Spark's own catalog, which dbt leaves out.

    >>> without_catalog("spark_catalog.raw.Flights")
    'raw.flights'
    """
    return canonical(relation).removeprefix("spark_catalog.")


def _names(node: Any) -> Iterator[str]:
    """A node's own relation, and the one in another environment that ``--defer`` reads instead."""
    for relation in (node, getattr(node, "defer_relation", None)):
        name = getattr(relation, "relation_name", None)
        if name and getattr(node, "resource_type", None) != "test":
            yield without_catalog(name)


def _canonical(node: Any) -> str:
    return without_catalog(node.relation_name or relation_name(node.schema, node.identifier))


def _reads(node: Any) -> list[str]:
    """The nodes that a node depends on; a seed on none."""
    return list(getattr(getattr(node, "depends_on", None), "nodes", ()))


def _materialized(node: Any) -> str:
    return str(getattr(node.config, "materialized", ""))


def is_view(node: Any) -> bool:
    """Whether it is a model that dbt makes a view."""
    return node.resource_type == "model" and _materialized(node) == "view"
