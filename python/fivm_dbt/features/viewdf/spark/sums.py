"""One statement computes many parts of a model that only adds up, as running sums.

    ``V[j] = γ_{K; SUM}(V[a-1] ⊎ Q(a) ⊎ ... ⊎ Q(j))``

The sums of each part's rows are added up along the parts of each key. A key is in all parts from the first one on that
has it: a running sum holds until the next part that adds to it, so that work is proportional to what is added and
written. SUM passes over NULLs, in one part after the other as in all of them. What differs is a decimal sum that
overflows, NULL on the way and lost in the next part: that is an error here (FIVM402), and these parts are computed one
after the other.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from fivm_dbt.catalog.types import TIMESTAMP
from fivm_dbt.features.viewdf.plan.model import PART, Cumulative, ViewdfPlan
from fivm_dbt.features.viewdf.spark.queries import rows_together, with_times
from fivm_dbt.ir.scalar import as_type, cast_ast, column_ast, identifier, raise_error
from fivm_dbt.parts.intervals import Intervals
from fivm_dbt.parts.parted import PART_TIMESTAMP
from fivm_dbt.spark.alarms import OVERFLOW
from fivm_dbt.spark.part_time import in_parts, whole
from fivm_dbt.spark.states import stored

_UNTIL = "__fivm_until"
"""Column: the last part in which a running sum is what it is."""


def running_parts(
    plan: ViewdfPlan, of: Cumulative, first: int, run: Intervals, versions: Mapping[str, int]
) -> exp.Select:
    """The rows of the parts of ``run``, which follow each other, after the stored one before them.

    ``first`` is the model's first part: there is none before.
    """
    assert of.added is not None
    assert len(run.ranges) == 1
    keys = [plan.root.keys[p].name for p in of.keys]
    sums = [plan.root.keys[p].name for p in of.sums]
    rows: exp.Query = rows_together(plan, of.added, run, versions)
    if run.first > first:
        rows = exp.union(rows, _before(plan, run.first), distinct=False, copy=False)
    added = _added(plan, keys, sums, rows)
    running = _running(plan, keys, sums, added, run.last)
    return with_times(plan, running, run)


def _before(plan: ViewdfPlan, part: int) -> exp.Select:
    """The stored part before ``part``, as rows that this one adds."""
    where = in_parts(
        exp.column(PART_TIMESTAMP), TIMESTAMP, plan.parts.length, Intervals.of((part - 1, part - 1))
    )
    columns = [column_ast("", k.name) for k in plan.root.keys[:-1]]
    number = exp.alias_(as_type(whole(part), "bigint"), PART)
    return exp.select(*columns, number, copy=False).from_(stored(plan, plan.top, None, where), copy=False)


def _added(plan: ViewdfPlan, keys: list[str], sums: list[str], rows: exp.Query) -> exp.Select:
    """Per key and part what is added."""
    by: list[exp.Expr] = [*(column_ast("rows", k) for k in keys), column_ast("rows", PART)]
    totals = [
        exp.alias_(
            _unless_overflowed(
                plan,
                name,
                exp.Sum(this=column_ast("rows", name)),
                exp.Count(this=column_ast("rows", name)),
            ),
            identifier(name),
        )
        for name in sums
    ]
    query = exp.select(*(b.copy() for b in by), *totals, copy=False)
    return query.from_(rows.subquery("rows", copy=False), copy=False).group_by(*by, copy=False)


def _running(plan: ViewdfPlan, keys: list[str], sums: list[str], added: exp.Select, last: int) -> exp.Select:
    """Per key and part from its first one on the sums so far."""
    order = exp.Order(expressions=[exp.Ordered(this=column_ast("added", PART))])
    partition = [column_ast("added", k) for k in keys]

    def over(call: exp.Expr, spec: exp.WindowSpec | None = None) -> exp.Window:
        return exp.Window(
            this=call, partition_by=[p.copy() for p in partition], order=order.copy(), spec=spec
        )

    rows = exp.WindowSpec(
        kind="ROWS", start="UNBOUNDED", start_side="PRECEDING", end="CURRENT ROW", end_side=None
    )
    columns: list[exp.Expr] = [p.copy() for p in partition]
    for name in sums:
        total = over(exp.Sum(this=column_ast("added", name)), rows.copy())
        count = over(exp.Count(this=column_ast("added", name)), rows.copy())
        columns.append(exp.alias_(_unless_overflowed(plan, name, total, count), identifier(name)))
    columns.append(column_ast("added", PART))
    following = exp.Coalesce(
        this=over(exp.Lead(this=column_ast("added", PART))), expressions=[whole(last + 1)]
    )
    until = as_type(exp.Sub(this=following, expression=whole(1)), "bigint")
    columns.append(exp.alias_(until, _UNTIL))
    running = exp.select(*columns, copy=False).from_(added.subquery("added", copy=False), copy=False)
    sequence = exp.Anonymous(
        this="SEQUENCE", expressions=[column_ast("running", PART), column_ast("running", _UNTIL)]
    )
    alias = exp.TableAlias(this=identifier("following"), columns=[identifier(PART)])
    generator = exp.Anonymous(this="EXPLODE", expressions=[sequence])
    shown = [column_ast("running", n) for n in (*keys, *sums)]
    query = exp.select(*shown, column_ast("following", PART), copy=False)
    query = query.from_(running.subquery("running", copy=False), copy=False)
    return query.lateral(exp.Lateral(this=generator, view=True, alias=alias), copy=False)


def _unless_overflowed(plan: ViewdfPlan, name: str, total: exp.Expr, count: exp.Expr) -> exp.Expr:
    """A sum in its column's type, but an error where it is NULL though values have been added."""
    type_ = next(k.type for k in plan.root.keys if k.name == name)
    value = cast_ast(total, type_)
    if not type_.is_decimal:
        return value
    alarm = exp.and_(exp.GT(this=count, expression=whole(0)), value.copy().is_(exp.null()), copy=False)
    message = f"{OVERFLOW} {plan.root.relation}: a decimal sum overflowed"
    return exp.Case(ifs=[exp.If(this=alarm, true=raise_error(message, type_.text))], default=value)
