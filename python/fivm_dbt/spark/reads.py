"""How a scan is read: pinned by VERSION AS OF, as a presented state, from an own snapshot, or from a staged delta.

Nothing is ever read unpinned: Spark mixes up a change range and a plain read of the same table in one statement.
"""

from __future__ import annotations

import sqlglot
from sqlglot import exp

from fivm_dbt.catalog import Presentation
from fivm_dbt.ir.dialect import SparkText
from fivm_dbt.ir.nodes import Scan, Side
from fivm_dbt.ir.scalar import identifier
from fivm_dbt.plan.binding import Binding, staged_input
from fivm_dbt.plan.plan import Plan
from fivm_dbt.spark.select import Reader


def table(name: str) -> exp.Table:
    """A relation by its canonical name."""
    return exp.to_table(name, dialect="spark")


def pinned(name: str, version: int) -> exp.Table:
    """``name VERSION AS OF version``."""
    result = table(name)
    result.set("version", exp.Version(this="VERSION", kind="AS OF", expression=exp.Literal.number(version)))
    return result


def changes(name: str, after: int, to: int) -> exp.Expr:
    """``table_changes(name, after + 1, to)``: the change feed of the versions after ``after`` up to ``to``."""
    call = exp.Anonymous(
        this="TABLE_CHANGES",
        expressions=[exp.Literal.string(name), exp.Literal.number(after + 1), exp.Literal.number(to)],
    )
    return exp.Table(this=call)


def presented(presentation: Presentation, source: exp.Expr) -> exp.Select:
    """A fivm model's rows with its root state read from ``source``."""
    query = sqlglot.parse_one(presentation.sql, dialect=SparkText)
    assert isinstance(query, exp.Select)
    return query.from_(source, copy=False)


def side_reader(plan: Plan, binding: Binding) -> Reader:
    """The reader of a refresh. An input that did not change is the same on both sides."""

    def read(scan: Scan) -> exp.Expr:
        alias = identifier(scan.alias)
        if scan.side is Side.DELTA:
            return _aliased(table(staged_input(plan, scan.relation)), alias)
        if scan.relation == plan.root.relation:
            assert binding.root_version is not None, "the own state is read before there is one"
            return _aliased(pinned(scan.relation, binding.root_version), alias)
        bound = binding.input(scan.relation)
        is_old = scan.side is Side.OLD and scan.relation in binding.changed
        if is_old and bound.capture == "snapshot":
            assert bound.snapshot is not None
            return _aliased(pinned(plan.snapshot_table(scan.relation), bound.snapshot), alias)
        version = bound.old if is_old else bound.new
        assert version is not None, f"no version of {scan.relation}"
        return read_version(plan, scan.relation, version, scan.alias)

    return read


def read_version(plan: Plan, name: str, version: int, alias: str) -> exp.Expr:
    """An input at a version: a pinned table, or a fivm model presented over its pinned root state."""
    presentation = plan.input(name).relation.presentation
    if presentation is None:
        return _aliased(pinned(name, version), identifier(alias))
    return presented(presentation, pinned(presentation.root, version)).subquery(identifier(alias), copy=False)


def _aliased(source: exp.Expr, alias: exp.Identifier) -> exp.Expr:
    source.set("alias", exp.TableAlias(this=alias))
    return source
