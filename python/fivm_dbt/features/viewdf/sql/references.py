"""The text of a viewdf model has references to parts, and two queries.

``fivm.part(ref('m'), 'j-1')`` is compiled to ``(select /*+ fivm_part('j-1') */ * from m)``: to Spark a hint that it
does not know, so that the compiled text is a query as it stands, over whole relations. ``fivm.span`` is the same with
``fivm_span``. INITIALIZE stands in comments, a line each.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from sqlglot import exp

from fivm_dbt.errors import FivmError, Span
from fivm_dbt.naming import PREFIX, canonical, relation_name
from fivm_dbt.sql.edits import Edit, edited
from fivm_dbt.sql.parse import parse, span_of
from fivm_dbt.sql.relations import Named, relations_read

INITIALIZE = "--fivm:initialize "
"""What each line of INITIALIZE begins with in the compiled text of a model."""

_HINTS = ("fivm_part", "fivm_span")
_WRITTEN = re.compile(r"/\*\+\s*(?:fivm_part|fivm_span)\s*\([^)]*(?:\)[^)*]*)*?\)\s*\*/\s?", re.IGNORECASE)


@dataclass(frozen=True)
class WrittenReference:
    """A reference as it is written: its relation, the numbers, and the name that stands in its place.

    ``is_span`` counts in parts of the model itself, whatever the length of the relation's own.
    """

    placeholder: str
    relation: str
    low: str
    high: str | None
    is_span: bool


@dataclass(frozen=True)
class PartText:
    """A query with a placeholder for the relation of each reference, so that each can be read at parts of its own."""

    sql: str
    references: tuple[WrittenReference, ...]


def split_initialize(sql: str) -> tuple[str, str | None]:
    """UPDATE and INITIALIZE of a compiled text, the latter None where it has none.

    >>> split_initialize("--fivm:initialize select 1 as n\\n\\nselect 2 as n")
    ('select 2 as n', 'select 1 as n')
    """
    initialize, update = [], []
    for line in sql.splitlines():
        stripped = line.strip()
        if stripped.startswith(INITIALIZE.strip()):
            initialize.append(stripped.removeprefix(INITIALIZE.strip()).removeprefix(" "))
        else:
            update.append(line)
    return "\n".join(update).strip(), "\n".join(initialize).strip() or None


def part_references(sql: str, first: int = 1) -> PartText:
    """The references of a query. ``first`` is the number of its first placeholder. Raises FIVM101, FIVM205.

    >>> text = part_references("select x from (select /*+ fivm_part('j-1') */ * from raw.m) as m")
    >>> text.sql, text.references[0].low, text.references[0].relation
    ('select x from (select * from __fivm_part_1) as m', 'j-1', 'raw.m')
    """
    edits: list[Edit] = []
    found: list[WrittenReference] = []
    for select in parse(sql).find_all(exp.Select):
        hint = _hint(select)
        if hint is None:
            continue
        table = _only_table(select, sql)
        parts = [p for p in (table.args.get("catalog"), table.args.get("db"), table.this) if p]
        spans = [s for p in parts if (s := span_of(p)) is not None]
        placeholder = f"{PREFIX}part_{first + len(found)}"
        edits.append(Edit(spans[0].start, spans[-1].end - spans[0].start, placeholder))
        low, high = _numbers(hint, sql)
        name = canonical(relation_name(*(p.name for p in parts)))
        is_span = str(hint.name).lower() == "fivm_span"
        found.append(WrittenReference(placeholder, name, low, high, is_span))
    return PartText(_WRITTEN.sub("", edited(sql, edits)), tuple(found))


def relations_of_parts(sql: str, own: str) -> tuple[Named, ...]:
    """The relations that both queries of a compiled viewdf model read, but for the model itself.

    Positions are left out: the queries stand apart from each other in the text.
    """
    names = {n.name for text in split_initialize(sql) if text is not None for n in relations_read(text)}
    return tuple(Named(name, None) for name in sorted(names - {canonical(own)}))


def _hint(select: exp.Select) -> exp.Anonymous | None:
    hint = select.args.get("hint")
    calls = hint.expressions if hint is not None else []
    return next((c for c in calls if isinstance(c, exp.Anonymous) and str(c.name).lower() in _HINTS), None)


def _only_table(select: exp.Select, sql: str) -> exp.Table:
    """The relation of a reference, which is ``select * from relation`` and nothing else."""
    given = {key for key, value in select.args.items() if value}
    source = select.args["from_"].this if "from_" in given else None
    is_star = len(select.expressions) == 1 and isinstance(select.expressions[0], exp.Star)
    plain = isinstance(source, exp.Table) and isinstance(source.this, exp.Identifier)
    if given != {"hint", "expressions", "from_"} or not is_star or not plain:
        raise FivmError(
            "FIVM205",
            "a part is referred to within a query of its own",
            sql=sql,
            span=span_of(select),
            remedy="write {{ fivm.part(ref('m'), 'j') }} in FROM",
        )
    assert isinstance(source, exp.Table)
    return source


def _numbers(hint: exp.Anonymous, sql: str) -> tuple[str, str | None]:
    given = [e.name for e in hint.expressions if isinstance(e, exp.Literal)]
    if not 1 <= len(given) <= 2 or len(given) != len(hint.expressions):
        raise FivmError(
            "FIVM205",
            "a reference has the number of one part, or of a first and a last one",
            sql=sql,
            span=_place(hint, sql),
            remedy="write {{ fivm.part(ref('m'), 'j-1') }} or {{ fivm.part(ref('m'), 'j-3', 'j') }}",
        )
    return given[0], given[1] if len(given) == 2 else None


def _place(hint: exp.Anonymous, sql: str) -> Span | None:
    found = sql.find(str(hint.name))
    return Span(found, found + len(str(hint.name))) if found >= 0 else None
