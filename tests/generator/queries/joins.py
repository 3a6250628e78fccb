"""Random FROM clauses have joins of every kind over tables, subqueries, CTEs and VALUES."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from generator.constructs import Menu, Place, slots_wanted
from generator.queries.query import Block, Columns
from generator.queries.scalars import INEXACT, Col, Scalars, Type


@dataclass(frozen=True)
class Source:
    """An item of a FROM clause: its text with alias, the alias, its columns, and the table if it is one."""

    text: str
    alias: str
    columns: Columns
    table: str | None = None

    @property
    def cols(self) -> list[Col]:
        return [Col(f"{self.alias}.{name}", name, type_) for name, type_ in self.columns]


_SIDES = {
    "left join": "LEFT JOIN",
    "right join": "RIGHT JOIN",
    "full join": "FULL JOIN",
    "semi join": "LEFT SEMI JOIN",
    "anti join": "LEFT ANTI JOIN",
}
_OUTER = ("LEFT", "RIGHT", "FULL")


class From:
    """A FROM clause that grows by one relation at a time, and the columns that it has."""

    def __init__(self, rng: random.Random, menu: Menu, block: Block) -> None:
        self.rng = rng
        self.menu = menu
        self.block = block
        self.text = ""
        self.columns: list[Col] = []
        self.shown: list[Col] = []
        self.nullable: list[Col] = []
        """Columns that an outer join may have filled with NULLs."""
        self.merged: dict[str, Col] = {}
        """What USING and NATURAL joins show by its plain name."""
        self._has_merged = False
        self._is_wide = False
        self._tables: list[str | None] = []

    @property
    def has_unique_names(self) -> bool:
        """Whether ``*`` gives each column its own name, in an order on which Spark and DuckDB agree."""
        names = [c.name for c in self.shown]
        return (
            not self._has_merged
            and len(names) == len(set(names))
            and all(c.type != INEXACT for c in self.shown)
        )

    @property
    def usable(self) -> list[Col]:
        """All columns that expressions may name."""
        return [*self.columns, *self.merged.values()]

    def add(self, source: Source, *, is_last: bool) -> None:
        new = source.cols
        if not self.text:
            self.text = source.text
            self.columns, self.shown = list(new), list(new)
        else:
            self._join(source, new, is_last)
        self._tables.append(source.table)

    def _join(self, source: Source, new: list[Col], is_last: bool) -> None:
        place = Place(self.columns, self.block.depth, new)
        want = self.block.want
        kind = self._kind(place)
        if kind in ("natural join", "using", "outer natural join", "outer using"):
            common = self._common(new)
            if common and (kind not in ("natural join", "outer natural join") or self._all_common(new)):
                return self._merge(source, new, kind, common)
            want |= {kind} if kind in want else set()
            kind = "cross join"
        if kind == "self outer join":
            outer = [k for k in ("left join", "right join", "full join") if self.menu.allows(k)]
            kind = self.rng.choice(outer) if outer else "cross join"
        if kind == "cross join" and self._is_wide and place.pairs:
            kind = "inner join"  # a second product in one query has too many rows
        if kind in _SIDES:
            return self._outer(source, new, kind, place)
        if kind == "inner join" and place.pairs:
            condition = self._condition("condition", place) or "1 = 1"
            self.block.use("inner join")
            self.text += f" {self.rng.choice(('JOIN', 'INNER JOIN'))} {source.text} ON {condition}"
        else:
            self.block.use("cross join")
            self._is_wide = True
            # The ON of a join that follows a comma does not see what stands before the comma.
            comma = is_last and self.rng.random() < 0.5
            self.text += f", {source.text}" if comma else f" CROSS JOIN {source.text}"
        self._see(new)

    def _kind(self, place: Place) -> str:
        """The kind of join; one that a wanted condition needs, if there is one."""
        wanted = slots_wanted(self.block.want)
        sides = [k for k in _SIDES if self.menu.allows(k)]
        if "outer condition" in wanted and sides:
            return self.rng.choice(sides)
        outer = [k for k in sides if k in ("left join", "right join", "full join")]
        if "nullable side" in self.block.want and outer:
            return self.rng.choice(outer)
        if "condition" in wanted and place.pairs and self.menu.allows("inner join"):
            return "inner join"
        return self.menu.choose(self.rng, "join", place, self.block.want) or "cross join"

    def _see(self, new: Sequence[Col]) -> None:
        self.columns += new
        self.shown += new
        for column in new:
            self.merged.pop(column.name, None)  # the plain name has become ambiguous

    def _outer(self, source: Source, new: list[Col], kind: str, place: Place) -> None:
        condition = self._condition("outer condition", place) or "1 = 1"
        self.block.use(kind)
        self.text += f" {_SIDES[kind]} {source.text} ON {condition}"
        if kind in _SIDES and source.table is not None and source.table in self._tables:
            self.block.use("self outer join")
        if kind in ("semi join", "anti join"):
            return
        if kind != "left join":
            self.nullable += self.columns
        if kind != "right join":
            self.nullable += new
        self._see(new)

    def _condition(self, slot: str, place: Place) -> str | None:
        name = self.menu.choose(self.rng, slot, place, self.block.want)
        if name is None:
            return None
        self.block.use(name)
        what = name.removeprefix("outer ")
        if what == "one-sided":
            return Scalars(self.rng, [*place.columns]).predicate(0)
        numbers = [(a, b) for a, b in place.pairs if a.type.is_exact_number]
        if what == "theta":
            left, right = self.rng.choice(numbers)
            return f"{left.ref} {self.rng.choice(('<', '<=', '>', '<>'))} {right.ref}"
        if what == "band":
            left, right = self.rng.choice(numbers)
            below, above = self.rng.randint(0, 2), self.rng.randint(0, 2)
            return f"{left.ref} BETWEEN {right.ref} - {below} AND {right.ref} + {above}"
        condition = self._equality(place)
        if what == "equality and theta":
            condition += f" AND {Scalars(self.rng, [*place.columns, *place.new]).predicate(0)}"
        return condition

    def _equality(self, place: Place) -> str:
        keyed = [(a, b) for a, b in place.pairs if a.name == b.name == "k"] or place.pairs
        left, right = self.rng.choice(keyed if self.rng.random() < 0.75 else place.pairs)
        return f"{left.ref} {'<=>' if self.rng.random() < 0.2 else '='} {right.ref}"

    # USING and NATURAL

    def _merge(self, source: Source, new: list[Col], kind: str, common: list[str]) -> None:
        side = ""
        if kind.startswith("outer"):
            # A merged column of a FULL join is neither side's. DuckDB joins the next relation with the left side's
            # column by USING, Spark with the merged one, so there is no second USING: see _common.
            sides = [s for s in _OUTER if self.menu.allows(f"{s.lower()} join")]
            side = f"{self.rng.choice(sides)} " if sides else ""
            kind = kind if side else kind.removeprefix("outer ")
        self.block.use(kind, *([f"{side.strip().lower()} join"] if side else []))
        natural = "natural" in kind
        chosen = common if natural else self.rng.sample(common, self.rng.randint(1, len(common)))
        using = "" if natural else f" USING ({', '.join(chosen)})"
        self.text += f" {'NATURAL ' if natural else ''}{side}JOIN {source.text}{using}"
        if side in ("RIGHT ", "FULL "):
            self.nullable += self.columns
        if side in ("LEFT ", "FULL "):
            self.nullable += new
        self.columns += new
        self.shown += [c for c in new if c.name not in chosen]
        self._has_merged = True
        for column in new:
            self.merged.pop(column.name, None)
            if column.name in chosen:
                self.merged[column.name] = Col(column.name, column.name, column.type)

    def _common(self, new: list[Col]) -> list[str]:
        """Names that both sides have once, with one type that can be compared."""
        if self._has_merged and self.nullable:
            return []
        return [
            c.name
            for c in new
            if c.type.can_be_key and self._one(c.name, self.shown) == self._one(c.name, new) is not None
        ]

    def _all_common(self, new: list[Col]) -> bool:
        """Whether NATURAL, which takes every name that both sides have, would take none that it cannot."""
        both = [c.name for c in new if any(s.name == c.name for s in self.shown)]
        return both == self._common(new)

    def _one(self, name: str, columns: list[Col]) -> Type | None:
        """The type of the only column of this name, None where it is ambiguous."""
        found = [c.type for c in columns if c.name == name]
        return found[0] if len(found) == 1 else None
