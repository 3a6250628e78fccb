"""What the table costs: commits against tables of their own, ways to read the head, wide pools. Ratios of one run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

from benchmarks.one_state_table.bench import Bench, Finding, seconds
from benchmarks.one_state_table.races import BASE, delta_of
from benchmarks.one_state_table.state import NEWEST, PLACE, Row

HELPERS = (0, 3, 13)


def appends(bench: Bench) -> Iterator[Finding]:
    """The delta of root and helpers as one file of the tail, and as a commit to a table for each."""
    for helpers in HELPERS:
        yield from _appended(bench, [f"v{n}" for n in range(helpers + 1)])


def _appended(bench: Bench, views: list[str]) -> Iterator[Finding]:
    first = {view: (Row(view, "v1", keys=(1,)),) for view in views}
    delta = {
        view: [Row(view, f"v{n % 10}", keys=(n, None, f"s{n}", "2024-01-01")) for n in range(20)]
        for view in views
    }
    state, own = bench.state("one"), {view: bench.state("own") for view in views}
    bench.session.sql(state.create([row for rows in first.values() for row in rows]))
    for view, table in own.items():
        bench.session.sql(table.create(first[view]))

    def plain() -> None:
        for view, table in own.items():
            bench.session.sql(f"INSERT INTO {table.name} BY NAME {table.tail(delta[view])}")

    def compared() -> None:
        for view, table in own.items():
            bench.session.sql(table.append(delta[view], table.head()))

    every = [row for rows in delta.values() for row in rows]
    one = bench.median(lambda: bench.session.sql(state.append(every, state.head())))
    files = (
        bench.session.sql(f"DESCRIBE HISTORY {state.name} LIMIT 1").collect()[0].operationMetrics["numFiles"]
    )
    yield Finding(files == "1", f"{len(views) - 1} helpers: an append is {files} file")
    head, each, bare = bench.median(state.head), bench.median(compared), bench.median(plain)
    text = f"one commit {one:.2f} s, of which the head is read in {head:.2f}; a table each {each:.2f} s, {bare:.2f} "
    yield Finding(True, f"{text}if nothing is compared; ratios {one / each:.2f} and {one / bare:.2f}")


def heads(bench: Bench) -> Iterator[Finding]:
    """Ways to know the head, over a tail of twenty commits."""
    state, session = bench.state("heads"), bench.session
    session.sql(state.create(BASE))
    for n in range(20):
        head = state.head()
        session.conf.set(
            "spark.databricks.delta.commitInfo.userMetadata", json.dumps({"number": head.number + 1})
        )
        session.sql(state.append(delta_of(f"d{n}"), head))
    session.conf.unset("spark.databricks.delta.commitInfo.userMetadata")
    query = bench.median(lambda: session.sql(f"SELECT {NEWEST.format(state=state.name)}").collect())
    history = bench.median(lambda: session.sql(f"DESCRIBE HISTORY {state.name} LIMIT 1").collect())
    log = _log(bench, state.name)
    version = bench.median(lambda: _updated(bench, log).version())
    hint = bench.median(lambda: _hint(bench, log))
    number = state.head().number
    yield Finding(_hint(bench, log) == number, f"userMetadata of the newest commit tells {number}")
    text = (
        f"query {query:.3f} s, DESCRIBE HISTORY {history:.3f}, version {version:.3f} and metadata {hint:.3f}"
    )
    yield Finding(True, f"{text} by the log object")
    session.sql(f"OPTIMIZE {state.name}")
    yield Finding(
        _hint(bench, log) is None,
        "after OPTIMIZE by others the newest commit has no hint",
    )
    session.sql(state.fold(state.head()))
    folded = bench.median(lambda: session.sql(f"SELECT {NEWEST.format(state=state.name)}").collect())
    yield Finding(True, f"query after the fold {folded:.3f} s")


def wide(bench: Bench) -> Iterator[Finding]:
    """A helper of many rows beside a small root in a table of 120 columns, against a table of its own."""
    session, rows = bench.session, bench.rows
    pool = {f"pad_{n}": "BIGINT" for n in range(110)}
    nothing = ", ".join(f"CAST(NULL AS {t}) AS {c}" for c, t in pool.items())
    one, own, narrow = (bench.state(name).name for name in ("wide", "own", "narrow"))
    skipping = "TBLPROPERTIES ('delta.dataSkippingStatsColumns' = 'key_bigint_1')"
    helper = "id AS key_bigint_1, CAST(id % 100 AS DECIMAL(38,2)) AS sum_decimal_1"
    partition = f"concat('v', id * 20 DIV {rows}) AS __fivm_partition FROM range({rows})"
    place = f"USING DELTA PARTITIONED BY ({', '.join(PLACE)}) {skipping} AS SELECT"
    by_part = f"USING DELTA PARTITIONED BY (__fivm_partition) {skipping} AS SELECT"
    builds = {
        one: f"CREATE TABLE {one} {place} {helper}, {nothing}, 'one' AS __fivm_view, {partition}",
        narrow: f"CREATE TABLE {narrow} {place} {helper}, 'one' AS __fivm_view, {partition}",
        own: f"CREATE TABLE {own} {by_part} {helper}, {partition}",
    }
    session.sql(builds[own].replace(own, f"{own}_cold"))
    taken = {t: seconds(partial(session.sql, sql)) for t, sql in builds.items()}
    yield Finding(True, f"build of {rows} rows: {_against(taken, own, one, narrow)}")
    row = "1L AS key_bigint_1, CAST(1 AS DECIMAL(38,2)) AS sum_decimal_1"
    for table in (one, narrow):
        session.sql(
            f"INSERT INTO {table} BY NAME SELECT {row}, 'root' AS __fivm_view, 'v0' AS __fivm_partition FROM range(100)"
        )
    every = f"(SELECT explode(sequence(0, {rows - 1}, {max(rows // 1000, 1)})) AS k)"
    some = f"__fivm_partition = 'v3' AND key_bigint_1 IN ({', '.join(str(rows // 6 + n) for n in range(3))})"
    total = "SELECT count(*), sum(key_bigint_1), sum(sum_decimal_1) FROM"
    of_view = {one: "__fivm_view = 'one'", narrow: "__fivm_view = 'one'", own: "true"}
    for what, sql in (
        ("look up 3 keys of a partition", f"{total} {{t}} WHERE {{w}} AND {some}"),
        ("scan", f"{total} {{t}} WHERE {{w}}"),
        ("join 1,000 keys", f"{total} {every} JOIN {{t}} ON key_bigint_1 = k AND {{w}}"),
    ):
        texts = {t: sql.format(t=t, w=w) for t, w in of_view.items()}
        answers = {str(session.sql(text).collect()) for text in texts.values()}
        taken = {t: bench.median(partial(bench.noop, text)) for t, text in texts.items()}
        yield Finding(len(answers) == 1, f"{what}: {_against(taken, own, one, narrow)}")
    tail = f"{row}, 'tail' AS __fivm_view, '-' AS __fivm_partition"
    inserts = {t: f"INSERT INTO {t} BY NAME SELECT {tail}" for t in (one, narrow)}
    inserts[own] = f"INSERT INTO {own} BY NAME SELECT {row}, '-' AS __fivm_partition"
    taken = {t: bench.median(partial(session.sql, sql)) for t, sql in inserts.items()}
    yield Finding(True, f"append of a row: {_against(taken, own, one, narrow)}")
    sizes = {t: session.sql(f"DESCRIBE DETAIL {t}").collect()[0].sizeInBytes / 1e6 for t in of_view}
    yield Finding(True, f"megabytes: {_against(sizes, own, one, narrow)}")
    log = f"{session.sql(f'DESCRIBE DETAIL {one}').collect()[0].location}/_delta_log/*0.json"
    stats = session.sql(f"SELECT add.stats FROM json.`{log}` WHERE add IS NOT NULL").collect()
    columns = {name for row in stats for name in json.loads(row.stats)["nullCount"]}
    yield Finding(columns == {"key_bigint_1"}, f"statistics of {sorted(columns)} alone, of 114 columns")


def _against(taken: dict[str, float], own: str, one: str, narrow: str) -> str:
    return (
        f"{taken[one]:.2f} of 114 columns, {taken[narrow]:.2f} of 4, {taken[own]:.2f} in a table of its own; "
        f"ratios {taken[one] / taken[own]:.2f} and {taken[narrow] / taken[own]:.2f}"
    )


def _log(bench: Bench, table: str) -> Any:
    jvm, session = bench.session._jvm, bench.session._jsparkSession
    identifier = jvm.org.apache.spark.sql.catalyst.TableIdentifier
    return jvm.org.apache.spark.sql.delta.DeltaLog.forTable(session, identifier(table))


def _updated(bench: Bench, log: Any) -> Any:
    none = bench.session._jvm.scala.Option.empty()
    return log.update(False, none, none)


def _hint(bench: Bench, log: Any) -> int | None:
    none = bench.session._jvm.scala.Option.empty()
    _updated(bench, log)
    metadata = (
        log.history().getHistory(bench.session._jvm.scala.Option.apply(1), none).apply(0).userMetadata()
    )
    return int(json.loads(metadata.get())["number"]) if metadata.isDefined() else None
