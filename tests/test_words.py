"""A plan in plain words: what is kept, for whom, and what a changed row of each input costs."""

from __future__ import annotations

from fivm_dbt.explain.text import explain
from fivm_dbt.explain.words import descriptions, effect_of, short, story
from fivm_dbt.plan.model.plan import Plan
from fixtures.models import plan_of, relation

ORDERS = relation("raw.orders", "order_id int, customer_id int, ordered_on date, amount decimal(10,2)")
CUSTOMERS = relation("raw.customers", "customer_id int, segment string")
JOINED = "from raw.orders o join raw.customers c on o.customer_id = c.customer_id"
SUMS = f"select c.segment, sum(o.amount) as revenue {JOINED} group by c.segment"
LEFT = """select c.segment, o.ordered_on, max(o.amount) as most
from raw.customers c left join raw.orders o on o.customer_id = c.customer_id group by 1, 2"""


def _plan(sql: str, **meta: object) -> Plan:
    return plan_of(sql, [ORDERS, CUSTOMERS], meta)


def test_without_inner_views() -> None:
    assert story(_plan(SUMS, fivm_strategy="first_order")) == [
        "m is computed from customers and orders.",
        "Its result is kept, and no inner view.",
        "When a row of customers changes, it is added to the sums of its group; ! orders is read in full.",
        "When a row of orders changes, it is added to the sums of its group; ! customers is read in full.",
    ]


def test_a_join_with_its_views() -> None:
    told = story(_plan(SUMS, fivm_strategy="factorized"))
    assert told[1] == "Its result is kept, and 2 inner views:"
    assert told[-1] == (
        "When a row of orders changes, view 2 changes with it; it is added to the sums of its group; "
        "some partitions of view 1 are read; nothing is read in full."
    )


def test_groups_that_are_computed_again() -> None:
    told = story(_plan(LEFT))
    orders = next(line for line in told if line.startswith("When a row of orders"))
    assert (
        "views 2 and 3 change with it" in orders and "its groups of the result are computed again" in orders
    )
    assert orders.endswith("nothing is read in full.")


def test_what_cannot_change_and_what_is_recomputed() -> None:
    told = story(_plan(SUMS, fivm_static=["raw.customers"]))
    assert told[-1] == "Of customers no change is expected (fivm_static)."
    assert not any("row of customers" in line for line in told)
    assert story(_plan(SUMS, fivm_policy="full"))[-1] == (
        "It is recomputed as a whole when an input changes: fivm_policy: full."
    )
    joined = story(_plan(f"select o.order_id, c.segment {JOINED}", fivm_result="factorized"))
    assert joined[1] == "Its result is joined when it is read, from 3 inner views:"


def test_effects_are_what_the_plan_reads() -> None:
    plan = _plan(SUMS, fivm_strategy="factorized")
    orders, customers = (effect_of(plan, name) for name in ("raw.orders", "raw.customers"))
    assert [short(n) for n in orders.looked_up] == ["m__fivm_view_1_customers_by_customer_id"]
    assert [short(n) for n in customers.looked_up] == ["m__fivm_view_2_orders_by_customer_id"]
    assert orders.full == customers.full == ()
    first = effect_of(_plan(SUMS, fivm_strategy="first_order"), "raw.orders")
    assert first.full == ("raw.customers",)


def test_every_inner_view_has_a_description() -> None:
    for sql in (SUMS, LEFT):
        for strategy in ("auto", "factorized", "recursive"):
            plan = _plan(sql, fivm_strategy=strategy)
            told = descriptions(plan)
            assert set(told) == {view.name for view in plan.helpers}
            assert all(", kept " in text and text[0].isupper() for text in told.values())


def test_without_statements_the_text_is_a_few_screens() -> None:
    plan = _plan(LEFT)
    short_text, whole = explain(plan, statements=False), explain(plan)
    assert whole.startswith(short_text)
    assert short_text.count("\n") < 150 < 500 < whole.count("\n")
