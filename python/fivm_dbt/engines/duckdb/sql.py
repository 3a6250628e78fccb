"""Spark SQL becomes DuckDB SQL, one statement at a time, as a template over the table versions that it names.

What changes with every refresh is cut out of the text before it is parsed (``literals.py``), so that
a statement is transpiled once and then only filled in. Every table in the result is a *slot*; the engine
decides which kept copy fills it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import sqlglot
from sqlglot import exp

from fivm_dbt.engines.duckdb.functions import duckdb_text
from fivm_dbt.engines.duckdb.literals import CHANGES, MARK
from fivm_dbt.engines.duckdb.unsupported import UnsupportedStatement
from fivm_dbt.ir.dialect import SparkText
from fivm_dbt.ir.scalar import conjuncts
from fivm_dbt.naming import PARTITION, VIEW, relation_name, split_name
from fivm_dbt.spark.formats import FORMAT

Kind = Literal["query", "create", "define", "view", "merge", "insert", "overwrite", "replace where", "drop"]

TARGET = "fivm slot target"
"""Stands in a statement's text for the copy that a write works on."""


@dataclass(frozen=True)
class Slot:
    """A relation in a statement. ``first`` and ``last`` index the statement's version numbers.

    Neither: the newest version; ``first`` alone: that version; ``is_changes``: the feed from first to last. ``pinned``
    is the version itself, of a table in a view.
    """

    token: str
    relation: str
    first: int | None = None
    last: int | None = None
    is_changes: bool = False
    pinned: int | None = None
    where: str = ""
    """The conditions on its partitions and its times, in DuckDB's SQL with the lists of partitions cut out."""
    counted_as: str = ""
    """The relation that its rows are counted for: the view, of a table that has the states of several."""


@dataclass(frozen=True)
class Statement:
    """A transpiled statement. ``body`` is what DuckDB runs (for ``create`` the query), with tokens for slots.

    ``before`` empties what REPLACE WHERE replaces; ``touches`` is the condition of a MERGE on the partitions of its
    target; ``doubled`` has a row where a MERGE would change one of its target twice; ``view`` is the Spark query of a
    view, ``properties`` are those of a created table.
    """

    kind: Kind
    body: str = ""
    slots: tuple[Slot, ...] = ()
    target: str = ""
    is_lenient: bool = False
    is_replacing: bool = False
    before: str = ""
    touches: str = ""
    doubled: str = ""
    view: exp.Query | None = None
    properties: tuple[tuple[str, str], ...] = ()

    @staticmethod
    def fill(text: str, tables: Mapping[str, str]) -> str:
        """``text`` with every token replaced by the DuckDB table that ``tables`` gives for it."""
        for token, table in tables.items():
            text = text.replace(f'"{token}"', f'"{table}"')
        return text


def transpile(template: str, views: Mapping[str, exp.Query]) -> Statement:
    """The statement for a text whose literals have been cut; ``views`` are put in where they are named.

    >>> transpile("select a from raw.r where a <=> 1", {}).body
    'SELECT a FROM "fivm slot 0" AS r WHERE a IS NOT DISTINCT FROM 1'
    """
    ast = _located(_without_hints(sqlglot.parse_one(template, dialect=SparkText)))
    if isinstance(ast, exp.Query):
        return _read("query", ast, views)
    if isinstance(ast, exp.Values):
        return _read("query", exp.select(exp.Star()).from_(ast), views)
    if isinstance(ast, exp.Create):
        return _create(ast, views)
    if isinstance(ast, exp.Insert):
        return _insert(ast, views)
    if isinstance(ast, exp.Merge):
        return _merge(ast, views)
    if isinstance(ast, (exp.Delete, exp.Update)):
        return _change_in_place(ast, views)
    if isinstance(ast, exp.Drop):
        target = _name(next(ast.find_all(exp.Table)))
        return Statement("drop", target=target, is_lenient=bool(ast.args.get("exists")))
    raise UnsupportedStatement(f"{type(ast).__name__}: {template[:200]}")


def _without_hints(ast: exp.Expr) -> exp.Expr:
    """Hints of joins name relations, which are not read there."""
    for hint in list(ast.find_all(exp.JoinHint)):
        hint.pop()
    return ast


def _located(ast: exp.Expr) -> exp.Expr:
    """A row lies in its table alone, by its number there."""
    file, row = FORMAT.place_of_row
    for column in list(ast.find_all(exp.Column)):
        if column == file:
            column.replace(exp.Literal.string(""))
        elif column == row:
            column.replace(exp.column("rowid"))
    return ast


def _read(kind: Kind, query: exp.Query, views: Mapping[str, exp.Query]) -> Statement:
    slots = _place_slots(query, views)
    return Statement(kind, duckdb_text(query), slots)


def _create(ast: exp.Create, views: Mapping[str, exp.Query]) -> Statement:
    target = _name(ast.this)
    common = Statement(
        "view",
        "",
        slots=(),
        target=target,
        is_lenient=bool(ast.args.get("exists")),
        is_replacing=bool(ast.args.get("replace")),
    )
    query = ast.expression
    if ast.kind == "VIEW":
        return replace(common, view=query)
    properties = ast.args["properties"].expressions if ast.args.get("properties") else []
    given = tuple((p.name, p.args["value"].name) for p in properties if type(p) is exp.Property)
    if query is None:
        columns = [exp.ColumnDef(this=d.this, kind=d.args["kind"]) for d in ast.this.find_all(exp.ColumnDef)]
        body = exp.Create(this=exp.Schema(this=_target(), expressions=columns), kind="TABLE")
        return replace(common, kind="define", body=duckdb_text(body), properties=given)
    slots = _place_slots(query, views)
    return replace(common, kind="create", body=duckdb_text(query), slots=slots, properties=given)


def _insert(ast: exp.Insert, views: Mapping[str, exp.Query]) -> Statement:
    target = _name(ast.this)
    where = ast.args.get("where")
    before = ""
    if where is not None:
        before = duckdb_text(exp.Delete(this=_target(), where=exp.Where(this=where)))
    columns = ast.this.expressions if isinstance(ast.this, exp.Schema) else []
    table: exp.Expr = exp.Schema(this=_target(), expressions=columns) if columns else _target()
    source = ast.expression
    # Table names are resolved in the source alone: the target is a copy of its own.
    slots = _place_slots(source, views)
    insert = exp.Insert(this=table, expression=source, by_name=ast.args.get("by_name"))
    kind: Kind = "overwrite" if ast.args.get("overwrite") else "insert"
    kind = "replace where" if where is not None else kind
    return Statement(kind, duckdb_text(insert), slots, target, before=before)


def _merge(ast: exp.Merge, views: Mapping[str, exp.Query]) -> Statement:
    table = ast.this
    target = _name(table)
    slots = _place_slots(ast.args["using"], views)
    alias = table.alias_or_name
    tests = (_of_partitions(ast.args["on"], alias), *_of_times(ast.args["on"], alias))
    touches = " AND ".join(test for test in tests if test)
    ast.set("this", _target(table.alias_or_name))
    for when in ast.args["whens"].expressions:
        then = when.args["then"]
        if isinstance(then, exp.Update):
            for assignment in then.expressions:
                assignment.this.set("table", None)
            _check_before(when, [assignment.expression for assignment in then.expressions])
        elif isinstance(then, exp.Insert):
            _check_before(when, then.expression.expressions)
    return Statement("merge", duckdb_text(ast), slots, target, touches=touches, doubled=_doubled(ast, alias))


def _doubled(merge: exp.Merge, alias: str) -> str:
    """A row where two rows of the source match one of the target: an error on Delta, of which DuckDB says nothing."""
    row = exp.column("rowid", table=alias)
    query = exp.select(exp.Literal.number(1)).from_(_target(alias))
    query = query.join(merge.args["using"].copy(), on=merge.args["on"].copy()).group_by(row)
    return duckdb_text(
        query.having(exp.GT(this=exp.Count(this=exp.Star()), expression=exp.Literal.number(1))).limit(1)
    )


def _check_before(when: exp.When, values: Sequence[exp.Expr]) -> None:
    """Move the errors that ``values`` may raise into the branch's condition.

    DuckDB computes the values of all branches for every row, but a condition only for rows of its own branch.
    """
    for value in values:
        errors = [call for call in value.find_all(exp.Anonymous) if call.name.lower() == "raise_error"]
        if not errors:
            continue
        # Never NULL, so always true, but no optimiser knows that without computing the value.
        hashed = exp.Anonymous(this="HASH", expressions=[value.copy()])
        check = exp.Not(this=exp.Is(this=hashed, expression=exp.Null()))
        given = when.args.get("condition")
        when.set("condition", check if given is None else exp.and_(given, check))
        for call in errors:
            call.replace(exp.Null())


def _change_in_place(ast: exp.Delete | exp.Update, views: Mapping[str, exp.Query]) -> Statement:
    target = _name(ast.this)
    where = ast.args.get("where")
    slots = _place_slots(where, views) if where is not None else ()
    ast.set("this", _target())
    return Statement("merge", duckdb_text(ast), slots, target)


def _place_slots(root: exp.Expr, views: Mapping[str, exp.Query]) -> tuple[Slot, ...]:
    """Replace every relation under ``root`` by a slot's token or by a view's query."""
    slots: list[Slot] = []
    _resolve(root, views, slots)
    return tuple(slots)


def _resolve(root: exp.Expr, views: Mapping[str, exp.Query], slots: list[Slot]) -> None:
    schemas = {table.text("db").lower() for table in root.find_all(exp.Table)} - {""}
    for table in list(root.find_all(exp.Table)):
        if not isinstance(table.this, exp.Identifier) or is_cte(table):
            continue
        name = _name(table)
        alias = table.args.get("alias") or exp.TableAlias(this=exp.to_identifier(table.name))
        joins, laterals = table.args.get("joins"), table.args.get("laterals")
        if name in views and not table.args.get("version"):
            query = views[name].copy()
            _resolve(query, views, slots)
            placed: exp.Expr = exp.Subquery(this=query, alias=alias.copy())
        else:
            slot = replace(_slot(table, name, len(slots)), where=_partitions_read(table))
            slot = replace(slot, counted_as=_view_read(table, slot.relation))
            slots.append(slot)
            placed = exp.Table(this=exp.to_identifier(slot.token, quoted=True), alias=alias.copy())
        placed.set("joins", joins)
        placed.set("laterals", laterals)
        placed.set("pivots", table.args.get("pivots"))
        table.replace(placed)
    for column in list(root.find_all(exp.Column)):
        if column.text("db").lower() in schemas:  # else it is a field of a struct
            column.set("db", None)
            column.set("catalog", None)


def _partitions_read(table: exp.Table) -> str:
    """The conditions by which Delta skips files of a table that is the only one of its SELECT."""
    select = table.find_ancestor(exp.Select)
    if select is None or select.args.get("joins") or not select.args.get("where"):
        return ""
    is_its_own = isinstance(table.parent, exp.From) and table.parent.parent is select
    if not is_its_own:
        return ""
    tests = [
        _of_partitions(select.args["where"].this, ""),
        *_of_times(select.args["where"].this, table.alias_or_name),
    ]
    return " AND ".join(test for test in tests if test)


def _view_read(table: exp.Table, relation: str) -> str:
    """The view whose rows are read of a table of states, by its own name; else the relation."""
    select = table.find_ancestor(exp.Select)
    where = select.args.get("where") if select is not None else None
    for test in conjuncts(where.this) if where is not None else []:
        if isinstance(test, exp.EQ) and isinstance(test.this, exp.Column) and test.this.name == VIEW:
            *schema, last = split_name(relation)
            return relation_name(*schema, last.removesuffix("state") + test.expression.name)
    return relation


def _of_times(condition: exp.Expr, alias: str) -> Iterator[str]:
    """The conjuncts that compare nothing but a column of ``alias`` with written times or numbers of time parts."""
    for part in conjuncts(condition):
        own = part.copy()
        if isinstance(own, exp.Boolean):
            yield duckdb_text(own)
        times = [c for c in own.find_all(exp.Cast) if isinstance(c.this, exp.Literal)]
        columns = list(own.find_all(exp.Column))
        compared = [n for n in own.find_all(exp.Predicate) if not isinstance(n, (exp.GTE, exp.LTE, exp.Is))]
        is_one = len({c.name for c in columns}) == 1 and {c.table for c in columns} <= {"", alias}
        if is_one and times and not compared:
            for column in columns:
                column.set("table", None)
            yield f"({duckdb_text(own)})"


def _of_partitions(condition: exp.Expr, alias: str) -> str:
    """The conjuncts that tell views and partitions by literals, of the relation ``alias``."""
    found = []
    for part in conjuncts(condition):
        columns = [c for c in part.find_all(exp.Column) if c.table == alias]
        is_own = len(columns) == len(list(part.find_all(exp.Column)))
        if is_own and {c.name for c in columns} & {VIEW, PARTITION}:
            own = part.copy()
            for column in own.find_all(exp.Column):
                column.set("table", None)
            found.append(f"({duckdb_text(own)})")
    return " AND ".join(found)


def _slot(table: exp.Table, name: str, number: int) -> Slot:
    token = f"fivm slot {number}"
    if table.name.startswith(CHANGES):
        relation, first, last = table.name[len(CHANGES) :].rsplit(" ", 2)
        table.set("alias", table.args.get("alias") or exp.TableAlias(this=exp.to_identifier("changes")))
        return Slot(token, relation_name(*relation.split(".")), int(first), int(last), is_changes=True)
    version = table.args.get("version")
    if version is None:
        return Slot(token, name)
    number_of = int(version.expression.name)
    return Slot(token, name, number_of - MARK) if number_of >= MARK else Slot(token, name, pinned=number_of)


def with_versions(view: exp.Query, numbers: Sequence[int]) -> exp.Query:
    """A view's query with the versions that were cut out of its text."""
    whole = view.copy()
    for table in whole.find_all(exp.Table):
        version = table.args.get("version")
        if version is not None and int(version.expression.name) >= MARK:
            version.set("expression", exp.Literal.number(numbers[int(version.expression.name) - MARK]))
    return whole


def is_cte(table: exp.Table) -> bool:
    """Whether the name means a CTE: one of an enclosing WITH, defined before the place where it is used."""
    if table.args.get("db") is not None or table.args.get("version") is not None:
        return False
    name = table.name.lower()
    node: exp.Expr = table
    within: exp.Expr | None = None
    while (parent := node.parent) is not None:
        if isinstance(node, exp.CTE):
            within = node
        with_ = parent.args.get("with_") if isinstance(parent, (exp.Query, exp.DML)) else None
        if with_ is not None:
            for cte in with_.expressions:
                is_own = node is with_ and cte is within
                if is_own and not with_.args.get("recursive"):
                    break
                if cte.alias.lower() == name:
                    return True
                if is_own:
                    break
        node = parent
    return False


def _target(alias: str = "") -> exp.Table:
    table = exp.Table(this=exp.to_identifier(TARGET, quoted=True))
    if alias:
        table.set("alias", exp.TableAlias(this=exp.to_identifier(alias)))
    return table


def _name(table: exp.Expr) -> str:
    table = table.this if isinstance(table, exp.Schema) else table
    return relation_name(table.text("catalog") or None, table.text("db") or None, table.name)
