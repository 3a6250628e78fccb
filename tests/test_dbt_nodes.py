"""Inner views as dbt sees them: nodes in lineage and docs that no command runs. No connection is opened."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dbt_project import TYPED_ORDERS, Run, create_files, invoke
from fivm_dbt.bridge.commands import Project, next_runs, plan_of_model
from fivm_dbt.bridge.nodes import remember_helpers
from fivm_dbt.catalog import Catalog
from fivm_dbt.config import load_config
from fivm_dbt.explain.helpers import helpers_of
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.plan.planner import plan_model
from fivm_dbt.plan.request import ModelRequest
from fixtures.models import relation
from fixtures.runs import fast_only

TYPED = f"""
version: 2
sources:
  - name: raw
    schema: "{{{{ env_var('SHOP_SCHEMA') }}}}_raw"
    tables:{TYPED_ORDERS}
      - name: customers
        columns:
          - {{name: customer_id, data_type: int}}
          - {{name: segment, data_type: string}}
          - {{name: country, data_type: string}}
"""
AMOUNTS = """{{ config(materialized='fivm') }}
select c.segment, count(distinct o.amount) as amounts
from {{ source('raw', 'orders') }} o left join {{ source('raw', 'customers') }} c on o.customer_id = c.customer_id
group by c.segment
"""
PLAIN = AMOUNTS.replace("count(distinct o.amount)", "count(*)").replace("left ", "")
BESIDE = (
    "{{ config(materialized='fivm') }} select segment, amounts from {{ ref('amounts') }} where amounts > 1"
)

ORDERS = relation("shop_raw.orders", "order_id int, customer_id int, ordered_on date, amount decimal(10,2)")
CUSTOMERS = relation("shop_raw.customers", "customer_id int, segment string, country string")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    create_files(root)
    for file in (*(root / "models").glob("*.sql"), root / "models/models.yml"):
        file.unlink()
    (root / "models/sources.yml").write_text(TYPED)
    (root / "models/amounts.sql").write_text(AMOUNTS)
    (root / "models/beside.sql").write_text(BESIDE)
    return root


def _dbt(root: Path, *arguments: str) -> Run:
    run = invoke(root, "shop", arguments)
    assert run.success, run.text
    return run


def _manifest(root: Path) -> Any:
    return json.loads((root / "target/manifest.json").read_text())


def _helpers(root: Path, model: str = "amounts") -> list[Any]:
    nodes = _manifest(root)["nodes"]
    found = [n for n in nodes.values() if n["config"]["materialized"] == "fivm_helper"]
    return [n for n in found if n["name"].startswith(f"{model}__fivm_")]


def _listed(root: Path, capsys: pytest.CaptureFixture[str], *selection: str) -> list[str]:
    capsys.readouterr()
    _dbt(root, "ls", "--resource-type", "model", "--output", "name", *selection)
    return capsys.readouterr().out.split()


def _plan(call: str = "count(distinct o.amount)") -> Plan:
    """The plan of a model ``amounts``, perhaps with another aggregate, which needs other inner views."""
    sql = AMOUNTS.partition("}}")[2].replace("count(distinct o.amount)", call)
    sql = sql.replace("{{ source('raw', '", "shop_raw.").replace("') }}", "")
    return plan_model(ModelRequest("shop.amounts", sql, Catalog.of([ORDERS, CUSTOMERS]), load_config({})))


def test_helpers_of_a_model_that_was_never_run(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The shape of the query tells which there are, and the descriptions say that nothing more is known."""
    _dbt(project, "parse")
    orders, customers, rows = _helpers(project)
    assert orders["depends_on"]["nodes"] == ["source.shop.raw.orders"]
    assert customers["depends_on"]["nodes"] == ["source.shop.raw.customers"]
    assert rows["depends_on"]["nodes"] == [orders["unique_id"], customers["unique_id"]]
    assert orders["relation_name"] == "shop.amounts__fivm_view_1_orders_by_customer_id"
    assert orders["description"] == (
        "Rows of orders, kept so that a changed row of customers finds its rows of orders without reading all of "
        "orders. (As the shape of the query has it; when the model is built, sizes may choose otherwise.) "
        "Inner view of amounts, maintained by its refreshes."
    )
    columns = {c["name"]: (c["data_type"], c["description"]) for c in orders["columns"].values()}
    assert columns["amount"] == ("decimal(10,2)", "amount of orders")
    assert columns["__fivm_count"] == ("bigint", "how often the row is there")
    joined = {c["name"]: (c["data_type"], c["description"]) for c in rows["columns"].values()}
    assert joined["amount"] == ("decimal(10,2)", "amount of orders"), "through the inner views"
    assert joined["segment"] == ("string", "segment of customers")
    assert all(c["data_type"] for node in (orders, customers, rows) for c in node["columns"].values())
    parents = _manifest(project)["parent_map"]["model.shop.amounts"]
    assert {orders["unique_id"], rows["unique_id"], "source.shop.raw.orders"} <= set(parents)
    assert not _helpers(project, "beside")
    assert _listed(project, capsys, "-s", "amounts") == ["amounts"]
    assert _listed(project, capsys, "-s", "+amounts+") == [
        "amounts",
        *(n["name"] for n in _helpers(project)),
        "beside",
    ]


def test_inner_views_are_told_from_models(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By their group, folder, tag and colour; one variable hides them all."""
    _dbt(project, "parse")
    for node in _helpers(project):
        assert (node["group"], node["tags"]) == ("fivm_inner_views", ["fivm_inner_view"])
        assert node["docs"] == {"show": True, "node_color": "#9aa5b1"} == node["config"]["docs"]
        assert node["original_file_path"] == f"models/fivm_inner_views/{node['name']}.sql"
        assert node["fqn"] == ["shop", "fivm_inner_views", node["name"]]
    (group,) = _manifest(project)["groups"].values()
    assert group["name"] == "fivm_inner_views"
    members = _manifest(project)["group_map"]["fivm_inner_views"]
    assert sorted(members) == sorted(n["unique_id"] for n in _helpers(project))
    assert len(_listed(project, capsys, "-s", "group:fivm_inner_views")) == 3
    assert _listed(project, capsys, "--exclude", "tag:fivm_inner_view") == ["amounts", "beside"]
    assert _listed(project, capsys, "--vars", "fivm_show_inner_views: false") == ["amounts", "beside"]
    for where in ("vars: {fivm_show_inner_views: false}", "vars: {shop: {fivm_show_inner_views: false}}"):
        file = project / "dbt_project.yml"
        before = file.read_text()
        file.write_text(f"{before}\n{where}\n")
        _dbt(project, "parse")
        file.write_text(before)
        assert not _helpers(project) and not _manifest(project)["groups"]


def test_sums_have_meanings() -> None:
    plan = plan_model(
        ModelRequest(
            "shop.amounts",
            "select c.segment, sum(o.amount * 2) as s, min(o.ordered_on) as first from shop_raw.orders o "
            "join shop_raw.customers c on o.customer_id = c.customer_id group by c.segment having count(*) > 1",
            Catalog.of([ORDERS, CUSTOMERS]),
            load_config({"fivm_strategy": "factorized"}),
        )
    )
    for helper in helpers_of(plan).helpers:
        assert not any(" of o" in c.description and " of orders" not in c.description for c in helper.columns)
        assert all(c.type and c.description for c in helper.columns)
    sums = plan_model(
        ModelRequest(
            "shop.sums",
            "select c.segment, sum(o.amount * 2) as s from shop_raw.orders o "
            "join shop_raw.customers c on o.customer_id = c.customer_id group by c.segment",
            Catalog.of([ORDERS, CUSTOMERS]),
            load_config({"fivm_strategy": "factorized"}),
        )
    )
    told = {c.description for helper in helpers_of(sums).helpers for c in helper.columns}
    assert {"customer_id of orders", "how many rows are added up in this one"} <= told
    assert any(text.startswith("sum of ") and "orders.amount" in text for text in told)


def test_a_model_is_planned_once_however_many_read_it(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for reader, read in (("one", "amounts"), ("other", "amounts"), ("top", "one")):
        (project / f"models/{reader}.sql").write_text(BESIDE.replace("amounts') }}", f"{read}') }}}}"))
    planned: list[str] = []

    def plan(request: ModelRequest) -> Plan:
        planned.append(request.relation.split(".")[-1])
        return plan_model(request)

    monkeypatch.setattr("fivm_dbt.project.offline.plan_model", plan)
    _dbt(project, "parse")
    assert sorted(planned) == ["amounts", "beside", "one", "other", "top"]


def test_helpers_stand_below_the_views_that_a_model_reads(project: Path) -> None:
    """Without a connection the queries of views are those that dbt compiles."""
    (project / "models/stg_orders.sql").write_text(
        "{{ config(materialized='view') }} select customer_id as cid, amount from {{ source('raw', 'orders') }}"
    )
    text = AMOUNTS.replace("source('raw', 'orders')", "ref('stg_orders')").replace("o.customer_id", "o.cid")
    (project / "models/amounts.sql").write_text(text)
    _dbt(project, "parse")
    orders, customers, _ = _helpers(project)
    assert orders["depends_on"]["nodes"] == ["model.shop.stg_orders"]
    assert customers["depends_on"]["nodes"] == ["source.shop.raw.customers"]
    plan = plan_of_model("amounts", Project(project, project, None))
    assert [i.name for i in plan.inputs] == ["shop_raw.customers", "shop_raw.orders"]
    assert [view.name for view in plan.database_views] == ["shop.stg_orders"]
    ahead = partial(
        next_runs, Project(project, project, None), exclude=[], full_refresh=False, is_offline=True
    )
    assert [run.does for run in ahead(select=["amounts"])] == ["build or refresh"]


@pytest.mark.more
def test_nothing_is_run_or_compiled_of_a_helper(project: Path) -> None:
    compiled = _dbt(project, "compile", "--no-populate-cache", "--no-introspect", "-s", "+beside")
    assert set(compiled.results) == {"amounts", "beside"}
    alone = _dbt(project, "compile", "--no-populate-cache", "-s", "config.materialized:fivm_helper")
    assert not alone.results


def test_helpers_of_a_model_that_was_run(project: Path) -> None:
    """What the last run has written down in the target directory, whatever the SQL says by now."""
    _dbt(project, "parse")
    shape = _helpers(project)
    other = _plan("max(o.order_id)")
    remember_helpers(project / "target", other)
    _dbt(project, "parse")
    stored = _helpers(project)
    assert len(stored) == len(other.helpers) and stored != shape
    assert not any("As the shape of the query has it" in n["description"] for n in stored)
    (project / "target/fivm/shop.amounts.json").write_text("{")
    _dbt(project, "parse")
    assert [n["name"] for n in _helpers(project)] == [n["name"] for n in shape]


@pytest.mark.more
def test_a_manifest_that_is_used_again_has_the_helpers_of_now(project: Path) -> None:
    """A program may hand dbt the manifest of an earlier command."""
    from dbt.cli.main import dbtRunner

    directories = ["--project-dir", str(project), "--profiles-dir", str(project), "--quiet"]
    _dbt(project, "parse")
    manifest = dbtRunner().invoke(["parse", *directories]).result
    before = list(manifest.nodes["model.shop.amounts"].depends_on.nodes)
    remember_helpers(project / "target", _plan("count(*)"))
    assert dbtRunner(manifest=manifest).invoke(["ls", *directories]).success
    after = manifest.nodes["model.shop.amounts"].depends_on.nodes
    assert len(after) == len(set(after)) and set(after) != set(before)
    assert all(i in manifest.nodes or i in manifest.sources for i in after)


def test_the_file_is_written_when_it_changes_alone(tmp_path: Path) -> None:
    remember_helpers(tmp_path, _plan())
    (file,) = (tmp_path / "fivm").iterdir()
    before = file.stat().st_mtime_ns
    remember_helpers(tmp_path, _plan())
    assert file.stat().st_mtime_ns == before and [file] == list((tmp_path / "fivm").iterdir())


def test_helpers_are_never_modified_nodes(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Not by another layout either: the model below would be selected for it."""
    _dbt(project, "parse")
    state = project.parent / "state"
    state.mkdir()
    (state / "manifest.json").write_bytes((project / "target/manifest.json").read_bytes())
    arguments = ("-s", "state:modified+", "--state", str(state))
    assert _listed(project, capsys, *arguments) == []
    remember_helpers(project / "target", _plan("max(o.order_id)"))
    assert _listed(project, capsys, *arguments) == []
    (project / "models/amounts.sql").write_text(AMOUNTS + "having count(*) > 1")
    assert _listed(project, capsys, *arguments) == ["amounts", "beside"]


@pytest.mark.more
def test_parsing_again_keeps_nothing_of_them(project: Path) -> None:
    """dbt's own record of what it parsed has no helpers: one that is gone is gone."""
    _dbt(project, "parse")
    assert b"__fivm_view" not in (project / "target/partial_parse.msgpack").read_bytes()
    (project / "models/amounts.sql").write_text(PLAIN)
    _dbt(project, "parse")
    assert not _helpers(project)


def test_a_model_that_cannot_be_planned_costs_its_own_helpers_alone(project: Path) -> None:
    source = "{{ source('raw', 'customers') }}"
    odd = (
        "select * from nowhere",
        f"select segment, rand() as r from {source}",
        "select {{ undefined.attribute }}",
        "{% set rows = run_query('select 1') %} select segment from " + source,
    )
    for number, sql in enumerate(odd):
        (project / f"models/odd_{number}.sql").write_text("{{ config(materialized='fivm') }} " + sql)
    _dbt(project, "parse")
    assert len(_helpers(project)) == 3 and not _helpers(project, "odd")


OWN_NAMES = {
    "root": ("models/amounts__fivm_root.sql", "select 1 as k", "the model amounts__fivm_root"),
    "alias": (
        "models/other.sql",
        "{{ config(alias='AMOUNTS__fivm_view_1_x') }} select 1 as k",
        "the model other",
    ),
    "seed": ("seeds/amounts__fivm_snapshot_orders.csv", "k\n1\n", "the seed amounts__fivm_snapshot_orders"),
}


@pytest.mark.parametrize("own", fast_only(["alias"], OWN_NAMES))
def test_a_name_of_fivms_own_is_refused(project: Path, own: tuple[str, str, str]) -> None:
    """FIVM207: its rows would be written over, or it would write over those of the state."""
    file, text, what = own
    (project / file).write_text(text)
    refused = invoke(project, "shop", ["parse"])
    assert not refused.success
    assert f"FIVM207 name of a relation that fivm writes: {what} is shop." in refused.text
    assert "fivm model amounts keeps its" in refused.text
    (project / file).unlink()
    (project / "models/amounts_fivm.sql").write_text(
        "{{ config(schema='x', alias='amounts__fivm_root') }} select 1"
    )
    _dbt(project, "parse")
