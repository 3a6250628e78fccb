"""``adapter.fivm_check`` tells what is wrong with a project's inputs."""

from __future__ import annotations

from typing import Any

from fivm_dbt.bridge.connection import engine_of, execute_of, session_settings
from fivm_dbt.bridge.models import nodes_of
from fivm_dbt.operations.checks import Finding, check_inputs, session_finding


def fivm_check(adapter: Any) -> list[dict[str, str]]:
    """What ``fivm doctor`` has to say about the inputs of the project's models."""
    findings: list[Finding] = check_inputs(execute_of(adapter), nodes_of(adapter))
    session = session_finding(dict(session_settings(engine_of(adapter))))
    findings += [session] if session is not None else []
    return [{"level": f.level, "text": f.text} for f in findings]
