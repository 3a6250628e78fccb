"""Some window functions of a SELECT look a number of rows back, others as far as a length of time.

Blocks of time are as for what reaches a length of time (:mod:`fivm_dbt.rewrite.reach`). A changed row makes a
difference to the blocks that it reaches, and to the nearest ones with rows (:mod:`fivm_dbt.rewrite.sequences`).
"""

from __future__ import annotations

from dataclasses import replace

from fivm_dbt.ir.instants import instant_of
from fivm_dbt.ir.near import Beside, Near
from fivm_dbt.ir.window import Window
from fivm_dbt.ir.window_call import window_calls
from fivm_dbt.rewrite import reach, sequences
from fivm_dbt.rewrite.reach import Reach, blocks_of, covered, extremes_of, reach_of
from fivm_dbt.rewrite.sequences import Look, by_block, look_of


def with_both(node: Window) -> Window:
    """``node``, local to blocks of time too where each of its window functions looks at rows or reaches a time."""
    found = _found(node) if node.has_frames and node.near is None else None
    if found is None:
        return node
    look, far = found
    extremes = extremes_of(node)
    length, back, ahead = blocks_of(far, is_fine=extremes is not None)
    placed, block, day = by_block(node, look.at, nulls_are_low=look.nulls_are_low, length=length)
    beside = Beside("", (), "block_us", look.earlier, look.later)
    near = Near(block, day, length, (-ahead, back), (-back, ahead), beside=beside)
    return replace(placed, near=replace(near, covered=covered(extremes, length, -back, ahead)))


def _found(node: Window) -> tuple[Look, Reach] | None:
    """What all window functions look at and reach; None where one does neither, or they order by different times."""
    types = {f.scalar: f.type for f in node.input.fields}
    looks: list[Look] = []
    reaches: list[Reach] = []
    for item in node.items:
        for window in window_calls(item.value):
            look, far = look_of(window), reach_of(window)
            by = look.at if look is not None else far.at if far is not None else None
            at = instant_of(by, types.get(by)) if by is not None else None
            if at is None:
                return None
            looks += [replace(look, at=at)] if look is not None else []
            reaches += [replace(far, at=at)] if far is not None else []
    orders = {(f.at, f.nulls_are_low) for f in looks} | {(f.at, f.nulls_are_low) for f in reaches}
    if not looks or not reaches or len(orders) > 1:
        return None
    return sequences.union(looks), reach.union(reaches)
