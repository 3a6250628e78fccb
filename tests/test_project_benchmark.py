"""``python -m benchmarks.project``: all its models are maintained, and by how many inner views. No Java is needed."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass
from io import StringIO

import pytest
from benchmarks.project.batches import arrivals, batch, load
from benchmarks.project.paths import PROJECT, ROOT
from benchmarks.project.report import of_models, of_runs
from benchmarks.project.rounds import Measured, Round
from benchmarks.project.sizes import Sizes, Span
from benchmarks.project.tables import columns
from dbt.cli.main import dbtRunner
from rich.console import Console

from fivm_dbt.project.manifest import HELPER, Nodes

MOST_INNER_VIEWS: dict[str, int] = {
    "account_versions": 1,
    "broker_days": 2,
    "broker_months": 2,
    "busiest_securities": 2,
    "cancelling_accounts": 1,
    "cash_balances": 2,
    "cohorts": 3,
    "commissions_by_tier": 1,
    "company_versions": 2,
    "current_holdings": 1,
    "customer_versions": 1,
    "customer_wealth": 2,
    "dim_accounts": 2,
    "dim_brokers": 2,
    "dim_dates": 2,
    "dormant_customers": 2,
    "earnings_of_a_year": 2,
    "fact_market_history": 2,
    "market_days": 2,
    "market_months": 1,
    "moving_averages": 2,
    "open_orders": 2,
    "overdrawn_accounts": 1,
    "portfolio_values": 4,
    "row_counts": 8,
    "sector_days": 1,
    "security_versions": 2,
    "slow_trades": 2,
    "status_durations": 4,
    "trade_lifecycle": 1,
    "traders_by_day": 3,
    "volume_shares": 2,
    "watch_counts": 1,
    "watched_never_traded": 2,
    "watches": 1,
}
"""Of models with any, by the shape of their queries; with sizes of tables they may be others. No figure may grow."""


@dataclass(frozen=True)
class Parsed:
    """How many inner views each model has, as dbt lists them before any run, and what was said of models without."""

    inner_views: dict[str, int]
    refused: list[str]


class Heard(logging.Handler):
    """Keeps what is logged."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


@pytest.fixture(scope="module")
def parsed(tmp_path_factory: pytest.TempPathFactory) -> Parsed:
    home = tmp_path_factory.mktemp("project")
    (home / "dbt_packages").mkdir()
    (home / "dbt_packages" / "fivm").symlink_to(ROOT)
    logger, heard = logging.getLogger("fivm_dbt.bridge.nodes"), Heard()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(logger, "level", logging.DEBUG)
        patch.setattr(logger, "handlers", [heard])
        patch.setenv("FIVM_PROJECT_HOME", str(home))
        patch.setenv("FIVM_PROJECT_JARS", "none")
        where = ["--project-dir", str(PROJECT), "--profiles-dir", str(PROJECT)]
        manifest = dbtRunner().invoke(["parse", "--quiet", *where]).result
    helpers = (n.name for n in manifest.nodes.values() if n.config.materialized == HELPER)
    found = Counter(str(name).split("__fivm_")[0] for name in helpers)
    models = [str(model.name) for model in Nodes(manifest).fivm_models()]
    return Parsed({model: found[model] for model in models}, heard.messages)


def test_all_models_are_maintained(parsed: Parsed) -> None:
    files = {path.stem for path in PROJECT.glob("models/*/*.sql") if path.parent.name != "staging"}
    assert set(parsed.inner_views) == files
    assert len(files) >= 45
    assert parsed.refused == []


def test_no_model_has_more_inner_views(parsed: Parsed) -> None:
    found = {model: number for model, number in parsed.inner_views.items() if number}
    assert {m: n for m, n in found.items() if n > MOST_INNER_VIEWS.get(m, 0)} == {}
    assert {m: n for m, n in MOST_INNER_VIEWS.items() if found.get(m, 0) < n} == {}, "the figure can go down"


def test_each_table_is_filled_and_each_week_is_another_one() -> None:
    sizes = Sizes(0.01)
    assert sorted(table for table, _ in load(sizes)) == sorted(columns())
    weeks = [dict(arrivals(sizes, Span.of_batch(number))) for number in (1, 2)]
    assert all(weeks[0][table] != weeks[1][table] for table in weeks[0])
    assert len({text for number in (1, 2) for text in batch(sizes, number)}) == 2 * len([*batch(sizes, 1)])


def _measured(model: str, seconds: float, helpers: int = 1, differing: int = 0) -> Measured:
    return Measured(
        model=model,
        action="refreshed",
        reason=None,
        helpers=helpers,
        seconds=seconds,
        table_seconds=2.0,
        statements=4,
        rows_merged=10,
        rows_read=100,
        rows=1_000,
        differing=differing,
    )


def test_what_is_printed() -> None:
    told = StringIO()
    console = Console(file=told, width=160)
    models = (_measured("one", 1.0), _measured("other", 0.5, helpers=0, differing=3))
    load_, week = (
        Round(
            batch=n,
            changed={"trades": (5, 1) if n else (600, 0)},
            apply_seconds=1.0,
            fivm_seconds=3.0 - n,
            table_seconds=4.0,
            models=models,
        )
        for n in (0, 1)
    )
    of_models(week, console)
    of_runs([load_, week], console)
    text = told.getvalue()
    assert "1.0%" in text and "3 DIFFER" in text and "1,000 equal" in text
    assert "1 inner views of 2 models: 0.50 for each (bar 0.7)" in text
    assert "at most 0.50 of a recompute of the project, after batch 1 (bar 0.5)" in text
    assert (load_.differing, week.ratio) == (3, 0.5)
