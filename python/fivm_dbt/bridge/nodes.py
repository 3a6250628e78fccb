"""Inner views become nodes of dbt in the manifest, ``dbt ls``, lineage, docs and catalog; dbt never runs them.

dbt hands the adapter the finished manifest in every command, and nodes added there are everybody's. They have no code,
so that no command selects them for running. Which helpers a model has is known from its last run; what was not run in
this target directory has what the shape of its query gives, if dbt can compile it and all columns are declared.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from dbt.artifacts.resources import ColumnInfo, DependsOn, Docs, FileHash, Owner
from dbt.contracts.graph.model_config import ModelConfig
from dbt.contracts.graph.nodes import Group, ModelNode
from dbt.node_types import NodeType

from fivm_dbt.explain.helpers import Helper, Helpers, helpers_of
from fivm_dbt.naming import canonical, split_name
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.project.manifest import HELPER, MAINTAINED, Nodes, is_view
from fivm_dbt.project.offline import plan_of_compiled

logger = logging.getLogger(__name__)

_ASKING = {"macro.dbt.run_query", "macro.dbt.statement"}
"""Macros with which a model asks the database while it is compiled: not before a run."""


SHOWN = "fivm_show_inner_views"
"""The variable that hides them all."""

GROUP, TAG, COLOUR = "fivm_inner_views", "fivm_inner_view", "#9aa5b1"
"""How inner views are told from models: their group and folder, their tag, and their colour in lineage, a grey."""


@dataclass
class HelperNode(ModelNode):  # type: ignore[misc]
    """A helper: it changes with its model alone, so that it is never a modified node itself."""

    def same_contents(self, old: Any, adapter_type: str) -> bool:
        return True


def remember_helpers(target: Path, plan: Plan) -> None:
    """Write down which helpers a model has been built with, for the commands that follow."""
    path = _path(target, plan.relation)
    text = json.dumps(helpers_of(plan).as_dict(), indent=2) + "\n"
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as file:
        file.write(text)
    os.replace(file.name, path)


def add_helper_nodes(manifest: Any, config: Any) -> None:
    """Add the nodes of all helpers to a finished manifest; those that are there already are replaced."""
    before = {i for i, node in manifest.nodes.items() if isinstance(node, HelperNode)}
    for unique_id in before:
        del manifest.nodes[unique_id]
    nodes = Nodes(manifest)
    compiled = Compiled(manifest, config)
    is_shown = project_variable(config, SHOWN, default=True)
    for model in nodes.fivm_models():
        own = [i for i in model.depends_on.nodes if i not in before]
        model.depends_on.nodes = own
        if not is_shown:
            continue
        known = _remembered(Path(config.project_target_path), canonical(model.relation_name))
        helpers = known or compiled.helpers(model, nodes)
        if helpers is None:
            continue
        ids = {h.relation: f"model.{model.package_name}.{h.name}" for h in helpers.helpers}
        for helper in helpers.helpers:
            node = _node(model, helper, ids, nodes)
            manifest.nodes[node.unique_id] = node
            manifest.groups.setdefault(f"group.{model.package_name}.{GROUP}", _group(model))
        model.depends_on.nodes = [*own, *ids.values()]


def project_variable(config: Any, name: str, *, default: bool) -> bool:
    """A switch of the command line or of ``dbt_project.yml``, there of the project or for all."""
    given = config.vars.to_dict()
    for known in (config.cli_vars, given.get(config.project_name, {}), given):
        if name in known:
            return bool(known[name])
    return default


def _group(model: Any) -> Group:
    """What the docs site lists the inner views of a project under."""
    return Group(
        name=GROUP,
        resource_type=NodeType.Group,
        package_name=model.package_name,
        path=model.path,
        original_file_path=model.original_file_path,
        unique_id=f"group.{model.package_name}.{GROUP}",
        owner=Owner(name="fivm"),
        description="What fivm models keep of their inputs, so that a change finds its partners.",
    )


def _node(model: Any, helper: Helper, ids: Mapping[str, str], nodes: Nodes) -> HelperNode:
    file = Path(GROUP) / f"{helper.name}.sql"
    docs = Docs(node_color=COLOUR)
    reads = [ids[r] if r in ids else nodes.unique_id(r) for r in helper.reads]
    columns = {
        c.name: ColumnInfo(name=c.name, description=c.description, data_type=c.type) for c in helper.columns
    }
    return HelperNode(
        resource_type=NodeType.Model,
        name=helper.name,
        package_name=model.package_name,
        unique_id=ids[helper.relation],
        fqn=[*model.fqn[:-1], GROUP, helper.name],
        alias=helper.name,
        database=model.database,
        schema=split_name(helper.relation)[-2] if "." in helper.relation else model.schema,
        relation_name=helper.relation,
        path=str(Path(model.path).parent / file),
        original_file_path=str(Path(model.original_file_path).parent / file),
        checksum=FileHash.from_contents(helper.description),
        config=ModelConfig(materialized=HELPER, tags=[TAG], docs=docs, group=GROUP),
        tags=[TAG],
        docs=docs,
        group=GROUP,
        description=helper.description,
        columns=columns,
        raw_code="",
        language="sql",
        depends_on=DependsOn(nodes=[r for r in reads if r is not None]),
        created_at=model.created_at,
    )


def _path(target: Path, relation: str) -> Path:
    return target / "fivm" / f"{re.sub(r'[^A-Za-z0-9_.]+', '_', relation)}.json"


def _remembered(target: Path, relation: str) -> Helpers | None:
    path = _path(target, relation)
    if not path.is_file():
        return None
    try:
        found = Helpers.from_dict(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, KeyError, TypeError) as error:
        # Of another version of fivm, or cut off: the next run writes it anew.
        logger.debug("%s cannot be read: %s", path, error)
        return None
    return found if found.model == relation else None


@dataclass
class Compiled:
    """The structural defaults of models, from their SQL as dbt compiles it without a connection."""

    manifest: Any
    config: Any
    code: dict[str, str] = field(default_factory=dict)
    plans: dict[str, Plan] = field(default_factory=dict)

    def helpers(self, model: Any, nodes: Nodes) -> Helpers | None:
        """None where the model's SQL, or the types of what it reads, are not known without a connection."""
        try:
            self._compile_chain(model)
            return helpers_of(plan_of_compiled(model, self.code, nodes, self.plans), is_default=True)
        except Exception as error:
            # dbt compiles anybody's Jinja here, in every command: no error of it may stop one.
            logger.debug("no inner views are shown of %s: %s", model.name, error)
            return None

    def _compile_chain(self, model: Any) -> None:
        """The model, and the fivm models and views that it reads, however far up, each once however many read it."""
        if model.unique_id in self.code:
            return
        for unique_id in model.depends_on.nodes:
            upstream = self.manifest.nodes.get(unique_id)
            if upstream is not None and (upstream.config.materialized in MAINTAINED or is_view(upstream)):
                self._compile_chain(upstream)
        self.code[model.unique_id] = self.compile(model)

    def compile(self, model: Any) -> str:
        """A model's text. Raises whatever goes wrong with its Jinja, and ValueError if that asks the database."""
        if _ASKING & set(self._macros(model.depends_on.macros, set())):
            raise ValueError(f"{model.name} asks the database while it is compiled")
        from dbt.compilation import Compiler

        compiler = Compiler(self.config)
        done = compiler.compile_node(deepcopy(model), self.manifest, {}, write=False)
        return str(done.compiled_code)

    def _macros(self, names: Any, seen: set[str]) -> Iterator[str]:
        for name in names:
            if name not in seen:
                seen.add(name)
                yield name
                macro = self.manifest.macros.get(name)
                if macro is not None:
                    yield from self._macros(macro.depends_on.macros, seen)
