"""One query compares a model with its full recompute, for the generic test ``fivm_exact``."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from fivm_dbt.catalog import Column
from fivm_dbt.catalog.types import TIMESTAMP
from fivm_dbt.errors import FivmError
from fivm_dbt.ir.clock import Clock
from fivm_dbt.ir.scalar import column_ast
from fivm_dbt.naming import PREFIX, VIEW, quote
from fivm_dbt.parts.intervals import last_parts
from fivm_dbt.parts.parted import PART_TIMESTAMP
from fivm_dbt.plan.model.plan import Plan, ViewdfPlan
from fivm_dbt.plan.retention import computed_after
from fivm_dbt.refresh.dropped import Dropped, recorded_drops
from fivm_dbt.refresh.engine import Readable
from fivm_dbt.refresh.heads import read_state
from fivm_dbt.refresh.known_parts import KnownParts
from fivm_dbt.refresh.oracle import recompute_sql
from fivm_dbt.refresh.tolerance import close
from fivm_dbt.spark.part_queries import parts_query
from fivm_dbt.spark.part_time import in_parts, instant
from fivm_dbt.spark.pieces import table
from fivm_dbt.spark.reads import presented

COMPARED_PARTS = 200
"""So many of the newest parts of a viewdf model are compared: each is a query of its own."""

SIDE = "fivm_side"
"""Column that tells on which side a differing row is."""

_MODEL, _RECOMPUTE = "only in the model", "only in the recompute"
_SIGN, _COPIES, _COPY, _PLACE = (f"{PREFIX}{what}" for what in ("sign", "copies", "copy", "place"))


def difference_sql(plan: Plan, engine: Readable) -> str:
    """Rows that only the model or only its recompute has, as bags, at the last refresh's own versions.

    Raises FIVM404 where no refresh has finished, or one was interrupted, FIVM106 where the SQL has no one answer.
    """
    if plan.not_repeatable is not None:
        raise FivmError(
            "FIVM106",
            f"this model is recomputed, and there is nothing to compare it with: {plan.not_repeatable}",
            remedy="take the test fivm_exact off this model, or rewrite the SQL so that it has one answer",
        )
    state = read_state(engine, plan.relation)
    if state.finished is None or state.unfinished is not None:
        what = "has never been built" if state.finished is None else "was interrupted in a refresh"
        raise FivmError("FIVM404", f"{plan.relation} {what}", remedy=f"dbt run --select {plan.model}")
    versions = {name: record.commit.version for name, record in state.inputs.items()}
    if isinstance(plan, ViewdfPlan):
        known = KnownParts.of(state.finished.detail["parts"])
        every = {**versions, plan.state_relation: state.version}
        return _difference_of_parts(plan, known, every)
    times = state.finished.detail.get("clock")
    clock = Clock(**times) if times is not None else None
    recompute = recompute_sql(plan, versions, clock)
    later = _after_dropped(plan, recorded_drops(state.finished))
    if later is None:
        return difference(plan.relation, recompute, plan.output)
    where = later.sql(dialect="spark")
    return difference(
        f"(SELECT * FROM {plan.relation} WHERE {where}) AS compared",
        f"SELECT * FROM (\n{recompute}\n) AS recompute WHERE {where}",
        plan.output,
    )


def _after_dropped(plan: Plan, dropped: Dropped) -> exp.Expr | None:
    """The rows of a model that are computed from none of the dropped parts: only these can be computed again.

    None where no parts have been dropped. Raises FIVM206 where a row does not tell what it is computed from.
    """
    tests = []
    for name, parts in sorted(dropped.items()):
        relation = plan.input(name).relation
        found = computed_after(plan, relation)
        if relation.retention is None or found is None:
            raise FivmError(
                "FIVM206",
                f"{plan.model} has results of parts of {name} that were dropped ({parts}), and cannot be compared with "
                "a recompute: no column tells from which parts a row is computed",
                remedy="take the test fivm_exact off this model",
            )
        column, before = found
        length = relation.retention.length
        since = instant(length.end_of(parts.last) + before, column.type, length.zone)
        tests.append(exp.GTE(this=column_ast("", column.name), expression=since))
    return exp.and_(*tests, copy=False) if tests else None


def _difference_of_parts(plan: ViewdfPlan, known: KnownParts, versions: dict[str, int]) -> str:
    """The newest parts of a viewdf model against what INITIALIZE and UPDATE give for each of them.

    A model that reads itself is read at its stored earlier parts: if each part is right given those before it, and the
    first one is, all are.
    """
    length = plan.parts.length
    parts = last_parts(known.computed - known.dropped - known.pending, COMPARED_PARTS)
    column = exp.column(PART_TIMESTAMP)
    compared = exp.select("*").from_(table(plan.relation)).where(in_parts(column, TIMESTAMP, length, parts))
    # The model's view shows the rows that the table of states has under this label.
    label = exp.alias_(exp.Literal.string(plan.layout.label(plan.top)), VIEW)
    rows = exp.select("*", label).from_(parts_query(plan, known.first, parts, versions).subquery("parts"))
    recompute = presented(plan.presentation, rows.subquery("labelled"))
    return difference(
        f"({compared.sql(dialect='spark')}) AS compared", recompute.sql(dialect="spark"), plan.output
    )


def difference(relation: str, recompute: str, columns: Sequence[Column]) -> str:
    """``relation - recompute`` as a Z-set, each row as often as it is there too often or too rarely.

    Rows that are equal in all columns but doubles are matched up in the order of their doubles; of a pair whose doubles
    are close (:mod:`tolerance`) neither is told.
    """
    shown = [quote(c.name) for c in columns]
    listed = ", ".join(shown)
    compared = ", ".join(f"{_comparable(c)} AS {quote(c.name)}" for c in columns)
    # The user's text may end in a comment: the bracket goes on a line of its own.
    both = (
        f"SELECT {compared}, 1 AS {_SIGN} FROM {relation}\n"
        f"UNION ALL\nSELECT {compared}, -1 AS {_SIGN} FROM (\n{recompute}\n) AS recompute({listed})"
    )
    rows = (
        f"SELECT CASE WHEN {_COPIES} > 0 THEN '{_MODEL}' ELSE '{_RECOMPUTE}' END AS {SIDE}, {listed}\n"
        f"FROM (SELECT {listed}, SUM({_SIGN}) AS {_COPIES} FROM (\n{both}\n) AS signed_rows "
        f"GROUP BY {listed} HAVING SUM({_SIGN}) <> 0) AS differing\n"
        f"LATERAL VIEW EXPLODE(SEQUENCE(1, ABS({_COPIES}))) copies AS {_COPY}"
    )
    doubles = [quote(c.name) for c in columns if c.type.is_floating]
    return rows if not doubles else _without_pairs(rows, shown, doubles)


def _without_pairs(rows: str, shown: list[str], doubles: list[str]) -> str:
    """The differing ``rows`` without pairs that differ in the last digits of doubles alone."""
    same = "".join(f", {name}" for name in shown if name not in doubles)
    # By the value in few digits first: where two doubles are close, the next column decides on both sides.
    order = ", ".join([*(f"TRY_CAST({name} AS FLOAT)" for name in doubles), *doubles])
    place = f"ROW_NUMBER() OVER (PARTITION BY {SIDE}{same} ORDER BY {order}) AS {_PLACE}"
    placed = f"SELECT *, {place} FROM (\n{rows}\n) AS differing_rows"
    pair = f"OVER (PARTITION BY {_PLACE}{same})"
    partners, conditions = [], []
    for number, name in enumerate(doubles):
        sides = [f"{PREFIX}{side}_{number}" for side in ("model", "recompute")]
        for alias, side in zip(sides, (_MODEL, _RECOMPUTE), strict=True):
            partners.append(f"MAX(CASE WHEN {SIDE} = '{side}' THEN {name} END) {pair} AS {alias}")
        conditions.append(close(*(exp.column(alias) for alias in sides)).sql(dialect="spark"))
    listed = ", ".join([SIDE, *shown])
    paired = (
        f"SELECT {listed}, COUNT(*) {pair} AS {_COPIES}, {', '.join(partners)} FROM (\n{placed}\n) AS placed"
    )
    return f"SELECT {listed} FROM (\n{paired}\n) AS paired WHERE {_COPIES} < 2 OR NOT ({' AND '.join(conditions)})"


def _comparable(column: Column) -> str:
    """A column as something that can be grouped: maps by their sorted entries, variants and the like by their text.

    >>> _comparable(Column.of("m", "map<string,int>")), _comparable(Column.of("a", "int"))
    ('ARRAY_SORT(MAP_ENTRIES(m))', 'a')
    """
    name = quote(column.name)
    if column.type.is_groupable:
        return name
    values = column.type.element_columns() or []
    is_map = column.type.text.startswith("map<") and all(type_.is_groupable for _, type_ in values)
    return f"ARRAY_SORT(MAP_ENTRIES({name}))" if is_map else f"TO_JSON({name})"
