"""What refreshes of a model have cost, and what the next ones are expected to, for people."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from fivm_dbt.refresh.costs import NOTHING, Costs, Spent, known_after
from fivm_dbt.refresh.engine import Engine
from fivm_dbt.refresh.heads import read_state, since_head
from fivm_dbt.refresh.observe import Finished, State

SHARES = (0.001, 0.01, 0.1, 0.5)
"""Parts of an input that change, for which is told what is expected."""


def known_costs(engine: Engine, table: str, state: State | None = None) -> Costs:
    """What the head of a table of states knows of costs, with those of the refresh that has set it; nothing where the
    model is not built.

    ``state`` is what the head says, if it has just been read.
    """
    state = read_state(engine, table) if state is None else state
    if not isinstance(state, Finished):
        return NOTHING
    detail = state.finished.detail
    _, own = since_head(engine, table, state)
    costs = Costs.of(detail.get("costs"))
    return known_after(costs, detail, own.timestamp) if own is not None else costs


def cost_lines(costs: Costs, *, is_read: bool, may_build: bool) -> Iterator[str]:
    """The build, the last refreshes by the inputs that changed, and what a change of a part of each input would cost.

    >>> known = Costs(8.0, {"raw.f": 2_000_000}, (Spent({"raw.f": 20_000}, 1.5), Spent({"raw.f": 24_000}, 2.5)))
    >>> print(*cost_lines(known, is_read=False, may_build=True), sep="\\n")
    the last build took 8.0 s and read 2,000,000 rows of raw.f
    the last 2 refreshes
      changes of raw.f: 2, 22,000 rows and 2.0 s in the middle
    expected of a change of raw.f: 0.1 % 1.5 s, 1 % 1.5 s, 10 % 3.6 s, 50 % 8.4 s
    a refresh that is expected to take longer becomes a build
    """
    if costs.build is None:
        return
    read = ", ".join(f"{rows:,} rows of {name}" for name, rows in sorted(costs.rows.items()))
    yield f"the last build took {costs.build:.1f} s" + (f" and read {read}" if read else "")
    if costs.spent:
        yield f"the last {len(costs.spent)} refreshes"
    by_inputs: dict[tuple[str, ...], list[Spent]] = {}
    for spent in costs.spent:
        by_inputs.setdefault(tuple(sorted(spent.changed)), []).append(spent)
    for names, alike in sorted(by_inputs.items()):
        rows, seconds = median(s.rows for s in alike), median(s.seconds for s in alike)
        changes = f"changes of {', '.join(names)}: {len(alike)}"
        yield f"  {changes}, {rows:,.0f} rows and {seconds:.1f} s in the middle"
    for name, rows in sorted(costs.rows.items()):
        each = [_expected(costs, name, share, rows, is_read) for share in SHARES if rows]
        if all(each) and each:
            yield f"expected of a change of {name}: {', '.join(filter(None, each))}"
    if may_build:
        yield "a refresh that is expected to take longer becomes a build"


def _expected(costs: Costs, name: str, share: float, rows: int, is_read: bool) -> str | None:
    """The seconds that a change of a share of an input is expected to take; None where nothing is."""
    expected = costs.expected({name: max(1, round(share * rows))})
    if expected.refresh is None:
        return None
    note = ", a build" if expected.is_dearer(is_read=is_read) else ""
    return f"{100 * share:g} % {expected.refresh:.1f} s{note}"
