"""A state reads its own old versions while it is written, and others read what changed in one of its views."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from benchmarks.one_state_table.bench import Bench, Finding
from benchmarks.one_state_table.races import BASE, KINDS, delta_of, expected_after, race
from benchmarks.one_state_table.state import HEAD, IN_TAIL, KEYS, PAYLOADS, PLACE, VIEWS, Query, State

PLUS = "_change_type IN ('insert', 'update_postimage')"


def own_version(bench: Bench) -> Iterator[Finding]:
    """Each statement that reads the state AS OF the version of its head, or of an earlier one, while it writes it."""
    for kind in ("append", "replace", "merge", "rebuild"):
        state = bench.state("own")
        state.session.sql(state.create(BASE))
        old = state.version()
        for _ in range(3):
            state.session.sql(state.append(delta_of("x"), state.head()))
        if kind == "merge":
            state.session.sql(state.fold(state.head()))
        then, now = _counts(state, f"VERSION AS OF {old}"), _counts(state)
        query = _held_at(state, old)
        state.session.sql(getattr(state, kind)(query, state.head()))
        added = {} if kind == "rebuild" else now
        expected = {key: added.get(key, 0) + then.get(key, 0) for key in {*added, *then}}
        yield Finding(
            _counts(state) == expected, f"{kind} of what the state held at version {old}, three commits ago"
        )
    state = bench.state("own")
    state.session.sql(state.create(BASE))
    version, expected = state.version(), {key: 2 * n for key, n in _counts(state).items()}
    state.session.sql(f"OPTIMIZE {state.name}")
    state.session.sql(state.append(_held_at(state, version), state.head()))
    yield Finding(_counts(state) == expected, "append of the version before an OPTIMIZE that came between")


def feed(bench: Bench) -> Iterator[Finding]:
    """The net change of each view from the state's feed is the difference of two versions; folds can be left out."""
    state = bench.state("feed")
    state.session.sql(state.create(BASE))
    since, before = state.version(), {view: _counts(state, views=[view]) for view in VIEWS}
    kinds = ("append", "append", "fold", "merge", "append", "replace", "append", "fold", "merge")
    for number, kind in enumerate(kinds):
        state.session.sql(KINDS[kind](state, delta_of(f"w{number // 2}"), state.head()))
        if number in (3, 6):
            state.session.sql(f"OPTIMIZE {state.name}")
    until = state.version()
    changes = f"table_changes('{state.name}', {since + 1}, {until})"
    folds = f"SELECT _commit_version FROM {changes} WHERE __fivm_coverage LIKE '%\"fold\"%' AND {PLUS}"
    for view in before:
        after = _counts(state, views=[view])
        expected = {k: n for k in {*before[view], *after} if (n := after.get(k, 0) - before[view].get(k, 0))}
        rows = []
        for without in ("", f" AND _commit_version NOT IN ({folds})"):
            of_view = f"(__fivm_view = '{view}' OR {IN_TAIL} AND __fivm_of = '{view}'){without}"
            read = f"SELECT {', '.join(KEYS)}, if({PLUS}, 1, -1) * __fivm_count AS n FROM {changes} WHERE {of_view}"
            net = f"SELECT {', '.join(KEYS)}, sum(n) AS n FROM ({read}) GROUP BY ALL HAVING sum(n) <> 0"
            got = {str((view, *row[:-1])): row[-1] for row in state.session.sql(net).collect()}
            rows.append(state.session.sql(read).count())
            what = "without folds" if without else "all commits"
            yield Finding(
                got == expected, f"{view}, {what}: {rows[-1]} rows for {len(expected)} changed groups"
            )
    state.session.sql(KINDS["rebuild"](state, delta_of("w9"), state.head()))
    after = _counts(state, views=["root"])
    expected = {k: n for k in {*before["root"], *after} if (n := after.get(k, 0) - before["root"].get(k, 0))}
    changes = f"table_changes('{state.name}', {since + 1}, {state.version()})"
    read = f"SELECT {', '.join(KEYS)}, sum(if({PLUS}, 1, -1) * __fivm_count) AS n FROM {changes}"
    of_root = f"WHERE __fivm_view = 'root' OR {IN_TAIL} AND __fivm_of = 'root' GROUP BY ALL HAVING n <> 0"
    got = {str(("root", *row[:-1])): row[-1] for row in state.session.sql(f"{read} {of_root}").collect()}
    yield Finding(got == expected, "root, across a CREATE OR REPLACE with the same columns")


def others(bench: Bench) -> Iterator[Finding]:
    """OPTIMIZE, VACUUM, RESTORE and SHALLOW CLONE by somebody else, between a statement's preparation and itself."""
    for kind in KINDS:
        state = bench.state("others")
        state.session.sql(state.create(BASE))
        for _ in range(2):
            state.session.sql(state.append(delta_of("before"), state.head()))
        statement = KINDS[kind](state, delta_of("late"), state.head())
        expected = expected_after(state, kind, "late")
        state.session.sql(f"OPTIMIZE {state.name}")
        state.session.sql(f"VACUUM {state.name}")
        state.session.sql(statement)
        yield Finding(state.rows() == expected, f"{kind} that was prepared before OPTIMIZE and VACUUM")
    for kind in KINDS:
        state = bench.state("others")
        state.session.sql(state.create(BASE))
        for _ in range(2):
            state.session.sql(state.append(delta_of("before"), state.head()))
        expected, before = expected_after(state, kind, "slow"), state.rows()
        lost = race(bench, state, kind, partial(state.session.sql, f"OPTIMIZE {state.name}")).error
        got = state.rows()
        if lost:
            text = f"{kind} overtaken by OPTIMIZE fails, and nothing is written: {lost}"
            yield Finding(got == before, text)
        else:
            yield Finding(got == expected, f"{kind} overtaken by OPTIMIZE commits, and nothing is lost")
    yield from _restored_and_cloned(bench)


def rebuilds(bench: Bench) -> Iterator[Finding]:
    """CREATE OR REPLACE four times in a row, with the partition columns last, and with a wider pool."""
    state = bench.state("rebuilds")
    state.session.sql(state.create(BASE))
    for _ in range(4):
        state.session.sql(state.rebuild(BASE, state.head()))
    yield Finding(len(state.rows()) == len(BASE) and state.head().number == 5, "four rebuilds in a row")
    columns = ", ".join((*KEYS, "CAST(NULL AS DOUBLE) AS key_double_1", *PAYLOADS, *HEAD, *PLACE))
    create, select = state.rebuild(BASE, state.head()).split(" AS SELECT ", 1)
    state.session.sql(f"{create} AS SELECT {columns} FROM (SELECT {select})")
    wider = "key_double_1" in state.session.table(state.name).columns
    yield Finding(
        wider and state.head().number == 6 and len(state.rows()) == len(BASE), "a rebuild with a wider pool"
    )
    state.session.sql(state.append(delta_of("x"), state.head()))
    yield Finding(state.head().number == 7, "INSERT BY NAME without the new column leaves NULL in it")


def _restored_and_cloned(bench: Bench) -> Iterator[Finding]:
    state = bench.state("others")
    state.session.sql(state.create(BASE))
    covered = {}
    for n in range(3):
        covered[state.version()] = (state.head(), state.rows())
        state.session.sql(state.append(delta_of(f"n{n}"), state.head()))
    state.session.sql(f"RESTORE TABLE {state.name} TO VERSION AS OF 1")
    same = (state.head(), state.rows()) == covered[1]
    yield Finding(same, "RESTORE brings the rows and the head of that version")
    state.session.sql(state.append(delta_of("n1"), state.head()))
    yield Finding(state.rows() == covered[2][1], "and the next refresh goes on from there")
    clone = State(state.session, f"{state.name}_clone")
    state.session.sql(f"CREATE TABLE {clone.name} SHALLOW CLONE {state.name}")
    before = state.rows()
    for kind in ("append", "fold", "merge", "replace"):
        clone.session.sql(KINDS[kind](clone, delta_of("clone"), clone.head()))
    yield Finding(
        state.rows() == before and clone.head().number == state.head().number + 4,
        "a shallow clone goes its own way",
    )


def _counts(state: State, at: str = "", views: Sequence[str] = VIEWS) -> dict[str, int]:
    """How often each group of the views is there, by their keys."""
    return {
        str((view, *row[: len(KEYS)])): row[len(KEYS)]
        for view in views
        for row in state.session.sql(state.shown(view, at)).collect()
    }


def _held_at(state: State, version: int) -> Query:
    """All data of a version, its tail included, as the rows of a delta."""
    nothing = ", ".join(f"CAST(NULL AS {t}) AS {c}" for c, t in HEAD.items())
    of_or_view = ("__fivm_of", "__fivm_view"), ("__fivm_to", "__fivm_partition")
    places = ", ".join(f"coalesce({tail}, {own}) AS {own}" for tail, own in of_or_view)
    sums = ", ".join(f"sum({p}) AS {p}" for p in PAYLOADS)
    rows = (
        f"SELECT {', '.join(KEYS)}, {', '.join(PAYLOADS)}, {places} FROM {state.name} VERSION AS OF {version} "
        "WHERE NOT __fivm_of <=> 'coverage'"
    )
    sql = f"SELECT {', '.join(KEYS)}, {sums}, {nothing}, {', '.join(PLACE)} FROM ({rows}) GROUP BY ALL"
    found = state.session.sql(f"SELECT DISTINCT {', '.join(PLACE)} FROM ({rows})").collect()
    return Query(sql, tuple((row[0], row[1]) for row in found))
