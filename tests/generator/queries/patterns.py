"""Random row patterns over a relation stand in FROM as any other source."""

from __future__ import annotations

from typing import TYPE_CHECKING

from generator.queries.joins import Source
from generator.queries.scalars import BIGINT, DATE, Col

if TYPE_CHECKING:
    from generator.queries.sql import Queries

_PATTERNS = ("a b", "a b+", "a+ b", "a (b | c)", "a b* c", "a+ $", "a b? c")
_SKIPS = ("", "", "AFTER MATCH SKIP PAST LAST ROW ", "AFTER MATCH SKIP TO NEXT ROW ")


def pattern(queries: Queries) -> Source | None:
    """Matches with a column of PARTITION BY, how many rows they have, and values of these; None over too few columns.

    The order has ties, which are those of rows that are equal in all columns used.
    """
    rng = queries.rng
    name = rng.choice(sorted(queries.relations))
    columns = [Col(n, n, t) for n, t in queries.relations[name] if t.can_be_key]
    if len(columns) < 2 or len({c.name.lower() for c in columns}) < len(columns):
        return None
    by, *others = rng.sample(columns, len(columns))
    dates = [c for c in others if c.type == DATE]
    order = rng.choice(dates) if dates and rng.random() < 0.8 else rng.choice(others)
    tested = rng.choice(others)
    text = rng.choice(_PATTERNS)
    names = [n for n in "abc" if n in text]
    other = rng.choice((f"PREV(b.{tested.ref})", f"a.{tested.ref}", f"FIRST(a.{tested.ref})"))
    define = f"b AS b.{tested.ref} {rng.choice(('>', '<', '>=', '<>'))} {other}"
    if "b" not in names:
        define = f"a AS a.{tested.ref} IS NOT NULL"
    shown = rng.choice(others)
    alias = queries.alias("m")
    clause = (
        f"PARTITION BY {by.ref} ORDER BY {order.ref} "
        f"MEASURES COUNT(*) AS ct, {rng.choice(('FIRST', 'LAST', 'MIN'))}({shown.ref}) AS {shown.name} "
        f"{rng.choice(_SKIPS)}PATTERN ({text}) DEFINE {define}"
    )
    fields = ((by.name, by.type), ("ct", BIGINT), (shown.name, shown.type))
    return Source(f"{name} MATCH_RECOGNIZE ({clause}) AS {alias}", alias, fields)
