"""Over the network: dbt's Thrift connection to a server on loopback, where Delta's own objects are out of reach."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations_with_replacement, count
from pathlib import Path
from typing import Any

import pytest
from pyhive import hive

from dbt_project import Project
from fivm_dbt.engines.spark.engine import SparkEngine
from fivm_dbt.plan.model.head import Note
from fivm_dbt.spark.formats import FORMAT
from over_network import Connection, goes_through_a_day, started_server

pytestmark = [pytest.mark.spark, pytest.mark.long]

PROFILE = """
shop:
  target: test
  outputs:
    test:
      {{type: spark, method: thrift, host: 127.0.0.1, port: {port}, user: dbt, auth: NONE, threads: {threads},
       schema: "{{{{ env_var('SHOP_SCHEMA') }}}}"}}
"""


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with started_server(tmp_path_factory.mktemp("server")) as number:
        yield number


def _connection(port: int) -> Connection:
    return Connection(host="127.0.0.1", port=port, auth="NONE", username="test")


def _shop(root: Path, name: str, port: int, threads: int = 1) -> Project:
    connection: Any = _connection(port)
    shop = Project.create(connection, root, name)
    shop.write("profiles.yml", PROFILE.format(port=port, threads=threads))
    return shop


@pytest.mark.parametrize("threads", [1, 4])
def test_a_project(threads: int, tmp_path: Path, port: int) -> None:
    goes_through_a_day(_shop(tmp_path / "shop", f"over_thrift_{threads}", port, threads))


def test_the_ansi_mode_that_a_profile_asks_for(port: int) -> None:
    """The server is not in ANSI mode. Of a profile's parameters it takes those that are marked as Hive's."""
    key = "spark.sql.ansi.enabled"
    for given, answer in ((key, "false"), (f"set:hiveconf:{key}", "true")):
        cursor = hive.connect(
            host="127.0.0.1", port=port, auth="NONE", username="test", configuration={given: "true"}
        ).cursor()
        cursor.execute(f"SET {key}")
        assert cursor.fetchall() == [(key, answer)]
        cursor.execute("SELECT size(CAST(NULL AS ARRAY<INT>))")
        assert cursor.fetchall() == [(None if answer == "true" else -1,)], "so it is a part of what SQL means"


WRITES = {
    "INSERT": "INSERT INTO {t} SELECT 2 AS k, 20 AS x",
    "MERGE": (
        "MERGE INTO {t} AS t USING (SELECT 1 AS k, 12 AS x) AS s ON t.k = s.k "
        "WHEN MATCHED THEN UPDATE SET x = s.x WHEN NOT MATCHED THEN INSERT (k, x) VALUES (s.k, s.x)"
    ),
    "REPLACE": "INSERT INTO {t} REPLACE WHERE k = 1 SELECT 1 AS k, 11 AS x",
}
RACES = int(os.environ.get("FIVM_RACES", "10"))
_numbers = count(1)


@pytest.mark.parametrize("kinds", list(combinations_with_replacement(WRITES, 2)), ids="-".join)
def test_of_two_at_once_one_commits(kinds: tuple[str, str], port: int) -> None:
    """Two connections send a write of the same number each: one of them is made, the other one is nothing."""
    sides = [SparkEngine(_connection(port).execute) for _ in kinds]
    table = f"races_{'_'.join(kinds).lower()}"
    sides[0].run(f"CREATE OR REPLACE TABLE {table} USING DELTA AS SELECT 1 AS k, 10 AS x")
    made = set()
    with ThreadPoolExecutor(2) as pool:
        for _ in range(RACES):
            number, before = next(_numbers), sides[0].commits(table, None)[0].version
            texts = [f"{number} {side} {kind}" for side, kind in enumerate(kinds)]
            sent = [
                pool.submit(_commit, engine, WRITES[kind].format(t=table), Note(table, number, text))
                for engine, kind, text in zip(sides, kinds, texts, strict=True)
            ]
            for done in sent:
                done.result()
            since = [c for c in sides[0].commits(table, before) if c.version > before]
            assert [c.version for c in since] == [before + 1]
            assert since[0].note in texts
            made.add(re.sub(r"^\d+ ", "", since[0].note or ""))
    assert made


def _commit(engine: SparkEngine, statement: str, note: Note) -> None:
    try:
        engine.commit(statement, note)
    except Exception as error:
        if not FORMAT.is_conflict(error):
            raise
