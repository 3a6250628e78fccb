"""The references of a viewdf model read parts of relations; this module says which, and how long they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fivm_dbt.catalog import Relation, check_records_changes
from fivm_dbt.catalog.types import TIMESTAMP
from fivm_dbt.errors import FivmError
from fivm_dbt.features.viewdf.plan.model import PartInput, PartRead
from fivm_dbt.features.viewdf.sql.references import WrittenReference
from fivm_dbt.ir.moments import session_zone
from fivm_dbt.parts.length import UNKNOWN_ZONE, Length, shows_utc
from fivm_dbt.parts.parted import PART_TIMESTAMP, TimeParts
from fivm_dbt.parts.reference import PartReference

if TYPE_CHECKING:
    from fivm_dbt.plan.request import ModelRequest


@dataclass(frozen=True)
class PartReads:
    """The references of the model ``relation``. ``time_parts`` are those of its inputs, by their canonical names."""

    relation: str
    request: ModelRequest
    time_parts: Mapping[str, TimeParts]

    def _time_parts(self, relation: str) -> TimeParts:
        found = self.time_parts.get(relation)
        if found is None:
            raise FivmError(
                "FIVM205",
                f"nothing is known of the parts of {relation}",
                remedy="set event_time on it to the column that says when a row was, or read it by ref() alone",
            )
        return found

    def length(self, references: Sequence[WrittenReference]) -> Length:
        """How long the model's parts are: as configured, else those of the input with the longest ones."""
        if self.request.config.fivm_part_length is not None:
            given = Length.of(self.request.config.fivm_part_length, self.zone)
            return self._by_clock(given, references)
        others = {r.relation for r in references} - {self.relation}
        known = [p.length for r in sorted(others) if (p := self._time_parts(r)).length is not None]
        longest = max((n for n in known if n is not None), key=lambda n: n.seconds, default=None)
        if longest is None:
            raise FivmError(
                "FIVM205",
                "nothing says how long its parts are",
                remedy="set fivm_part_length, as in '15 minutes'",
            )
        return self._by_clock(longest, references)

    @property
    def zone(self) -> str:
        """The time zone of the model."""
        return self.request.config.fivm_time_zone or session_zone(self.request.session)

    def _by_clock(self, length: Length, references: Sequence[WrittenReference]) -> Length:
        """The length as what inputs count it by: fixed parts of what a clock shows are no stretches of instants.

        Raises FIVM205 where some inputs are of the one kind and some of the other: an hour of a clock would have to be
        the same as one of instants, and where a zone has other clocks than UTC it is not.
        """
        if not length.is_fixed:
            return length
        zone = "UTC" if self.zone == UNKNOWN_ZONE else self.zone
        if shows_utc(zone):
            return length.by_clock
        kinds: dict[bool, str] = {}
        for reference in references:
            is_clock = self._is_clock(reference.relation)
            if is_clock is not None:
                kinds.setdefault(is_clock, reference.relation)
        if len(kinds) == 2:
            raise FivmError(
                "FIVM205",
                f"times of {kinds[True]} have no zone and those of {kinds[False]} are instants: in {zone} "
                f"{length.in_words} of the one is not one of the other",
                remedy="cast one of them upstream to the type of the other, or say with fivm_time_zone: UTC that "
                "those without a zone are in UTC",
            )
        return length.of_clock(zone) if True in kinds else length.by_clock

    def _is_clock(self, relation: str) -> bool | None:
        """Whether the parts of a relation are those of a clock (:attr:`PartInput.is_clock`).

        None where nobody knows: of the model itself, and before there is a connection.
        """
        found = self.request.catalog.find(relation)
        if relation == self.relation or found is None:
            return None
        declared = self._time_parts(relation)
        column = found.column(declared.column)
        of_clock = declared.length is not None and declared.length.is_of_clock
        return None if column is None else column.type.is_clock or of_clock

    def inputs(self, references: Sequence[WrittenReference], length: Length) -> tuple[PartInput, ...]:
        found: dict[str, PartInput] = {}
        for reference in references:
            item = self._input(reference, length)
            found.setdefault(item.key, item)
        return tuple(found[key] for key in sorted(found))

    def _lengths(self, reference: WrittenReference, length: Length) -> tuple[Length, Length]:
        """How long the parts are that a reference counts, and those of its relation."""
        if reference.relation == self.relation:
            return length, length
        own = self._time_parts(reference.relation).length or length
        if reference.is_span and not self._compared(reference, own).divides(
            self._compared(reference, length)
        ):
            raise FivmError(
                "FIVM205",
                f"parts of {reference.relation} ({own}) do not divide those of the model ({length})",
                remedy="use lengths of which the shorter divides the longer, in one time zone",
            )
        return (length if reference.is_span else own), own

    def _compared(self, reference: WrittenReference, length: Length) -> Length:
        """A length as it is compared with another one of the relation: by the clock, zones do not matter.

        Before there is a connection nobody knows the type of a source's column, and they may not matter.
        """
        is_clock = self._is_clock(reference.relation)
        if is_clock:
            return length.by_clock
        is_unknown = is_clock is None and reference.relation != self.relation
        if is_unknown and not length.is_fixed and not self._time_parts(reference.relation).is_computed:
            return replace(length, zone=UNKNOWN_ZONE)
        return length

    def _input(self, reference: WrittenReference, length: Length) -> PartInput:
        relation = reference.relation
        counted, own = self._lengths(reference, length)
        key = _key(relation, counted, own)
        if relation == self.relation:
            return PartInput(
                key,
                relation,
                column=PART_TIMESTAMP,
                type=TIMESTAMP,
                length=length,
                own=length,
                lateness=None,
                is_computed=True,
            )
        declared = self._time_parts(relation)
        column = self.named(relation).column(declared.column)
        if column is None or not column.type.is_temporal:
            what = "does not exist" if column is None else f"is {column.type}, no time"
            raise FivmError(
                "FIVM205", f"event_time {declared.column} of {relation} {what}", remedy="correct it"
            )
        return PartInput(
            key,
            relation,
            column=column.name,
            type=column.type,
            length=counted,
            own=own,
            lateness=declared.lateness,
            is_computed=declared.is_computed,
        )

    def read(self, reference: WrittenReference, length: Length) -> PartRead:
        counted, own = self._lengths(reference, length)
        found = PartReference.of(_key(reference.relation, counted, own), reference.low, reference.high)
        ratio = self._compared(reference, length).ratio(self._compared(reference, counted))
        if ratio != (found.low.factor, found.low.divisor):
            hint = "write {{ fivm.span(...) }}, which counts in parts of the model"
            if ratio is not None:
                hint = f"write {{{{ fivm.part(..., '{_as_written(ratio)}') }}}}, or {{{{ fivm.span(...) }}}}"
            raise FivmError(
                "FIVM205",
                f"{found} goes with j in another way than the parts do: a part of {reference.relation} is "
                f"{counted.in_words}, one of the model {length.in_words}",
                remedy=hint,
            )
        return PartRead(reference.placeholder, found)

    def named(self, name: str) -> Relation:
        found = self.request.catalog.find(name)
        if found is None:
            raise FivmError("FIVM103", f"{name} is not a relation of this model", remedy="use ref()")
        check_records_changes(found)
        return found


def _key(relation: str, counted: Length, own: Length) -> str:
    return relation if counted == own else f"{relation} by {counted}"


def _as_written(ratio: tuple[int, int]) -> str:
    many, of = ratio
    if many == of == 1:
        return "j"
    return f"j*{many}" if of == 1 else f"j/{of}" if many == 1 else f"j*{many}/{of}"
