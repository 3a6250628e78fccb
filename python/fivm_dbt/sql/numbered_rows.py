"""A number in the text tells rows of a SELECT apart that may be equal in all that it uses.

Two windows that order rows in two ways give equal rows two places each, and which goes with which is open. So each
relation ``r`` in FROM of which no key is known is read as::

    (select r.a, r.b, row_number() over (partition by r.a, r.b order by r.a) as __fivm_number_1 from r) as r

with the columns of ``r`` that the SELECT uses. Whatever order Spark reads in, the result is the same bag: among equal
rows it does not matter which has which number. The columns and the number are a key, by which each window goes on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from fivm_dbt.ir.node import Key
from fivm_dbt.ir.places import notes
from fivm_dbt.ir.scalar import ColumnId, column_ast
from fivm_dbt.naming import NUMBER, quote
from fivm_dbt.sql.edits import Edit, Text

if TYPE_CHECKING:
    from fivm_dbt.catalog import Catalog
    from fivm_dbt.ir.node import Node
    from fivm_dbt.sql.scope import Scope, Source


@dataclass(frozen=True)
class NumberedRows:
    """What is put into the text, and the key of the rows that it makes: fields, and the numbers as they are written."""

    edits: tuple[Edit, ...]
    fields: frozenset[ColumnId]
    numbers: tuple[str, ...]


def numbered_rows(
    text: Text, node: exp.Select, scope: Scope, relation: Node, catalog: Catalog
) -> NumberedRows | None:
    """The relations in FROM with numbers where they need some; None where the text does not allow it."""
    read = _relations(node)
    if read is None or len(read) != len(scope.sources) or _is_qualified_twice(node):
        return None
    names = _names(node, scope)
    fields: set[ColumnId] = set()
    edits: list[Edit] = []
    shown: set[str] = set()
    numbers: dict[str, str] = {}
    for position, (written, source) in enumerate(zip(read, scope.sources, strict=True), start=1):
        key = _key(source, relation, catalog)
        if key is not None:
            fields |= key
            shown |= {n.lower() for n, _ in source.columns}
            continue
        used = [(n, f) for n, f in source.columns if n.lower() in names] or source.columns[:1]
        place = _place(text, written)
        if place is None or not all(f.type.is_groupable for _, f in used):
            return None
        number = f"{NUMBER}{position}"
        fields |= {f.id for _, f in used}
        shown |= {n.lower() for n, _ in used}
        numbers[source.name.lower()] = number
        columns = [column_ast(source.name, name).sql(dialect="spark") for name, _ in used]
        before, after = _around(columns, number, source.name)
        edits += [Edit(text.start(place[0]), 0, before), Edit(text.end(place[1]), 0, after)]
    stars = _stars(text, node, numbers, shown)
    if stars is None:
        return None
    by_name = {s.name.lower(): s.name for s in scope.sources}
    written_numbers = tuple(f"{quote(by_name[name])}.{number}" for name, number in numbers.items())
    return NumberedRows((*edits, *stars), frozenset(fields), written_numbers)


def _around(columns: list[str], number: str, name: str) -> tuple[str, str]:
    listed = ", ".join(columns)
    numbering = f"row_number() over (partition by {listed} order by {columns[0]}) as {number}"
    return f"(select {listed}, {numbering} from ", f") as {quote(name)}"


def _relations(node: exp.Select) -> list[exp.Expr] | None:
    """Tables and subqueries with a name, in their order; None where something else makes rows."""
    joins = node.args.get("joins") or []
    if node.args.get("from_") is None or node.args.get("laterals") or node.args.get("match"):
        return None
    found: list[exp.Expr] = []
    for relation, join in [(node.args["from_"].this, None), *((j.this, j) for j in joins)]:
        side, kind = (
            str(join.args.get(k) or "").upper() if join is not None else "" for k in ("side", "kind")
        )
        if kind in ("SEMI", "ANTI"):
            continue  # its columns cannot be named
        plain = isinstance(relation, exp.Table) and isinstance(relation.this, exp.Identifier)
        named = isinstance(relation, exp.Subquery) and isinstance(relation.this, exp.Query) and relation.alias
        more = any(relation.args.get(k) for k in ("pivots", "joins", "laterals", "sample", "version", "when"))
        if side == "FULL" or more or not (plain or named):
            return None
        found.append(relation)
    return found


def _is_qualified_twice(node: exp.Select) -> bool:
    """Whether a column is named with its schema, which a subquery does not have."""
    return any(column.args.get("db") is not None for column in node.find_all(exp.Column))


def _clauses(node: exp.Select) -> Iterator[exp.Expr]:
    """What names columns of FROM."""
    for key, value in node.args.items():
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, exp.Join):
                yield from (
                    p for p in [part.args.get("on"), *(part.args.get("using") or [])] if p is not None
                )
            elif isinstance(part, exp.Expr) and key not in ("from_", "with_"):
                yield part


def _names(node: exp.Select, scope: Scope) -> set[str]:
    """All parts of the names of columns in the SELECT, so maybe more than the columns that it uses."""
    names = {n for source in scope.sources for n, _ in source.columns} if _is_natural(node) else set()
    for item in node.expressions:
        star = _star(item)
        if star is not None:
            without = {e.name.lower() for e in star.args.get("except_") or []}
            of = [
                s for s in scope.sources if not item.args.get("table") or s.name.lower() == item.table.lower()
            ]
            names |= {n for s in of for n, _ in s.columns if n.lower() not in without}
    for clause in _clauses(node):
        used: list[exp.Expr] = (
            [clause] if isinstance(clause, exp.Identifier) else [*clause.find_all(exp.Column)]
        )
        for part in used:
            if _star(part) is None and part.find_ancestor(exp.Star) is None:
                names |= {i.name for i in part.find_all(exp.Identifier)}
    return {name.lower() for name in names}


def _is_natural(node: exp.Select) -> bool:
    return any(str(j.args.get("method") or "").upper() == "NATURAL" for j in node.args.get("joins") or [])


def _star(item: exp.Expr) -> exp.Star | None:
    star = item.this if isinstance(item, exp.Column) else item
    return star if isinstance(star, exp.Star) else None


def _key(source: Source, relation: Node, catalog: Catalog) -> Key | None:
    """A known key of a relation in FROM."""
    own = {f.id for _, f in source.columns}
    for below in relation.walk():
        if own <= below.ids:
            for key in below.unique_keys(catalog):
                if key <= own:
                    return key
    return None


def _place(text: Text, relation: exp.Expr) -> tuple[int, int] | None:
    """The first and the last token of a relation with its alias."""
    alias = relation.args.get("alias")
    name = alias.this if isinstance(alias, exp.TableAlias) else None
    if isinstance(relation, exp.Table):
        parts = [relation.args.get(key) for key in ("catalog", "db", "this")]
        first = text.stands_at(next(p for p in parts if p is not None))
    else:
        first = text.opening_before(name) if name is not None else None
    last = text.stands_at(name if name is not None else relation.this)
    if first is None or last is None:
        return None
    if isinstance(alias, exp.TableAlias) and alias.args.get("columns"):
        last = text.closing(last + 1)
    return first, last


def _stars(text: Text, node: exp.Select, numbers: dict[str, str], shown: set[str]) -> tuple[Edit, ...] | None:
    """``* except (numbers)``, and what it did without and is still there.

    None where a star stands elsewhere than in the list, or is not found.
    """
    listed = {id(star) for item in node.expressions if (star := _star(item)) is not None}
    for clause in _clauses(node):
        for star in clause.find_all(exp.Star):
            if id(star) not in listed and not isinstance(star.parent, exp.Count):
                return None
    edits = []
    for item in node.expressions:
        star = _star(item)
        if star is None:
            continue
        table = item.table.lower() if isinstance(item, exp.Column) else ""
        place = text.token_at(notes(star).get("start", -1))
        if place is None:
            return None
        without = star.args.get("except_") or []
        hidden = [quote(e.name) for e in without if e.name.lower() in shown]
        hidden += [number for name, number in numbers.items() if table in ("", name)]
        end = text.end(text.closing(place + 2) if without else place)
        edits.append(
            Edit(text.end(place), end - text.end(place), f" except ({', '.join(hidden)})" if hidden else "")
        )
    return tuple(edits)
