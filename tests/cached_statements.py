"""Makes replays on tiny tables quick: most of their time goes into writing the same SQL text again and again.

A statement of a plan depends on versions only through literals. With this patch the text of a model's delta and of
its recompute is derived once per set of changed inputs, with marks for the versions, and the marks are filled in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

import pytest
from sqlglot import exp

import fivm_dbt.refresh.runner as runner
import fivm_dbt.spark.statements as statements
import fivm_dbt.testing.references as references
from fivm_dbt.ir.clock import Clock
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.plan.model.view import View
from fivm_dbt.refresh.oracle import recompute_sql
from fivm_dbt.spark.check import check_statements
from fivm_dbt.spark.state import delta_query
from fivm_dbt.steps.binding import Binding

_ROOT, _SNAPSHOT, _OLD, _NEW = 860000000000, 870000000000, 880000000000, 890000000000
_MARK = re.compile(r"8[6789]00000000\d\d")


def cache_statements(monkeypatch: pytest.MonkeyPatch) -> None:
    """Derive every delta query and every recompute query once."""
    deltas: dict[tuple[object, ...], tuple[View, str]] = {}
    recomputes: dict[tuple[object, ...], tuple[Plan, str]] = {}

    def cached_delta(plan: Plan, view: View, binding: Binding) -> exp.Expr:
        kinds = tuple((i.name, i.capture, i.old is None, i.snapshot is None) for i in binding.inputs)
        literals = (binding.buckets, binding.touched, binding.clock, binding.spans, binding.tails)
        key = (id(view), binding.moved, kinds, *literals)
        if key not in deltas:
            deltas[key] = (view, delta_query(plan, view, _marked(binding)).sql(dialect="spark"))
        # A name is written as it stands.
        return exp.var(_MARK.sub(lambda mark: str(_version(int(mark[0]), binding)), deltas[key][1]))

    def cached_recompute(plan: Plan, versions: Mapping[str, int], clock: Clock | None = None) -> str:
        names = sorted(versions)
        key = (id(plan), clock)
        if key not in recomputes:
            marked = {name: _NEW + index for index, name in enumerate(names)}
            recomputes[key] = (plan, recompute_sql(plan, marked, clock))
        return _MARK.sub(lambda mark: str(versions[names[int(mark[0]) - _NEW]]), recomputes[key][1])

    monkeypatch.setattr(statements, "delta_query", cached_delta)
    monkeypatch.setattr(references, "recompute_sql", cached_recompute)


def skip_statement_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the check of every statement that a plan can emit, which takes longer than ten refreshes."""
    monkeypatch.setattr(runner, "check_statements", lambda plan: None)


def check_statements_of_builds(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in use: a build checks every statement of its plan. In most tests ``conftest.py`` leaves that out."""
    monkeypatch.setattr(runner, "check_statements", check_statements)


def _marked(binding: Binding) -> Binding:
    inputs = tuple(
        replace(
            bound,
            old=None if bound.old is None else _OLD + index,
            new=_NEW + index,
            snapshot=None if bound.snapshot is None else _SNAPSHOT + index,
        )
        for index, bound in enumerate(binding.inputs)
    )
    return replace(binding, inputs=inputs, before=None if binding.before is None else _ROOT)


def _version(mark: int, binding: Binding) -> int | None:
    if mark < _SNAPSHOT:
        return binding.before
    inputs = binding.inputs
    if mark >= _NEW:
        return inputs[mark - _NEW].new
    return inputs[mark - _OLD].old if mark >= _OLD else inputs[mark - _SNAPSHOT].snapshot
