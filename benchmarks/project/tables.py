"""The raw tables, as the project declares them: Delta with a change feed, facts partitioned by month."""

from __future__ import annotations

from typing import TYPE_CHECKING

import yaml

from benchmarks.project.paths import PROJECT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MONTH = "month"
_NOT_FACTS = ("calendar",)


def columns() -> dict[str, dict[str, str]]:
    """The types of the columns of each table, as ``sources.yml`` says them."""
    declared = yaml.safe_load((PROJECT / "models" / "sources.yml").read_text(encoding="utf-8"))
    (source,) = declared["sources"]
    return {t["name"]: {c["name"]: c["data_type"] for c in t["columns"]} for t in source["tables"]}


def create(session: SparkSession, table: str, types: dict[str, str], rows: str) -> None:
    """One table, filled; a month of facts is one file."""
    is_fact = _MONTH in types and table not in _NOT_FACTS
    listed = ", ".join(f"{name} {kind}" for name, kind in types.items())
    partitioned, hint = (f"partitioned by ({_MONTH})", f"/*+ rebalance({_MONTH}) */") if is_fact else ("", "")
    session.sql(
        f"create table raw.{table} ({listed}) using delta {partitioned} "
        "tblproperties ('delta.enableChangeDataFeed' = 'true')"
    )
    session.sql(f"insert into raw.{table} by name select {hint} * from ({rows})")
