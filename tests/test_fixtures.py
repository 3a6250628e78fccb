"""Fixture pairs: SQL to operators, operators to operators, operators to deltas, plans to statements.

``FIVM_UPDATE=1 pytest tests/test_fixtures.py`` writes the lower halves anew; review the difference.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from sqlglot import exp

from fivm_dbt.catalog import Relation
from fivm_dbt.config import load_config
from fivm_dbt.delta import derive
from fivm_dbt.delta.prune import prune_terms
from fivm_dbt.delta.term import Term
from fivm_dbt.engines.duckdb.engine import DuckDbEngine
from fivm_dbt.errors import FivmError
from fivm_dbt.ir.node import Node
from fivm_dbt.ir.printer import render
from fivm_dbt.ir.reads import Scan
from fivm_dbt.ir.scalar import identifier
from fivm_dbt.plan.model.inputs import Capture
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.plan.planner import plan_model
from fivm_dbt.plan.request import ModelRequest
from fivm_dbt.refresh.engine import Row
from fivm_dbt.rewrite.flatten_joins import flatten_joins
from fivm_dbt.rewrite.order_factors import order_factors
from fivm_dbt.rewrite.pipeline import rewrite
from fivm_dbt.rewrite.prune_columns import prune_columns
from fivm_dbt.rewrite.shared_aggregates import share_aggregates
from fivm_dbt.spark.capture import change_query, snapshot_query
from fivm_dbt.spark.merge import merge
from fivm_dbt.spark.pieces import table
from fivm_dbt.spark.places import Place
from fivm_dbt.spark.select import select
from fivm_dbt.spark.state import (
    create_view,
    delta_query,
    key_set_query,
    touched_query,
)
from fivm_dbt.spark.statements import statement
from fivm_dbt.sql.lower import lower
from fivm_dbt.sql.lowered import Lowered
from fivm_dbt.steps.binding import Binding, BoundInput
from fivm_dbt.steps.example import EXAMPLE_HEAD
from fivm_dbt.steps.kinds import Build
from fixtures.pairs import FOLDER, Case, parameters

OLD, NEW = 3, 5


def _lowered(case: Case) -> Lowered:
    return lower(case.sql, case.catalog)


@parameters("lower/[!r]*.sql")
def test_lower(case: Case) -> None:
    lowered = _lowered(case)
    fields = [f.type.text for f in lowered.node.fields]
    columns = ", ".join(f"{name} {type_}" for name, type_ in zip(lowered.names, fields, strict=True))
    case.check(f"({columns})\n{render(lowered.node)}")


def _rewritten(case: Case) -> Node:
    try:
        return rewrite(_lowered(case).node)
    except FivmError as error:
        raise error.located(sql=case.sql) from None


@parameters("lower/rejected.sql")
def test_rejected(case: Case) -> None:
    with pytest.raises(FivmError) as caught:
        _rewritten(case)
    *lines, link = str(caught.value).split("\n")
    assert link == f"more about it: fivm error {caught.value.code.number}"
    case.check("\n".join(lines))


def test_rejections_cover_the_codes_of_the_query() -> None:
    text = (FOLDER / "lower" / "rejected.sql").read_text(encoding="utf-8")
    expected = [f"FIVM{number}" for number in range(101, 114) if number not in (108, 111)]
    assert [code for code in expected if f"\n{code} " not in text] == []


_ROWS: dict[str, list[Row]] = {
    "raw.a": [(1, "x", 5), (2, "y", 6), (2, "y", 1), (None, "z", None), (3, None, 4), (1, "x", 5)],
    "raw.b": [(1, "x", 50), (3, "y", 60), (None, "z", 70), (3, "y", 60), (2, None, None)],
    "raw.f": [
        (1, "p", "1.50", "2024-01-05", 1.5, 4, "2024-01-05 03:00:00"),
        (2, "q", "2.50", "2024-02-05", 2.5, 3, "2024-02-05 23:00:00"),
        (2, "q", None, None, None, None, None),
        (5, "P", "-1.50", "2024-02-29", 0.0, 9, "2024-02-05 23:00:00"),
    ],
}


@pytest.fixture(scope="module")
def duckdb_tables() -> DuckDbEngine:
    engine = DuckDbEngine()
    columns = {
        "raw.a": "k int, name string, v int",
        "raw.b": "k int, name string, w bigint",
        "raw.f": "k int, g string, v decimal(10,2), d date, x double, n bigint, ts timestamp",
    }
    from fixtures.models import relation

    for name, text in columns.items():
        made = relation(name, text)
        engine.create_table(name, made.columns, _ROWS[name])
    return engine


def _read_newest(scan: Scan) -> exp.Expr:
    source = table(scan.relation)
    source.set("alias", exp.TableAlias(this=identifier(scan.alias)))
    return source


def _rows(engine: DuckDbEngine, node: Node) -> Counter[Row]:
    return Counter(engine.query(select(node, _read_newest).sql(dialect="spark")))


@parameters("lower/[!rs]*.sql")
def test_lowered_means_the_same(case: Case, duckdb_tables: DuckDbEngine) -> None:
    """The operators give the rows of the text itself, before and after the passes."""
    node = _lowered(case).node
    wanted = Counter(duckdb_tables.query(case.sql))
    assert _rows(duckdb_tables, node) == wanted
    assert _rows(duckdb_tables, rewrite(node)) == wanted
    assert _rows(duckdb_tables, share_aggregates(rewrite(node))) == wanted


@parameters("rewrite/flatten_joins.sql")
def test_flatten_joins(case: Case) -> None:
    case.check(render(flatten_joins(_lowered(case).node)))


@parameters("rewrite/prune_columns.sql")
def test_prune_columns(case: Case) -> None:
    pruned = prune_columns(_lowered(case).node)
    assert prune_columns(pruned) == pruned
    case.check(render(pruned))


@parameters("rewrite/share_aggregates.sql")
def test_share_aggregates(case: Case, duckdb_tables: DuckDbEngine) -> None:
    shared = share_aggregates(rewrite(_lowered(case).node))
    assert share_aggregates(shared) == shared
    assert _rows(duckdb_tables, shared) == Counter(duckdb_tables.query(case.sql))
    case.check(render(shared))


@parameters("rewrite/order_factors.sql")
def test_order_factors(case: Case) -> None:
    terms = derive(rewrite(_lowered(case).node))
    case.check("\n".join(_term(Term(order_factors(flatten_joins(t.node)), t.multiplicity)) for t in terms))


@parameters("rewrite/clock.sql")
def test_separate_clock(case: Case) -> None:
    case.check(render(rewrite(_lowered(case).node)))


@parameters("rewrite/[fp]*.sql")
def test_passes_keep_the_meaning(case: Case, duckdb_tables: DuckDbEngine) -> None:
    wanted = Counter(duckdb_tables.query(case.sql))
    assert _rows(duckdb_tables, rewrite(_lowered(case).node)) == wanted


@parameters("delta/*.sql")
def test_delta(case: Case) -> None:
    terms = derive(rewrite(_lowered(case).node), case.names("static"))
    if case.setting("changed") is not None:
        terms = prune_terms(terms, case.names("changed"))
    case.check("\n".join(_term(t) for t in terms) or "no term")


def _term(term: Term) -> str:
    return f"× {term.multiplicity.sql}\n{render(term.node, 1)}"


def _plan(case: Case) -> Plan:
    seeds = case.names("seeds")
    relations = [
        Relation(r.name, r.columns, is_recreated=r.name in seeds, is_static=r.name in case.names("static"))
        for r in case.catalog.relations
    ]
    meta = {key: value for key, value in case.settings if key.startswith("fivm_") or key == "batch_size"}
    catalog = type(case.catalog).of(relations)
    return plan_model(ModelRequest("analytics.daily", case.sql, catalog, load_config(meta)))


def _binding(case: Case, plan: Plan) -> Binding:
    capture: Capture = case.setting("capture") or "change feed"  # type: ignore[assignment]
    changed = case.names("changed") or frozenset(i.name for i in plan.inputs if not i.is_static)
    inputs = tuple(
        BoundInput(i.name, capture, OLD, NEW, 2 if capture == "snapshot" else None) for i in plan.inputs
    )
    return Binding(inputs, changed, 8, OLD)


def _statement(case: Case, plan: Plan) -> list[exp.Expr]:
    binding, kind = _binding(case, plan), case.path.stem
    if kind == "build":
        built = statement(plan, Build(), replace(binding, before=None, head=EXAMPLE_HEAD))
        return [] if built is None else [built]
    if kind == "delta":
        return _deltas(plan, binding)
    if kind == "capture":
        moved = [b for b in binding.inputs if b.name in binding.changed]
        statements: list[exp.Expr] = [change_query(plan, b) for b in moved]
        return statements + [snapshot_query(plan, b) for b in moved if b.capture == "snapshot"]
    if kind == "view":
        import sqlglot

        query = sqlglot.parse_one(plan.presentation.sql, dialect="spark")
        assert isinstance(query, exp.Query)
        return [create_view(plan.relation, query, {"fivm.root": plan.state_relation})]
    if kind == "merge":
        return [
            touched_query(plan, plan.top),
            merge(
                plan,
                [Place(plan.top, _touched(case, plan))],
                EXAMPLE_HEAD,
                only_these=bool(case.setting("one")),
            ),
        ]
    raise ValueError(f"no statement is called {kind}")


def _deltas(plan: Plan, binding: Binding) -> list[exp.Expr]:
    """The delta of each view that changes, with the affected keys that it looks up."""
    statements: list[exp.Expr] = []
    for view in plan.views:
        for key_set in view.key_sets:
            query = key_set_query(plan, view, key_set, binding)
            statements += [] if query is None else [query]
            binding = replace(binding, changed=binding.changed | {key_set.name})
        is_changed = bool(prune_terms(view.terms, binding.changed))
        if is_changed:
            statements.append(delta_query(plan, view, binding))
        capture: Capture = "change feed" if view.rows is None else "staged"
        binding = binding.with_view(BoundInput(view.name, capture, OLD, NEW), is_changed=is_changed)
    return statements


def _touched(case: Case, plan: Plan) -> tuple[exp.Expr, ...] | None:
    written = case.setting("touched")
    if written is None:
        return None
    letter = "" if plan.root.partitioning.kind == "bucket" else "v"
    texts = ("n" if value.strip() == "null" else f"{letter}{value.strip()}" for value in written.split(","))
    return tuple(exp.Literal.string(text) for text in texts)


@parameters("spark/*.sql")
def test_spark(case: Case) -> None:
    plan = _plan(case)
    statements = _statement(case, plan)
    case.check("\n;\n".join(s.sql(dialect="spark", pretty=True) for s in statements))
