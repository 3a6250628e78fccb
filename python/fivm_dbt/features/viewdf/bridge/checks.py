"""While dbt parses, these checks tell what is wrong with the parts of viewdf models, without a connection."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dbt_common.exceptions import CompilationError

from fivm_dbt.catalog import Catalog
from fivm_dbt.config import load_config
from fivm_dbt.errors import FivmError
from fivm_dbt.features.viewdf.parts.schedule import Recurrence
from fivm_dbt.features.viewdf.plan.planner import check_parts
from fivm_dbt.features.viewdf.sql.references import relations_of_parts
from fivm_dbt.parts.length import UNKNOWN_ZONE, Length
from fivm_dbt.parts.parted import TimeParts
from fivm_dbt.parts.reference import PartReference
from fivm_dbt.plan.request import ModelRequest
from fivm_dbt.project.manifest import Nodes

logger = logging.getLogger(__name__)

Compile = Callable[[Any], str]
"""A model's text as dbt compiles it without a connection."""


def check_reference(model: str, relation: str, low: Any, high: Any, is_own: bool) -> None:
    """Raise dbt's error for a reference that is wrong by itself, where it stands. Called while dbt renders a model."""
    try:
        reference = PartReference.of(relation, low, high)
        if is_own:
            Recurrence(relation, (reference,), ())
    except FivmError as error:
        raise CompilationError(str(error.located(model=model))) from error


def check_viewdf_models(nodes: Nodes, compiled: Compile) -> None:
    """Raise dbt's error for the first viewdf model whose parts do not fit those of its inputs.

    A model that dbt cannot compile yet, because it asks the database, is checked when it runs.
    """
    checks, models = _Checks(nodes, compiled), nodes.viewdf_models()
    for model in models:
        try:
            _check_circles(model, {m.unique_id: m for m in models}, ())
            checks.length(model)
        except FivmError as error:
            if error.code.fault in ("config", "query"):
                raise CompilationError(str(error.located(model=str(model.name)))) from error
            logger.debug("%s is checked when it runs: %s", model.name, error)


def _check_circles(model: Any, models: Mapping[str, Any], path: tuple[str, ...]) -> None:
    """FIVM205 for viewdf models that are computed from each other: dbt itself says so only when it runs something."""
    if model.name in path:
        circle = " → ".join([*path[path.index(model.name) :], model.name])
        raise FivmError(
            "FIVM205",
            f"models are computed from each other, in a cycle: {circle}",
            remedy="take one of them apart: only a model itself can be referred to by its earlier parts, as this",
        )
    for unique_id in model.depends_on.nodes:
        if unique_id in models:
            _check_circles(models[unique_id], models, (*path, str(model.name)))


@dataclass
class _Checks:
    """The lengths of models that have been looked at; None of one that cannot be known yet."""

    nodes: Nodes
    compiled: Compile
    known: dict[str, Length | None] = field(default_factory=dict)

    def length(self, model: Any) -> Length | None:
        if model.unique_id not in self.known:
            self.known[model.unique_id] = None
            self.known[model.unique_id] = self._checked(model)
        return self.known[model.unique_id]

    def _checked(self, model: Any) -> Length | None:
        try:
            sql = self.compiled(model)
        except CompilationError as error:
            if "FIVM" in str(error):
                raise
            logger.debug("%s cannot be compiled without a connection: %s", model.name, error)
            return None
        except Exception as error:
            # Anybody's Jinja is compiled here: what is wrong with it dbt says itself.
            logger.debug("%s cannot be compiled without a connection: %s", model.name, error)
            return None
        parts: dict[str, TimeParts] = {}
        for named in relations_of_parts(sql, model.relation_name):
            declared = self.nodes.declared(named.name)
            length = None
            if declared.is_viewdf:
                length = self.length(declared.node)
                if length is None:
                    return None
            found = declared.time_parts(UNKNOWN_ZONE, length)
            if found is not None:
                parts[named.name] = found
        config = load_config(model.config.meta, model=model.name)
        request = ModelRequest(
            model.relation_name, sql, Catalog.of(()), config, (("timezone", UNKNOWN_ZONE),)
        )
        return check_parts(request, parts)
