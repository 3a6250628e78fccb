"""The catalog of a model has the relations that its SQL names, as database and dbt project describe them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import timedelta

from fivm_dbt.catalog import Catalog, DatabaseView, Relation, SparkType
from fivm_dbt.config import Config
from fivm_dbt.engines.spark.introspect import Described, Describes
from fivm_dbt.engines.spark.stored_view import StoredView
from fivm_dbt.errors import FivmError
from fivm_dbt.naming import canonical
from fivm_dbt.parts.parted import TimeParts
from fivm_dbt.plan.model.inputs import Reader
from fivm_dbt.project.manifest import Declared, Nodes, reader_of, without_catalog
from fivm_dbt.project.view_keys import with_keys_of_views
from fivm_dbt.spark.formats import FORMAT
from fivm_dbt.sql.relations import Named, relations_read
from fivm_dbt.sql.unfold import relations_of

Setting = Callable[[str], str]
"""What a setting of the session is; ``unknown`` where nobody tells."""

_LENGTH = re.compile(r"\b(var)?char\(\d+\)")
"""Of CHAR and VARCHAR a view's query gives STRING."""


def not_told(key: str) -> str:
    """Of a session that nobody can ask."""
    return "unknown"


def read_catalog(
    sql: str,
    describe: Describes,
    nodes: Nodes,
    names: tuple[Named, ...] | None = None,
    zone: str = "UTC",
    setting: Setting = not_told,
) -> Catalog:
    """The relations that ``sql`` reads, itself or through views. Raises FIVM301 to FIVM303 where that is no input.

    ``names`` are these relations where they are known, of a viewdf model, of which the text is no one query: views
    have no place in it. ``zone`` is that of calendars of which no other one is told, and ``setting`` tells what a
    setting of the session is.
    """
    reading = _Reading(describe, nodes, zone, setting, unfolds=names is None)
    reading.read(relations_read(sql) if names is None else names, sql)
    return with_keys_of_views(Catalog.of(reading.relations, reading.views), nodes)


@dataclass
class _Reading:
    """The relations and views that have been met."""

    describe: Describes
    nodes: Nodes
    zone: str
    setting: Setting
    unfolds: bool
    relations: list[Relation] = field(default_factory=list)
    views: list[DatabaseView] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)

    def read(self, names: Iterable[Named], sql: str, by: DatabaseView | None = None) -> None:
        """What a text reads, and below it what the views in it do."""
        for named in names:
            name = canonical(named.name)
            if name in self.seen:
                continue
            self.seen.add(name)
            try:
                view = self._one(named)
            except FivmError as error:
                error.span = named.span
                if by is not None:
                    error.message = f"{error.message} (read by view {by.name})"
                raise error.located(sql=sql) from None
            if view is not None:
                self.views.append(view)
                self.read(relations_of(view), view.sql, view)

    def _one(self, named: Named) -> DatabaseView | None:
        """A view that is to be unfolded; any other relation is noted."""
        described, declared = self.describe(named.name), self.nodes.declared(named.name)
        if self.unfolds and described is not None and described.stored is not None and not declared.is_fivm:
            if declared.retention(self.zone, None) is not None:
                what = f"fivm_retention of {named.name}: it is a view, and keeps no parts"
                raise FivmError("FIVM201", what, remedy="set it for the table that it reads")
            return view_of(canonical(named.name), described, self.setting)
        self.relations.append(_relation(named, described, declared, self.zone))
        return None


def read_retained(
    describe: Describes, nodes: Nodes, zone: str
) -> list[tuple[Relation, timedelta, list[Reader]]]:
    """Relations that are not fivm's with a declared retention: how late rows come, and the models that read them."""
    found = []
    for node in nodes.retained():
        name = without_catalog(node.relation_name)
        declared = nodes.declared(name)
        relation = _relation(Named(name, None), describe(name), declared, zone)
        parts = declared.time_parts(zone)
        late = parts.lateness if parts is not None and parts.lateness is not None else timedelta()
        readers = [reader_of(m) for m in nodes.readers_of(name)]
        found.append((relation, late, readers))
    return found


def read_time_parts(catalog: Catalog, describe: Describes, nodes: Nodes, zone: str) -> dict[str, TimeParts]:
    """How the relations of a viewdf model are divided by time, those that are."""
    found = {}
    for relation in catalog.relations:
        declared, length = nodes.declared(relation.name), None
        if declared.is_viewdf:
            described = describe(relation.name)
            length = described.part_length if described is not None else None
        parts = declared.time_parts(zone, length)
        if parts is not None:
            found[relation.name] = parts
    return found


def with_sql_names(config: Config, catalog: Catalog, nodes: Nodes) -> Config:
    """The configuration with its inputs called as in the SQL, where they are written as dbt calls them."""
    static = tuple(_sql_name(written, catalog, nodes) for written in config.fivm_static)
    return config.model_copy(update={"fivm_static": static})


def _sql_name(written: str, catalog: Catalog, nodes: Nodes) -> str:
    names = (*(r.name for r in catalog.relations), *(v.name for v in catalog.views))
    found = (name for name in names if nodes.declared(name).is_called(written))
    return next(found, written)


def _relation(named: Named, described: Described | None, declared: Declared, zone: str) -> Relation:
    if described is None:
        raise FivmError("FIVM302", f"there is no table or view {named.name}", remedy=how_to_create(declared))
    presentation = described.presentation
    if described.is_factorized:
        return declared.relation(canonical(named.name), described.columns, is_factorized=True)
    if presentation is None and described.kind:
        what = described.kind.lower().replace("_", " ")
        raise FivmError(
            "FIVM303", f"{named.name} is a {what}: it records no changes", remedy=instead_of_view(declared)
        )
    if presentation is None and not described.is_versioned:
        kind = described.provider or "a temporary view"
        raise FivmError("FIVM301", f"{named.name} is {kind}", remedy=_how_to_make_delta(named.name, declared))
    retention = declared.retention(zone, described.part_length)
    return declared.relation(canonical(named.name), described.columns, presentation, retention=retention)


def view_of(name: str, described: Described, setting: Setting = not_told) -> DatabaseView:
    """A view as its text means it in this session. Raises FIVM303 where it was created under other settings."""
    stored = described.stored or StoredView()
    if not described.view_text.strip():
        raise FivmError(
            "FIVM303", f"the text of {name} is not told", remedy="get the right to see it, or copy it"
        )
    other = stored.other_settings(setting)
    if other:
        what = ", ".join(f"{key} {then} (now {now})" for key, (then, now) in other.items())
        raise FivmError(
            "FIVM303",
            f"{name} was created with other settings, under which it means something else: {what}",
            remedy="create the view anew with the settings of dbt's session",
        )
    names = tuple(column.name for column in described.columns)
    shown = tuple(SparkType.of(_LENGTH.sub("string", column.type.text)) for column in described.columns)
    return DatabaseView(
        name,
        described.view_text,
        schema=stored.schema,
        selected=stored.query_columns,
        names=names if stored.keeps_names and names != stored.query_columns else (),
        types=shown if stored.keeps_types else (),
    )


def how_to_create(declared: Declared) -> str:
    """What to do where a relation is not there."""
    if declared.node is None:
        return "correct the name, or create the table"
    if declared.node.resource_type == "source":
        return "create the table, or correct the source's schema and identifier"
    return f"dbt build --select {declared.node.name}"


def instead_of_view(declared: Declared) -> str:
    """What to do where a relation is a view."""
    if declared.is_fivm and declared.node is not None:
        return (
            f"dbt run --select {declared.node.name}; it has so far been built with --empty or --sample, "
            "or by another materialization"
        )
    return f"make it ephemeral, or fivm, or a table with file_format='{FORMAT.name}'"


def _how_to_make_delta(name: str, declared: Declared) -> str:
    if declared.node is not None and declared.node.resource_type != "source":
        return f"configure {declared.node.name} with file_format: {FORMAT.name} and build it again"
    return f"CONVERT TO DELTA {name}, or copy it into a Delta table"
