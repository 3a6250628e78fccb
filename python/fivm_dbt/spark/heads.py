"""Every commit sets the head of a table of states, which says what the states cover (ADR 0028).

A writer has read the head that it starts from. Delta lets one commit have the next number, and passes over who comes
later (ADR 0033). A MERGE, which meets the head's row, raises besides where that is another one.
"""

from __future__ import annotations

from sqlglot import exp

from fivm_dbt.catalog.types import BIGINT, STRING
from fivm_dbt.ir.scalar import as_type, cast_ast, column_ast, identifier, raise_error
from fivm_dbt.naming import COMMIT, COVERAGE, HEAD, OF, PARTITION, TAIL, TO, VIEW
from fivm_dbt.plan.model.head import HeadId, NextHead
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.spark.formats import FORMAT

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
    query = exp.select(HEAD, COMMIT, COVERAGE).from_(FORMAT.pinned(name, version)).where(*_is_head(""))
    return query.order_by(exp.Ordered(this=exp.column(HEAD), desc=True)).limit(1)


def head_row(plan: Plan, head: NextHead) -> exp.Select:
    """The row of a head for the table of all states."""
    values = {
        OF: exp.Literal.string(COVERED),
        TO: cast_ast(exp.Null(), STRING),
        HEAD: as_type(exp.Literal.number(head.number), BIGINT.text),
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
    late = _late(plan, head.before)
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


def _late(plan: Plan, head: HeadId) -> exp.Expr:
    return raise_error(f"{OVERTAKEN} {plan.layout.relation}: the head is not {head.number}", "string")
