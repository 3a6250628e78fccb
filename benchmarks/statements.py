"""What a small refresh costs on local Spark, beside a full recompute: ``python -m benchmarks.statements``.

A model over two tables, of a few rows or of many (``--facts``). In each round ten orders and a customer change, and
the model is refreshed, and refreshed again with nothing to do. Then they change once more, and it is computed anew by
CREATE OR REPLACE TABLE (CTAS). Models with inner views (``--helpers``) go through the same rounds. The first refreshes
of a session are slower, because Java compiles while it runs: seconds are medians of the second half of the rounds,
statements and commits the most of it.
"""

from __future__ import annotations

import itertools
import json
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, get_args

import click
from rich.console import Console
from rich.table import Table

from benchmarks.bars import Bar, bars_table
from benchmarks.statement_models import TABLES, Changes, Inputs, Shape, model_sql
from benchmarks.statement_runs import Figures, Followed, round_as_dict
from fivm_dbt.engines.spark.own_session import own_session
from fivm_dbt.engines.spark.session import DEFAULTS, local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TINY_RATIO, FACTS_RATIO, NO_CHANGE_SECONDS = 1.0, 0.45, 0.3
HELPER_RATIOS = {3: 1.5, 10: 2.5}
"""At most so many times the seconds of the model without inner views, by their number."""
STATEMENTS, COMMITS = 3, 1
_WIDTH = 110


@click.command(epilog="Exits with 1 if a model's view is not what its SQL gives at the end.")
@click.option("--refreshes", default=12, show_default=True, type=click.IntRange(2), help="How many rounds.")
@click.option(
    "--facts",
    type=click.IntRange(1),
    help="So many orders of 5,000 customers in ten yearly partitions, instead of 5,000 orders of 50.",
)
@click.option(
    "--helpers",
    multiple=True,
    type=click.IntRange(0, 20),
    help="Also a model with so many inner views; can be repeated. The one without is always there.",
)
@click.option(
    "--shape",
    default="stacked",
    show_default=True,
    type=click.Choice(get_args(Shape)),
    help="Whether inner views are stacked by UNION ALL or joined by their keys.",
)
@click.option(
    "--changes",
    default="both",
    show_default=True,
    type=click.Choice(get_args(Changes)),
    help="What changes: ten orders, one customer, or both.",
)
@click.option("--json", "report", type=click.Path(path_type=Path), help="Write all figures to this file too.")
@click.option(
    "--session",
    "kind",
    default="default",
    show_default=True,
    type=click.Choice(["default", "small"]),
    help="dbt's session, in which CTAS runs: as Spark has it by default, or with settings for small data.",
)
@click.option(
    "--conf", "settings", multiple=True, metavar="KEY=VALUE", help="A setting of the Spark session."
)
def main(
    refreshes: int,
    facts: int | None,
    helpers: tuple[int, ...],
    shape: Shape,
    changes: Changes,
    report: Path | None,
    kind: str,
    settings: tuple[str, ...],
) -> None:
    """Print seconds of refreshes beside those of full recomputes, what was sent, and how long each statement took."""
    if shape == "joined" and 1 in helpers:
        raise click.UsageError("--shape joined takes two inner views or more")
    inputs = Inputs.tiny() if facts is None else Inputs.facts(facts)
    queries = {number: model_sql(number, shape) for number in sorted({0, *helpers})}
    with tempfile.TemporaryDirectory() as directory:
        given = {**(DEFAULTS if kind == "default" else {}), **dict(s.split("=", 1) for s in settings)}
        session = local_session(Path(directory), settings=given)
        try:
            models = _built(session, Path(directory) / "warehouse", inputs, queries)
            _follow(session, inputs, changes, models, refreshes)
            for model in models:
                model.check()
        finally:
            session.stop()
    found = [model.figures() for model in models]
    held = bars(found, TINY_RATIO if facts is None else FACTS_RATIO)
    _print(models, found, held)
    if report is not None:
        data = {
            "orders": inputs.orders,
            "shape": shape,
            "changes": changes,
            "session": kind,
            "settings": settings,
            "models": [
                {**asdict(f), "rounds": [round_as_dict(r) for r in m.rounds]}
                for f, m in zip(found, models, strict=True)
            ],
            "bars": [{**asdict(bar), "is_met": bar.is_met} for bar in held],
        }
        report.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")


def _built(session: SparkSession, warehouse: Path, inputs: Inputs, queries: dict[int, str]) -> list[Followed]:
    inputs.create(session)
    for schema in ("shop", "control"):
        session.sql(f"CREATE SCHEMA {schema}")
    models = []
    for number, sql in queries.items():
        relation = f"shop.revenue_{number}" if number else "shop.revenue"
        model = Followed.build(session, warehouse, relation, sql, TABLES)
        if model.helpers != number:
            raise SystemExit(f"{relation} was to have {number} inner views and has {model.helpers}")
        rows = session.table(relation).count()
        click.echo(f"built {relation}: {model.build_seconds:6.2f} s, {rows:,} rows, {number} inner views")
        models.append(model)
    return models


def _follow(
    session: SparkSession, inputs: Inputs, changes: Changes, models: list[Followed], refreshes: int
) -> None:
    """Whoever comes first after a change reads the new versions first: so each that is timed has one of its own."""
    numbers = itertools.count(1)
    # Who changes the inputs is nobody's matter: the quick session saves minutes of a run.
    quick = own_session(session)

    def change() -> None:
        inputs.change(quick, next(numbers), changes)

    for number in range(1, refreshes + 1):
        for model in models:
            done = model.follow(change)
            click.echo(
                f"refresh {number:>3}: {done.changed.seconds:6.2f} s, no change {done.unchanged.seconds:5.2f} s, "
                f"CTAS {done.ctas_seconds:6.2f} s, {model.plan.relation}"
            )


def bars(found: Sequence[Figures], ratio: float) -> list[Bar]:
    """What the figures are held against; the first model is the one without inner views."""
    base = found[0]
    held = [
        Bar("refresh / CTAS", base.changed.seconds / base.ctas_seconds, ratio),
        Bar("statements", base.changed.statements, STATEMENTS),
        Bar("commits", base.changed.commits, COMMITS),
        Bar("no change: seconds", base.unchanged.seconds, NO_CHANGE_SECONDS),
        Bar("no change: statements", base.unchanged.statements, 1),
        Bar("no change: commits", base.unchanged.commits, 0),
    ]
    for model in found[1:]:
        of = f"{model.helpers} inner views"
        if model.helpers in HELPER_RATIOS:
            slower = model.changed.seconds / base.changed.seconds
            held.append(Bar(f"{of}: refresh / without", slower, HELPER_RATIOS[model.helpers]))
        most = base.changed.statements + model.helpers
        held.append(Bar(f"{of}: statements", model.changed.statements, most))
        held.append(Bar(f"{of}: commits", model.changed.commits, COMMITS))
    return held


def _print(models: list[Followed], found: list[Figures], held: list[Bar]) -> None:
    console = Console(width=_WIDTH, soft_wrap=True)
    for model in models:
        console.print(_of_statements(model))
    console.print(_of_models(found))
    console.print(bars_table(held))


def _of_statements(model: Followed) -> Table:
    """Means, which add up to the whole."""
    table = Table("statement", "seconds", box=None, title=model.plan.relation, title_justify="left")
    rows: defaultdict[str, float] = defaultdict(float)
    runs = [round_.changed for round_ in model.warm]
    for run in runs:
        for timing in run.timings:
            rows[timing.statement] += timing.seconds / len(runs)
    for statement, seconds in sorted(rows.items(), key=lambda row: -row[1]):
        table.add_row(statement, f"{seconds:.2f}")
    whole = mean(run.seconds for run in runs)
    table.add_row("outside of statements", f"{whole - sum(rows.values()):.2f}")
    table.add_row("whole refresh", f"{whole:.2f}")
    return table


def _of_models(found: Sequence[Figures]) -> Table:
    table = Table(box=None)
    table.add_column("inner views", justify="right")
    table.add_column("change")
    for head in ("seconds", "CTAS", "ratio", "/ without", "staged", "queried", "written", "commits"):
        table.add_column(head, justify="right")
    for f in found:
        for change, cost, base in (
            ("yes", f.changed, found[0].changed),
            ("no", f.unchanged, found[0].unchanged),
        ):
            seconds = (
                cost.seconds,
                f.ctas_seconds,
                cost.seconds / f.ctas_seconds,
                cost.seconds / base.seconds,
            )
            counts = (cost.staged, cost.queried, cost.written, cost.commits)
            table.add_row(str(f.helpers), change, *(f"{s:.2f}" for s in seconds), *map(str, counts))
    return table


if __name__ == "__main__":
    main()
