"""Running dbt in this process, and reading what it says about every model."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dbt.cli.main import dbtRunner, dbtRunnerResult

from demo.paths import HOME, LOGS, PROJECT

Listener = Callable[["ModelRun"], None]


@dataclass(frozen=True)
class Scan:
    """Rows that a refresh read from one table."""

    relation: str
    rows: int


@dataclass(frozen=True)
class InputChange:
    """How one input of a model had changed, and how fivm found that out."""

    relation: str
    capture: str
    inserted: int
    deleted: int


@dataclass(frozen=True)
class ModelRun:
    """One model in one `dbt run`; `seconds` is dbt's own measure, from compiling it to its last statement.

    `reads` has the names of the models and sources that its text refers to. `started` is a clock's time, in seconds.
    """

    model: str
    seconds: float
    action: str
    started: float = 0.0
    reason: str | None = None
    inputs: tuple[InputChange, ...] = ()
    partitions: int = 0
    statements: int = 0
    rows_merged: int = 0
    rows_read: int | None = None
    scans: tuple[Scan, ...] = ()
    reads: tuple[str, ...] = ()
    compiled_sql: str = field(default="", repr=False)


class DbtError(Exception):
    """A dbt command failed; the message is dbt's."""


@dataclass(frozen=True)
class DbtProject:
    """A project with its profile, where dbt logs what it does with it, and the variables that its files read."""

    directory: Path
    logs: Path
    environment: Mapping[str, str]

    def run(self, listener: Listener, *flags: str) -> tuple[ModelRun, ...]:
        """Run all models; `listener` hears of each one as soon as it is finished."""

        def hear(event: Any) -> None:
            if event.info.name == "LogModelResult":
                listener(
                    ModelRun(event.data.node_info.node_name, event.data.execution_time, event.data.status)
                )

        result = self._invoke(["run", *flags], hear)
        return tuple(_model_run(each) for each in result.result)

    def test(self, listener: Callable[[str, str, float], None]) -> None:
        """Run the data tests (`fivm_exact` on every model); a failing one raises."""

        def hear(event: Any) -> None:
            if event.info.name == "LogTestResult":
                listener(event.data.name, event.data.status, event.data.execution_time)

        self._invoke(["test", "--threads", "2"], hear)

    def debug(self) -> None:
        """Check the profile and open its connection, as `dbt debug` does for a new user."""
        self._invoke(["debug"])

    def _invoke(self, arguments: list[str], callback: Callable[[Any], None] | None = None) -> dbtRunnerResult:
        """One dbt command, silent on the terminal."""
        os.environ.update(self.environment)
        errors: list[str] = []

        def hear(event: Any) -> None:
            if event.info.level == "error":
                errors.append(re.sub(r"\x1b\[\d*m", "", event.info.msg))
            if callback:
                callback(event)

        where = ["--project-dir", str(self.directory), "--profiles-dir", str(self.directory)]
        result = dbtRunner(callbacks=[hear]).invoke(
            ["--quiet", "--log-level", "none", "--log-level-file", "info", *arguments, *where]
        )
        if not result.success:
            said = "\n".join(errors or [str(result.exception or "no message")])
            raise DbtError(f"dbt {' '.join(arguments)} failed (log: {self.logs / 'dbt.log'})\n{said}")
        return result


DEMO = DbtProject(PROJECT, LOGS, {"FIVM_DEMO_HOME": str(HOME)})
"""The project of the demo."""


def _model_run(result: Any) -> ModelRun:
    """The figures that fivm leaves in the adapter response; a plain model has none."""
    said: dict[str, Any] = result.adapter_response.get("fivm") or {}
    return ModelRun(
        model=result.node.name,
        seconds=float(result.execution_time),
        action=said.get("action", "created"),
        started=min((t.started_at.timestamp() for t in result.timing if t.started_at), default=0.0),
        reason=said.get("reason"),
        inputs=tuple(
            InputChange(bare(i["relation"]), i["capture"], int(i["inserted"]), int(i["deleted"]))
            for i in said.get("inputs", ())
        ),
        partitions=int(said.get("partitions") or 0),
        statements=int(said.get("statements") or 0),
        rows_merged=int(said.get("rows_merged") or 0),
        rows_read=said.get("rows_read"),
        scans=tuple(Scan(bare(s["relation"]), int(s["rows"])) for s in said.get("scans", ())),
        reads=tuple(each.split(".")[-1] for each in result.node.depends_on.nodes),
        compiled_sql=result.node.compiled_code or "",
    )


def bare(relation: str) -> str:
    """`schema.table`, without quotes and without the session's only catalog.

    >>> bare("`spark_catalog`.`raw`.`flights`")
    'raw.flights'
    """
    return relation.replace("`", "").removeprefix("spark_catalog.")
