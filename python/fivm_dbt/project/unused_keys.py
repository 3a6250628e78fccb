"""Some keys in a model's config do nothing there; a warning says where they belong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fivm_dbt.config import KEYS, wrong_value
from fivm_dbt.suggest import did_you_mean

_NO_KEY = "the rows that changed are found without it"
_NO_EFFECT = {
    "unique_key": _NO_KEY,
    "incremental_strategy": "meta fivm_apply says how changes are written",
    "incremental_predicates": "the parts that a change reaches are found without it",
    "merge_update_columns": _NO_KEY,
    "merge_exclude_columns": _NO_KEY,
    "partition_by": "meta fivm_partition_by names the column that partitions the state",
    "clustered_by": "meta fivm_buckets says into how many buckets the state is divided",
    "cluster_by": "meta fivm_buckets says into how many buckets the state is divided",
    "liquid_clustered_by": "meta fivm_buckets says into how many buckets the state is divided",
    "buckets": "meta fivm_buckets says into how many buckets the state is divided",
    "location_root": "states lie where their schema does",
    "tblproperties": "the properties of states are those that refreshes need",
    "lookback": "late rows are found without it",
    "begin": "meta fivm_start says where a viewdf model begins",
}
_DEFAULTS: Mapping[str, object] = {"on_schema_change": "ignore", "lookback": 1, "file_format": "delta"}
"""Values that say nothing: dbt's own, and the format that states have."""


def unused_keys(config: Mapping[str, object]) -> Iterator[str]:
    """A sentence for each key of a fivm model's config that is read by nobody.

    >>> for told in unused_keys({"materialized": "fivm", "fivm_policy": "auto", "unique_key": "id"}):
    ...     print(told)
    fivm_policy has no effect outside meta: write config(meta={'fivm_policy': 'auto'})
    unique_key has no effect on fivm models: the rows that changed are found without it
    """
    for key, value in config.items():
        if value is None or value in ([], {}) or _DEFAULTS.get(key) == value:
            continue
        if key.startswith("fivm_"):
            yield f"{key} has no effect outside meta: {_right(key, value)}"
        elif key in _NO_EFFECT:
            yield f"{key} has no effect on fivm models: {_NO_EFFECT[key]}"
        elif key == "on_schema_change":
            why = "meta fivm_on_change says what happens when the query has changed"
            yield f"{key} has no effect on fivm models: {why}"
        elif key == "file_format":
            yield f"{key} {value!r} has no effect on fivm models: the state is always a Delta table"


def _right(key: str, value: object) -> str:
    """Where a key belongs, and its name."""
    if key in KEYS:
        wrong = wrong_value(key, value)
        return f"write config(meta={{{key!r}: {value!r}}})" if not wrong else f"write it there; {wrong}"
    return f"there is no such key; {did_you_mean(key, KEYS) or 'leave it out'}"
