"""These lines say from which parts of the inputs a part of a view is computed, in words and numbers."""

from __future__ import annotations

from collections.abc import Iterator

from fivm_dbt.naming import split_name
from fivm_dbt.parts.moved import length
from fivm_dbt.parts.shift import SECOND, Shift
from fivm_dbt.plan.model.part_map import InputParts, PartMap


def part_map_lines(maps: tuple[PartMap, ...]) -> Iterator[str]:
    """Per view its time, then a line for each input; where part numbers are known, another one with these."""
    for found in maps:
        yield f"{found.relation}, by {found.column}, in parts of {_a(found.part)}"
        for item in found.inputs:
            yield f"  ← {_times(item, found.column)}"
            if item.part is not None:
                in_parts = f", in parts of {_a(item.part)}" if item.part != found.part else ""
                numbers = item.parts or f"{split_name(item.relation)[-1]} at these times"
                yield f"    {split_name(found.relation)[-1]}[j] ← {numbers}{in_parts}"
            if item.lateness is not None:
                yield f"    {_final(item, found)}"


def _a(part: str) -> str:
    """A part with its article, as far as it is one unit."""
    return part if part[:1].isdigit() else f"{'an' if part == 'hour' else 'a'} {part}"


def _times(item: InputParts, own: str) -> str:
    called = "" if item.alias == split_name(item.relation)[-1] else f" as {item.alias}"
    limits = "".join(f", {limit}" for limit in item.within)
    if item.column is None:
        return f"{item.relation}{called}, all of it"
    low = None if item.low is None else _seen_from(own, item.low, "after", -1)
    high = None if item.high is None else _seen_from(own, item.high, "before", 1)
    name = f"{item.relation}{called} with {item.column}"
    if low is None:
        return f"{name} up to {high}: all earlier parts{limits}"
    if high is None:
        return f"{name} from {low}: all later parts{limits}"
    return f"{name} = {low}{limits}" if low == high else f"{name} from {low} to {high}{limits}"


def _seen_from(name: str, shift: Shift, just: str, microsecond: int) -> str:
    """A time some distance from the own one; one that is a microsecond short of whole seconds ends just there."""
    word, micros = "", shift.micros
    if micros % SECOND and (micros + microsecond) % SECOND == 0:
        word, micros = f"{just} ", micros + microsecond
    sign = "+" if (shift.months or micros) > 0 else "-"
    size = Shift(abs(shift.months), abs(micros))
    return word + (name if size.is_nothing else f"{name} {sign} {size}")


def _final(item: InputParts, found: PartMap) -> str:
    """From when on a part stays as it is, as far as rows only come, and come no later than they are declared to."""
    assert item.lateness is not None
    if item.high is None:
        return f"rows come at most {item.lateness} late; no part is ever final, as later ones count too"
    late = item.high + Shift(-found.rest.months, -found.rest.micros) + length(item.lateness, "fivm_lateness")
    after = Shift(late.months, late.micros + 1 if (late.micros + 1) % SECOND == 0 else late.micros)
    when = "its end" if after.is_nothing else f"its end + {after}"
    return f"rows come at most {item.lateness} late: a part is final once {item.column} has reached {when}"
