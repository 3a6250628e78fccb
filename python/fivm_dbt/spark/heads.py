"""The head of a table of states: what they cover, compared and set by every commit (ADR 0028).

A writer has read the head that it starts from. Its statement raises where the newest head is another one: as a *value*,
since an optimiser may find a filter to be true. The newest head is read past every cache, by a column of the file.
"""

from __future__ import annotations

from sqlglot import exp

from fivm_dbt.catalog.types import BIGINT, STRING
from fivm_dbt.ir.scalar import as_type, cast_ast, column_ast, identifier, raise_error
from fivm_dbt.naming import COMMIT, COVERAGE, HEAD, OF, PARTITION, TAIL, TO, VIEW
from fivm_dbt.plan.head import HeadId, NextHead
from fivm_dbt.plan.plan import Plan
from fivm_dbt.spark.pieces import pinned, table

OVERTAKEN = "FIVM403"
"""The alarm of a writer that comes too late."""

COVERED = "coverage"
"""What a head is of."""

HEAD_COLUMNS = (OF, TO, HEAD, COMMIT, COVERAGE)
TAIL_PLACE = "-"
"""The value of ``__fivm_partition`` in the tail."""

_TYPES = {OF: "string", TO: "string", HEAD: BIGINT.text, COMMIT: "string", COVERAGE: "string"}


def head_query(name: str, version: int) -> exp.Select:
    """Number, id and coverage of the newest head at a version."""
    query = exp.select(HEAD, COMMIT, COVERAGE).from_(pinned(name, version)).where(*_is_head(""))
    return query.order_by(exp.Ordered(this=exp.column(HEAD), desc=True)).limit(1)


def head_row(plan: Plan, head: NextHead, *, is_compared: bool = True) -> exp.Select:
    """The row of a head for the table of all states. Its number is an error where the newest head is another one."""
    number: exp.Expr = as_type(exp.Literal.number(head.number), BIGINT.text)
    if is_compared and head.before is not None:
        # A condition on a column that the table is not partitioned by, as this one has, makes it cheaper: without one
        # Delta adds up the sizes of all files of the version, in two jobs.
        newest = exp.select(_newest()).from_(table(plan.layout.relation))
        same = exp.EQ(
            this=newest.where(*_is_head(""), _is_fresh()).subquery(),
            expression=exp.Literal.string(_text(head.before)),
        )
        number = exp.Case(ifs=[exp.If(this=same, true=number)], default=_late(plan, head.before, BIGINT.text))
    values = {
        OF: exp.Literal.string(COVERED),
        TO: cast_ast(exp.Null(), STRING),
        HEAD: number,
        COMMIT: exp.Literal.string(head.commit),
        COVERAGE: exp.Literal.string(head.coverage),
        VIEW: exp.Literal.string(TAIL),
        PARTITION: exp.Literal.string(TAIL_PLACE),
    }
    nothing = {c.name: cast_ast(exp.Null(), c.type) for c in plan.layout.columns}
    return exp.select(*(exp.alias_(v, identifier(n)) for n, v in (nothing | values).items()))


def no_head() -> list[exp.Expr]:
    """The columns of a head in a row of data."""
    return [exp.alias_(as_type(exp.Null(), _TYPES[name]), identifier(name)) for name in HEAD_COLUMNS]


def place_in_tail(label: exp.Expr, partition: exp.Expr) -> list[exp.Expr]:
    """The columns of the tail in a row that is appended to a view."""
    own = {
        OF: label,
        TO: partition,
        VIEW: exp.Literal.string(TAIL),
        PARTITION: exp.Literal.string(TAIL_PLACE),
    }
    nothing = {name: as_type(exp.Null(), _TYPES[name]) for name in HEAD_COLUMNS}
    return [exp.alias_(value, identifier(name)) for name, value in (nothing | own).items()]


def head_branches(plan: Plan, head: NextHead) -> list[exp.When]:
    """The branches of a MERGE that set the head: it is the one at the number that was read, or an error."""
    assert head.before is not None
    is_head = exp.EQ(this=column_ast("delta", OF), expression=exp.Literal.string(COVERED))
    same = exp.and_(
        is_head.copy(),
        exp.EQ(this=column_ast("target", HEAD), expression=exp.Literal.number(head.before.number)),
        exp.EQ(this=column_ast("target", COMMIT), expression=exp.Literal.string(head.before.commit)),
    )
    assigned = [
        exp.EQ(this=exp.column(identifier(n)), expression=column_ast("delta", n))
        for n in (HEAD, COMMIT, COVERAGE)
    ]
    late = _late(plan, head.before, "string")
    wrong = [exp.EQ(this=exp.column(COVERAGE), expression=late)]
    missing = exp.Insert(
        this=exp.Tuple(expressions=[exp.column(COVERAGE)]), expression=exp.Tuple(expressions=[late.copy()])
    )
    return [
        exp.When(matched=True, condition=same, then=exp.Update(expressions=assigned)),
        exp.When(matched=True, condition=is_head.copy(), then=exp.Update(expressions=wrong)),
        exp.When(matched=False, condition=is_head.copy(), then=missing),
    ]


def is_in_tail(alias: str = "") -> exp.Expr:
    """``alias.__fivm_view = 'tail'``."""
    return exp.EQ(this=column_ast(alias, VIEW), expression=exp.Literal.string(TAIL))


def is_from(head: HeadId, alias: str) -> exp.Expr:
    """Whether a row of the table is data, or a head from ``head`` on: older ones may stay."""
    column = column_ast(alias, HEAD)
    is_data = exp.Is(this=column, expression=exp.Null())
    return exp.paren(
        exp.or_(is_data, exp.GTE(this=column.copy(), expression=exp.Literal.number(head.number)))
    )


def _is_head(alias: str) -> list[exp.Expr]:
    return [is_in_tail(alias), exp.EQ(this=column_ast(alias, OF), expression=exp.Literal.string(COVERED))]


def _is_fresh() -> exp.Expr:
    """True of every row, and known of no cached one."""
    file = exp.column("file_path", table="_metadata")
    return exp.Not(this=exp.Is(this=file, expression=exp.Null()))


def _newest() -> exp.Expr:
    """The newest head as text: numbers sort, as they have as many digits."""
    number = as_type(exp.column(HEAD), "string")
    digits = exp.Anonymous(this="LPAD", expressions=[number, exp.Literal.number(19), exp.Literal.string("0")])
    text = exp.Concat(
        expressions=[digits, exp.Literal.string(" "), exp.column(COMMIT)], coalesce=False, safe=True
    )
    return exp.Max(this=text)


def _text(head: HeadId) -> str:
    return f"{head.number:019d} {head.commit}"


def _late(plan: Plan, head: HeadId, type_: str) -> exp.Expr:
    return raise_error(f"{OVERTAKEN} {plan.layout.relation}: the head is not {head.number}", type_)
