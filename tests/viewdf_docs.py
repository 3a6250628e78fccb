"""Examples of viewdf models in the documentation: files as users write them, run over a stream in steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jinja2
import yaml

from fivm_dbt.parts.length import Length, duration
from fivm_dbt.parts.parted import TimeParts
from fivm_dbt.plan.model.plan import Plan
from viewdf_bench import Bench, Model, Row, Table, at


def rendered(name: str, text: str) -> Model:
    """A model's file with dbt's functions and fivm's macros standing in."""
    meta: dict[str, Any] = {}
    initialize: list[str] = []

    def config(**given: Any) -> str:
        assert given["materialized"] == "viewdf"
        meta.update(given.get("meta", {}))
        return ""

    class Macros:
        @staticmethod
        def part(relation: str, low: str = "j", high: str | None = None) -> str:
            return "{" + f"{relation}:{low}" + (f"..{high}" if high else "") + "}"

        @staticmethod
        def span(relation: str, low: str = "j", high: str | None = None) -> str:
            return "{" + f"{relation}:span {low}" + (f"..{high}" if high else "") + "}"

        @staticmethod
        def initialize(caller: Any) -> str:
            initialize.append(caller().strip())
            return ""

    template = jinja2.Environment().from_string(text)
    functions = {"ref": lambda n: n, "source": lambda _, n: n, "this": name, "fivm": Macros, "config": config}
    update = template.render(**functions).strip()
    # A plain ref is a relation in braces for the oracle, where it is no part.
    return Model(name, update, initialize[0] if initialize else None, meta)


def played(models: Mapping[str, str], text: str, place: str) -> tuple[str, dict[str, Plan]]:
    """What each run of an example prints, and what the models show at its end."""
    example = yaml.safe_load(text)
    tables = [_table(name, given) for name, given in example["tables"].items()]
    bench = Bench(
        tables, [rendered(name, models[name]) for name in example["models"]], example.get("zone", "UTC")
    )
    lines: list[str] = []
    try:
        for number, step in enumerate(example["steps"]):
            for name, rows in step.get("delete", {}).items():
                bench.change(name, delete=[_row(bench.tables[name], r) for r in rows])
            for name, rows in step.get("insert", {}).items():
                bench.change(name, insert=[_row(bench.tables[name], r) for r in rows])
            reports = bench.run()
            bench.check()
            lines += ([""] if number else []) + [f"step {number + 1}"]
            lines += [f"  {_shortened(r.line())}" for r in reports.values()]
            for name, expected in step.get("expected", {}).items():
                found = sorted([*map(str, r)] for r in bench.rows(name))
                assert found == sorted([*map(str, r)] for r in expected), (
                    f"{place}: step {number + 1}: {name}: {found}"
                )
    finally:
        bench.close()
    return "\n".join(lines) + "\n", bench.plans


def _shortened(line: str) -> str:
    """A log line without what DuckDB cannot tell."""
    return line.partition("; read ")[0]


def _table(name: str, given: Mapping[str, Any]) -> Table:
    parts = None
    if "event_time" in given:
        length = Length.of(given["fivm_part_length"]) if "fivm_part_length" in given else None
        lateness = duration(given["fivm_lateness"]) if "fivm_lateness" in given else None
        parts = TimeParts(given["event_time"], length, lateness)
    return Table(name, [(n, t) for n, t in given["columns"]], [], parts)


def _row(table: Table, values: Any) -> Row:
    return tuple(
        at(v) if t == "timestamp" and isinstance(v, str) else v
        for v, (_, t) in zip(values, table.columns, strict=True)
    )
