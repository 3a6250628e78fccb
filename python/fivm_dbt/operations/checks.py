"""Checks tell what is wrong with a project's inputs without changing them: Delta or not, change feed or not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from fivm_dbt.engines.spark.engine import Execute
from fivm_dbt.engines.spark.introspect import Described, describe_relation
from fivm_dbt.errors import FivmError
from fivm_dbt.project.inputs import how_to_create, instead_of_view, view_of
from fivm_dbt.project.manifest import Declared, Nodes
from fivm_dbt.spark.formats import CHANGE_FEED, FORMAT
from fivm_dbt.sql.unfold import relations_of

_FEED, _ON = CHANGE_FEED


Level = Literal["ok", "advice", "error"]


@dataclass(frozen=True)
class Finding:
    """One line of a diagnosis."""

    level: Level
    text: str


def check_inputs(execute: Execute, nodes: Nodes) -> list[Finding]:
    """One finding per input of the project's fivm models."""
    readers: dict[str, set[str]] = {}
    by_parts = set()
    for model in nodes.fivm_models():
        for name in nodes.inputs_of(model):
            readers.setdefault(name, set()).add(str(model.name))
            by_parts |= {name} if model.config.materialized == "viewdf" else set()
    found: dict[str, Finding] = {}
    open_ = sorted(readers)
    while open_:
        name = open_.pop(0)
        described, declared = describe_relation(execute, name), nodes.declared(name)
        level, text = _finding(name, described, declared)
        is_view = described is not None and described.stored is not None and not declared.is_fivm
        if described is not None and is_view and name not in by_parts:
            level, text, below = _view(name, described)
            for inner in below:
                new = readers[name] - readers.setdefault(inner, set())
                readers[inner] |= new
                open_ += [inner] if new or inner not in found else []
        found[name] = Finding(level, f"{name} (read by {', '.join(sorted(readers[name]))}): {text}")
    none = [Finding("advice", "no model of this project has materialized='fivm'")]
    return [found[name] for name in sorted(found)] or none


def _view(name: str, described: Described) -> tuple[Level, str, tuple[str, ...]]:
    """What is said of a view, and the relations that its query reads."""
    try:
        below = tuple(named.name for named in relations_of(view_of(name, described)))
    except FivmError as error:
        return "error", f"is a view that cannot be read ({error.code.number}): {error.message}", ()
    return "ok", f"view over {', '.join(below) or 'nothing'}", below


def _finding(name: str, described: Described | None, declared: Declared) -> tuple[Level, str]:
    if described is None:
        return _not_built(declared)
    if described.presentation is not None:
        return "ok", "fivm model"
    if not described.is_versioned:
        kind = described.kind.lower().replace("_", " ") or described.provider or "a temporary view"
        return "error", f"is {kind}, not a Delta table (FIVM301, FIVM303)"
    if declared.is_seed:
        return "ok", "seed, compared with an own snapshot"
    if dict(described.properties).get(_FEED) == _ON:
        return "ok", "change feed on"
    advice = _advice(name, declared)
    return "advice", f"no change feed: versions are compared, which reads the table twice. {advice}"


def _not_built(declared: Declared) -> tuple[Level, str]:
    """Of a relation that is not there, what the project says that it is going to be."""
    node = declared.node
    if node is None or node.resource_type == "source":
        return "advice", f"does not exist yet: {how_to_create(declared)}"
    if declared.is_fivm:
        return "ok", "fivm model, not built yet"
    if declared.materialized == "view":
        return "error", f"not built yet, and will be a view (FIVM303): {instead_of_view(declared)}"
    if declared.file_format is None:
        return (
            "advice",
            f"not built yet; unless the session makes Delta tables, set file_format: {FORMAT.name}",
        )
    if declared.file_format != FORMAT.name:
        what = f"not built yet, and will be {declared.file_format} (FIVM301)"
        return "error", f"{what}: set file_format: {FORMAT.name}"
    return "ok", "not built yet, and will be a Delta table"


def session_finding(settings: Mapping[str, str]) -> Finding | None:
    """Advice where a server runs in ANSI mode, which dbt-spark's own session never does; None where nothing differs."""
    if settings.get("ansi") != "true":
        return None
    return Finding(
        "advice",
        "the session has ANSI mode on: a state that dbt's session method has built is built anew here "
        "(docs/dbt.md#one-state-for-session-and-thrift)",
    )


def _advice(name: str, declared: Declared) -> str:
    statement = f"ALTER TABLE {name} SET TBLPROPERTIES ('{_FEED}' = '{_ON}')"
    if declared.node is None or declared.node.resource_type != "model":
        return statement
    return f"{statement}, and in its config tblproperties: {{'{_FEED}': '{_ON}'}}"
