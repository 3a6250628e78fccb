"""Breaks of what only Spark and Delta do."""

from __future__ import annotations

from mutants.mutant import Mutant

ON_SPARK = (
    Mutant(
        "transaction-from-another-version",
        "a transaction starts from a version that its writer has not read",
        "engines/spark/delta_lake/write.py",
        "write",
        old="if opened is None or opened.version != written.after:",
        new="if opened is None:",
        tests="tests/test_commit_numbers.py -k to_another_version",
        needs_spark=True,
    ),
    Mutant(
        "deleted-rows-come-again",
        "a file gets a deletion vector without the rows that were deleted before",
        "engines/spark/delta_lake/vectors.py",
        "_vectors",
        old="None if file.deletionVector() is None else file.deletionVector().serializeToBase64()",
        new="None",
        tests="tests/test_written_changes.py -k until",
        needs_spark=True,
    ),
    Mutant(
        "statement-without-number",
        "a statement that commits has no number by which Delta passes over it",
        "spark/formats/delta_lake.py",
        "DeltaLake.numbered",
        old='            "spark.databricks.delta.write.txnVersion": str(note.number),\n',
        new="",
        tests="tests/test_commit_numbers.py -k test_on_spark",
        needs_spark=True,
    ),
    Mutant(
        "files-of-another-version",
        "a statement reads the files that a table has now, not those of the version that it names",
        "engines/spark/delta_lake/known_files.py",
        "_known",
        old="if opened is None or opened.version != expected.version:",
        new="if opened is None:",
        tests="tests/test_known_files.py -k left_to_delta",
        needs_spark=True,
    ),
    Mutant(
        "time-of-the-file",
        "a commit is dated by its file alone, also where the one before is dated later",
        "engines/spark/delta_lake/log.py",
        "DeltaLogs._read_files",
        old="time = max(time + 1, file.milliseconds)",
        new="time = file.milliseconds",
        tests="tests/test_delta_log.py -k clocks_that_go_back",
        needs_spark=True,
    ),
    Mutant(
        "staged-rows-of-another",
        "of queries that are staged at once one has the rows of another",
        "engines/spark/local_rows.py",
        "apart",
        old="col(_NUMBER) == number",
        new="col(_NUMBER) >= number",
        tests="tests/test_local_rows.py -k at_once",
        needs_spark=True,
    ),
)
"""Where Spark's engine differs from DuckDB's, on which all other rules are tried."""
