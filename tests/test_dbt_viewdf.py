"""Viewdf models in a dbt project: parts that become ready, late data, what dbt refuses while it parses."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from dbt_project import Project
from fivm_dbt.engines.spark.metrics import SessionMetrics

pytestmark = pytest.mark.spark

SOURCES = """
sources:
  - name: raw
    schema: "{{ env_var('SHOP_SCHEMA') }}_raw"
    tables:
      - name: orders
      - name: measurements
        config:
          event_time: measured_at
          meta: {fivm_part_length: minute}
"""

HELPER = """
{{ config(materialized='viewdf', meta={'fivm_start': 'oldest'}) }}
{% call fivm.initialize() %}
select src, 1 as ct, loss as sum_loss
from {{ fivm.part(source('raw', 'measurements'), 'i') }}
where loss > 10
{% endcall %}
select new.src, coalesce(prev.ct, 0) + 1 as ct, coalesce(prev.sum_loss, 0) + new.loss as sum_loss
from {{ fivm.part(source('raw', 'measurements')) }} as new
left join {{ fivm.part(this, 'j-1') }} as prev on new.src = prev.src
where new.loss > 10
"""

LOSSY = """
{{ config(materialized='viewdf', meta={'fivm_start': 'oldest'}) }}
select src, ct, sum_loss from {{ fivm.part(ref('helper')) }} where ct >= 4
"""

BY_HOUR = """
{{ config(materialized='viewdf', meta={'fivm_start': 'oldest', 'fivm_part_length': 'hour'}) }}
select src, sum(loss) as loss, count(*) as n
from {{ fivm.part(source('raw', 'measurements'), 'j*60', 'j*60+59') }} group by src
"""

BY_SOURCE = """
{{ config(materialized='fivm') }}
select src, count(*) as parts, max(sum_loss) as worst from {{ ref('lossy') }} group by src
"""

LOSSES = [6, 12, 15, 24, 20, 16, 7]


@pytest.fixture
def shop(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> Project:
    project = Project.create(
        spark, tmp_path / "shop", request.node.name.removeprefix("test_")[:40], "big_orders"
    )
    for what in ("collect", "skipping"):
        # Tests of tables with a few rows, in the same session, leave them out.
        spark.conf.set(f"spark.databricks.delta.stats.{what}", "true")
    (project.root / "models" / "big_orders.sql").unlink()
    project.write("models/sources.yml", SOURCES)
    project.sql(
        "CREATE TABLE raw.measurements (src STRING, measured_at TIMESTAMP, loss INT) USING DELTA "
        "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
    )
    return project


def _insert(shop: Project, *rows: tuple[str, str, int]) -> None:
    shown = ", ".join(f"('{src}', TIMESTAMP'2015-01-01 {at}', {loss})" for src, at, loss in rows)
    shop.sql(f"INSERT INTO raw.measurements VALUES {shown}")


def _read(shop: Project, query: str) -> tuple[int | None, int | None]:
    """How many rows and how many files Spark reads for a query."""
    metrics = SessionMetrics.of(shop.spark)
    metrics.start(query)
    shop.sql(query)
    found = metrics.read(query)
    return found.rows_read, found.files_read


def _minute(text: str) -> datetime:
    return datetime.fromisoformat(f"2015-01-01T{text}:00")


@pytest.mark.long
def test_the_packet_losses_of_the_paper(shop: Project) -> None:
    shop.write("models/helper.sql", HELPER)
    shop.write("models/lossy.sql", LOSSY)
    shop.write("models/by_hour.sql", BY_HOUR)
    shop.write("models/by_source.sql", BY_SOURCE)
    shop.write(
        "models/exact.yml",
        "models:\n"
        + "".join(
            f"  - {{name: {n}, data_tests: [fivm.fivm_exact]}}\n" for n in ("helper", "lossy", "by_source")
        ),
    )
    _insert(shop, *(("s", f"10:0{i}:00", loss) for i, loss in enumerate(LOSSES[:4])))
    done = shop.dbt("run")
    assert done.actions() == {n: "built" for n in ("helper", "lossy", "by_hour", "by_source")}
    assert shop.rows("lossy") == []
    assert shop.rows("by_hour") == [], "the hour is not complete"

    for i, loss in enumerate(LOSSES[4:], start=4):
        _insert(shop, ("s", f"10:0{i}:00", loss))
    done = shop.dbt("build")
    found: list[Any] = [("s", 4, 71, _minute("10:04")), ("s", 5, 87, _minute("10:05"))]
    assert shop.rows("lossy") == found
    assert shop.rows("by_source") == [("s", 2, 87)]
    assert done.figures("helper")["parts"]["computed"] == "23668444..23668446"
    assert shop.dbt("run").actions() == {n: "no change" for n in ("helper", "lossy", "by_hour", "by_source")}

    # A late correction, and one part asked for by its time.
    shop.sql("UPDATE raw.measurements SET loss = 16 WHERE measured_at = TIMESTAMP'2015-01-01 10:02:00'")
    _insert(shop, ("s", "10:07:00", 50), ("s", "10:08:00", 50))
    done = shop.dbt(
        "build", "--event-time-start", "2015-01-01 10:00:00", "--event-time-end", "2015-01-01 10:08:00"
    )
    assert shop.rows("lossy") == [("s", 4, 72, _minute("10:04")), ("s", 5, 88, _minute("10:05"))]
    parts = done.figures("helper")["parts"]
    assert (parts["computed"], parts["changed"]) == ("23668447", "23668442..23668445")
    done = shop.dbt("build")
    assert done.figures("helper")["parts"]["computed"] == "23668448"

    catalog = shop.rows(
        "SELECT part, status, row_count FROM shop.lossy__fivm_parts WHERE relation LIKE '%lossy' AND row_count > 0"
    )
    assert catalog == [(23668444, "computed", 1), (23668445, "computed", 1)]
    # Of a model that is computed part after part each part lies in a file of its own.
    assert _read(shop, "SELECT * FROM shop.helper") == (7, 7), "rows, files"
    one = "part_timestamp = TIMESTAMP'2015-01-01 10:05:00'"
    assert _read(shop, f"SELECT * FROM shop.helper WHERE {one}") == (1, 1)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("fivm.part(this, 'j-1')", "fivm.part(this, 'j+1')"), "is not before the one computed"),
        (("fivm.part(this, 'j-1')", "fivm.part(this, 'j*j')"), "is no number of a part"),
        (
            ("1 as ct, loss as sum_loss", "loss as sum_loss, 1 as ct"),
            "INITIALIZE gives the columns src, sum_loss, ct",
        ),
        (("'fivm_start': 'oldest'", "'fivm_part_length': 'hour'"), "a part of"),
        (("'fivm_start': 'oldest'", "'fivm_part_length': '7 seconds'"), "goes with j in another way"),
        (("'fivm_start': 'oldest'", "'fivm_start': 'soon'"), "is no time"),
    ],
)
def test_what_does_not_fit_is_refused_while_dbt_parses(
    spark: SparkSession, tmp_path: Path, change: tuple[str, str], told: str
) -> None:
    shop = Project.create(spark, tmp_path / "shop", f"refused_{change[1]}", "big_orders")
    (shop.root / "models" / "big_orders.sql").unlink()
    shop.write("models/sources.yml", SOURCES)
    assert change[0] in HELPER
    shop.write("models/helper.sql", HELPER.replace(*change))
    parsed = shop.dbt("parse", expect=False)
    assert told in parsed.text, parsed.text
    assert "FIVM2" in parsed.text


def test_a_cycle_between_models_is_refused(shop: Project) -> None:
    shop.write("models/helper.sql", HELPER.replace("this", "ref('lossy')"))
    shop.write("models/lossy.sql", LOSSY)
    assert "cycle" in shop.dbt("parse", expect=False).text.lower()


SUMS = """
{{ config(materialized='viewdf', meta={'fivm_start': 'oldest'}) }}
select src, sum(loss) as total from {{ fivm.part(source('raw', 'measurements'), 'j-9', 'j') }} group by src
"""


@pytest.mark.long
def test_old_parts_are_merged(shop: Project) -> None:
    """The files of a day that is over become one; late rows change its parts as before."""
    one = SUMS.replace("'j-9', 'j'", "'j'")
    shop.write("models/sums.sql", one.replace("'oldest'}", "'oldest', 'fivm_rollup': '1 hour'}"))
    for minute, loss in (("23:58:00", 20), ("23:59:00", 30)):
        _insert(shop, ("s", minute, loss))
        shop.dbt("run")
    of_day = (
        "SELECT count(DISTINCT file) FROM (SELECT input_file_name() AS file, * FROM shop.sums__fivm_state "
        "WHERE __fivm_view = 'root' AND __fivm_partition = 'v2015-01-01') AS f"
    )
    assert shop.sql(of_day) == [(2,)]
    shop.sql("INSERT INTO raw.measurements VALUES ('s', TIMESTAMP'2015-01-02 01:05:00', 40)")
    shop.dbt("run")
    assert shop.sql(of_day) == [(1,)]
    merged = "SELECT count(*) FROM shop.sums__fivm_parts WHERE relation LIKE '%sums' AND merged_into = DATE'2015-01-01'"
    assert shop.sql(merged) == [(2,)]
    _insert(shop, ("s", "23:58:00", 1))
    late = shop.dbt("run").figures("sums")
    assert late["parts"]["changed"] == late["parts"]["again"] != "none"
    assert shop.sql("SELECT total FROM shop.sums ORDER BY part_timestamp") == [(21,), (30,), (40,)]
    assert shop.sql("SELECT total FROM shop.sums WHERE part_timestamp = TIMESTAMP'2015-01-01 23:58:00'") == [
        (21,)
    ]


UNIT_TEST = """
unit_tests:
  - name: sums_of_given_rows
    model: sums
    given:
      - input: source('raw', 'measurements')
        rows: [{src: s, loss: 3}, {src: s, loss: 4}, {src: t, loss: 5}]
    expect:
      rows: [{src: s, total: 7}, {src: t, total: 5}]
"""


def test_dbt_runs_the_text_over_all_rows(shop: Project) -> None:
    """A unit test over those that it gives, ``dbt show`` over those that there are."""
    shop.write("models/sums.sql", SUMS)
    shop.write("models/sums.yml", UNIT_TEST)
    _insert(shop, ("s", "10:00:00", 20), ("s", "11:00:00", 22))
    assert "42" in shop.dbt("show", "--select", "sums").text
    shop.dbt("test")
    shop.write("models/sums.yml", UNIT_TEST.replace("total: 7", "total: 8"))
    assert "sums_of_given_rows" in shop.dbt("test", expect=False).text


@pytest.mark.long
def test_a_change_100_parts_back(shop: Project) -> None:
    """Only what depends on it is computed, at once, and last_updated tells what has changed."""
    shop.write("models/sums.sql", SUMS)
    shop.sql(
        "INSERT INTO raw.measurements SELECT 's', TIMESTAMP'2015-01-01 00:00:00' + make_interval(0, 0, 0, 0, 0, id), "
        "IF(id % 10 = 9, 1, 20) FROM range(130)"
    )
    first = 23667840
    shop.dbt("run", "--event-time-start", "2015-01-01 00:00:00", "--event-time-end", "2015-01-01 00:20:00")
    assert shop.sql("SELECT count(*) FROM shop.sums") == [(11,)]
    built = shop.dbt("run").figures("sums")
    assert built["parts"]["computed"] == f"{first + 20}..{first + 129}"
    assert built["statements"] < 15, "a hundred parts in a few statements"
    before = dict(
        shop.rows("SELECT part, last_updated FROM shop.sums__fivm_parts WHERE relation LIKE '%sums'")
    )
    shop.sql("UPDATE raw.measurements SET loss = 21 WHERE measured_at = TIMESTAMP'2015-01-01 00:25:00'")
    late = shop.dbt("run").figures("sums")
    after = dict(
        shop.rows("SELECT part, last_updated FROM shop.sums__fivm_parts WHERE relation LIKE '%sums'")
    )
    assert {p - first for p in before if before[p] != after[p]} == set(range(25, 35))
    assert late["parts"]["changed"] == late["parts"]["again"] == f"{first + 25}..{first + 34}"
    assert shop.sql("SELECT sum(total) FROM shop.sums") == shop.sql(
        "SELECT sum(a.loss) FROM raw.measurements a JOIN raw.measurements b ON b.measured_at BETWEEN a.measured_at "
        "AND a.measured_at + INTERVAL 9 MINUTES AND b.measured_at >= TIMESTAMP'2015-01-01 00:09:00'"
    )


@pytest.mark.long
def test_the_catalog_of_parts_can_be_monitored(shop: Project) -> None:
    shop.write("models/sums.sql", SUMS.replace("'j-9', 'j'", "'j'"))
    _insert(shop, ("s", "10:00:00", 1), ("s", "10:01:00", 2))
    shop.dbt("run")
    shop.dbt("run", "--select", "package:fivm", "--vars", "{fivm_monitoring: true}")
    assert shop.sql(
        "SELECT part, status, row_count FROM shop.fivm_time_parts WHERE is_own ORDER BY part"
    ) == [
        (23668440, "computed", 1),
        (23668441, "computed", 1),
    ]
    # Which parts have changed since somebody has looked: a late one and a new one, not the one between them.
    ((looked,),) = shop.sql("SELECT max(last_updated) FROM shop.fivm_time_parts")
    _insert(shop, ("s", "10:00:30", 3), ("s", "10:02:00", 4))
    shop.dbt("run", "--select", "sums")
    assert shop.rows(
        "SELECT relation, part_timestamp, row_count FROM shop.fivm_time_parts "
        f"WHERE is_own AND last_updated > TIMESTAMP'{looked}'"
    ) == [
        (f"{shop.schema}.sums", _minute("10:00"), 1),
        (f"{shop.schema}.sums", _minute("10:02"), 1),
    ]


@pytest.mark.long
def test_dropped_parts_of_sources_and_models(shop: Project, capsys: pytest.CaptureFixture[str]) -> None:
    """What has been computed from parts that retention takes away stays, in viewdf models and in fivm ones."""
    shop.write("models/sources.yml", SOURCES.replace("minute}", "minute, fivm_retention: 3 minutes}"))
    shop.write("models/helper.sql", HELPER.replace("'oldest'}", "'oldest', 'fivm_retention': '5 minutes'}"))
    shop.write(
        "models/by_source.sql",
        "{{ config(materialized='fivm') }} select src, max(ct) as longest, count(*) as n "
        "from {{ ref('helper') }} group by src",
    )
    shop.write(
        "models/worst.sql",
        "{{ config(materialized='fivm') }} select src, max(loss) as worst, sum(loss) as lost "
        "from {{ source('raw', 'measurements') }} group by src",
    )
    _insert(shop, *(("s", f"10:0{i}:00", 90 - i) for i in range(8)))
    shop.dbt("run-operation", "fivm_drop_parts")
    assert "kept, because" in capsys.readouterr().out, "no model has been built"
    shop.dbt("run")
    assert [r[:2] for r in shop.rows("helper")] == [("s", i) for i in range(1, 9)], "by_source is to see them"
    _insert(shop, ("s", "10:08:00", 20))
    shop.dbt("run")
    assert [r[:2] for r in shop.rows("helper")] == [("s", i) for i in range(5, 10)]
    assert shop.rows("by_source") == [("s", 9, 9)]
    shop.dbt("run-operation", "fivm_drop_parts")
    listed = capsys.readouterr().out
    assert "raw.measurements: 6 parts (23668440..23668445), before 2015-01-01 10:06 UTC" in listed
    assert "nothing was deleted" in listed
    shop.dbt("run-operation", "fivm_drop_parts", "--args", "{dry_run: false}")
    assert "deleted" in capsys.readouterr().out
    assert len(shop.sql("SELECT * FROM raw.measurements")) == 3
    _insert(shop, ("s", "10:09:00", 50))
    done = shop.dbt("run")
    assert shop.rows("worst") == [("s", 90, sum(90 - i for i in range(8)) + 70)]
    assert shop.rows("by_source") == [("s", 10, 10)]
    assert done.actions() == {n: "refreshed" for n in ("helper", "by_source", "worst")}

    # To need them again is refused, and changes nothing.
    shop.write(
        "models/worst.sql",
        "{{ config(materialized='fivm') }} select src, max(loss) as worst "
        "from {{ source('raw', 'measurements') }} group by src",
    )
    done = shop.dbt("run", "--select", "worst", expect=False)
    assert "FIVM206" in str(done.results["worst"].message)
    assert shop.sql("SELECT worst FROM shop.worst") == [(90,)]
