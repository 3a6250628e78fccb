"""What is printed: a row for each model after a batch, and whole runs of dbt beside each other."""

from __future__ import annotations

from collections.abc import Sequence

from demo.report import plain_table
from rich.console import Console

from benchmarks.project.rounds import Measured, Round

MOST_HELPERS = 0.7
"""The bar: inner views per model."""

MOST_SECONDS = 0.5
"""The bar: whole runs of dbt after a batch, as a share of what they take with tables."""


def of_models(round_: Round, console: Console) -> None:
    """Each model after a batch, the slowest first."""
    table = plain_table(
        "model", "did", "#inner views", "#statements", "#rows merged", "#s", "#table s", "#ratio", "rows"
    )
    for m in sorted(round_.models, key=lambda m: -m.seconds):
        rows = f"[bold red]{m.differing:,} DIFFER[/]" if m.differing else f"{m.rows:,} equal"
        figures = (
            str(m.helpers),
            str(m.statements),
            f"{m.rows_merged:,}",
            *_seconds(m.seconds, m.table_seconds),
        )
        table.add_row(m.model, _did(m), *figures, rows)
    console.print(table)


def of_runs(rounds: Sequence[Round], console: Console) -> None:
    """Whole runs of dbt, and how many inner views there are."""
    table = plain_table(
        "batch", "#changed rows", "#models differ", "#dbt run s", "#with tables s", "#ratio", "did"
    )
    for each in rounds:
        share = f"{each.changed_rows / rounds[0].changed_rows:.1%}"
        differ = sum(bool(m.differing) for m in each.models)
        figures = (
            f"{each.changed_rows:,}",
            share,
            str(differ),
            *_seconds(each.fivm_seconds, each.table_seconds),
        )
        table.add_row(str(each.batch) if each.batch else "load", *figures, _actions(each.models))
    console.print(table)
    models = rounds[-1].models
    helpers = sum(m.helpers for m in models)
    console.print(
        f"{helpers} inner views of {len(models)} models: {helpers / len(models):.2f} for each (bar {MOST_HELPERS})"
    )
    batches = [each for each in rounds if each.batch]
    if batches:
        worst = max(batches, key=lambda r: r.ratio)
        console.print(
            f"at most {worst.ratio:.2f} of a recompute of the project, after batch {worst.batch} (bar {MOST_SECONDS})"
        )


def _seconds(ours: float, theirs: float) -> tuple[str, str, str]:
    return f"{ours:.1f}", f"{theirs:.1f}", f"{ours / theirs:.2f}" if theirs else ""


def _did(m: Measured) -> str:
    return m.action if m.reason is None else f"{m.action}: {m.reason}"


def _actions(models: Sequence[Measured]) -> str:
    actions = [m.action for m in models]
    return ", ".join(f"{actions.count(action)} {action}" for action in dict.fromkeys(sorted(actions)))
