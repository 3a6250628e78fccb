"""Two writers of one number: the second must not commit, whatever both are, and however late the second one comes."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import date
from functools import partial

from benchmarks.one_state_table.bench import Bench, Finding, Gate, Running, error_in, error_of
from benchmarks.one_state_table.state import FRESH, IN_TAIL, KEYS, NEWEST, PLACE, VIEWS, Head, Row, State

BASE = (
    Row("root", "va", keys=(None, None, "x", "2024-01-01")),
    Row("root", "vb", keys=(None, None, None, None)),
    Row("one", "vq", keys=(1,)),
    Row("two", "n", keys=(1, 2, "z")),
)

Write = Callable[[State, Sequence[Row], Head], str]


def _fold(state: State, rows: Sequence[Row], head: Head) -> str:
    return state.fold(head)


KINDS: dict[str, Write] = {
    "append": State.append,
    "replace": State.replace,
    "merge": State.merge,
    "rebuild": lambda state, rows, head: state.rebuild((*BASE, *rows), head),
    "fold": _fold,
}


def races(bench: Bench) -> Iterator[Finding]:
    """Each kind of statement is overtaken by each other: it has read the head, and commits after the other has."""
    for slow in KINDS:
        for quick in KINDS:
            yield _overtaken(bench, slow, quick)
    yield _two_first_builds(bench)


def zombies(bench: Bench) -> Iterator[Finding]:
    """A statement of number n comes after n + 1 was committed, or when the table is another one or gone."""
    for late in KINDS:
        for overtakers in (
            ("append", "append"),
            ("merge", "append"),
            ("append", "fold", "append"),
            ("rebuild",),
        ):
            state = _prepared(bench)
            statement = KINDS[late](state, delta_of("late"), state.head())
            for quick in overtakers:
                state.session.sql(KINDS[quick](state, delta_of("quick"), state.head()))
            rows, version = state.rows(), state.version()
            error = error_of(state.session, statement)
            unharmed = (state.rows(), state.version()) == (rows, version)
            yield Finding(bool(error) and unharmed, f"{late} after {', '.join(overtakers)}: {error}")
        state.session.sql(f"DROP TABLE {state.name}")
        error = error_of(state.session, statement)
        yield Finding(bool(error), f"{late} after DROP TABLE: {error}")
        state.session.sql(state.create(BASE))
        for _ in range(2):
            state.session.sql(state.append(delta_of("new"), state.head()))
        error = error_of(state.session, statement)
        yield Finding(
            bool(error) and state.version() == 2, f"{late} on a new table of the same number: {error}"
        )


def restored(bench: Bench) -> Iterator[Finding]:
    """After RESTORE the numbers come again: a statement from before must not fit into the new history."""
    for slow in KINDS:
        state = _prepared(bench)
        rows = state.rows("VERSION AS OF 1")
        back = partial(state.session.sql, f"RESTORE TABLE {state.name} TO VERSION AS OF 1")
        lost = race(bench, state, slow, back).error
        yield Finding(bool(lost) and state.rows() == rows, f"{slow} overtaken by RESTORE: {lost}")
    for has_commit_ids in (True, False):
        for late in KINDS:
            state = replace(bench.state("restored"), has_commit_ids=has_commit_ids)
            state.session.sql(state.create(BASE))
            for _ in range(2):
                state.session.sql(state.append(delta_of("before"), state.head()))
            statement = KINDS[late](state, delta_of("late"), state.head())
            state.session.sql(f"RESTORE TABLE {state.name} TO VERSION AS OF 1")
            gone = error_of(state.session, statement)
            state.session.sql(state.append(delta_of("after"), state.head()))
            rows = state.rows()
            error = error_of(state.session, statement)
            if has_commit_ids:
                ok = bool(gone) and bool(error) and state.rows() == rows
                yield Finding(ok, f"{late} from before RESTORE: {error}")
            else:
                text = f"{late} from before RESTORE, heads known by build and number alone: {error or 'COMMITTED'}"
                yield Finding(bool(gone) and error is None, text)


def holes(bench: Bench) -> Iterator[Finding]:
    """Ways that look alike and are not safe: what they do wrong is expected, so that we notice when it changes."""
    state = replace(_prepared(bench), merge_sees="=")
    zombie = state.merge(delta_of("late"), state.head())
    state.session.sql(state.append(delta_of("quick"), state.head()))
    error = error_of(state.session, zombie)
    twice = _heads(state).count(state.head().number)
    yield Finding(
        error is None and twice == 2,
        f"MERGE that sees the row of n alone is fooled by older heads: {twice} heads of one number",
    )
    newest = "max(struct(__fivm_number, __fivm_commit)) FROM {state}"
    for what, read, safe in (
        ("without WHERE", newest, True),
        ("AS OF a version", f"{newest} VERSION AS OF 0 WHERE {IN_TAIL}", False),
    ):
        state = replace(bench.state("holes"), newest=read)
        state.session.sql(state.create(BASE))
        lost = race(bench, state, "append", _quick(state, "append")).error
        yield Finding(
            bool(lost) == safe, f"two appends that read the head {what}: second {lost or 'COMMITTED TOO'}"
        )
    for slow, quick in (("append", "append"), ("merge", "append"), ("replace", "merge"), ("append", "merge")):
        state = bench.state("holes")
        weaker = {k: v for k, v in state.properties.items() if k != "delta.isolationLevel"}
        state = replace(state, properties=weaker)
        state.session.sql(state.create(BASE))
        lost = race(bench, state, slow, _quick(state, quick)).error
        yield Finding(
            bool(lost), f"{slow} overtaken by {quick} under WriteSerializable: {lost or 'COMMITTED TOO'}"
        )
    yield _columns_first(bench)


def _columns_first(bench: Bench) -> Finding:
    """CREATE OR REPLACE with the partition columns first."""
    state = bench.state("columns")
    layout = f"USING DELTA PARTITIONED BY ({', '.join(PLACE)})"
    create = f"CREATE OR REPLACE TABLE {state.name} {layout} AS SELECT 'root' __fivm_view, 'v' __fivm_partition, 1 k"
    errors = [error_of(state.session, create) for _ in range(4)]
    return Finding(any(errors), f"CREATE OR REPLACE four times, partition columns first: {errors}")


def cached(bench: Bench) -> Iterator[Finding]:
    """Somebody in the same application has cached the table: reads must go to Delta, which counts no others."""
    for kind in KINDS:
        state = _prepared(bench)
        state.session.sql(f"CACHE TABLE {state.name}")
        lost = race(bench, state, kind, _quick(state, "append")).error
        state.session.catalog.clearCache()
        yield Finding(bool(lost), f"{kind} overtaken by append, table cached: {lost}")
    state = replace(_prepared(bench), newest=NEWEST.replace(f" AND {FRESH}", ""))
    state.session.sql(f"CACHE TABLE {state.name}")
    lost = race(bench, state, "append", _quick(state, "append")).error
    state.session.catalog.clearCache()
    yield Finding(lost is None, f"append that may read a cache, overtaken: {lost or 'COMMITTED TOO'}")


def analysed(bench: Bench) -> Iterator[Finding]:
    """A statement is analysed, another one commits, then it runs."""
    inner = bench.session._jsparkSession.sessionState()
    mode = bench.session._jvm.org.apache.spark.sql.execution.CommandExecutionMode.ALL()
    for kind in KINDS:
        state = _prepared(bench)
        parsed = inner.sqlParser().parsePlan(KINDS[kind](state, delta_of("late"), state.head()))
        execution = inner.executePlan(parsed, mode)
        execution.assertAnalyzed()
        state.session.sql(state.append(delta_of("quick"), state.head()))
        rows, error = state.rows(), error_in(execution.commandExecuted)
        yield Finding(bool(error) and state.rows() == rows, f"{kind} analysed before an append: {error}")


def crowd(bench: Bench) -> Iterator[Finding]:
    """Pairs of all kinds at the same moment, no gate: one number, one commit."""
    chance, state = random.Random(7), bench.state("crowd")
    state.session.sql(state.create(BASE))
    sessions = [bench.session.newSession() for _ in range(2)]
    both, none, errors = 0, 0, set()
    for _ in range(3 * bench.rounds):
        head, version = state.head(), state.version()
        kinds = [chance.choice([k for k in KINDS if k != "fold"]) for _ in sessions]
        expected = [expected_after(state, kind, f"writer {n}") for n, kind in enumerate(kinds)]
        barrier = threading.Barrier(len(sessions))
        writers = [
            Running(session, KINDS[kind](state.of(session), delta_of(f"writer {n}"), head), barrier)
            for n, (session, kind) in enumerate(zip(sessions, kinds, strict=True))
        ]
        for writer in writers:
            writer.join()
        won = [n for n, writer in enumerate(writers) if writer.error is None]
        errors |= {writer.error.split()[0] for writer in writers if writer.error}
        both, none = both + (len(won) > 1), none + (not won)
        right = len(won) == 1 and state.rows() == expected[won[0]]
        if not right or state.version() != version + 1 or state.head().number != head.number + 1:
            yield Finding(
                False, f"{kinds} of {head.number}: {[w.error for w in writers]}, head {state.head()}"
            )
    text = f"{3 * bench.rounds} pairs of random kinds, {both} with two commits, {none} with none: {sorted(errors)}"
    yield Finding(not both, text)


def _overtaken(bench: Bench, slow: str, quick: str) -> Finding:
    state = _prepared(bench)
    expected = expected_after(state, quick, "quick")
    head, version = state.head(), state.version()
    writer = race(bench, state, slow, _quick(state, quick))
    one = state.version() == version + 1 and _heads(state).count(head.number + 1) == 1
    right = state.rows() == expected
    text = f"{slow} overtaken by {quick}: {writer.error}"
    if not right or not one:
        text += f"; ROWS {state.rows()} for {expected}, heads {_heads(state)}"
    return Finding(bool(writer.error) and one and right, text)


def race(bench: Bench, state: State, slow: str, quick: Callable[[], object]) -> Running:
    """The slow one begins, the quick one begins and ends, the slow one goes on."""
    session, gate = bench.session.newSession(), Gate(bench.directory / f"gate {state.name}")
    head = state.head()
    held = state.of(session, gate.sql(session))
    writer = Running(session, KINDS[slow](held, delta_of("slow"), head))
    gate.wait(writer)
    try:
        quick()
    finally:
        gate.open()
        writer.join()
    return writer


def _quick(state: State, kind: str) -> Callable[[], object]:
    return lambda: state.session.sql(KINDS[kind](state, delta_of("quick"), state.head()))


def _two_first_builds(bench: Bench) -> Finding:
    state, session = bench.state("first"), bench.session.newSession()
    gate = Gate(bench.directory / f"gate {state.name}")
    writer = Running(session, state.of(session, gate.sql(session)).create(BASE))
    gate.wait(writer)
    state.session.sql(state.create(BASE))
    gate.open()
    writer.join()
    return Finding(
        bool(writer.error) and state.version() == 0 and len(state.rows()) == len(BASE),
        f"CREATE TABLE overtaken by CREATE TABLE: {writer.error}",
    )


def _prepared(bench: Bench) -> State:
    """A state with a tail, and two old heads in it."""
    state = bench.state("races")
    state.session.sql(state.create(BASE))
    for _ in range(2):
        state.session.sql(state.append(delta_of("before"), state.head()))
    return state


def delta_of(who: str) -> tuple[Row, ...]:
    """A row of each view in a partition of its own, and one in a partition that is there."""
    return (
        Row("root", f"v{who}", keys=(None, None, who, "2024-01-02")),
        Row("one", "vq", keys=(7,)),
        Row("two", f"v{who}", keys=(1, 5, who)),
    )


def expected_after(state: State, kind: str, who: str) -> list[str]:
    """What readers must see after a statement of the kind, by hand from what they see now."""
    seen: Counter[str] = Counter()
    if kind != "rebuild":
        for view in VIEWS:
            for row in state.session.sql(state.shown(view)).collect():
                seen[str((view, *row[:-2]))] += row[-2]
    for row in {"rebuild": (*BASE, *delta_of(who)), "fold": ()}.get(kind, delta_of(who)):
        keys = [*row.keys, *[None] * (len(KEYS) - len(row.keys))]
        day = date.fromisoformat(str(keys[3])) if keys[3] else None
        seen[str((row.view, *keys[:3], day))] += row.count
    return sorted(f"{key[:-1]}, {n}, Decimal('{n}.00'))" for key, n in seen.items() if n)


def _heads(state: State) -> list[int]:
    found = state.session.sql(
        f"SELECT __fivm_number FROM {state.name} WHERE __fivm_of = 'coverage'"
    ).collect()
    return [row[0] for row in found]
