"""``python -m benchmarks.compare``: what is compared, its changes, and models as an expert writes them."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest
from benchmarks.compare.by_time import ByTime, batches, merge, newest, overwrites, partitioned
from benchmarks.compare.cases import DATA, Compared, Model, cases, chosen_cases
from benchmarks.compare.data import PERCENTS, Data
from benchmarks.compare.flights import AIR
from benchmarks.compare.tpch import TPCH
from benchmarks.compare.wanted import ALL, LARGE
from benchmarks.queries.tpch_data import TABLES

from fivm_dbt.catalog import Catalog, Column, Relation
from fivm_dbt.config import load_config
from fivm_dbt.plan.model.plan import MaintainedPlan
from fivm_dbt.plan.planner import plan_model
from fivm_dbt.plan.request import ModelRequest

FLIGHTS = {
    "flights": "flight_id bigint, flight_date date, year int, month int, carrier string, origin string, dest string, "
    "tailnum string, hour int, dep_delay int, arr_delay int, distance int",
    "airports": "faa string, name string",
    "airlines": "carrier string, name string",
    "planes": "tailnum string, manufacturer string, seats int",
}
KNOWN = {
    **{f"tpch.{t.name}": Relation(f"tpch.{t.name}", t.columns) for t in TABLES},
    **{
        f"air.{name}": Relation(f"air.{name}", tuple(Column.of(*c.split(" ")) for c in text.split(", ")))
        for name, text in FLIGHTS.items()
    },
}


class Statements:
    """A session that keeps what it is asked to run."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    def sql(self, text: str) -> None:
        self.sent.append(text)


def _names(compared: Compared) -> dict[str, str]:
    tables = {table: f"{compared.data.schema}.{table}" for table in compared.data.tables}
    return tables | {model.name: f"models.{model.name}" for model in compared.models}


@pytest.mark.parametrize("compared", cases(), ids=lambda c: c.name)
def test_each_model_is_maintained(compared: Compared) -> None:
    known, names = dict(KNOWN), _names(compared)
    for model in compared.models:
        relations = [known[names[name]] for name in model.reads]
        request = ModelRequest(
            names[model.name], model.over(names), Catalog.of(relations), load_config({}), is_read=True
        )
        plan = plan_model(request)
        assert isinstance(plan, MaintainedPlan)
        known[plan.relation] = Relation(
            plan.relation, plan.shown, kind="fivm", presentation=plan.presentation
        )


def test_a_chain_reads_from_model_to_model() -> None:
    (chain,) = chosen_cases(["chain"])
    assert len(chain.models) == 6
    assert all(
        before.name in model.reads for before, model in zip(chain.models, chain.models[1:], strict=False)
    )
    assert "models.nation_days" in chain.models[3].over(_names(chain))


def test_a_name_that_no_query_has() -> None:
    assert [c.name for c in chosen_cases(["q03", "q01"])] == ["q01", "q03"]
    with pytest.raises(ValueError, match="no query 'q99': expected one of by_shipdate"):
        replace(ALL, queries=("q99",))
    assert set(LARGE.changes) <= {change.name for change in TPCH.changes}, "no other data are loaded"


# Incremental models


def _model(name: str) -> tuple[str, ByTime]:
    model = next(m for c in cases() for m in c.models if m.name == name)
    assert model.by_time is not None
    return model.over({"lineitem": "tpch.lineitem"}), model.by_time


def test_a_merge_computes_the_last_days() -> None:
    sql, by_time = _model("by_orderdate")
    assert newest(by_time, "models.m") == "SELECT max(o_orderdate) FROM models.m"
    text = merge(sql, by_time, "models.m", date(1998, 8, 2))
    assert (
        "WHERE o_orderdate >= CAST('1998-07-30' AS DATE) AND l_shipdate >= CAST('1998-07-30' AS DATE)" in text
    )
    assert "ON old.o_orderdate = new.o_orderdate AND old.n_name = new.n_name" in text
    assert text.startswith("MERGE INTO models.m AS old USING (SELECT")


WITH_TIME = [(m, m.by_time) for c in cases() for m in c.models if m.by_time is not None]


@pytest.mark.parametrize("model, by_time", WITH_TIME, ids=[m.name for m, _ in WITH_TIME])
def test_a_microbatch_overwrites_its_partition(model: Model, by_time: ByTime) -> None:
    sql = model.over({})
    first, *_, last = batches(by_time, date(1998, 8, 2))
    assert last[0] <= date(1998, 8, 2) < last[1]
    view, overwrite = overwrites(sql, by_time, "models.m", first, "m__dbt_tmp")
    assert overwrite == "INSERT OVERWRITE TABLE models.m PARTITION (batch) SELECT * FROM m__dbt_tmp"
    assert f">= CAST('{first[0]}' AS DATE)" in view and f"< CAST('{first[1]}' AS DATE)" in view
    assert view.count("AS batch") == partitioned(sql, by_time).count("AS batch") == 1


def test_how_far_batches_reach_back() -> None:
    year = ByTime("y", ("y",), batch="YEAR")
    assert batches(year, date(1998, 8, 2)) == [
        (date(1997, 1, 1), date(1998, 1, 1)),
        (date(1998, 1, 1), date(1999, 1, 1)),
    ]
    assert batches(ByTime("d", ("d",), batches=0), date(1998, 12, 31)) == [
        (date(1998, 12, 1), date(1999, 1, 1))
    ]


# Changes


@pytest.mark.parametrize("data", DATA, ids=lambda d: d.schema)
def test_changes_come_to_other_rows_in_each_round(data: Data) -> None:
    sent: dict[str, list[list[str]]] = {}
    for change in data.changes:
        for round_ in (1, 2):
            session = Statements()
            change.make(session, round_)
            sent.setdefault(change.name, []).append(session.sent)
    assert sent.pop("none") == [[], []]
    assert len(sent) == len(PERCENTS) + (3 if data is TPCH else 4)
    assert all(first != second for first, second in sent.values())
    key, table = ("o_orderkey", "tpch.orders") if data is TPCH else ("flight_id", "air.flights")
    new = [text for both in sent.values() for one in both for text in one if f"INTO {table}" in text]
    assert len({text.split(f"{key} + ")[1].split(" ")[0].rstrip(",") for text in new}) == 2 * len(PERCENTS), (
        "their keys"
    )


def test_flights_of_any_scale() -> None:
    session = Statements()
    AIR.load(session, 0.001)
    assert len(session.sent) == 1 + len(AIR.tables)
    assert "FROM range(3300)" in session.sent[-1]
