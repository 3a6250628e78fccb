"""``fivm`` runs dbt commands in this process, so that a project is read exactly as dbt reads it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from dbt.cli.main import dbtRunner

from fivm_dbt.errors import FivmError
from fivm_dbt.operations.next_run import NextRun, of_plan, refused
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.project.manifest import MAINTAINED, Nodes
from fivm_dbt.project.offline import plan_of_compiled
from fivm_dbt.suggest import did_you_mean

_COMPILED = (*MAINTAINED, "view")
"""The materializations of models whose texts tell what a model above them is computed from."""

_OFFLINE = (
    "--exclude",
    "resource_type:test",
    "resource_type:unit_test",
    "--no-populate-cache",
    "--no-introspect",
)


@dataclass(frozen=True)
class Project:
    """A dbt project: where it is, where its profile is, and which of its targets is meant."""

    directory: Path
    profiles: Path | None = None
    target: str | None = None

    @property
    def options(self) -> list[str]:
        """As options of dbt."""
        options = ["--quiet", "--project-dir", str(self.directory)]
        options += ["--profiles-dir", str(self.profiles)] if self.profiles else []
        return options + (["--target", self.target] if self.target else [])


def plan_of_model(model: str, project: Project) -> Plan:
    """The plan of a project's model without a connection: dbt parses and compiles, and nothing is run.

    What dbt writes goes to a directory of its own, so that ``target/`` stays what the last ``dbt run`` made it.
    """
    with TemporaryDirectory(prefix="fivm_explain_") as scratch:
        options = [*project.options, *_written_to(Path(scratch), project.directory)]
        return _plan_of_model(model, options)


def _plan_of_model(model: str, options: list[str]) -> Plan:
    manifest = _invoke(["parse", *options], None)
    nodes = Nodes(manifest)
    node = nodes.node(model)
    if node is None:
        known = [str(n.name) for n in nodes.fivm_models()]
        raise FivmError(
            "FIVM103",
            f"there is no model {model} (with materialized='fivm': {', '.join(known) or 'none'})",
            remedy=did_you_mean(model, known) or "correct the name",
        )
    maintained = [f"+{node.name},config.materialized:{kind}" for kind in _COMPILED]
    select = ["--select", *maintained, node.name]
    done = _invoke(["compile", *select, *_OFFLINE, *options], manifest)
    compiled = {result.node.unique_id: result.node.compiled_code for result in done.results}
    return plan_of_compiled(node, compiled, nodes)


def next_runs(
    project: Project, *, select: Sequence[str], exclude: Sequence[str], full_refresh: bool, is_offline: bool
) -> list[NextRun]:
    """What the next ``dbt run`` does with the project's models that are selected, as dbt selects them."""
    with TemporaryDirectory(prefix="fivm_plan_") as scratch:
        options = [*project.options, *_written_to(Path(scratch), project.directory)]
        manifest = _invoke(["parse", *options], None)
        chosen = [*(["--select", *select] if select else []), *(["--exclude", *exclude] if exclude else [])]
        listing = ["--resource-type", "model", "--resource-type", "seed", "--resource-type", "snapshot"]
        listing += ["--output", "json", "--output-keys", "unique_id"]
        listed = _invoke(["ls", *chosen, *listing, *options], manifest)
        selected = [json.loads(line)["unique_id"] for line in listed]
        nodes = Nodes(manifest)
        if is_offline:
            return _without_connection(nodes, selected, manifest, options)
        if not any(n for n in nodes.in_order(selected) if _is_maintained(n)):
            return []
        arguments = {"models": selected, "full_refresh": full_refresh, "as_json": True}
        return _told_by_dbt(
            ["run-operation", "fivm_plan", "--args", json.dumps(arguments), *options], manifest
        )


def _told_by_dbt(command: list[str], manifest: Any) -> list[NextRun]:
    """What the macro prints, which is one line."""
    printed: list[str] = []

    def hear(event: Any) -> None:
        if event.info.name == "PrintEvent":
            printed.append(event.info.msg)

    _invoke(command, manifest, hear)
    return [NextRun.from_dict(data) for data in json.loads(printed[-1])]


def _without_connection(
    nodes: Nodes, selected: Sequence[str], manifest: Any, options: list[str]
) -> list[NextRun]:
    """What the manifest can tell: which models are refused, what is kept and what is read in full."""
    models = [n for n in nodes.in_order(selected) if _is_maintained(n)]
    if not models:
        return []
    selection = [f"+{n.name},config.materialized:{kind}" for n in models for kind in _COMPILED]
    done = _invoke(
        ["compile", "--select", *selection, *(n.name for n in models), *_OFFLINE, *options],
        manifest,
        may_fail=True,
    )
    compiled = {r.node.unique_id: r.node.compiled_code for r in done.results if r.node.compiled_code}
    planned: dict[str, Plan] = {}
    return [_told_by_manifest(node, compiled, nodes, planned) for node in models]


def _told_by_manifest(
    node: Any, compiled: Mapping[str, str], nodes: Nodes, planned: dict[str, Plan]
) -> NextRun:
    if node.unique_id not in compiled:
        return NextRun(str(node.name), "unknown", "dbt cannot compile it without a connection")
    try:
        return of_plan(plan_of_compiled(node, compiled, nodes, planned), None)
    except FivmError as error:
        if error.code.number == "FIVM109":
            return NextRun(str(node.name), "unknown", error.message, remedy=error.remedy)
        return refused(str(node.name), error)


def _is_maintained(node: Any) -> bool:
    return str(node.config.materialized) in MAINTAINED


def check_inputs(project: Project) -> bool:
    """Let dbt print what it finds about the models' inputs; whether all can be maintained from."""
    return bool(dbtRunner().invoke(["run-operation", "fivm_doctor", *project.options]).success)


def _written_to(scratch: Path, project_dir: Path) -> list[str]:
    """Options by which dbt writes elsewhere, and reads what it has parsed before."""
    options = ["--target-path", str(scratch / "target"), "--log-path", str(scratch / "logs")]
    parsed = project_dir / "target" / "partial_parse.msgpack"
    return [*options, "--partial-parse-file-path", str(parsed)] if parsed.is_file() else options


def _invoke(
    arguments: list[str],
    manifest: Any | None,
    hear: Callable[[Any], None] | None = None,
    *,
    may_fail: bool = False,
) -> Any:
    """What a dbt command gives, and ``hear`` its events. What it prints is told only if it fails.

    Where it ``may_fail`` what it gives of single nodes counts.
    """
    told = StringIO()
    with redirect_stdout(told):
        done = dbtRunner(manifest=manifest, callbacks=[hear] if hear is not None else None).invoke(arguments)
    if not done.success and not (may_fail and done.result is not None):
        sys.stderr.write(told.getvalue())
        reason = done.exception or "see dbt's messages above"
        what = f"dbt {arguments[0]} failed: {reason}"
        raise FivmError("FIVM201", what, remedy=f"make dbt {arguments[0]} pass first")
    return done.result
