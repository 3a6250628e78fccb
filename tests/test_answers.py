"""What several models ask of the same versions is asked once, also where they ask at the same time."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event

import pytest

from fivm_dbt.refresh.answers import MANY, Answers
from fivm_dbt.refresh.engine import Row
from fivm_dbt.spark.formats import Commit

COMMIT = Commit(3, "2024-05-01", "WRITE")


def test_who_asks_at_the_same_time_waits() -> None:
    answers, asked, together, goes_on = Answers(), [], Barrier(4), Event()

    def ask(sql: str) -> Sequence[Row]:
        asked.append(sql)
        assert goes_on.wait(10)
        return [(len(asked),)]

    def want() -> Sequence[Row]:
        together.wait(10)
        return answers.of("SELECT 1", [COMMIT], ask)

    with ThreadPoolExecutor(4) as threads:
        found = [threads.submit(want) for _ in range(4)]
        goes_on.set()
        assert [f.result(10) for f in found] == [[(1,)]] * 4
    assert asked == ["SELECT 1"]


def test_an_error_is_not_kept() -> None:
    answers = Answers()

    def fail(sql: str) -> Sequence[Row]:
        raise ValueError(sql)

    with pytest.raises(ValueError, match="SELECT 1"):
        answers.of("SELECT 1", [COMMIT], fail)
    assert answers.of("SELECT 1", [COMMIT], lambda _: [(1,)]) == [(1,)]


def test_old_answers_go() -> None:
    answers, asked = Answers(), []
    for number in (*range(MANY + 1), 0):
        answers.of(f"SELECT {number}", [COMMIT], lambda sql: asked.append(sql) or [])
    assert asked.count("SELECT 0") == 2
