"""This text says how a viewdf model is computed: the parts read for a part, the order, and the statements."""

from __future__ import annotations

from datetime import datetime, timezone

from fivm_dbt.explain.page import TEXTS
from fivm_dbt.explain.text import EXPLANATIONS
from fivm_dbt.features.viewdf.plan.model import PartInput, PartPlan, PartQuery, ViewdfPlan
from fivm_dbt.features.viewdf.spark.compared import compared_query, compared_rows
from fivm_dbt.features.viewdf.spark.queries import part_query, together_query
from fivm_dbt.features.viewdf.spark.statements import (
    append_parts,
    computed,
    replace_parts,
)
from fivm_dbt.parts.intervals import Intervals
from fivm_dbt.steps.binding import staged_state
from fivm_dbt.steps.example import EXAMPLE_HEAD

_VERSION = 2
"""The version of everything that is shown as read."""

_SHOWN = datetime(2015, 1, 1, 10, 4, tzinfo=timezone.utc)
"""The part with this time is shown."""


@EXPLANATIONS.add(ViewdfPlan)
def _explained(plan: ViewdfPlan, statements: bool) -> list[str]:
    return part_lines(plan, statements=statements)


@TEXTS.add(ViewdfPlan)
def _below_the_inputs(plan: ViewdfPlan) -> list[tuple[str, str]]:
    return [("Parts and statements", "\n".join(part_lines(plan)).strip())]


def part_lines(plan: ViewdfPlan, *, statements: bool = True) -> list[str]:
    """The sections of a viewdf model, each a heading and lines."""
    parts = plan.parts
    example = parts.length.part_of(_SHOWN)
    sections = [
        "\n== parts",
        f"{plan.model}: {parts.length.in_words} each, first part {parts.start}, class {part_class(parts)}",
        f"computed {'together' if parts.together is not None else 'one after the other'}"
        + (f": {parts.why_in_turn}" if parts.why_in_turn is not None else ", up to 500 in one statement"),
        *_adding_up(parts),
        *(f"  {line}" for line in part_map(plan)),
        "\n== inputs",
        *(f"{i.relation}\n  {_input(plan, i)}" for i in parts.inputs if i.relation != plan.relation),
        *(f"{name}\n  read as a whole; when it changes: {_of_plain(parts)}" for name in parts.plain),
        *_state(plan),
    ]
    if statements:
        when = f"part {example} ({_SHOWN:%Y-%m-%d %H:%M})"
        sections.append(f"\n== statements of {when}, everything at version {_VERSION}")
        sections += _statements(plan, example)
    return sections


def _adding_up(parts: PartPlan) -> list[str]:
    if parts.cumulative is None or parts.cumulative.added is None:
        return []
    return ["it only adds up: up to 500 parts in a row are running sums in one statement"]


def part_map(plan: ViewdfPlan) -> list[str]:
    """Which parts a part is computed from: ``hourly[j] ← m[j*60 .. j*60+59]``."""
    lines, parts = [], plan.parts
    if parts.initialize is not None:
        lines.append(f"{plan.model}[j] ← {_reads(plan, parts.initialize)} for the first j (INITIALIZE)")
    lines.append(f"{plan.model}[j] ← {_reads(plan, parts.update)}")
    return lines


def _reads(plan: ViewdfPlan, query: PartQuery) -> str:
    own, model = f"{plan.relation}[", f"{plan.model}["
    names = [str(r.reference) for r in query.reads]
    shown = [n.replace(own, model, 1) if n.startswith(own) else n for n in names]
    return ", ".join(dict.fromkeys(shown)) or "nothing"


def part_class(parts: PartPlan) -> str:
    """The class of a view (ViewDF, section 6): what is read for one more part.

    ``windowed``: a fixed range of the inputs; ``constant extra state``: earlier parts of the model itself too;
    ``whole input``: an input that is not divided into parts.
    """
    if parts.plain:
        return "whole input, of what is read without parts"
    return "constant extra state" if parts.reads_itself else "windowed"


def _input(plan: ViewdfPlan, item: PartInput) -> str:
    if item.is_computed:
        return f"a viewdf model, {item.own.in_words} each"
    waits = "a part without rows is waited for"
    if item.lateness is not None:
        waits = f"a part without rows is empty once the newest one is {item.lateness} past it"
    return f"by {item.column}, {item.own.in_words} each; {waits}"


def _of_plain(parts: PartPlan) -> str:
    of = parts.of_plain
    if of == "all":
        return "all parts are computed again"
    return "only parts to come see it" if of == "future" else f"the parts of the last {of} are computed again"


def _state(plan: ViewdfPlan) -> list[str]:
    columns = [f"  {k.name} {k.type}" for k in plan.root.keys]
    by = plan.root.partitioning
    return ["\n== state", plan.state_relation, *columns, f"  __fivm_partition {by.type}  -- {by.reason}"]


def _statements(plan: ViewdfPlan, part: int) -> list[str]:
    alone = Intervals.of((part, part))
    versions = {i.name: _VERSION for i in plan.inputs}
    staged = staged_state(plan, plan.top)
    query = (
        together_query(plan, alone, versions)
        if plan.parts.together is not None
        else part_query(plan, plan.parts.update, part, versions)
    )
    new = append_parts(plan, computed(query), alone, EXAMPLE_HEAD)
    return [
        "-- a part that is new",
        new.sql(dialect="spark", pretty=True) + ";",
        f"-- one that has been computed before: staged as {staged}, with what differs from what is stored",
        compared_query(plan, query, alone, _VERSION).sql(dialect="spark", pretty=True) + ";",
        "-- written where the content is another now",
        replace_parts(plan, compared_rows(plan, staged), alone, EXAMPLE_HEAD).sql(
            dialect="spark", pretty=True
        )
        + ";",
    ]
