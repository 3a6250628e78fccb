"""The catalog of a model has the relations that its SQL names, as database and dbt project describe them."""

from __future__ import annotations

from datetime import timedelta

from fivm_dbt.catalog import Catalog, Relation
from fivm_dbt.config import Config
from fivm_dbt.engines.spark.introspect import Described, Describes
from fivm_dbt.errors import FivmError
from fivm_dbt.naming import canonical
from fivm_dbt.parts.parted import TimeParts
from fivm_dbt.project.manifest import Declared, Nodes, without_catalog
from fivm_dbt.spark.formats import FORMAT
from fivm_dbt.sql.relations import Named, relations_read


def read_catalog(
    sql: str, describe: Describes, nodes: Nodes, names: tuple[Named, ...] | None = None, zone: str = "UTC"
) -> Catalog:
    """The relations that ``sql`` reads. Raises FIVM301 to FIVM303 for one that cannot be maintained from.

    ``names`` are these relations where they are known, of a viewdf model, of which the text is no one query; ``zone``
    is that of calendars of which no other one is told.
    """
    relations: list[Relation] = []
    for named in relations_read(sql) if names is None else names:
        described = describe(named.name)
        declared = nodes.declared(named.name)
        try:
            relations.append(_relation(named, described, declared, zone))
        except FivmError as error:
            error.span = named.span
            raise error.located(sql=sql) from None
    return Catalog.of(relations)


def read_retained(
    describe: Describes, nodes: Nodes, zone: str
) -> list[tuple[Relation, timedelta, list[str]]]:
    """Relations that are not fivm's with a declared retention: how late rows come, and the models that read them."""
    found = []
    for node in nodes.retained():
        name = without_catalog(node.relation_name)
        declared = nodes.declared(name)
        relation = _relation(Named(name, None), describe(name), declared, zone)
        parts = declared.time_parts(zone)
        late = parts.lateness if parts is not None and parts.lateness is not None else timedelta()
        readers = [without_catalog(m.relation_name) for m in nodes.readers_of(name)]
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
    found = (r.name for r in catalog.relations if nodes.declared(r.name).is_called(written))
    return next(found, written)


def _relation(named: Named, described: Described | None, declared: Declared, zone: str) -> Relation:
    if described is None:
        raise FivmError("FIVM302", f"there is no table or view {named.name}", remedy=how_to_create(declared))
    presentation = described.presentation
    if described.is_factorized:
        return declared.relation(canonical(named.name), described.columns, is_factorized=True)
    if presentation is None and described.is_view:
        raise FivmError("FIVM303", f"{named.name} records no changes", remedy=instead_of_view(declared))
    if presentation is None and not described.is_versioned:
        kind = described.provider or "not a table"
        raise FivmError("FIVM301", f"{named.name} is {kind}", remedy=_how_to_make_delta(named.name, declared))
    retention = declared.retention(zone, described.part_length)
    return declared.relation(canonical(named.name), described.columns, presentation, retention=retention)


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
