"""Breaks of how changes of inputs are captured, and of what inner views tell those above them."""

from __future__ import annotations

from mutants.mutant import Mutant

CAPTURES = (
    Mutant(
        "feed-without-deletes",
        "rows that are deleted are not in the change that is read from a change feed",
        "spark/capture.py",
        "_feed",
        old="default=exp.Neg(this=exp.Literal.number(1))",
        new="default=exp.Literal.number(0)",
        tests="tests/test_recovery.py -k 'backwards or test_capture'",
    ),
    Mutant(
        "pre-image-comes",
        "the row that an update has replaced comes, beside the one that replaces it",
        "spark/capture.py",
        "_feed",
        old="for t in kind.came",
        new='for t in (*kind.came, "update_preimage")',
        tests="tests/test_recovery.py -k test_cut_off_anywhere",
    ),
    Mutant(
        "old-version-comes",
        "where two versions are compared, the old rows come too",
        "spark/capture.py",
        "change_query",
        old="_signed(item, old_source, -1)",
        new="_signed(item, old_source, 1)",
        tests="tests/test_recovery.py -k 'test_capture or test_an_input'",
    ),
    Mutant(
        "nothing-cancels-out",
        "a row that is written again as it was counts as changed",
        "spark/capture.py",
        "_net",
        old="return query.having(exp.NEQ(this=total, expression=exp.Literal.number(0)))",
        new="return query",
        tests="tests/test_near_changes.py -k snapshots_and",
    ),
    Mutant(
        "condition-of-one-read",
        "changes of rows are left out that one of two reads of an input lets through",
        "plan/seen_rows.py",
        "_shared",
        old="all(p in others for others in each)",
        new="any(p in others for others in each)",
        tests="tests/test_seen_rows.py",
    ),
    Mutant(
        "condition-of-right-rows",
        "changes of the right side of an outer join are left out by what is asked of its result",
        "plan/seen_rows.py",
        "_reads",
        old="above if node.passes_rows and position == 0 else ()",
        new="above",
        tests="tests/test_seen_rows.py",
    ),
    Mutant(
        "snapshot-stands-still",
        "the own copy of an input that is created anew is not brought up to date",
        "refresh/maintained.py",
        "MaintainedRun._apply",
        old="frozenset(name for name in binding.changed if snapshots.get(name) is not None)",
        new="frozenset()",
        tests="tests/test_recovery.py -k 'snapshot or created_anew'",
    ),
    Mutant(
        "recreated-input-unnoticed",
        "an input that was dropped and created anew is read as if it was the old one",
        "refresh/observe.py",
        "observe_input",
        old="recreated=not same",
        new="recreated=False",
        tests="tests/test_recovery.py -k created_anew",
    ),
    Mutant(
        "replaced-columns-unnoticed",
        "a change feed is read across a replacement of its table, of whose columns it says nothing",
        "refresh/bind.py",
        "_capture",
        old="observed.same_columns and not observed.is_summed",
        new="not observed.is_summed",
        tests="tests/test_foreign_changes.py -k replace",
    ),
    Mutant(
        "inner-change-without-before",
        "an inner view does not take back what a key has shown before",
        "spark/added.py",
        "before_and_after",
        old="exp.Neg(this=exp.Literal.number(1))",
        new="exp.Literal.number(0)",
        tests="tests/test_recovery.py tests/test_scenarios.py -k nested",
    ),
)
"""A capture gives each row that came and each row that went, once, and nothing else."""
