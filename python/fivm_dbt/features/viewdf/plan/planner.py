"""A viewdf model's INITIALIZE and UPDATE become its Plan, with every decision (ViewDF, section 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from fivm_dbt.catalog import Catalog, Column, Relation, Retention
from fivm_dbt.catalog.types import DATE, TIMESTAMP
from fivm_dbt.config import Config
from fivm_dbt.errors import FivmError, expected_one_of
from fivm_dbt.features.viewdf.parts.schedule import Recurrence, Start
from fivm_dbt.features.viewdf.plan.by_part import OneByOne, by_part
from fivm_dbt.features.viewdf.plan.columns import (
    check_same_names,
    explicit_names,
    kept_columns,
    stored_columns,
    wider_type,
)
from fivm_dbt.features.viewdf.plan.cumulative import cumulative
from fivm_dbt.features.viewdf.plan.model import PART, OfPlain, PartPlan, PartQuery, Together, ViewdfPlan
from fivm_dbt.features.viewdf.plan.reads import PartReads
from fivm_dbt.features.viewdf.sql.references import (
    PartText,
    WrittenReference,
    part_references,
    split_initialize,
)
from fivm_dbt.ir.moments import may_be_utc
from fivm_dbt.naming import canonical, split_name
from fivm_dbt.parts.length import UNKNOWN_ZONE, Length, duration, instant_of
from fivm_dbt.parts.parted import PART_TIMESTAMP, TimeParts
from fivm_dbt.plan.layout.written import written_view
from fivm_dbt.plan.model.inputs import PlanInput
from fivm_dbt.plan.model.state import Partitioning
from fivm_dbt.rewrite.pipeline import rewrite
from fivm_dbt.sql.depth import within_the_stack
from fivm_dbt.sql.edits import edited
from fivm_dbt.sql.lower import lower
from fivm_dbt.sql.lowered import Lowered
from fivm_dbt.sql.parse import parse, span_of
from fivm_dbt.sql.relations import relations_read
from fivm_dbt.sql.repeatable import clock_read, why_not_repeatable
from fivm_dbt.sql.splice import over_no_rows
from fivm_dbt.sql.typing import Describe

if TYPE_CHECKING:
    from fivm_dbt.plan.request import ModelRequest

_TRIES = 4
"""How often the types of a model that reads itself are looked for: int, then bigint, then no further."""


def plan_viewdf(
    request: ModelRequest,
    time_parts: Mapping[str, TimeParts],
    describe: Describe | None = None,
    columns_of: Describe | None = None,
) -> ViewdfPlan:
    """The plan of a viewdf model. ``time_parts`` are those of its inputs, by their canonical names.

    ``describe`` asks Spark for types; without it fivm's own rules find them. ``columns_of`` asks for the columns of a
    query that is run as it is written.
    Raises FIVM101 to FIVM113 for a query, FIVM201, FIVM205 for parts that do not fit.
    """
    relation = canonical(request.relation)
    try:
        with within_the_stack(request.sql):
            return _Planning(relation, request, time_parts, describe, columns_of or describe).plan()
    except FivmError as error:
        raise error.located(sql=request.sql, model=split_name(relation)[-1]) from None


def check_parts(request: ModelRequest, time_parts: Mapping[str, TimeParts]) -> Length:
    """Say without a connection what is wrong with the references of a viewdf model; how long its parts are.

    Raises FIVM101, FIVM201, FIVM205.
    """
    relation = canonical(request.relation)
    try:
        return _Planning(relation, request, time_parts, None, None).check()
    except FivmError as error:
        raise error.located(sql=request.sql, model=split_name(relation)[-1]) from None


@dataclass(frozen=True)
class _Planning:
    """One model being planned."""

    relation: str
    request: ModelRequest
    time_parts: Mapping[str, TimeParts]
    describe: Describe | None
    columns_of: Describe | None

    @property
    def config(self) -> Config:
        return self.request.config

    @property
    def _reads(self) -> PartReads:
        return PartReads(self.relation, self.request, self.time_parts)

    def check(self) -> Length:
        """Everything that can be said without columns; how long the parts of the model are."""
        texts, references = self._texts()
        length = self._reads.length(references)
        reads = [tuple(self._reads.read(r, length).reference for r in text.references) for text in texts]
        key = self.relation
        Recurrence(key, reads[0], reads[-1] if len(texts) == 2 else ())
        if len(texts) == 1 and any(r.relation == key for r in reads[0]):
            raise _without_initialize()
        named = [explicit_names(text.sql) for text in texts]
        if len(texts) == 2 and None not in named:
            check_same_names(named[1] or (), named[0] or ())
        if self.config.fivm_expose == "table":
            raise FivmError(
                "FIVM203",
                "not available in this version: fivm_expose: table of a viewdf model",
                remedy="leave it out",
            )
        _start(self.config.fivm_start, self._reads.zone)
        _of_plain(self.config.fivm_plain_change)
        return length

    def _texts(self) -> tuple[list[PartText], list[WrittenReference]]:
        """UPDATE, and INITIALIZE where there is one, with all their references."""
        update_sql, initialize_sql = split_initialize(self.request.sql)
        texts = [part_references(update_sql)]
        if initialize_sql is not None:
            texts.append(part_references(initialize_sql, len(texts[0].references) + 1))
        references = [r for text in texts for r in text.references]
        if not references:
            raise FivmError(
                "FIVM205",
                "it reads no part of any input",
                remedy="write {{ fivm.part(ref('m'), 'j') }} in FROM",
            )
        return texts, references

    def plan(self) -> ViewdfPlan:
        length = self.check()
        texts, references = self._texts()
        update, initialize = texts[0], texts[1] if len(texts) > 1 else None
        inputs = self._reads.inputs(references, length)
        columns, lowered = self._columns(update, initialize, length)
        stored = [item.name for item in stored_columns(columns)[0]]
        queries = [self._query(text, columns, stored, length) for text in texts]
        plain = tuple(
            sorted(
                {n.name for t in texts for n in relations_read(t.sql)} - {r.placeholder for r in references}
            )
        )
        together, why = _together(lowered, update, self.relation)
        parts = PartPlan(
            model=self.relation,
            length=length,
            start=_start(self.config.fivm_start, self._reads.zone),
            initialize=queries[1] if initialize is not None else None,
            update=queries[0],
            inputs=inputs,
            plain=plain,
            of_plain=_of_plain(self.config.fivm_plain_change),
            columns=columns,
            together=together,
            why_in_turn=why,
            cumulative=None if lowered is None else cumulative(lowered.node, queries[0], self.relation),
            stalest_first=self.config.fivm_part_order == "stalest",
            retention=duration(self.config.fivm_retention) if self.config.fivm_retention else None,
            readers=tuple(sorted(self.request.readers)) if self.config.fivm_retention else (),
            rollup=duration(self.config.fivm_rollup) if self.config.fivm_rollup is not None else None,
        )
        return self._as_plan(parts)

    # Columns

    def _columns(
        self, update: PartText, initialize: PartText | None, length: Length
    ) -> tuple[tuple[Column, ...], Lowered | None]:
        """The columns that are kept, and UPDATE as it was read where that can be."""
        self._check(update)
        if initialize is None:
            columns, lowered = self._describe(update, ())
            return kept_columns(columns), lowered
        self._check(initialize)
        columns = kept_columns(self._describe(initialize, ())[0])
        for _ in range(_TRIES):
            updated, lowered = self._describe(update, columns)
            check_same_names([c.name for c in columns], [c.name for c in kept_columns(updated)])
            wider = tuple(
                Column(c.name, wider_type(c.type, u.type, c.name))
                for c, u in zip(columns, kept_columns(updated), strict=True)
            )
            if wider == columns:
                return columns, lowered
            columns = wider
        raise FivmError(
            "FIVM205",
            "the types of UPDATE grow with each part",
            remedy="CAST in UPDATE, or what it begins with in INITIALIZE, to the type that is wanted",
        )

    def _check(self, text: PartText) -> None:
        query = parse(text.sql)
        for select in query.selects:
            if select.alias_or_name.lower() == PART_TIMESTAMP and not select.is_star:
                raise FivmError(
                    "FIVM205",
                    f"{PART_TIMESTAMP} is a column that every viewdf model has by itself",
                    span=span_of(select),
                    remedy="leave it out, or give it another name",
                )
        names = frozenset(c.name.lower() for r in self.request.catalog.relations for c in r.columns)
        clock = sorted(clock_read(query, names))
        reason = f"it reads the clock ({', '.join(clock)})" if clock else why_not_repeatable(query, names)
        if reason is not None:
            raise FivmError(
                "FIVM106",
                f"a part could not be computed again: {reason}",
                remedy="compute it from the columns of the inputs",
            )

    def _describe(self, text: PartText, own: tuple[Column, ...]) -> tuple[tuple[Column, ...], Lowered | None]:
        """The columns of a query, ``own`` being those of the model itself, and what was read of it."""
        relations = [self._placed(r, own) for r in text.references]
        relations += [
            self._reads.named(n.name) for n in relations_read(text.sql) if not _is_placed(n.name, text)
        ]
        lowered: Lowered | None = None
        error: FivmError | None = None
        try:
            in_utc = may_be_utc(self.request.session)
            lowered = lower(text.sql, Catalog.of(relations), self.describe, is_utc=in_utc)
        except FivmError as refused:
            if refused.code.number not in ("FIVM105", "FIVM106", "FIVM111"):
                raise
            error = refused
        if lowered is not None:
            return lowered.columns, lowered
        assert error is not None
        if self.columns_of is None or error.code.number != "FIVM105":
            raise error
        return self.columns_of(over_no_rows(text.sql, relations)), None

    def _query(
        self, text: PartText, columns: tuple[Column, ...], stored: Sequence[str], length: Length
    ) -> PartQuery:
        """A query with what its columns are called in the state, completed where it depends on ties."""
        given = iter(stored)
        described, lowered = self._describe(text, columns)
        names = tuple(PART_TIMESTAMP if c.name.lower() == PART_TIMESTAMP else next(given) for c in described)
        reads = tuple(self._reads.read(r, length) for r in text.references)
        if lowered is None:
            return PartQuery(text.sql, reads, names)
        return PartQuery(edited(text.sql, lowered.completions), reads, names, lowered.matches)

    def _placed(self, reference: WrittenReference, own: tuple[Column, ...]) -> Relation:
        """The relation of a reference under the name of its placeholder."""
        if reference.relation != self.relation:
            return Relation(reference.placeholder, self._reads.named(reference.relation).columns)
        return Relation(reference.placeholder, (*own, Column(PART_TIMESTAMP, TIMESTAMP)))

    # The plan

    def _dropped(self, relation: Relation) -> Retention | None:
        """How parts of a source are dropped; viewdf models say themselves which of theirs are."""
        keeps = relation.kind == "table" and self.config.fivm_dropped_parts == "keep"
        return relation.retention if keeps else None

    def _as_plan(self, parts: PartPlan) -> ViewdfPlan:
        read = sorted({i.relation for i in parts.inputs} - {self.relation} | set(parts.plain))
        relations = [self._reads.named(name) for name in read]
        keys, shown = stored_columns(parts.columns)
        by = Partitioning("value", None, DATE, f"{parts.partition_unit.lower()} of {PART_TIMESTAMP}", 1)
        output = (*parts.columns, Column(PART_TIMESTAMP, TIMESTAMP))
        written = written_view(self.request.kept_under, output, keys, shown, by, how="part by part")
        return ViewdfPlan(
            relation=self.relation,
            sql=self.request.sql,
            config=self.config,
            session=tuple(sorted(self.request.session)),
            inputs=tuple(PlanInput(r, r.columns, False, self._dropped(r)) for r in relations),
            query=written.core,
            views=(written,),
            output=output,
            project=self.request.project,
            is_read=self.request.is_read,
            parts=parts,
        )


def _together(lowered: Lowered | None, update: PartText, own: str) -> tuple[Together | None, str | None]:
    """UPDATE for many parts at once, or why they are computed one after the other."""
    if any(r.relation == own for r in update.references):
        return None, "each part is computed from earlier ones of the model"
    if lowered is None:
        return None, "the query has constructs that are run as they are written"
    if lowered.matches:
        return None, "patterns are looked for in one part at a time"
    try:
        node = by_part(rewrite(lowered.node), {r.placeholder for r in update.references}, PART)
    except OneByOne as error:
        return None, str(error)
    return Together(node, lowered.names), None


def _is_placed(name: str, text: PartText) -> bool:
    return any(name == r.placeholder for r in text.references)


def _without_initialize() -> FivmError:
    return FivmError(
        "FIVM205",
        "it reads its own earlier parts, and nothing says what the first one is",
        remedy="write {% call fivm.initialize() %} select ... {% endcall %}",
    )


def _start(text: str | None, zone: str) -> Start | datetime:
    """The part that a model begins with. A time is local in the model's ``zone`` if it does not say in which it is."""
    if text is None or text == "newest":
        return "newest"
    if text == "oldest":
        return "oldest"
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise FivmError(
            "FIVM201",
            f"fivm_start: {text!r} is no time ({expected_one_of(['newest', 'oldest', '2024-01-31T00:00:00'])})",
            remedy="correct it",
        ) from None
    # While dbt parses nobody knows the session's zone, and the time is only looked at.
    return found if found.tzinfo is not None else instant_of(found, "UTC" if zone == UNKNOWN_ZONE else zone)


def _of_plain(text: str) -> OfPlain:
    if text == "all":
        return "all"
    if text == "future":
        return "future"
    return duration(text)
