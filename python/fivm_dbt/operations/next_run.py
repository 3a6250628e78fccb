"""``fivm plan`` tells what the next ``dbt run`` does with each model, before anything runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from fivm_dbt.errors import FivmError, underline
from fivm_dbt.explain.operators import reads_in_full
from fivm_dbt.explain.words import descriptions, listed, short
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.refresh.ahead import Ahead, Moved

Does = Literal[
    "build", "rebuild", "refresh", "recompute", "no change", "wait", "refused", "build or refresh", "unknown"
]
"""The last two are all that can be said without a connection; ``unknown`` is how the model is maintained."""

_DOES: Mapping[str, Does] = {
    "built": "build",
    "rebuilt": "rebuild",
    "refreshed": "refresh",
    "recomputed": "recompute",
    "no change": "no change",
    "waiting": "wait",
}
_WRITES: tuple[Does, ...] = ("build", "rebuild", "refresh", "recompute")


@dataclass(frozen=True)
class Change:
    """An input that has moved, or that this run writes first (versions None). ``rows`` is None where not known."""

    relation: str
    from_version: int | None
    to_version: int | None
    rows: int | None
    recreated: bool = False

    @property
    def text(self) -> str:
        """
        >>> Change("raw.orders", 3, 5, 1200).text, Change("shop.daily", None, None, None).text
        ('raw.orders: version 3 to 5, up to 1,200 rows', 'shop.daily: written by this run first')
        >>> Change("raw.orders", 3, 0, None, recreated=True).text
        'raw.orders: created anew, version 0'
        """
        if self.to_version is None:
            return f"{self.relation}: written by this run first"
        if self.recreated:
            return f"{self.relation}: created anew, version {self.to_version}"
        rows = "" if self.rows is None else f", up to {self.rows:,} rows"
        return f"{self.relation}: version {self.from_version} to {self.to_version}{rows}"


@dataclass(frozen=True)
class InnerView:
    """An inner view and what it is for."""

    relation: str
    description: str


@dataclass(frozen=True)
class FullRead:
    """A relation that a refresh reads in full, and the changes that make it do so."""

    relation: str
    when: tuple[str, ...]

    @property
    def text(self) -> str:
        """
        >>> FullRead("raw.orders", ("raw.customers",)).text
        'reads raw.orders in full when raw.customers changes'
        """
        if not self.when:
            return f"reads {self.relation} in full"
        return f"reads {self.relation} in full when {listed(self.when, 'or')} changes"


@dataclass(frozen=True)
class NextRun:
    """What the next run does with a model. ``code`` is that of the error by which it is refused.

    ``seconds`` and ``build_seconds`` are what a refresh is expected to take, and a build; None is not known.
    """

    model: str
    does: Does
    reason: str | None = None
    code: str | None = None
    remedy: str | None = None
    changes: tuple[Change, ...] = ()
    inner_views: tuple[InnerView, ...] = ()
    full_reads: tuple[FullRead, ...] = ()
    seconds: float | None = None
    build_seconds: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> NextRun:
        """What :meth:`as_dict` has given."""
        reads = tuple(FullRead(r["relation"], tuple(r["when"])) for r in data["full_reads"])
        views = tuple(InnerView(**v) for v in data["inner_views"])
        changes = tuple(Change(**c) for c in data["changes"])
        return NextRun(**{**data, "changes": changes, "inner_views": views, "full_reads": reads})

    def lines(self) -> Iterator[str]:
        """All but the name and the action."""
        if self.reason is not None:
            yield self.reason if self.code is None else f"{self.code} {self.reason}"
        if self.remedy:
            yield f"what to do: {self.remedy}"
        yield from (change.text for change in self.changes)
        for view in self.inner_views:
            yield f"keeps {short(view.relation)}: {view.description}"
        yield from (f"! {read.text}" for read in self.full_reads)
        if self.does == "refresh" and self.seconds is not None:
            yield f"expected: {self.seconds:.1f} s{_instead(self.build_seconds)}"
        elif self.build_seconds is not None and self.does in _WRITES:
            yield f"the last build took {self.build_seconds:.1f} s"


def _instead(seconds: float | None) -> str:
    return "" if seconds is None else f", a build {seconds:.1f} s"


def of_plan(plan: Plan, ahead: Ahead | None) -> NextRun:
    """What a run does by a plan, and by a look ahead; without one it is not known whether it builds or refreshes."""
    views = tuple(InnerView(*view) for view in descriptions(plan).items())
    told = NextRun(
        short(plan.relation), "build or refresh", inner_views=views, full_reads=tuple(_full_reads(plan))
    )
    why = plan.why_recomputed
    if ahead is None:
        return replace(told, reason=f"is recomputed: {why}") if why is not None else told
    reasons = [ahead.reason, f"is recomputed: {why}" if why is not None else None]
    if ahead.may_build:
        reasons.append(f"{ahead.expected.text}: it becomes a build if that many rows have changed")
    return replace(
        told,
        does=_DOES[ahead.action],
        reason="; ".join(filter(None, reasons)) or None,
        changes=tuple(map(_change, ahead.moved)),
        seconds=ahead.expected.refresh,
        build_seconds=ahead.expected.build,
    )


def refused(model: str, error: FivmError) -> NextRun:
    """A model that the run would stop at."""
    where = "" if error.sql is None or error.span is None else f"\n{underline(error.sql, error.span)}"
    return NextRun(model, "refused", error.message + where, error.code.number, error.remedy)


def after_what_is_written(told: NextRun, inputs: Sequence[str], written: Iterable[str]) -> NextRun:
    """The same where the run writes some of the inputs first: a model that has no change yet may have one then."""
    known = {change.relation for change in told.changes}
    first = tuple(Change(n, None, None, None) for n in inputs if n in set(written) and n not in known)
    if not first or told.does not in ("no change", "refresh", "recompute"):
        return told
    does: Does = "refresh" if told.does == "no change" else told.does
    return replace(told, does=does, changes=(*told.changes, *first))


def has_work(told: NextRun) -> bool:
    """Whether the run writes the model."""
    return told.does in _WRITES


def summary(runs: Sequence[NextRun]) -> str:
    """How many models there are of each kind.

    >>> summary([NextRun("a", "refresh"), NextRun("b", "refused"), NextRun("c", "refresh")])
    '3 models: 2 refresh, 1 refused'
    """
    counted = Counter(run.does for run in runs)
    parts = ", ".join(f"{n} {does}" for does, n in counted.items())
    return f"{len(runs)} model{'s' if len(runs) != 1 else ''}" + (f": {parts}" if parts else "")


def text_of(runs: Sequence[NextRun], styled: Callable[[str], str] = str) -> Iterator[str]:
    """A block of lines per model, and the summary; ``styled`` is what an action looks like."""
    width = max((len(run.model) for run in runs), default=0)
    for run in runs:
        lines = list(run.lines())
        yield f"{run.model.ljust(width)}  {styled(run.does)}"
        yield from (f"  {part}" for line in lines for part in line.split("\n"))
    yield summary(runs)


def _change(moved: Moved) -> Change:
    return Change(moved.relation, moved.from_version, moved.to_version, moved.rows, moved.recreated)


def _full_reads(plan: Plan) -> Iterator[FullRead]:
    """What refreshes read in full, each relation once."""
    if plan.why_recomputed is not None:
        yield from (FullRead(item.name, ()) for item in plan.inputs)
        return
    found: dict[str, dict[str, None]] = {}
    for view in plan.stored:
        for relation, when in reads_in_full(view):
            found.setdefault(relation, {}).update(dict.fromkeys(when))
    yield from (FullRead(relation, tuple(when)) for relation, when in sorted(found.items()))
