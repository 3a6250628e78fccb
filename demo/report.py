"""The demo's tables, and the same figures as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.table import Table

from demo.dbt_runs import ModelRun
from demo.rounds import Round


def round_table(each: Round) -> Table:
    """One batch: what each model did, against its recompute."""
    table = plain_table(
        *("model", "action", "changed inputs", "#partitions", "#statements"),
        *("#rows\nread", "#recompute\nreads", "#share", "#seconds", "#recompute\nseconds", "equal"),
    )
    for outcome in each.outcomes:
        run, recomputed = outcome.run, outcome.recomputed
        table.add_row(
            run.model,
            run.action,
            _changes(run),
            str(run.partitions),
            str(run.statements),
            _count(run.rows_read),
            _count(recomputed.rows_read),
            _share(outcome.share_read),
            f"{run.seconds:.1f}",
            f"{recomputed.seconds:.1f}",
            "yes" if outcome.found.is_equal else "[bold red]NO[/]",
        )
    return table


def reasons(each: Round) -> list[str]:
    """What was scanned for the batch, and why, a line per model."""
    return [f"{outcome.run.model}: {_why(outcome.run)}" for outcome in each.outcomes if outcome.run.scans]


def summary_table(rounds: Sequence[Round]) -> Table:
    """All refreshes together: batches of flights alone, and the others."""
    table = plain_table(
        "model",
        "batches",
        "action",
        "#rows",
        "#rows\nread",
        "#share of\nrecompute",
        "#seconds",
        "#recompute\nseconds",
        "#ratio",
    )
    for model in (outcome.run.model for outcome in rounds[0].outcomes):
        for title, chosen in kinds(rounds).items():
            found = totals(model, chosen)
            table.add_row(
                *(model, f"{len(chosen)} {title}", found.actions, found.rows, found.rows_read, found.share),
                *(found.seconds, found.recompute_seconds, found.ratio),
            )
    return table


@dataclass(frozen=True)
class Totals:
    """What several refreshes of a model were together, in words; ``ratio`` is of the recompute's seconds."""

    actions: str
    rows: str
    rows_read: str
    share: str
    seconds: str
    recompute_seconds: str
    ratio: str


def write_json(
    path: Path, built: Round, rounds: Sequence[Round], problems: list[str], seconds: float
) -> None:
    """Every figure of the demo; `failures` is empty if all promises were kept."""
    document = {
        "seconds": round(seconds, 1),
        "failures": problems,
        "rounds": [_as_json(each) for each in (built, *rounds)],
    }
    path.write_text(json.dumps(document, indent=2) + "\n")


def _as_json(each: Round) -> dict[str, object]:
    content = asdict(each)
    content["batch"] = {"title": each.batch.title, "touches": sorted(each.batch.touches)}
    return content


def plain_table(*columns: str) -> Table:
    """A column whose title begins with # is a number."""
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    for title in columns:
        table.add_column(
            title.lstrip("#"), justify="right" if title.startswith("#") else "left", no_wrap=True
        )
    return table


def _changes(run: ModelRun) -> str:
    changed = (each for each in run.inputs if each.inserted or each.deleted)
    return "\n".join(
        f"{each.relation.split('.')[-1]} +{each.inserted:,} -{each.deleted:,}" for each in changed
    )


def _why(run: ModelRun) -> str:
    """Each table that was read, by the part that it plays in the refresh."""
    changed = [each.relation for each in run.inputs if each.inserted or each.deleted]
    parts = []
    for scan in sorted(run.scans, key=lambda each: -each.rows):
        if "__fivm_" in scan.relation:
            role = "own state"
        elif scan.relation in changed:
            role = "changed"
        else:
            role = f"joined with the change of {', '.join(changed)}"
        parts.append(f"{scan.rows:,} of {scan.relation} ({role})")
    return (f"{run.reason}; " if run.reason else "") + ", ".join(parts)


def kinds(rounds: Sequence[Round]) -> dict[str, list[Round]]:
    """The rounds by what their batches change."""
    return {
        "of flights alone": [each for each in rounds if each.batch.is_flights_only],
        "others": [each for each in rounds if each.batch.touches and not each.batch.is_flights_only],
        "without changes": [each for each in rounds if not each.batch.touches],
    }


def totals(model: str, rounds: Sequence[Round]) -> Totals:
    """The sums of the refreshes of a model."""
    outcomes = [outcome for each in rounds for outcome in each.outcomes if outcome.run.model == model]
    read = [outcome.run.rows_read for outcome in outcomes]
    rows_read = None if None in read else sum(each or 0 for each in read)
    recompute_read = sum(outcome.recomputed.rows_read for outcome in outcomes)
    seconds = sum(outcome.run.seconds for outcome in outcomes)
    recompute_seconds = sum(outcome.recomputed.seconds for outcome in outcomes)
    return Totals(
        actions=", ".join(dict.fromkeys(outcome.run.action for outcome in outcomes)),
        rows=_count(outcomes[-1].found.rows),
        rows_read=_count(rows_read),
        share=_share(None if rows_read is None else rows_read / max(recompute_read, 1)),
        seconds=f"{seconds:.1f}",
        recompute_seconds=f"{recompute_seconds:.1f}",
        ratio=f"{seconds / recompute_seconds:.2f}" if recompute_seconds else "",
    )


def _count(number: int | None) -> str:
    return "?" if number is None else f"{number:,}"


def _share(share: float | None) -> str:
    return "?" if share is None else f"{share:.2%}"
