"""``python -m benchmarks.compare``: incremental models as an expert writes them, changes, and regret."""

from __future__ import annotations

import pytest
from benchmarks.compare.__main__ import Measured
from benchmarks.compare.queries import Compared, lookback, queries
from benchmarks.compare.report import share_near_the_best
from benchmarks.compare.tables import PERCENTS, changes
from benchmarks.queries.tpch_data import TABLES

from fivm_dbt.catalog import Catalog, Relation
from fivm_dbt.config import load_config
from fivm_dbt.plan.model.plan import MaintainedPlan
from fivm_dbt.plan.planner import plan_model
from fivm_dbt.plan.request import ModelRequest


class Statements:
    """A session that keeps what it is asked to run."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    def sql(self, text: str) -> None:
        self.sent.append(text)


@pytest.mark.parametrize("compared", queries(), ids=lambda c: c.name)
def test_each_query_is_maintained(compared: Compared) -> None:
    relations = [Relation(f"tpch.{t.name}", t.columns) for t in TABLES]
    request = ModelRequest(f"models.{compared.name}", compared.sql, Catalog.of(relations), load_config({}))
    assert isinstance(plan_model(request), MaintainedPlan)


def test_a_model_by_hand_computes_its_last_days() -> None:
    by_day = next(q for q in queries() if q.name == "by_orderdate")
    merge = lookback(by_day, "models.m")
    assert "WHERE o_orderdate >= (SELECT DATE_ADD(MAX(o_orderdate), 3 * -1) FROM models.m)" in merge
    assert "ON old.o_orderdate = new.o_orderdate AND old.n_name = new.n_name" in merge
    with pytest.raises(ValueError, match="no time"):
        lookback(next(q for q in queries() if q.name == "q01"), "models.m")


def test_changes_come_to_other_rows_in_each_round() -> None:
    sent: dict[str, list[list[str]]] = {}
    for change in changes():
        for round_ in (1, 2):
            session = Statements()
            change.make(session, round_)
            sent.setdefault(change.name, []).append(session.sent)
    assert sent.pop("none") == [[], []]
    assert len(sent) == len(PERCENTS) + 3
    assert all(first != second for first, second in sent.values())
    new_orders = [
        text for both in sent.values() for one in both for text in one if "INTO tpch.orders" in text
    ]
    assert len({text.split("o_orderkey + ")[1].split(" ")[0] for text in new_orders}) == 2 * len(PERCENTS), (
        "their keys"
    )


def _measured(way: str, seconds: float, query: str = "q", *, wrong: int = 0) -> Measured:
    return Measured(query, "some", 1, way, "refreshed", seconds, 10.0, wrong, None)


def test_a_choice_is_held_against_the_best_that_is_right() -> None:
    ours = [_measured("fivm", 2.2), _measured("fivm", 12.0, "r"), _measured("fivm", 11.0, "s")]
    others = [_measured("merge", 2.0), _measured("incremental", 0.5, wrong=3)]
    assert share_near_the_best(ours, [*ours, *others]) == pytest.approx(2 / 3)
    assert _measured("fivm", 1.0, wrong=2).differing == 2
    assert _measured("incremental", 1.0, wrong=2).differing == 0
