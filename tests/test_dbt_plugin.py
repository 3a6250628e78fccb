"""How the wheel reaches dbt, and what it learns from a project. No connection is opened."""

from __future__ import annotations

import json
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from dbt.adapters.factory import FACTORY
from dbt.adapters.spark import SparkAdapter
from dbt.cli.main import dbtRunner
from dbt_common.exceptions import CompilationError, DbtRuntimeError

import dbt_fivm
from dbt_project import create_files
from fivm_dbt.bridge.connection import execute_of
from fivm_dbt.bridge.methods.refresh import FivmResponse
from fivm_dbt.bridge.told import explained, told
from fivm_dbt.catalog import Column, Dependency, EventTime, ForeignKey
from fivm_dbt.config import Config
from fivm_dbt.engines.spark.documentation import Documentation, document
from fivm_dbt.engines.spark.engine import Answer
from fivm_dbt.engines.spark.introspect import describe_relation
from fivm_dbt.errors import FivmError
from fivm_dbt.project.inputs import read_catalog, with_sql_names
from fivm_dbt.project.manifest import Nodes


def original() -> Any:
    """dbt-spark's own class, also when an earlier test has swapped it."""
    return next(c for c in SparkAdapter.__mro__ if "fivm_refresh" not in c._available_)


def test_swapped_class_looks_like_the_original() -> None:
    """dbt derives the adapter's type and package from the name and module of its class."""
    swapped = dbt_fivm.with_fivm(original())
    assert (swapped.__name__, swapped.__module__) == ("SparkAdapter", original().__module__)
    assert swapped._available_ >= original()._available_ | {"fivm_refresh", "fivm_exact_sql"}
    assert "fivm_refresh" not in original()._available_
    assert swapped._parse_replacements_["fivm_refresh"]() == {}


def test_only_spark_is_touched_and_only_once() -> None:
    assert dbt_fivm.is_spark(SparkAdapter)
    assert dbt_fivm.is_spark(type("DatabricksAdapter", (SparkAdapter,), {}))
    assert not dbt_fivm.is_spark(dict)


@pytest.fixture(scope="module")
def manifest(tmp_path_factory: pytest.TempPathFactory) -> Any:
    root = tmp_path_factory.mktemp("parsed") / "shop"
    create_files(root)
    (root / "models/models.yml").write_text(KEYS)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("SHOP_SCHEMA", "shop")
        patched.setenv("DBT_SEND_ANONYMOUS_USAGE_STATS", "false")
        directories = ["--project-dir", str(root), "--profiles-dir", str(root)]
        first = dbtRunner().invoke(["parse", "--quiet", *directories])
        swapped = FACTORY.plugins["spark"].adapter
        assert dbtRunner().invoke(["ls", "--quiet", *directories]).success
        assert FACTORY.plugins["spark"].adapter is swapped
    assert first.success, first.exception
    return first.result


KEYS = """
sources:
  - name: strict
    schema: raw
    tables:
      - name: lines
        columns:
          - name: customer
            data_tests:
              - relationships: {arguments: {to: ref('customers'), field: customer_id}}
          - name: line
            data_tests: [not_null, {unique: {config: {where: "line > 0"}}}]
          - name: code
            data_tests: [{unique: {config: {severity: warn}}}, not_null]
      - name: stores
        config:
          meta:
            fivm_declares:
              keys: [Store, [region, number]]
              foreign_keys:
                - {columns: region, to: elsewhere.regions, to_columns: id}
                - {columns: [customer], to: ref('customers'), to_columns: [customer_id]}
              dependencies: ["zip -> city, State"]
      - name: pings
        config:
          event_time: ts
          meta: {fivm_part_length: minute, fivm_lateness: 2 hours}

models:
  - name: customers
    columns:
      - {name: customer_id, data_tests: [unique, not_null]}
      - {name: segment, data_tests: [unique]}
  - name: big_orders
    config: {meta: {fivm_declares: {dependencies: ["customer_id -> order_id"]}}}
    constraints: [{type: primary_key, columns: [order_id, customer_id], warn_unsupported: false}]
"""


def test_keys_are_what_strict_tests_and_constraints_state(manifest: Any) -> None:
    nodes = Nodes(manifest)
    assert nodes.declared("shop.customers").keys == (("customer_id",),)
    assert nodes.declared("spark_catalog.shop.big_orders").keys == (("order_id", "customer_id"),)
    lines = nodes.declared("raw.lines")
    assert lines.keys == ()
    assert lines.foreign_keys == (ForeignKey(("customer",), "shop.customers", ("customer_id",)),)
    assert nodes.declared("shop.countries").is_seed
    assert nodes.declared("elsewhere.x").node is None


def test_what_meta_declares(manifest: Any) -> None:
    nodes = Nodes(manifest)
    stores = nodes.declared("raw.stores")
    assert stores.keys == (("region", "number"), ("store",))
    assert stores.foreign_keys == (
        ForeignKey(("customer",), "shop.customers", ("customer_id",)),
        ForeignKey(("region",), "elsewhere.regions", ("id",)),
    )
    assert stores.dependencies == (Dependency(("zip",), ("city", "state")),)
    orders = nodes.declared("shop.big_orders")
    assert orders.keys == (("order_id", "customer_id"),)
    columns = tuple(Column.of(name, "int") for name in ("order_id", "customer_id", "n"))
    determined = orders.relation("shop.big_orders", columns).determines
    assert determined == (
        Dependency(("order_id", "customer_id"), ("order_id", "customer_id", "n")),
        Dependency(("customer_id",), ("order_id",)),
    )


def test_when_rows_were(manifest: Any) -> None:
    nodes = Nodes(manifest)
    columns = (Column.of("ts", "timestamp"),)
    pings = nodes.declared("raw.pings").relation("raw.pings", columns)
    assert pings.event_time == EventTime("ts", "minute", "2 hours")
    assert nodes.declared("raw.lines").relation("raw.lines", columns).event_time is None


def test_meta_that_names_no_column_is_refused(manifest: Any) -> None:
    stores = Nodes(manifest).declared("raw.stores")
    columns = tuple(
        Column.of(name, "int") for name in ("store", "region", "number", "customer", "zip", "city")
    )
    with pytest.raises(FivmError, match=r"FIVM201.*fivm_declares of stores: there is no column state"):
        stores.relation("raw.stores", columns)


def test_inputs_of_a_model_are_found_through_ephemeral_models(manifest: Any) -> None:
    nodes = Nodes(manifest)
    assert list(nodes.inputs_of(nodes.node("total_revenue"))) == ["shop_raw.orders"]


def answering(**tables: list[tuple[str, str]]) -> Any:
    """A database that describes these tables."""

    def execute(sql: str, *, fetch: bool) -> Answer:
        name = sql.split()[-1].replace(".", "__")
        if name not in tables:
            raise RuntimeError(f"[TABLE_OR_VIEW_NOT_FOUND] The table or view {name} cannot be found.")
        return Answer(("col_name", "data_type", "comment"), tuple((*row, None) for row in tables[name]))

    return execute


DELTA = [("a", "int"), ("", ""), ("Type", "MANAGED"), ("Provider", "delta")]


def test_catalog_of_a_query(manifest: Any) -> None:
    seen = [
        ("a", "int"),
        ("", ""),
        ("Type", "VIEW"),
        ("View Text", "select a from shop.r"),
        ("Table Properties", "[fivm.root=shop.r]"),
    ]
    execute = answering(shop__countries=DELTA, shop__revenue_by_day=seen, raw__t=DELTA)
    sql = "with t as (select a from raw.t) select t.a from t, shop.countries, shop.revenue_by_day"
    catalog = read_catalog(sql, partial(describe_relation, execute), Nodes(manifest))
    assert [(r.name, r.kind, r.is_recreated) for r in catalog.relations] == [
        ("raw.t", "table", False),
        ("shop.countries", "table", True),
        ("shop.revenue_by_day", "fivm", False),
    ]
    config = with_sql_names(Config(fivm_static=("countries", "raw.t")), catalog, Nodes(manifest))
    assert config.fivm_static == ("shop.countries", "raw.t")


@pytest.mark.parametrize(
    ("described", "code", "remedy"),
    [
        (None, "FIVM302", "dbt build --select customers"),
        ([("", ""), ("Type", "MANAGED"), ("Provider", "parquet")], "FIVM301", "file_format: delta"),
        ([("", ""), ("Type", "MATERIALIZED_VIEW")], "FIVM303", "make it ephemeral"),
    ],
)
def test_inputs_that_cannot_be_maintained_from(
    manifest: Any, described: list[tuple[str, str]] | None, code: str, remedy: str
) -> None:
    execute = answering() if described is None else answering(shop__customers=described)
    describe = partial(describe_relation, execute)
    with pytest.raises(FivmError) as caught:
        read_catalog("select segment from shop.customers c", describe, Nodes(manifest))
    assert caught.value.code.number == code
    assert remedy in caught.value.remedy
    assert "    select segment from shop.customers c\n" in str(caught.value)
    assert "^^^^" in str(caught.value)


def test_response_carries_the_figures() -> None:
    response = FivmResponse(
        _message="refreshed", rows_affected=3, fivm={"action": "refreshed", "reason": None}
    )
    assert json.loads(json.dumps(response.to_dict(omit_none=True)))["fivm"]["action"] == "refreshed"
    assert str(response) == "refreshed"


def test_errors_become_dbts_own() -> None:
    with (
        pytest.raises(CompilationError, match="FIVM102 unknown column in model m: no such thing"),
        told("m"),
    ):
        raise FivmError("FIVM102", "no such thing")
    with pytest.raises(DbtRuntimeError, match="FIVM302"), told("m"):
        raise FivmError("FIVM302", "gone")


def test_environment_errors_keep_what_spark_said() -> None:
    said = DbtRuntimeError("Java gateway process exited before sending its port number")
    known = explained(said)
    assert known is not None
    assert "FIVM501" in str(known)
    assert "before sending its port number" in str(known)
    assert explained(known) is None
    assert explained(DbtRuntimeError("[TABLE_OR_VIEW_NOT_FOUND]")) is None


JAVA = """An error occurred while calling o29394.localCheckpoint.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 9.0 failed 1 times
\tat org.apache.spark.scheduler.DAGScheduler.abortStage(DAGScheduler.scala:1)
Caused by: java.io.IOException: No space left on device
\tat java.base/java.io.FileOutputStream.writeBytes(Native Method)
\t... 19 more
"""


def test_stacks_of_java_are_one_line() -> None:
    """The rest is the cause of the error, which dbt logs with --debug."""
    with pytest.raises(DbtRuntimeError) as caught, told("m"):
        raise RuntimeError(JAVA)
    assert str(caught.value).endswith(
        "Job aborted due to stage failure: Task 0 in stage 9.0 failed 1 times (No space left on device)"
    )
    assert JAVA in str(caught.value.__cause__)
    with pytest.raises(KeyError), told("m"):
        raise KeyError("an error of our own keeps its traceback")


def test_environment_errors_are_told_without_their_stacks() -> None:
    stack = "\n".join(f"\tat org.apache.spark.sql.A.b{n}(A.scala:{n})" for n in range(100))
    hive = "org.apache.hive.service.cli.HiveSQLException: Error running query"
    said = f"{hive}: java.lang.NoSuchMethodError: 'x'\n{stack}"
    known = str(explained(DbtRuntimeError(said)))
    assert "FIVM503" in known and "Spark says: 'x'" in known
    assert len(known.splitlines()) < 20


@pytest.mark.parametrize(("method", "is_quiet"), [("session", True), ("thrift", False)])
def test_spark_in_this_process_does_not_print_its_errors(method: str, *, is_quiet: bool) -> None:
    """pyspark logs each failed statement as kilobytes of JSON besides raising it: each relation not there yet."""
    from pyspark.logger import PySparkLogger

    logger = PySparkLogger.getLogger("SQLQueryContextLogger")
    before, logger.disabled = logger.disabled, False
    try:
        credentials = SimpleNamespace(method=method)
        execute_of(SimpleNamespace(config=SimpleNamespace(credentials=credentials)))
        assert logger.disabled is is_quiet
    finally:
        logger.disabled = before


def test_a_comment_leaves_the_properties_of_a_view() -> None:
    """A view says how long its parts are, and whether it adds up rows, for those that read it."""
    said: list[str] = []
    rows = [
        ("k", "int", None),
        ("", "", ""),
        ("Type", "VIEW", ""),
        ("View Text", "SELECT k FROM a.m__fivm_root", ""),
    ]
    rows.append(
        (
            "Table Properties",
            "[fivm.part_length=1 hour, fivm.root=a.m__fivm_root, fivm.tail=true, other=x]",
            "",
        )
    )

    def execute(sql: str, *, fetch: bool) -> Answer:
        said.append(sql)
        return Answer(("col_name", "data_type", "comment"), tuple(rows) if fetch else ())

    described = describe_relation(execute, "a.m")
    assert described is not None
    assert document(execute, "a.m", described, Documentation("what it is", {}))
    assert "'fivm.part_length' = '1 hour'" in said[-1] and "'fivm.root' = 'a.m__fivm_root'" in said[-1]
    assert "'fivm.tail' = 'true'" in said[-1], "its rows are added up when it is read"
