"""Plans without a database come from a file, or from a compiled model whose inputs are declared."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from fivm_dbt.catalog import Catalog, Column, DatabaseView, Presentation, Relation, TableStatistics
from fivm_dbt.config import load_config
from fivm_dbt.errors import FivmError, expected_one_of
from fivm_dbt.naming import canonical, quote, split_name
from fivm_dbt.plan.model.plan import FactorisedPlan, Plan
from fivm_dbt.plan.planner import plan_model
from fivm_dbt.plan.request import ModelRequest
from fivm_dbt.project.manifest import Declared, Nodes, is_view
from fivm_dbt.project.view_keys import with_keys_of_views
from fivm_dbt.sql.relations import Named, relations_read
from fivm_dbt.sql.script import read_script
from fivm_dbt.sql.unfold import relations_of
from fivm_dbt.suggest import did_you_mean
from fivm_dbt.viewtree.order_file import OrderFile, read_order

logger = logging.getLogger(__name__)

_SESSION = (("timezone", "UTC"),)


def plan_of_file(
    path: Path,
    order: Path | None = None,
    settings: Mapping[str, object] | None = None,
    rows: Mapping[str, int] | None = None,
) -> Plan:
    """The plan of the one query in a file that also creates its inputs.

    ``order`` is a file with a variable order, ``settings`` are what the model has under ``meta``, ``rows`` the sizes
    of tables. FIVM204 where the two files do not speak of the same relations, FIVM103 for ``rows`` of none of them.
    """
    if not path.is_file():
        raise FivmError(
            "FIVM103", f"there is no file {path}", remedy="name a .sql file, or a model with --project-dir"
        )
    script = read_script(path.read_text(encoding="utf-8"))
    model = quote(path.stem.lower())
    given = None
    if order is not None:
        file = read_order(order.read_text(encoding="utf-8"), order.name)
        _check_same(script.catalog, file, path.name, order.name)
        for note in file.notes:
            logger.warning("%s: %s", order.name, note)
        given = file.order
    request = ModelRequest(
        f"analytics.{model}",
        script.sql,
        catalog=script.catalog,
        config=load_config(settings or {}),
        session=_SESSION,
        order=given,
        measured=_sizes(script.catalog, rows) if rows else None,
    )
    return plan_model(request)


def _sizes(catalog: Catalog, rows: Mapping[str, int]) -> TableStatistics:
    found = {}
    for written, number in rows.items():
        relation = catalog.find(canonical(written))
        if relation is None:
            known = [r.name for r in catalog.relations]
            raise FivmError(
                "FIVM103",
                f"there is no table {written} ({expected_one_of(known)})",
                remedy=did_you_mean(written, known) or "correct the name",
            )
        found[relation.name] = number
    return TableStatistics.of(found, appends=True)


def _check_same(catalog: Catalog, file: OrderFile, sql: str, order: str) -> None:
    """FIVM204 with every difference between the relations of the two files."""
    tables = {split_name(r.name)[-1].lower(): {c.name.lower() for c in r.columns} for r in catalog.relations}
    edges = {e.name.lower(): {v.lower() for v in e.variables} for e in file.edges}
    problems = [f"{order} has {name}, which {sql} does not create" for name in edges if name not in tables]
    problems += [f"{sql} creates {name}, which {order} does not have" for name in tables if name not in edges]
    for name in sorted(tables.keys() & edges.keys()):
        for here, there, has, lacks in ((edges, tables, order, sql), (tables, edges, sql, order)):
            missing = ", ".join(sorted(here[name] - there[name]))
            if missing:
                problems.append(f"{name} has {missing} in {has} and not in {lacks}")
    if problems:
        raise FivmError("FIVM204", "; ".join(problems), remedy="make the two files agree")


def plan_of_compiled(
    node: Any, compiled_sql: Mapping[str, str], nodes: Nodes, planned: dict[str, Plan] | None = None
) -> Plan:
    """The plan of a compiled model; ``compiled_sql`` also has the fivm models and views upstream, by unique id.

    ``planned`` has the plans of models that were asked for before, and gets those that are made now: many models read
    the same ones, which read others.
    """
    planned = {} if planned is None else planned
    if node.unique_id not in planned:
        planned[node.unique_id] = _plan_of_compiled(node, compiled_sql, nodes, planned)
    return planned[node.unique_id]


def _plan_of_compiled(
    node: Any, compiled_sql: Mapping[str, str], nodes: Nodes, planned: dict[str, Plan]
) -> Plan:
    relations, parts = [], {}
    sql = compiled_sql[node.unique_id]
    is_viewdf = node.config.materialized == "viewdf"
    if is_viewdf:
        # Loaded only for such a model.
        from fivm_dbt.features.viewdf.plan.planner import plan_viewdf
        from fivm_dbt.features.viewdf.sql.references import relations_of_parts

        names, views = relations_of_parts(sql, node.relation_name), list[DatabaseView]()
    else:
        names, views = _unfolded(relations_read(sql), compiled_sql, nodes)
    for named in names:
        declared = nodes.declared(named.name)
        upstream = _upstream(declared, compiled_sql, nodes, planned)
        relations.append(_relation(named.name, declared, upstream))
        length = upstream.part_length if upstream is not None else None
        divided = declared.time_parts("UTC", length) if is_viewdf else None
        if divided is not None:
            parts[named.name] = divided
    config = load_config({**node.config.meta, "batch_size": _text(node.config.batch_size)}, model=node.name)
    catalog = with_keys_of_views(Catalog.of(relations, views), nodes)
    request = ModelRequest(node.relation_name, sql, catalog, config, _SESSION)
    return plan_viewdf(request, parts) if is_viewdf else plan_model(request)


def _unfolded(
    names: Iterable[Named], compiled_sql: Mapping[str, str], nodes: Nodes
) -> tuple[tuple[Named, ...], list[DatabaseView]]:
    """The relations below the views among these that are models of the project, and those views."""
    found: dict[str, Named] = {}
    views: dict[str, DatabaseView] = {}
    open_ = list(names)
    while open_:
        named = open_.pop(0)
        name, node = canonical(named.name), nodes.declared(named.name).node
        text = None if node is None or not is_view(node) else compiled_sql.get(node.unique_id)
        if text is None:
            found.setdefault(name, named)
        elif name not in views:
            views[name] = DatabaseView(name, text)
            open_ += relations_of(views[name])
    return tuple(found.values()), list(views.values())


def _upstream(
    declared: Declared, compiled_sql: Mapping[str, str], nodes: Nodes, planned: dict[str, Plan]
) -> Plan | None:
    """The plan of a relation that is a model of fivm's, and has been compiled."""
    if not declared.is_fivm or declared.node is None or declared.node.unique_id not in compiled_sql:
        return None
    return plan_of_compiled(declared.node, compiled_sql, nodes, planned)


def _relation(name: str, declared: Declared, upstream: Plan | None) -> Relation:
    columns: tuple[Column, ...] = declared.columns
    presentation: Presentation | None = None
    if upstream is not None:
        if isinstance(upstream, FactorisedPlan):
            return declared.relation(name, upstream.output, is_factorized=True)
        columns, presentation = upstream.shown, upstream.read_by
    if not columns:
        raise FivmError(
            "FIVM109",
            f"the columns of {name} are not declared with their types",
            remedy="declare all its columns with data_type in a .yml file, "
            "or let the database tell: dbt run-operation fivm_explain --args '{model: NAME}'",
        )
    return declared.relation(name, columns, presentation)


def _text(value: Any) -> str | None:
    return None if value is None else str(getattr(value, "value", value))
