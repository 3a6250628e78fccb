"""What the next run does, in words and as data; what is kept, and what is read in full."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from fivm_dbt.errors import FivmError
from fivm_dbt.operations.next_run import (
    Change,
    NextRun,
    after_what_is_written,
    has_work,
    of_plan,
    refused,
    text_of,
)
from fivm_dbt.project.manifest import Nodes
from fivm_dbt.refresh.ahead import Ahead, Moved
from fivm_dbt.refresh.costs import Expected
from fixtures.models import plan_of, relation

ORDERS = relation("raw.orders", "order_id int, customer_id int, amount decimal(10,2)")
CUSTOMERS = relation("raw.customers", "customer_id int, segment string")
JOINED = "from raw.orders o join raw.customers c on o.customer_id = c.customer_id"
SUMS = f"select c.segment, sum(o.amount) as revenue {JOINED} group by c.segment"
LEFT = JOINED.replace(" join ", " left join ")


def _of(sql: str, ahead: Ahead | None = None, **meta: object) -> NextRun:
    return of_plan(plan_of(sql, [ORDERS, CUSTOMERS], meta), ahead)


def test_a_refresh() -> None:
    moved = (Moved("raw.customers", 3, 5, 1200), Moved("raw.orders", 1, 2, None))
    run = _of(SUMS, Ahead("refreshed", None, moved, Expected(1.25, 9.0)))
    assert list(text_of([run])) == [
        "m  refresh",
        "  raw.customers: version 3 to 5, up to 1,200 rows",
        "  raw.orders: version 1 to 2",
        "  ! reads raw.customers in full when raw.orders changes",
        "  ! reads raw.orders in full when raw.customers changes",
        "  expected: 1.2 s, a build 9.0 s",
        "1 model: 1 refresh",
    ]
    dear = _of(SUMS, Ahead("refreshed", None, moved, Expected(20.0, 9.0), may_build=True))
    assert "a refresh is expected to take 20.0 s, a build 9.0 s: it becomes a build if" in str(dear.reason)


def test_reasons() -> None:
    run = _of(SUMS, Ahead("rebuilt", "the model's SQL changed", expected=Expected(None, 9.0)))
    assert list(run.lines())[::3] == ["the model's SQL changed", "the last build took 9.0 s"]
    full = _of(SUMS, Ahead("recomputed"), fivm_policy="full")
    assert (full.does, full.reason) == ("recompute", "is recomputed: fivm_policy: full")
    assert [r.text for r in full.full_reads] == ["reads raw.customers in full", "reads raw.orders in full"]
    assert _of(SUMS, None, fivm_policy="full").does == "build or refresh"


def test_a_refusal_has_its_place() -> None:
    with pytest.raises(FivmError) as caught:
        plan_of("select rand() as r from raw.orders", [ORDERS])
    lines = list(refused("m", caught.value).lines())
    assert lines[0].startswith("FIVM106 RAND() gives another value at every evaluation\nline 1, column 8\n")
    assert lines[1].startswith("what to do: ")


def test_inner_views_are_told_in_words() -> None:
    views = {
        v.relation.partition("view_")[2]: v.description
        for v in _of(SUMS, fivm_strategy="factorized").inner_views
    }
    assert views == {
        "2_orders_by_customer_id": "Sums and counts of orders by customer_id, kept so that a changed row "
        "of customers finds its rows of orders without reading all of orders",
        "1_customers_by_customer_id": "Counts of customers by customer_id and segment, kept so that a "
        "changed row of orders finds its rows of customers without reading all of customers",
    }
    counted = _of(f"select c.segment, count(distinct o.amount) as n {LEFT} group by c.segment").inner_views
    assert counted[-1].description == (
        "The rows of orders joined with customers, kept so that only what belongs to a changed row is computed again"
    )


@pytest.mark.parametrize(
    ("does", "then"),
    [
        ("no change", "refresh"),
        ("refresh", "refresh"),
        ("recompute", "recompute"),
        ("rebuild", "rebuild"),
        ("wait", "wait"),
    ],
)
def test_what_is_written_first(does: Any, then: str) -> None:
    before = NextRun("m", does)
    after = after_what_is_written(before, ["shop.daily", "raw.orders"], {"shop.daily", "shop.other"})
    changes = (Change("shop.daily", None, None, None),) if then in ("refresh", "recompute") else ()
    assert (after.does, after.changes) == (then, changes)
    assert after_what_is_written(before, ["raw.orders"], {"shop.daily"}) == before


def test_as_data() -> None:
    run = _of(SUMS, Ahead("refreshed", None, (Moved("raw.orders", 1, 2, 3),)), fivm_strategy="factorized")
    assert NextRun.from_dict(json.loads(json.dumps(run.as_dict()))) == run
    assert has_work(run) and not has_work(NextRun("m", "no change"))


def test_models_come_after_what_they_read() -> None:
    def node(name: str, *reads: str, kind: str = "model") -> Any:
        config = SimpleNamespace(materialized="fivm")
        of = SimpleNamespace(
            name=name, unique_id=f"{kind}.{name}", resource_type=kind, relation_name=f"s.{name}"
        )
        of.config, of.depends_on = config, SimpleNamespace(nodes=[f"model.{r}" for r in reads])
        return of

    chain = [node("a", "b"), node("b", "inner"), node("inner", "c"), node("c"), node("seed", kind="seed")]
    del chain[-1].depends_on
    nodes = Nodes(SimpleNamespace(nodes={n.unique_id: n for n in chain}, sources={}))
    order = [n.name for n in nodes.in_order()]
    assert order.index("a") > order.index("b") > order.index("inner") > order.index("c")
    assert [n.name for n in nodes.in_order(["a", "model.c"])] == ["c", "a"]
