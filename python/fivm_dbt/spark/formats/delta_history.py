"""The history of a Delta table describes a commit, whether a statement or Delta's own object tells it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime, timezone

from fivm_dbt.spark.formats.table_format import Commit

_ENTRY = re.compile(r'"(\w+)":"(.*?)"(?=,"\w+":"|\}$)', re.DOTALL)


def commit_of(
    version: object,
    time: object,
    operation: object,
    metrics: object,
    parameters: object,
    note: object,
) -> Commit:
    """A row of the history; a map comes as a dict or as its JSON."""
    return Commit(
        int(str(version)),
        _iso(time),
        operation=str(operation),
        growth=_growth(operation, metrics),
        size=_size(operation, metrics),
        written=_written(operation, metrics),
        appended=_appended(operation, metrics),
        rows_written=_rows_written(operation, metrics),
        overwrites=_overwrites(parameters),
        note=None if note is None else str(note),
    )


_BYTES = (
    ("numTargetBytesAdded", "numTargetBytesRemoved"),
    ("numAddedBytes", "numRemovedBytes"),
    ("numOutputBytes", "numRemovedBytes"),
)
"""Metrics of MERGE; of DELETE, UPDATE and OPTIMIZE; of what replaces partitions."""


def _growth(operation: object, metrics: object) -> int | None:
    """By how much a commit changed the size of its table, in bytes.

    >>> _growth("MERGE", {"numTargetBytesAdded": "900", "numTargetBytesRemoved": "650"})
    250
    >>> _growth("WRITE", '{"numOutputRows": "3", "numOutputBytes": "800"}')
    800
    >>> _growth("WRITE", '{"numOutputRows": "3"}') is None
    True
    """
    known = _known(metrics)
    if _appended(operation, metrics) is not None:
        known = {"numRemovedBytes": "0", **known}
    for added, removed in _BYTES:
        if added in known and removed in known:
            return int(known[added]) - int(known[removed])
    return None


def _size(operation: object, metrics: object) -> int | None:
    """How many bytes a table has that a commit has created with its rows.

    >>> _size("CREATE OR REPLACE TABLE AS SELECT", {"numOutputBytes": "800"}), _size("WRITE", {"numOutputBytes": "800"})
    (800, None)
    """
    output = _known(metrics).get("numOutputBytes") if str(operation).endswith("TABLE AS SELECT") else None
    return None if output is None else int(output)


def _written(operation: object, metrics: object) -> int | None:
    """How many rows a WRITE wrote.

    >>> _written("WRITE", {"numOutputRows": "3"}), _written("MERGE", {"numOutputRows": "3"})
    (3, None)
    """
    rows = _known(metrics).get("numOutputRows") if operation == "WRITE" else None
    return None if rows is None else int(rows)


def _appended(operation: object, metrics: object) -> int | None:
    """How many rows a WRITE added to those that stayed as they were.

    >>> _appended("WRITE", {"numOutputRows": "3", "numRemovedFiles": "0"}), _appended("WRITE", {"numOutputRows": "3"})
    (3, 3)
    >>> _appended("WRITE", {"numOutputRows": "3", "numRemovedFiles": "1"}) is None
    True
    """
    return _written(operation, metrics) if _known(metrics).get("numRemovedFiles", "0") == "0" else None


_ROWS = {
    "MERGE": {"numTargetRowsInserted": 1, "numTargetRowsUpdated": 2, "numTargetRowsDeleted": 1},
    "UPDATE": {"numUpdatedRows": 2},
    "DELETE": {"numDeletedRows": 1},
}
"""Metrics of rows that came or went: one that is updated goes, and comes."""


def _rows_written(operation: object, metrics: object) -> int | None:
    """How many rows came or went with a commit, at most.

    >>> _rows_written("MERGE", {"numTargetRowsInserted": 3, "numTargetRowsUpdated": 2, "numTargetRowsDeleted": 0})
    7
    >>> _rows_written("WRITE", {"numOutputRows": "3"}), _rows_written("DELETE", {"numRemovedFiles": "2"})
    (3, None)
    """
    wanted = _ROWS.get(str(operation))
    if wanted is None:
        return _appended(operation, metrics)
    known = _known(metrics)
    if not wanted.keys() <= known.keys():
        return None
    return sum(times * int(known[name]) for name, times in wanted.items())


def _overwrites(parameters: object) -> bool:
    """Whether an operation writes all rows anew, and not those of some partitions.

    >>> _overwrites({"mode": "Overwrite", "partitionBy": "[]"}), _overwrites({"outputMode": "Complete"})
    (True, True)
    >>> _overwrites({"mode": "Append"}), _overwrites('{"mode": "Overwrite", "predicate": "(day = 1)"}')
    (False, False)
    """
    known = _known(parameters)
    if "Complete" in (known.get("outputMode"), known.get("mode")):
        return True
    is_part = known.get("predicate") or known.get("isDynamicPartitionOverwrite") == "true"
    return known.get("mode") == "Overwrite" and not is_part


def _known(told: object) -> Mapping[str, str]:
    """A map of the history. Over Thrift it is a text like JSON, but for the quotes in its values, which stand bare.

    >>> _known('{"mode":"Overwrite","partitionBy":"["day","k"]"}')
    {'mode': 'Overwrite', 'partitionBy': '["day","k"]'}
    """
    if not isinstance(told, str):
        return told if isinstance(told, Mapping) else {}
    try:
        known = json.loads(told)
    except ValueError:
        known = dict(_ENTRY.findall(told))
    return known if isinstance(known, Mapping) else {}


def _iso(time: object) -> str:
    """A commit time that does not depend on the time zone of this process.

    >>> _iso(datetime(2024, 5, 1, 12, tzinfo=timezone.utc))
    '2024-05-01T12:00:00.000000+00:00'
    """
    if isinstance(time, datetime):
        return time.astimezone(timezone.utc).isoformat(timespec="microseconds")
    return str(time)
