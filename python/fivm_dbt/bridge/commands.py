"""``fivm`` runs dbt commands in this process, so that a project is read exactly as dbt reads it."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from dbt.cli.main import dbtRunner

from fivm_dbt.errors import FivmError
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.project.manifest import MAINTAINED, Nodes
from fivm_dbt.project.offline import plan_of_compiled
from fivm_dbt.suggest import did_you_mean

_OFFLINE = (
    "--exclude",
    "resource_type:test",
    "resource_type:unit_test",
    "--no-populate-cache",
    "--no-introspect",
)


def plan_of_model(model: str, project_dir: Path, profiles_dir: Path | None, target: str | None) -> Plan:
    """The plan of a project's model without a connection: dbt parses and compiles, and nothing is run.

    What dbt writes goes to a directory of its own, so that ``target/`` stays what the last ``dbt run`` made it.
    """
    with TemporaryDirectory(prefix="fivm_explain_") as scratch:
        options = [*_options(project_dir, profiles_dir, target), *_written_to(Path(scratch), project_dir)]
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
    maintained = [f"+{node.name},config.materialized:{kind}" for kind in MAINTAINED]
    select = ["--select", *maintained, node.name]
    done = _invoke(["compile", *select, *_OFFLINE, *options], manifest)
    compiled = {result.node.unique_id: result.node.compiled_code for result in done.results}
    return plan_of_compiled(node, compiled, nodes)


def check_inputs(project_dir: Path, profiles_dir: Path | None, target: str | None) -> bool:
    """Let dbt print what it finds about the models' inputs; whether all can be maintained from."""
    options = _options(project_dir, profiles_dir, target)
    return bool(dbtRunner().invoke(["run-operation", "fivm_doctor", *options]).success)


def _options(project_dir: Path, profiles_dir: Path | None, target: str | None) -> list[str]:
    options = ["--quiet", "--project-dir", str(project_dir)]
    options += ["--profiles-dir", str(profiles_dir)] if profiles_dir else []
    return options + (["--target", target] if target else [])


def _written_to(scratch: Path, project_dir: Path) -> list[str]:
    """Options by which dbt writes elsewhere, and reads what it has parsed before."""
    options = ["--target-path", str(scratch / "target"), "--log-path", str(scratch / "logs")]
    parsed = project_dir / "target" / "partial_parse.msgpack"
    return [*options, "--partial-parse-file-path", str(parsed)] if parsed.is_file() else options


def _invoke(arguments: list[str], manifest: Any | None) -> Any:
    """What a dbt command gives. It prints what it compiles, ``--quiet`` or not: that is told only if it fails."""
    told = StringIO()
    with redirect_stdout(told):
        done = dbtRunner(manifest=manifest).invoke(arguments)
    if not done.success:
        sys.stderr.write(told.getvalue())
        reason = done.exception or "see dbt's messages above"
        what = f"dbt {arguments[0]} failed: {reason}"
        raise FivmError("FIVM201", what, remedy=f"make dbt {arguments[0]} pass first")
    return done.result
