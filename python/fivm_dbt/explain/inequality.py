"""These lines say what is kept of an aggregate correlated by an inequality, why, and what other ways would cost."""

from __future__ import annotations

from fivm_dbt.plan.model.shown import InequalityHelper

_KEPT = {
    "reevaluate": "evaluated from sums by key when it is needed",
    "parameterised": "one value per outer value in use, over sums by key",
    "ranges": "one value per outer value in use, over sums per range on several levels",
}


def inequality_lines(kept: InequalityHelper) -> list[str]:
    """The way that was taken and its cost, then the others, by the same sizes.

    >>> costs = (("reevaluate", 2_100), ("parameterised", 9_000))
    >>> kept = InequalityHelper("r.x > l.c", "reevaluate", "the fewest rows", ("m__fivm_view_1_r",), costs, "no floor")
    >>> print("\\n".join(inequality_lines(kept)))
    reevaluate: evaluated from sums by key when it is needed -- the fewest rows
    kept for it: m__fivm_view_1_r
    rows per refresh, read and written: reevaluate 2,100; parameterised 9,000
    ranges do not apply: no floor
    """
    costs = "; ".join(f"{way} {rows:,}" for way, rows in kept.costs)
    lines = [
        f"{kept.way}: {_KEPT[kept.way]} -- {kept.reason}",
        f"kept for it: {', '.join(kept.views) or 'what is kept already'}",
        f"rows per refresh, read and written: {costs}",
    ]
    if kept.without_ranges is not None:
        lines.append(f"ranges do not apply: {kept.without_ranges}")
    return lines
