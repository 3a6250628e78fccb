"""The fold of the tail into its partitions, odd values of partitions among them; and MERGE over several views."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.one_state_table.bench import Bench, Finding
from benchmarks.one_state_table.state import IN_TAIL, Row, State, literals

ODD = (
    *(
        None,
        "",
        "__HIVE_DEFAULT_PARTITION__",
        "it's",
        'a"b',
        "a/b",
        "a=b%20",
        "\\",
        " ends in a blank ",
        "two\nlines",
    ),
    *(".", "..", "-", "n", "v", "tail", "{}", "ünïcode ☃ \U0001f600", "x" * 300, "/" * 200),
)
"""Strings that are partitions of the view ``root`` and keys in it; NULL is one of them."""


def folds(bench: Bench) -> Iterator[Finding]:
    """Rows are the same before and after, those that are in the tail alone are kept, each lies in its own partition."""
    state = bench.state("folds")
    half = ODD[: len(ODD) // 2]
    state.session.sql(state.create([_row(s) for s in half]))
    state.session.sql(state.append([_row(s) for s in ODD], state.head()))
    state.session.sql(state.append([_row(s, n=2) for s in ODD], state.head()))
    state.session.sql(state.append([_row(half[0], count=-1)], state.head()))
    before, number = state.rows(), state.head().number
    expected = len(ODD) * 2
    yield Finding(
        len(before) == expected,
        f"{len(before)} keys of {expected} with a tail over {len(ODD)} odd partitions",
    )
    state.session.sql(state.fold(state.head()))
    yield Finding(
        state.rows() == before and state.head().number == number + 1, "a fold leaves all rows as they are"
    )
    yield _in_place(state, "the fold")
    for what, write in (("MERGE", state.merge), ("REPLACE WHERE", state.replace)):
        state.session.sql(write([_row(s) for s in ODD], state.head()))
        yield _in_place(state, what)
        twice = state.session.sql(
            f"SELECT 1 FROM {state.name} WHERE __fivm_view = 'root' GROUP BY key_string_1, key_bigint_1 "
            "HAVING count(*) > 1"
        ).count()
        yield Finding(not twice, f"{what} into odd partitions: {twice} keys twice")
    state.session.sql(state.replace([_row(s, count=-4) for s in ODD[1:4]], state.head()))
    left = state.session.sql(
        f"SELECT 1 FROM {state.name} WHERE __fivm_view = 'root' AND key_bigint_1 = 1"
    ).count()
    yield Finding(left == len(ODD) - 3, f"{left} of {len(ODD)} keys are left when three counts are zero")
    state.session.sql(state.fold(state.head()))
    yield Finding(
        state.head().number == number + 5, "a fold with nothing to fold makes a commit all the same"
    )


def partly(bench: Bench) -> Iterator[Finding]:
    """REPLACE WHERE of some partitions writes the rest of the tail back."""
    state = bench.state("partly")
    state.session.sql(state.create([_row("a"), _row("b")]))
    state.session.sql(
        state.append([_row("a"), _row("b"), _row("c"), Row("one", "n", keys=(5,))], state.head())
    )
    state.session.sql(state.replace([_row("a")], state.head()))
    tail = state.session.sql(f"SELECT __fivm_of, __fivm_to FROM {state.name} WHERE {IN_TAIL}").collect()
    left = sorted((row[0], row[1] or "") for row in tail if row[0] != "coverage")
    yield Finding(left == [("one", "n"), ("root", "vb"), ("root", "vc")], f"left in the tail: {left}")
    counts = {r[2]: r[4] for r in state.session.sql(state.shown("root")).collect()}
    yield Finding(counts == {"a": 3, "b": 2, "c": 1}, f"counts {counts}")


def merges(bench: Bench) -> Iterator[Finding]:
    """One MERGE for views with one to three keys: NULL keys match, a group goes at zero, literals prune."""
    state = bench.state("merges")
    parts = range(20)
    rows = [Row("root", f"v{p:02}", keys=(p, None, f"k{p}", "2024-01-01")) for p in parts]
    rows += [Row("one", f"v{p:02}", keys=(p,)) for p in parts]
    rows += [Row("two", f"v{p:02}", keys=(p, k)) for p in parts for k in (None, 1)]
    state.session.sql(state.create(rows))
    files = _files(state)
    delta = [
        Row("root", "v03", keys=(3, None, "k3", "2024-01-01")),  # another one of a group
        Row(
            "root", "v04", count=-1, total="-1.00", keys=(4, None, "k4", "2024-01-01")
        ),  # the last of a group
        Row("root", "v04", keys=(None, None, None, None)),  # a new group, all keys NULL: like those of a head
        Row("one", "v03", count=-1, total="-1.00", keys=(3,)),
        Row("two", "v05", keys=(5, None)),
        Row("two", "v05", count=-1, total="-1.00", keys=(5, 1)),
    ]
    state.session.sql(state.merge(delta, state.head()))
    found = state.session.sql(
        f"SELECT __fivm_view, count(*), sum(__fivm_count) FROM {state.name} GROUP BY 1"
    ).collect()
    got = {row[0]: (row[1], row[2]) for row in found}
    wanted = {"root": (20, 21), "one": (19, 19), "two": (39, 40), "tail": (1, None)}
    yield Finding(got == wanted, f"rows and counts by view {got}")
    did = state.session.sql(f"DESCRIBE HISTORY {state.name} LIMIT 1").collect()[0].operationMetrics
    removed, copied = int(did["numTargetFilesRemoved"]), int(did["numTargetRowsCopied"])
    # v03 and v04 of root, v03 of one, v05 of two, the tail.
    yield Finding(
        removed == 5 and copied == 0, f"of {files} files {removed} were written anew, {copied} rows copied"
    )
    touched = literals([(row.view, row.partition) for row in delta])
    read = len(state.session.sql(f"SELECT * FROM {state.name} WHERE {IN_TAIL} OR {touched}").inputFiles())
    # Of one, v03 has no row any more.
    yield Finding(read == 4, f"its condition on partitions reads {read} of {_files(state)} files")
    before = state.rows()
    state.session.sql(state.merge([Row("root", "n", keys=())], state.head()))
    state.session.sql(state.merge([Row("root", "n", count=-1, total="-1.00", keys=())], state.head()))
    yield Finding(state.rows() == before, "a row with NULL keys beside the head, there and back")


def _in_place(state: State, what: str) -> Finding:
    wrong = state.session.sql(
        f"SELECT * FROM {state.name} WHERE __fivm_view = 'root' "
        "AND NOT __fivm_partition <=> coalesce(concat('v', key_string_1), 'n')"
    ).count()
    tail = state.session.sql(
        f"SELECT 1 FROM {state.name} WHERE {IN_TAIL} AND __fivm_of <> 'coverage'"
    ).count()
    return Finding(
        not wrong and not tail, f"{what}: {wrong} rows in others' partitions, {tail} left in the tail"
    )


def _row(text: str | None, *, n: int = 1, count: int = 1) -> Row:
    partition = "n" if text is None else f"v{text}"
    return Row("root", partition, count=count, total=f"{count}.00", keys=(n, None, text))


def _files(state: State) -> int:
    found: int = state.session.sql(f"DESCRIBE DETAIL {state.name}").collect()[0].numFiles
    return found
