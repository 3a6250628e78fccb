"""Views of the database as inputs: their queries take the places of their names, before anything is planned."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fivm_dbt.catalog import Catalog, Column, DatabaseView, EventTime, ForeignKey, SparkType
from fivm_dbt.config import load_config
from fivm_dbt.engines.spark.engine import Answer
from fivm_dbt.engines.spark.introspect import describe_relation
from fivm_dbt.engines.spark.stored_view import StoredView
from fivm_dbt.errors import FivmError
from fivm_dbt.explain.helpers import helpers_of
from fivm_dbt.explain.text import explain
from fivm_dbt.operations.checks import check_inputs
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.plan.planner import plan_model
from fivm_dbt.plan.request import ModelRequest
from fivm_dbt.project.inputs import read_catalog
from fivm_dbt.project.manifest import Nodes
from fivm_dbt.project.offline import plan_of_compiled
from fivm_dbt.sql.unfold import definition, unfold
from fivm_dbt.sql.view_types import check_types
from fivm_dbt.testing.load import Located, load_scenarios
from fivm_dbt.testing.replay import replay_scenario
from fivm_dbt.testing.scenario import Scenario
from fixtures.models import relation
from generator.differential import tiny_workbench

HERE = Path(__file__).parent
ORDERS = relation("raw.orders", "id int, customer int, amount decimal(10,2), at timestamp")
V = DatabaseView


def test_the_query_of_a_view_is_a_cte_and_the_rest_stays_as_written() -> None:
    view = V("stg.orders", "select id as order_id from orders -- all", "spark_catalog.raw")
    text = "-- my model\nselect o.order_id -- here\nfrom Stg.`Orders` o"
    assert unfold(text, [view]).sql == (
        "-- my model\nWITH __fivm_orders AS (\nselect id as order_id from raw.orders -- all\n)\n"
        "select o.order_id -- here\nfrom __fivm_orders o"
    )


def test_a_text_without_views_is_not_touched() -> None:
    assert unfold("select a from r", []).sql == "select a from r"
    assert unfold("select a from r;", [V("v", "select 1 as a")]).views == ()


def test_ctes_of_views_stand_before_those_of_the_text_each_after_what_it_reads() -> None:
    views = [V("w", "with a as (select * from v) select * from a;"), V("v", "select k from r")]
    done = unfold("with r as (select * from w), v as (select 1 as k) select * from r, v, w", views)
    assert [view.name for view in done.views] == ["v", "w"]
    assert done.sql == (
        "with __fivm_v AS (\nselect k from r\n),\n"
        "__fivm_w AS (\nwith a as (select * from __fivm_v AS v) select * from a\n),\n"
        " r as (select * from __fivm_w AS w), v as (select 1 as k) select * from r, v, __fivm_w AS w"
    )


@pytest.mark.parametrize(
    ("view", "cte"),
    [
        (V("v", "select a, b from r", names=("x", "Per cent")), "__fivm_v(x, `Per cent`) AS (\nselect a"),
        (V("v", "select a, b from r", selected=("a", "b")), "__fivm_v AS (\nselect a"),
        (V("v", "select * from r", selected=("a", "b")), "__fivm_v AS (\nSELECT a, b FROM (\nselect *"),
        (
            V("v", "select r.* from r union all select * from s", selected=("a",), names=("A",)),
            "__fivm_v AS (\nSELECT a AS `A` FROM (\nselect r.*",
        ),
        (V("v", "select 1 a, 2 a", selected=("a", "a"), names=("x", "y")), "__fivm_v(x, y) AS (\nselect 1"),
    ],
)
def test_a_view_shows_the_columns_that_it_had(view: DatabaseView, cte: str) -> None:
    """With * those of the tables may be others by now; without it they are told by their order."""
    assert cte in unfold("select * from v", [view]).sql


def test_a_view_is_not_taken_for_its_schema() -> None:
    """``stg.v.a`` names no column of a CTE; versions and pivots come behind the alias."""
    view = V("stg.v", "select a, b from r", "raw")
    done = unfold("select stg.v.a, `STG`.v.* from stg.v where stg.v.b > 1", [view]).sql
    assert done.endswith("select v.a, v.* from __fivm_v AS v where v.b > 1")
    pivoted = unfold("select * from stg.v pivot (sum(a) for b in (1))", [view]).sql
    assert pivoted.endswith("from __fivm_v AS v pivot (sum(a) for b in (1))")
    with pytest.raises(FivmError, match="FIVM105"):
        _plan("select * from stg.v version as of 3", [V("stg.v", "select id from raw.orders")])


@pytest.mark.parametrize(
    ("views", "code", "message"),
    [
        ([V("v", "select a from w"), V("w", "select a from v")], "FIVM303", "v reads w reads v"),
        ([V("v", "select a from")], "FIVM101", "in view v"),
        ([V("v", "select mine(a) as b from r")], "FIVM105", "mine is a function of your own"),
        ([V("v", "select * from r", selected=("a", "A"))], "FIVM303", "several columns of *"),
    ],
)
def test_views_that_cannot_be_unfolded(views: list[DatabaseView], code: str, message: str) -> None:
    with pytest.raises(FivmError) as caught:
        unfold("select 1 as one from v", views)
    assert caught.value.code.number == code
    assert message in caught.value.message


def test_deep_chains_of_views() -> None:
    views = [V("v0", "select id from raw.orders")]
    views += [V(f"v{i}", f"select id from v{i - 1}") for i in range(1, 60)]
    assert [i.name for i in _plan("select count(*) as n from v59", views).inputs] == ["raw.orders"]


def _plan(sql: str, views: list[DatabaseView], **meta: object) -> Plan:
    catalog = Catalog.of([ORDERS], views)
    return plan_model(ModelRequest("analytics.m", sql, catalog, load_config(meta), (("timezone", "UTC"),)))


STAGED = V(
    "stg.orders", "with s as (select * from orders)\nselect id, amount, at from s where amount > 0", "raw"
)


def test_an_error_points_into_the_text_that_has_the_place() -> None:
    with pytest.raises(FivmError) as caught:
        _plan("select nothing\nfrom stg.orders", [STAGED])
    assert "line 1, column 8\n    select nothing\n           ^^^^^^^" in str(caught.value)
    view = V("stg.orders", "select id,\n  rand() as r from orders", "raw")
    with pytest.raises(FivmError) as caught:
        _plan("select count(*) as n from stg.orders", [view])
    text = str(caught.value)
    assert "FIVM106" in text and "(in view stg.orders)" in text
    assert "line 2, column 3\n      rand() as r from orders\n      ^^^^" in text
    with pytest.raises(FivmError) as caught:
        _plan("select 1 as a, * except (one)\nfrom stg.orders", [STAGED])
    assert "line 1, column" in str(caught.value)


def test_a_changed_definition_is_told_as_such() -> None:
    sql = "select id, amount from stg.orders"
    before = _plan(sql, [STAGED]).signature
    commented = V(STAGED.name, STAGED.sql.replace("\n", " -- a remark\n"), "spark_catalog.raw")
    assert _plan(sql, [commented]).signature == before
    other = V(STAGED.name, STAGED.sql.replace("> 0", "> 1"), "raw")
    after = _plan(sql, [other]).signature
    differing = {k for k in {*before, *after} if before.get(k) != after.get(k)}
    assert differing == {"definition of view stg.orders"}
    renamed = V(STAGED.name, STAGED.sql, "raw", names=("a", "b", "c"))
    assert definition(renamed) != definition(STAGED)


def test_a_recomputed_model_reads_the_tables_at_their_versions() -> None:
    plan = _plan("select count(*) as n from stg.orders", [STAGED], fivm_policy="full")
    assert [i.name for i in plan.inputs] == ["raw.orders"]
    assert plan.sql == "select count(*) as n from stg.orders"
    assert "definition of view stg.orders" in plan.signature


def test_a_model_that_reads_itself_is_refused() -> None:
    itself = relation("analytics.m", "id int")
    for sql, views, through in (
        ("select id from analytics.m", [], ""),
        ("select id from seen", [V("seen", "select * from analytics.m")], " through view seen"),
    ):
        request = ModelRequest("Analytics.m", sql, Catalog.of([itself], views), load_config({}))
        with pytest.raises(FivmError, match="FIVM105") as caught:
            plan_model(request)
        assert caught.value.message == f"the model reads itself{through}"


def test_explain_and_lineage_say_through_what_a_table_is_read() -> None:
    top = V("stg.top", "select *, row_number() over (order by id) as place from stg.orders")
    sql = "select o.id, max(t.place) as p from raw.orders o left join stg.top t on t.id = o.customer group by o.id"
    plan = _plan(sql, [STAGED, top])
    text = explain(plan)
    assert "raw.orders through view stg.top and by itself [" in text
    assert f"== view stg.orders, whose query takes its place\n{STAGED.sql}" in text
    assert " of view stg.top: , " in text
    reads = {name for helper in helpers_of(plan).helpers for name in helper.reads}
    assert {"raw.orders", "stg.top"} <= reads
    assert json.loads(plan.to_json())["database_views"][0]["name"] == "stg.orders"


def test_static_inputs_are_named_themselves() -> None:
    with pytest.raises(FivmError, match=r"FIVM201.*stg.orders is a view over inputs"):
        _plan("select id from stg.orders", [STAGED], fivm_static=["stg.orders"])
    assert _plan("select id from stg.orders", [STAGED], fivm_static=["raw.orders"]).inputs[0].is_static


def test_types_that_a_view_keeps() -> None:
    view = V("v", "select a from r", types=(SparkType.of("int"),))
    check_types([view], lambda sql: (Column.of("a", "int"),))
    with pytest.raises(FivmError, match=r"FIVM303.*a is bigint now, and was int"):
        check_types([view], lambda sql: (Column.of("a", "bigint"),))
    with pytest.raises(FivmError, match="FIVM303"):
        check_types([view], lambda sql: ())
    with pytest.raises(FivmError, match=r"FIVM303.*more columns"):
        check_types([view], lambda sql: (Column.of("a", "int"), Column.of("b", "int")))


# What the database says of views


DELTA = [("id", "int"), ("amount", "int"), ("at", "timestamp"), ("", ""), ("Provider", "delta")]


def view_rows(text: str, *columns: str, mode: str = "COMPENSATION") -> list[tuple[str, str]]:
    return [
        *((column, "int") for column in columns),
        *(("", ""), ("Type", "VIEW"), ("View Text", text), ("View Schema Mode", mode)),
        ("View Catalog and Namespace", "spark_catalog.stg"),
        ("View Query Output Columns", f"[{', '.join(f'`{c}`' for c in columns)}]"),
    ]


def answering(settings: dict[str, str] | None = None, **tables: list[tuple[str, str]]) -> Any:
    """A database that describes these relations, and the settings of its views where it is one that does."""

    def execute(sql: str, *, fetch: bool) -> Answer:
        words = sql.split()
        if words[-1] == "JSON":
            if settings is None:
                raise RuntimeError("[PARSE_SYNTAX_ERROR] Syntax error at or near 'AS'")
            return Answer(("json",), ((json.dumps({"view_creation_spark_configuration": settings}),),))
        name = words[-1].replace(".", "__")
        if name not in tables:
            raise RuntimeError(f"[TABLE_OR_VIEW_NOT_FOUND] The table or view {name} cannot be found.")
        return Answer(("col_name", "data_type", "comment"), tuple((*row, None) for row in tables[name]))

    return execute


NODES = Nodes(SimpleNamespace(nodes={}, sources={}))


def catalog_of(sql: str, execute: Any, setting: Any = lambda key: "unknown") -> Catalog:
    return read_catalog(sql, partial(describe_relation, execute), NODES, setting=setting)


def test_inputs_are_the_tables_below_views_to_any_depth() -> None:
    execute = answering(
        raw__o=DELTA,
        stg__v=view_rows("select id, amount from raw.o", "id", "amount"),
        stg__w=view_rows("select * from v where id in (select id from raw.o)", "id", "amount"),
    )
    catalog = catalog_of("select count(*) as n from stg.w join raw.o on true", execute)
    assert [r.name for r in catalog.relations] == ["raw.o"]
    assert [(v.name, v.schema, v.selected, v.types) for v in catalog.views] == [
        (name, "spark_catalog.stg", ("id", "amount"), (SparkType.of("int"),) * 2)
        for name in ("stg.v", "stg.w")
    ]


def test_spark_3_tells_less() -> None:
    """Neither modes nor settings, and names without quotes."""
    left_out = ("View Schema Mode", "View Query Output Columns")
    said = [row for row in view_rows("select * from raw.o", "id", "amount") if row[0] not in left_out]
    execute = answering(raw__o=DELTA, stg__v=[*said, ("View Query Output Columns", "[id, amount]")])
    (view,) = catalog_of("select * from stg.v", execute).views
    assert (view.selected, len(view.types)) == (("id", "amount"), 2)


def test_a_view_that_follows_its_tables_keeps_nothing() -> None:
    execute = answering(raw__o=DELTA, stg__v=view_rows("select * from raw.o", "id", mode="EVOLUTION"))
    (view,) = catalog_of("select * from stg.v", execute).views
    assert (view.selected, view.names, view.types) == ((), (), ())
    execute = answering(raw__o=DELTA, stg__v=view_rows("select * from raw.o", "id", mode="TYPE EVOLUTION"))
    (view,) = catalog_of("select * from stg.v", execute).views
    assert (view.selected, view.types) == (("id",), ())


PARQUET = [("id", "int"), ("", ""), ("Type", "MANAGED"), ("Provider", "parquet")]


@pytest.mark.parametrize(
    ("below", "code", "message"),
    [
        (PARQUET, "FIVM301", "raw.o is parquet (read by view stg.v)"),
        (None, "FIVM302", "there is no table or view raw.o (read by view stg.v)"),
        (
            [("id", "int"), ("", ""), ("Type", "MATERIALIZED_VIEW"), ("Provider", "delta")],
            "FIVM303",
            "raw.o is a materialized view",
        ),
        ([("id", "int"), ("", ""), ("Type", "STREAMING_TABLE")], "FIVM303", "raw.o is a streaming table"),
        ([("id", "int")], "FIVM301", "raw.o is a temporary view"),
        (view_rows("", "id"), "FIVM303", "the text of raw.o is not told (read by view stg.v)"),
    ],
)
def test_a_view_over_what_is_no_input(below: list[tuple[str, str]] | None, code: str, message: str) -> None:
    tables = {"stg__v": view_rows("select id from raw.o", "id"), **({"raw__o": below} if below else {})}
    with pytest.raises(FivmError) as caught:
        catalog_of("select count(*) as n from stg.v", answering(**tables))
    assert caught.value.code.number == code
    assert message in caught.value.message
    assert caught.value.sql == "select id from raw.o"
    assert "column 16" in str(caught.value)


def test_settings_under_which_a_view_means_something_else() -> None:
    stored = {"spark.sql.ansi.enabled": "true", "spark.sql.session.timeZone": "Etc/UTC", "spark.sql.x": "1"}
    execute = answering(stored, raw__o=DELTA, stg__v=view_rows("select id from raw.o", "id"))
    now = {
        "spark.sql.ansi.enabled": "true",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.caseSensitive": "false",
        "spark.sql.timestampType": "TIMESTAMP_LTZ",
    }
    assert catalog_of("select id from stg.v", execute, now.__getitem__).views
    for key, value in (
        ("spark.sql.ansi.enabled", "false"),
        ("spark.sql.session.timeZone", "Europe/Vienna"),
        ("spark.sql.caseSensitive", "true"),
        ("spark.sql.timestampType", "TIMESTAMP_NTZ"),
    ):
        with pytest.raises(FivmError, match=f"FIVM303.*{key}.*now {value}"):
            catalog_of("select id from stg.v", execute, {**now, key: value}.__getitem__)
    assert StoredView(settings=None).other_settings(now.__getitem__) == {}


# What a project says of views


def node(name: str, kind: str = "model", materialized: str = "view", **more: Any) -> Any:
    config = SimpleNamespace(materialized=materialized, meta={}, event_time=None, batch_size=None, **more)
    return SimpleNamespace(
        **{
            "unique_id": f"{kind}.p.{name}",
            "name": name,
            "resource_type": kind,
            "relation_name": f"shop.{name}",
        },
        **{"schema": "shop", "identifier": name, "columns": {}, "constraints": [], "config": config},
        depends_on=SimpleNamespace(nodes=[]),
    )


def constraint(kind: str, *columns: str, to: str | None = None, to_columns: tuple[str, ...] = ()) -> Any:
    return SimpleNamespace(type=kind, columns=list(columns), to=to, to_columns=list(to_columns))


def nodes_of(*nodes: Any) -> Nodes:
    by_id = {n.unique_id: n for n in nodes}
    return Nodes(SimpleNamespace(nodes=by_id, sources={}))


CUSTOMERS = [("cid", "int"), ("", ""), ("Provider", "delta")]


def test_keys_of_a_view_that_shows_a_table_are_keys_of_the_table() -> None:
    orders, customers, chosen = node("stg_orders"), node("stg_customers"), node("chosen")
    orders.constraints = [
        constraint("primary_key", "order_id"),
        constraint("unique", "twice"),
        constraint("foreign_key", "order_id", to="shop.chosen", to_columns=("customer",)),
    ]
    orders.config.event_time = "at"
    customers.constraints = [constraint("primary_key", "customer")]
    chosen.constraints = [constraint("primary_key", "customer")]
    execute = answering(
        raw__o=DELTA,
        raw__c=CUSTOMERS,
        shop__stg_orders=view_rows(
            "with s as (select * from raw.o), r as (select id as order_id, amount * 2 as twice, at from s) "
            "select * from r",
            "order_id",
            "twice",
            "at",
        ),
        shop__stg_customers=view_rows("select cid as customer from raw.c", "customer"),
        shop__chosen=view_rows("select customer from shop.stg_customers where customer > 3", "customer"),
    )
    sql = "select count(*) as n from shop.stg_orders join shop.chosen on customer = order_id"
    read = partial(read_catalog, sql, partial(describe_relation, execute))
    known = {r.name: r for r in read(nodes_of(orders, customers, chosen)).relations}
    assert known["raw.o"].keys == (("id",),)
    assert known["raw.o"].foreign_keys == (ForeignKey(("id",), "raw.c", ("cid",)),)
    assert known["raw.o"].event_time == EventTime("at")
    assert known["raw.c"].keys == (("cid",),)
    # The key of a view that leaves rows out is none of the table.
    alone = {r.name: r for r in read(nodes_of(orders, chosen)).relations}
    assert alone["raw.c"].keys == ()


def test_readers_of_a_model_are_found_through_views() -> None:
    below, view, above = node("sums", materialized="fivm"), node("shown"), node("top", materialized="fivm")
    view.depends_on.nodes, above.depends_on.nodes = [below.unique_id], [view.unique_id]
    found = nodes_of(below, view, above).readers_of("shop.sums")
    assert [n.name for n in found] == ["top"]


def test_a_plan_without_a_connection_has_the_compiled_views() -> None:
    base = node("orders", materialized="table")
    base.columns = {"id": SimpleNamespace(name="id", data_type="int", constraints=[])}
    view, model = node("stg"), node("m", materialized="fivm")
    code = {
        view.unique_id: "select id as k from shop.orders where id > 0",
        model.unique_id: "select k, count(*) as n from shop.stg group by k",
    }
    plan = plan_of_compiled(model, code, nodes_of(base, view, model))
    assert [i.name for i in plan.inputs] == ["shop.orders"]
    assert [v.name for v in plan.database_views] == ["shop.stg"]


def test_the_doctor_looks_below_views() -> None:
    model, view = node("m", materialized="fivm"), node("stg", kind="seed", materialized="seed")
    model.depends_on.nodes = [view.unique_id]
    execute = answering(
        raw__o=PARQUET,
        shop__stg=view_rows("select id from raw.o", "id"),
    )
    told = {f.text: f.level for f in check_inputs(execute, nodes_of(model, view))}
    assert told == {
        "raw.o (read by m): is parquet, not a Delta table (FIVM301, FIVM303)": "error",
        "shop.stg (read by m): view over raw.o": "ok",
    }


# Whatever is read through a view is as it is without


SCENARIOS = load_scenarios(sorted((HERE / "scenarios").glob("*.jsonl")))


def through_views(scenario: Scenario) -> Scenario | None:
    """The same models, whose texts name views of the tables: each table has another name. None where that cannot be."""
    if any(m.materialized == "viewdf" or "fivm_static" in m.config for m in scenario.models):
        return None
    if scenario.views or any("`" in name for name in scenario.tables):
        return None
    data = scenario.model_dump(mode="json", exclude_defaults=True)
    for field in ("tables", "initial", "keys", "tables_options", "partition_by"):
        if field in data:
            data[field] = {f"{table}_below": value for table, value in data[field].items()}
    for step in data.get("steps", ()):
        for field in ("delta", "replace", "recreate"):
            if field in step:
                step[field] = {f"{table}_below": value for table, value in step[field].items()}
    for key in data.get("foreign_keys", ()):
        key.update(table=f"{key['table']}_below", target=f"{key['target']}_below")
    data["views"] = [{"name": t, "sql": f"select * from {t}_below -- as it is"} for t in scenario.tables]
    return Scenario.model_validate(data)


def _through() -> list[Any]:
    found = [s for s in SCENARIOS if s.scenario.only_on is None and through_views(s.scenario) is not None]
    every = [pytest.param(s, id=s.scenario.id) for s in found]
    fast, rest = every[::120], [s for i, s in enumerate(every) if i % 120]
    more, long = rest[::8], rest[4::8]
    marked = [
        pytest.param(*p.values, id=p.id, marks=mark)
        for values, mark in ((more, pytest.mark.more), (long, pytest.mark.long))
        for p in values
    ]
    return [*fast, *marked]


@pytest.mark.parametrize("located", _through())
def test_tables_read_through_views(located: Located) -> None:
    other = through_views(located.scenario)
    assert other is not None
    alone = replay_scenario(located.scenario, tiny_workbench)
    result = replay_scenario(other, tiny_workbench)
    assert (result.outcome, result.code) == (alone.outcome, alone.code), result.message
