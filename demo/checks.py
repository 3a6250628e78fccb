"""What the demo promises, checked against its own figures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from demo.recompute import WRITTEN_BY_HAND
from demo.rounds import Outcome, Round

# The models of one row per day and more, whose refresh must stay small when only flights change.
DAILY = ("delays_daily", "summary_daily")
MOST_READ = 0.05


# Of models without patterns and parts.
MOST_SECONDS = 0.6


def ordinary(rounds: Sequence[Round]) -> list[str]:
    """The models without patterns and parts."""
    return [o.run.model for o in rounds[0].outcomes if o.run.model not in WRITTEN_BY_HAND]


def failures(built: Round, rounds: Sequence[Round]) -> list[str]:
    """One sentence for every promise that was not kept, of the first run and those after each batch."""
    return [
        *_unequal([built, *rounds]),
        *_written_for_nothing(rounds),
        *_read_too_much(rounds),
    ]


def remarks(rounds: Sequence[Round]) -> list[str]:
    """What is not as good as it should be, and depends on the machine: seconds."""
    return list(_too_slow(rounds))


def _unequal(rounds: Iterable[Round]) -> Iterator[str]:
    for each in rounds:
        for outcome in each.outcomes:
            found = outcome.found
            if not found.is_equal:
                what = f"{found.missing} rows missing, {found.surplus} too many"
                what += ", other columns" if found.schema_differs else ""
                yield f"{outcome.run.model} differs from its recompute after {each.batch.title!r}: {what}"


def _written_for_nothing(rounds: Iterable[Round]) -> Iterator[str]:
    for each in rounds:
        if not each.batch.touches and each.written:
            yield f"a run without changes wrote to {', '.join(each.written)}"


def _read_too_much(rounds: Iterable[Round]) -> Iterator[str]:
    for each, outcome in _flights_only(rounds):
        share = outcome.share_read
        if share is None:
            yield f"{outcome.run.model}: rows read were not measured in {each.batch.title!r}"
        elif share > MOST_READ:
            yield (
                f"{outcome.run.model} read {share:.1%} of the rows that its recompute reads, "
                f"more than {MOST_READ:.0%}, in {each.batch.title!r}"
            )


def _too_slow(rounds: Sequence[Round]) -> Iterator[str]:
    """Over all batches of flights, the daily models together: one reads the other, and both would be rebuilt.

    Single statements are too noisy to judge.
    """
    others = [(model,) for model in ordinary(rounds) if model not in DAILY]
    flights = [o for each in rounds if each.batch.is_flights_only for o in each.outcomes]
    for models in (DAILY, *others):
        refresh = sum(o.run.seconds for o in flights if o.run.model in models)
        recompute = sum(o.recomputed.seconds for o in flights if o.run.model in models)
        if refresh > MOST_SECONDS * recompute:
            yield (
                f"{' and '.join(models)}: the batches of flights took {refresh:.1f} s, {refresh / recompute:.2f} "
                f"of their recompute's {recompute:.1f} s"
            )


def _flights_only(rounds: Iterable[Round]) -> Iterator[tuple[Round, Outcome]]:
    for each in rounds:
        if each.batch.is_flights_only:
            yield from ((each, outcome) for outcome in each.outcomes if outcome.run.model in DAILY)
