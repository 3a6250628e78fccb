"""What refreshes and builds of a model have cost, and what the next one is expected to: whether it pays (ADR 0047).

Every head has the figures of those before it, so nothing is asked for them. They are seconds from the begin of a
refresh to its commit, and rows that came and went by input.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from statistics import median_low
from typing import Any

REMEMBERED = 20
"""So many refreshes are remembered."""

REMEMBERED_PARTS = 5
"""So many builds of parts are."""

AROUND_A_PART = 1.0
"""Seconds of a build of a part, however small it is: its statement, and the commit."""

ALIKE = 2
"""Two changes are alike if one has at most so many times the rows of the other."""

PAYS_UP_TO = 1.1
"""A refresh may be expected to take so many times the seconds of a build: the figures vary."""

SHORT, SAVED_BY_SHORT = 3, 10
"""A model of few rows that is built in fewer seconds is refreshed, unless a build saves so many: what is around the
statements varies by a few."""

SURE_BY, UNSURE_BY = 1, 2
"""So many seconds have to be saved at least: if two refreshes after such a change are known, and if not."""

SURE_OF_MANY = 0.5
"""The first of them where there are many rows: what has taken a second then takes it again."""

TELLS_UP_TO = 2.0
"""The same where other models read the change feed: a build has them compare all rows."""

READING, PER_ROW = 0.3, 1.5
"""Of an input whose changes nobody has seen yet: its change is read beside others, which takes a part of a build; and
what a build does for each row is done for each that comes or goes, and then it is written."""

MANY_ROWS = 1_000_000
"""Rows of all inputs that are many: only then that is expected. A build of fewer takes its time whatever there is."""

DOUBTED = 0.9
"""By so much less is an estimate believed after each build in its place: else nobody would find out what is wrong."""


@dataclass(frozen=True)
class Spent:
    """The seconds of a refresh that was to apply so many rows of each input that changed.

    ``written`` is how many rows of these inputs came or went before it, as their histories tell, where they do. No more
    than these are net changes of rows that the model reads.
    """

    changed: Mapping[str, int]
    seconds: float
    written: Mapping[str, int] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """Of all inputs."""
        return sum(self.changed.values())


@dataclass(frozen=True)
class Expected:
    """The seconds that a refresh is expected to take, and those of a build in its place; None is not known.

    It ``is_sure`` where several refreshes have been like it, and ``is_of_many`` rows that the inputs have.
    """

    refresh: float | None
    build: float | None
    is_sure: bool = False
    is_of_many: bool = False

    def is_dearer(self, *, is_read: bool) -> bool:
        """Whether the refresh is expected to take so much longer that the model is built.

        >>> sure = Expected(11.5, 10.0, is_sure=True)
        >>> sure.is_dearer(is_read=False), sure.is_dearer(is_read=True), Expected(11.5, 10.0).is_dearer(is_read=False)
        (True, False, False)
        >>> Expected(12.5, 10.0).is_dearer(is_read=False), Expected(None, 10.0).is_dearer(is_read=False)
        (True, False)
        >>> Expected(9.0, 2.9, is_sure=True).is_dearer(is_read=False), Expected(60.0, 2.9).is_dearer(is_read=False)
        (False, True)
        >>> many = Expected(2.4, 1.5, is_sure=True, is_of_many=True)
        >>> many.is_dearer(is_read=False), many.is_dearer(is_read=True)
        (True, False)
        """
        if self.refresh is None or self.build is None:
            return False
        most = TELLS_UP_TO if is_read else PAYS_UP_TO
        least: float = SURE_BY if self.is_sure else UNSURE_BY
        if self.is_of_many:
            least = SURE_OF_MANY if self.is_sure else UNSURE_BY
        elif self.build < SHORT:
            least = SAVED_BY_SHORT
        return self.refresh > most * self.build and self.refresh - self.build > least

    @property
    def seconds(self) -> tuple[float, float] | None:
        """Both, where both are known."""
        if self.refresh is None or self.build is None:
            return None
        return round(self.refresh, 3), round(self.build, 3)

    @property
    def text(self) -> str:
        """
        >>> Expected(14.26, 10).text
        'a refresh is expected to take 14.3 s, a build 10.0 s'
        """
        refresh, build = ("?" if s is None else f"{s:.1f}" for s in (self.refresh, self.build))
        return f"a refresh is expected to take {refresh} s, a build {build} s"


@dataclass(frozen=True)
class BuiltInPart:
    """The seconds in which a ``share`` of a model was built, up to 1 of its root."""

    share: float
    seconds: float


@dataclass(frozen=True)
class Costs:
    """What is known when a refresh begins: seconds of the last build, rows of each input since, the last refreshes.

    ``given_up`` counts the builds in a row that stood in the place of a refresh, ``parts`` those of parts.
    """

    build: float | None = None
    rows: Mapping[str, int] = field(default_factory=dict)
    spent: tuple[Spent, ...] = ()
    given_up: int = 0
    in_part: tuple[BuiltInPart, ...] = ()
    """The last builds of parts."""
    parts: int = 0

    # What has been

    def built(self, seconds: float | None) -> Costs:
        """After a build."""
        return replace(self, build=seconds)

    def refreshed(
        self,
        changed: Mapping[str, tuple[int, int]],
        seconds: float | None,
        written: Mapping[str, int] | None = None,
    ) -> Costs:
        """After a refresh that applied so many rows that came, and went, by input, of those ``written`` before it."""
        rows = {
            n: max(0, r + came - gone)
            for n, r in self.rows.items()
            for came, gone in [changed.get(n, (0, 0))]
        }
        if seconds is None or not changed:
            return replace(self, rows=rows)
        new = Spent({name: sum(both) for name, both in changed.items()}, seconds, written or {})
        return replace(self, rows=rows, spent=(*self.spent, new)[-REMEMBERED:], given_up=0, parts=0)

    def instead(self) -> Costs:
        """Of a build in the place of a refresh: what is known of refreshes holds still."""
        return Costs(spent=self.spent, given_up=self.given_up + 1, in_part=self.in_part)

    def built_in_part(self, share: float, seconds: float | None) -> Costs:
        """After a build of a part in the place of a refresh."""
        new = [] if seconds is None else [BuiltInPart(share, seconds)]
        return replace(self, in_part=(*self.in_part, *new)[-REMEMBERED_PARTS:], parts=self.parts + 1)

    # What is expected

    @property
    def shares(self) -> dict[str, float]:
        """In what share of the refreshes that are remembered each input changed.

        >>> Costs(spent=(Spent({"f": 1, "d": 1}, 1.0), *(Spent({"f": 1}, 1.0),) * 3)).shares
        {'d': 0.25, 'f': 1.0}
        """
        changed = Counter(name for s in self.spent for name in s.changed)
        return {name: changed[name] / len(self.spent) for name in sorted(changed)}

    @property
    def is_long(self) -> bool:
        """Whether an input that has not changed is taken for one that does not."""
        return len(self.spent) == REMEMBERED

    def lost(self, inputs: Collection[str]) -> float:
        """The seconds of refreshes, beyond the least ones, in which one of these inputs changed."""
        least = min((s.seconds for s in self.spent), default=0.0)
        return sum(s.seconds - least for s in self.spent if not s.changed.keys().isdisjoint(inputs))

    def expected(self, changed: Mapping[str, int]) -> Expected:
        """Of a refresh that applies so many rows of each input.

        What is known of changes of the same inputs comes first. Else what is known of inputs one by one adds up,

            seconds = least + Σ (seconds of input - least)

        where ``least`` is the shortest refresh that is remembered: what each of them costs whatever it applies. It is
        no less than for one of them.
        """
        changed = {name: rows for name, rows in changed.items() if rows}
        alike = [s.seconds for s in self._of(changed) if _is_alike(s.rows, sum(changed.values()))]
        if alike:
            return self._believed(median_low(alike[-5:]), is_sure=len(alike) > 1)
        least = min((s.seconds for s in self.spent), default=0.0)
        together = self._of_inputs(changed) if self._of(changed) else None
        if together is not None:
            return self._believed(together)
        each = [self._of_inputs({name: rows}) for name, rows in changed.items()]
        known = [s for s in each if s is not None]
        if len(known) < len(each):
            return Expected(None, self.build)
        return self._believed(max([least + sum(s - least for s in known), *known]))

    def of_part(self, share: float) -> float | None:
        """The seconds of a build of a share of the model: as of one alike, or in proportion to a build.

        >>> known = Costs(10.0, in_part=(BuiltInPart(0.1, 7.0),))
        >>> known.of_part(0.15), known.of_part(0.5), Costs().of_part(0.5)
        (7.0, 6.0, None)
        """
        alike = [b.seconds for b in self.in_part if b.share <= ALIKE * share and share <= ALIKE * b.share]
        if alike:
            return median_low(alike)
        return None if self.build is None else AROUND_A_PART + share * self.build

    def may_be_dearer(self, relation: str, rows: int | None, *, is_read: bool, of_build: float = 1.0) -> bool:
        """Whether a change of at most so many rows may be dearer than a share ``of_build``. None is any number."""
        if self.build is None:
            return False
        least = of_build * self.build
        if rows is None:
            has_been = any(s.seconds > least for s in self._of({relation: 0}))
            return has_been or not self._of({relation: 0})
        return replace(self.expected({relation: rows}), build=least).is_dearer(is_read=is_read)

    def expected_of_written(self, written: Mapping[str, int | None]) -> Expected:
        """Of a refresh whose changes nobody has counted, by how many rows of each input have been written.

        So many rows of them are net changes as the lower median of the shares of earlier ones says: none where the
        model does not read what is written there. Nothing is expected where that is not known of an input.

        >>> known = Costs(10.0, {}, (Spent({"f": 50}, 8.0, {"f": 100}), Spent({"f": 100}, 16.0, {"f": 100})))
        >>> known.expected_of_written({"f": 200}).refresh, known.expected_of_written({"f": None}).refresh
        (8.0, None)
        """
        changed = {name: self._net(name, rows) for name, rows in written.items()}
        known = {name: rows for name, rows in changed.items() if rows is not None}
        return self.expected(known) if len(known) == len(changed) else Expected(None, self.build)

    def _net(self, name: str, written: int | None) -> int | None:
        shares = [s.changed.get(name, 0) / s.written[name] for s in self.spent if s.written.get(name)]
        return None if written is None or not shares else int(written * median_low(shares))

    def _believed(self, seconds: float, *, is_sure: bool = False) -> Expected:
        is_of_many = sum(self.rows.values()) >= MANY_ROWS
        return Expected(seconds * DOUBTED ** (self.given_up + self.parts), self.build, is_sure, is_of_many)

    def _of(self, changed: Mapping[str, int]) -> list[Spent]:
        """The refreshes after changes of the same inputs, oldest first."""
        return [s for s in self.spent if s.changed.keys() == changed.keys()]

    def _of_inputs(self, changed: Mapping[str, int]) -> float | None:
        """The seconds after a change of these inputs: as after one alike, or between what smaller and larger ones took.

        A larger change than any that was seen takes more in proportion, but no more than its rows are expected to take.
        What a refresh takes whatever it applies is in that proportion too: a small change is appended, a large one
        writes partitions.
        """
        seen, rows = self._of(changed), sum(changed.values())
        alike = [s.seconds for s in seen if _is_alike(s.rows, rows)]
        if alike:
            return median_low(alike[-5:])
        smaller = max((s for s in seen if s.rows < rows), key=lambda s: s.rows, default=None)
        larger = min((s for s in seen if s.rows > rows), key=lambda s: s.rows, default=None)
        unseen = self._of_unseen(changed)
        bounds = [larger.seconds] if larger is not None else []
        if smaller is None:
            bounds += [unseen] if unseen is not None else []
            return min(bounds, default=None)
        then = self._of_unseen(smaller.changed)
        if unseen is not None and then is not None:
            bounds.append(unseen * max(1.0, smaller.seconds / then))
        if not bounds:
            return smaller.seconds
        return max(smaller.seconds, min(smaller.seconds * rows / smaller.rows, *bounds))

    def _of_unseen(self, changed: Mapping[str, int]) -> float | None:
        """The same of inputs whose changes nobody has seen, by their rows and the seconds of a build."""
        is_known = all(self.rows.get(name) for name in changed)
        if self.build is None or not is_known or sum(self.rows.values()) < MANY_ROWS:
            return None
        return self.build * (READING + PER_ROW * sum(n / self.rows[name] for name, n in changed.items()))

    # In a head

    def as_dict(self) -> dict[str, Any]:
        """As a head records them."""
        spent = [
            {"changed": dict(s.changed), "seconds": s.seconds, "written": dict(s.written)} for s in self.spent
        ]
        known = {"build": self.build, "rows": dict(self.rows), "spent": spent, "given_up": self.given_up}
        in_part = [{"share": b.share, "seconds": b.seconds} for b in self.in_part]
        return {**known, "in_part": in_part, "parts": self.parts} if in_part or self.parts else known

    @staticmethod
    def of(data: Mapping[str, Any] | None) -> Costs:
        """
        >>> known = Costs(9.5, {"r": 100}, (Spent({"r": 3}, 1.25, {"r": 4}),), 1, (BuiltInPart(0.5, 2.0),), 1)
        >>> Costs.of(known.as_dict()) == known, Costs.of(None) == Costs()
        (True, True)
        """
        if not data:
            return Costs()
        spent = tuple(Spent(s["changed"], float(s["seconds"]), s.get("written", {})) for s in data["spent"])
        in_part = tuple(BuiltInPart(b["share"], b["seconds"]) for b in data.get("in_part", ()))
        given_up, parts = int(data["given_up"]), int(data.get("parts", 0))
        return Costs(
            data["build"], data["rows"], spent=spent, given_up=given_up, in_part=in_part, parts=parts
        )


NOTHING = Costs()
"""Of a model of which nothing is known."""


def seconds_between(began: str | None, committed: str) -> float | None:
    """From the begin of a refresh to its commit, None where the clocks do not agree.

    >>> seconds_between("2024-05-01T12:00:00+00:00", "2024-05-01T12:00:02.5+00:00")
    2.5
    >>> seconds_between("2024-05-01T12:00:00+00:00", "2024-05-01 11:00:00") is None
    True
    """
    if began is None:
        return None
    ended = datetime.fromisoformat(committed)
    ended = ended if ended.tzinfo is not None else ended.replace(tzinfo=timezone.utc)
    seconds = (ended - datetime.fromisoformat(began)).total_seconds()
    return seconds if seconds >= 0 else None


def known_after(costs: Costs, detail: Mapping[str, Any], committed: str) -> Costs:
    """What is known after the refresh that a head tells of, which was ``committed`` then."""
    seconds = seconds_between(detail.get("started_at"), committed)
    if detail["kind"] == "build":
        return costs.built(seconds)
    if detail["kind"] != "refresh":
        return costs
    if (share := detail.get("built_share")) is not None:
        return costs.built_in_part(share, seconds)
    return costs.refreshed(dict(_changed(detail)), seconds, detail.get("written"))


def _changed(detail: Mapping[str, Any]) -> Iterator[tuple[str, tuple[int, int]]]:
    for name, (came, gone) in detail.get("changed", {}).items():
        yield name, (int(came), int(gone))


def _is_alike(one: int, other: int) -> bool:
    return one <= ALIKE * other and other <= ALIKE * one
