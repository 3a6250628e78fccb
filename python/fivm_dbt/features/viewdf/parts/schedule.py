"""Parts of a model are ready, or computed again after late data (ViewDF, sections 4.1 and 4.3).

A part is ready when all parts that it is computed from are there, whatever the order in which these arrived. With
``missing`` the parts of an input that are not there,

    ``ready = wanted − ⋃_inputs dependents(missing)``

so that a catch-up over years costs as many steps as there are gaps. A model that is computed from its own earlier parts
goes on from part to part as far as the others let it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from fivm_dbt.errors import FivmError
from fivm_dbt.parts.intervals import Intervals
from fivm_dbt.parts.reference import PartReference

Start = Literal["newest", "oldest"]


@dataclass(frozen=True)
class Recurrence:
    """What parts of a model are computed from: UPDATE's ``references``, INITIALIZE's for the first one.

    A reference to ``relation`` itself is to earlier parts.
    """

    relation: str
    references: tuple[PartReference, ...]
    initial: tuple[PartReference, ...]

    def __post_init__(self) -> None:
        for reference in self.own:
            if reference.high.at(0) >= 0 or reference.high.factor != reference.high.divisor:
                raise FivmError(
                    "FIVM205",
                    f"{reference} reads a part of the model that is not before the one computed",
                    remedy="refer to earlier parts, as in j-1",
                )
        if any(r.relation == self.relation for r in self.initial):
            raise FivmError(
                "FIVM205",
                "INITIALIZE reads the model itself, of which there is no part yet",
                remedy="compute the first part from the inputs alone",
            )

    @property
    def own(self) -> tuple[PartReference, ...]:
        """The references to the model itself."""
        return tuple(r for r in self.references if r.relation == self.relation)

    @property
    def others(self) -> tuple[PartReference, ...]:
        return tuple(r for r in self.references if r.relation != self.relation)

    def first_part(self, start: Start | int, there: Mapping[str, Intervals]) -> int | None:
        """The part to begin with, None where an input has none.

        ``newest``: the last one for which every input of INITIALIZE has as late a part; the smallest over the inputs.
        ``oldest``: the first one for which every input has as early a part. A number is that part.
        """
        if isinstance(start, int):
            return start
        if not all(there.get(r.relation) for r in self.initial):
            return None
        if start == "newest":
            return min((r.high.greatest_within(there[r.relation].last) for r in self.initial), default=None)
        return max((r.low.least_reaching(there[r.relation].first) for r in self.initial), default=None)

    def ready(
        self, first: int, computed: Intervals, there: Mapping[str, Intervals], within: Intervals | None = None
    ) -> Intervals:
        """The parts from ``first`` on that can be computed and have not been, those of ``within`` alone.

        One that needs earlier parts of the model itself is ready if these have been computed, or are ready too.
        """
        after = self._after_the_first(first, there)
        wanted = after - computed
        for reference in self.others:
            wanted -= reference.dependents(self._missing(reference, wanted, there))
        if first not in computed and self._initial_is_there(first, there):
            wanted |= Intervals.of((first, first))
        if within is not None:
            wanted &= within
        return self._in_turn(first, computed, wanted) if self.own else wanted

    def _after_the_first(self, first: int, there: Mapping[str, Intervals]) -> Intervals:
        """The parts after the first one that no input ends before. None where nothing but the model itself is read."""
        if not self.others or not all(there.get(r.relation) for r in self.others):
            return Intervals()
        return Intervals.of(
            (first + 1, min(r.high.greatest_within(there[r.relation].last) for r in self.others))
        )

    def _missing(
        self, reference: PartReference, wanted: Intervals, there: Mapping[str, Intervals]
    ) -> Intervals:
        """Parts of an input that the wanted ones need and that are not there."""
        if not wanted:
            return Intervals()
        needed = Intervals.of((reference.low.at(wanted.first), reference.high.at(wanted.last)))
        return needed - there[reference.relation]

    def _initial_is_there(self, first: int, there: Mapping[str, Intervals]) -> bool:
        return all(p in there.get(r.relation, Intervals()) for r in self.initial for p in r.parts(first))

    def _in_turn(self, first: int, computed: Intervals, wanted: Intervals) -> Intervals:
        """Those of the wanted parts whose earlier parts of the model are there, or come before them in turn.

        Parts before the first one do not exist, and are not waited for.
        """
        found: set[int] = set()
        for part in wanted:
            needed = (p for r in self.own for p in r.parts(part) if p >= first)
            if part == first or all(p in found or p in computed for p in needed):
                found.add(part)
        return Intervals.numbers(found)

    def affected(self, first: int, changed: Mapping[str, Intervals], computed: Intervals) -> Intervals:
        """The computed parts that read a changed part of an input, directly."""
        found, start = Intervals(), Intervals.of((first, first))
        for reference in self.others:
            found |= reference.dependents(changed.get(reference.relation, Intervals())) - start
        for reference in self.initial:
            found |= reference.dependents(changed.get(reference.relation, Intervals())) & start
        return found & computed

    def recompute(
        self, affected: Intervals, computed: Intervals, has_changed: Callable[[int], bool]
    ) -> Intervals:
        """Compute the affected parts again and, through the model itself, those after them that change with them.

        ``has_changed`` computes a part, and says whether its content is another now. Where it is not, what would have
        followed from it stops. Returns the parts whose content changed.
        """
        waiting, changed = set(affected), []
        while waiting:
            part = min(waiting)
            waiting.remove(part)
            if has_changed(part):
                changed.append(part)
                later = Intervals()
                for reference in self.own:
                    later |= reference.dependents(Intervals.of((part, part)))
                waiting |= set(later & computed) - {part}
        return Intervals.numbers(changed)


def in_order(models: Sequence[Recurrence]) -> tuple[Recurrence, ...]:
    """Models after those that they read. Raises FIVM205 for a cycle, with the models in it."""
    known = {m.relation: m for m in models}
    done: dict[str, Recurrence] = {}
    path: list[str] = []

    def visit(model: Recurrence) -> None:
        if model.relation in done:
            return
        if model.relation in path:
            cycle = [*path[path.index(model.relation) :], model.relation]
            raise FivmError(
                "FIVM205",
                f"models are computed from each other: {' → '.join(cycle)}",
                remedy="take one of them apart: only a model itself can be referred to by its earlier parts",
            )
        path.append(model.relation)
        for reference in (*model.others, *model.initial):
            if reference.relation in known:
                visit(known[reference.relation])
        path.pop()
        done[model.relation] = model

    for model in models:
        visit(model)
    return tuple(done.values())
