"""Random queries over everything that is maintained: joins, filters, groups, subqueries, CTEs, UNION ALL."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

from fivm_dbt.testing.generate_scalars import INEXACT, Col, Scalars, Type

Columns = tuple[tuple[str, Type], ...]


@dataclass(frozen=True)
class Query:
    """SQL text with its output columns."""

    sql: str
    columns: Columns


class Queries:
    """Generates queries over ``relations``; every name used as an alias is used once."""

    def __init__(self, rng: random.Random, relations: Mapping[str, Columns]) -> None:
        self.rng = rng
        self.relations = dict(relations)
        self._aliases = 0

    def query(self) -> Query:
        """A whole query, with or without CTEs."""
        if self.rng.random() < 0.15:
            return self._with_cte()
        return self._body(self.rng.choices((0, 1, 2), (55, 35, 10))[0])

    def _with_cte(self) -> Query:
        """A CTE that is read once or twice (then joined with itself)."""
        name = self._alias("c")
        inner = self._body(1)
        kept, self.relations = self.relations, {name: inner.columns, **self.relations}
        sources = (
            [name, name] if self.rng.random() < 0.4 else [name, *self._some_relations(self.rng.randint(0, 1))]
        )
        outer = self._select(1, sources)
        self.relations = kept
        return Query(f"WITH {name} AS ({inner.sql}) {outer.sql}", outer.columns)

    def _body(self, depth: int) -> Query:
        if self.rng.random() < 0.15:
            return self._union(depth)
        return self._select(depth, self._some_relations(self.rng.choices((1, 2, 3, 4), (46, 40, 11, 3))[0]))

    def _some_relations(self, count: int) -> list[str]:
        """Names to read from; the same one twice is a self-join."""
        return [self.rng.choice(sorted(self.relations)) for _ in range(count)]

    def _union(self, depth: int) -> Query:
        """UNION ALL of two selects of which the second finds columns of the first one's types."""
        first = self._select(depth, self._some_relations(1))
        for _ in range(6):
            second = self._select(0, self._some_relations(1), wanted=first.columns)
            if [t for _, t in second.columns] == [t for _, t in first.columns]:
                return Query(f"{first.sql} UNION ALL {second.sql}", first.columns)
        return Query(f"{first.sql} UNION ALL {first.sql}", first.columns)

    def _select(self, depth: int, names: list[str], wanted: Columns | None = None) -> Query:
        clause = _From(self.rng, self)
        for position, name in enumerate(names, start=1):
            clause.add(name, depth, is_last=position == len(names))
        scalars = Scalars(self.rng, clause.columns)
        where = f" WHERE {scalars.predicate()}" if self.rng.random() < 0.25 else ""
        source = f"{clause.text}{where}"
        if wanted is not None:
            return self._like(scalars, source, wanted)
        roll = self.rng.random()
        if roll < 0.5:
            return self._grouped(scalars, source)
        if roll < 0.6:
            return self._global(scalars, source)
        return self._projected(scalars, source, clause)

    def _like(self, scalars: Scalars, source: str, wanted: Columns) -> Query:
        """A projection with the types of another query, as far as there are such columns."""
        items, columns = [], []
        for name, type_ in wanted:
            found = [c for c in scalars.columns if c.type == type_]
            if found:
                items.append(f"{self.rng.choice(found).ref} AS {name}")
                columns.append((name, type_))
        return Query(f"SELECT {', '.join(items) or '1 AS one'} FROM {source}", tuple(columns))

    def _projected(self, scalars: Scalars, source: str, clause: _From) -> Query:
        if self.rng.random() < 0.15 and clause.has_unique_names:
            star = tuple((c.name, c.type) for c in clause.shown)
            return Query(f"SELECT * FROM {source}", star)
        items, columns = [], []
        for number in range(self.rng.randint(1, 4)):
            value, type_ = scalars.value(self.rng.choice(scalars.columns))
            items.append(f"{value} AS c{number}")
            columns.append((f"c{number}", type_))
        if self.rng.random() < 0.1:
            items.append(f"{self.rng.randint(0, 3)} AS constant")
            columns.append(("constant", Type("int")))
        return Query(f"SELECT {', '.join(items)} FROM {source}", tuple(columns))

    def _global(self, scalars: Scalars, source: str) -> Query:
        items, columns = self._aggregates(scalars)
        having = f" HAVING {scalars.having()}" if self.rng.random() < 0.15 else ""
        return Query(f"SELECT {', '.join(items)} FROM {source}{having}", tuple(columns))

    def _aggregates(self, scalars: Scalars) -> tuple[list[str], list[tuple[str, Type]]]:
        items, columns = [], []
        for number in range(self.rng.randint(1, 3)):
            value, type_ = scalars.aggregate()
            items.append(f"{value} AS a{number}")
            columns.append((f"a{number}", type_))
        return items, columns

    def _grouped(self, scalars: Scalars, source: str) -> Query:
        """GROUP BY columns, expressions, ordinals or aliases, not all of them shown."""
        keys = [c for c in scalars.columns if c.type.can_be_key]
        if not keys:
            return self._global(scalars, source)
        items: list[str] = []
        columns: list[tuple[str, Type]] = []
        group: list[str] = []
        for number, column in enumerate(self.rng.sample(keys, min(len(keys), self.rng.randint(1, 2)))):
            value, type_ = scalars.value(column)
            if self.rng.random() < 0.12:
                group.append(value)  # a key that is not shown
                continue
            items.append(f"{value} AS g{number}")
            columns.append((f"g{number}", type_))
            # GROUP BY prefers a column to an alias of the same name.
            is_free = all(c.name != f"g{number}" for c in scalars.columns)
            group.append(self.rng.choice((value, value, str(len(items)), f"g{number}" if is_free else value)))
        aggregates, types = self._aggregates(scalars)
        having = f" HAVING {scalars.having()}" if self.rng.random() < 0.2 else ""
        shown = ", ".join([*items, *aggregates])
        return Query(f"SELECT {shown} FROM {source} GROUP BY {', '.join(group)}{having}", (*columns, *types))

    def _alias(self, letter: str) -> str:
        self._aliases += 1
        return f"{letter}{self._aliases}"

    def source(self, name: str, depth: int) -> tuple[str, str, Columns]:
        """A FROM item: its text, its name, its columns. A subquery where ``depth`` allows."""
        if depth > 0 and self.rng.random() < 0.25:
            alias = self._alias("q")
            inner = self._body(depth - 1)
            return f"({inner.sql}) AS {alias}", alias, inner.columns
        alias = self._alias(name[0])
        return f"{name} AS {alias}", alias, self.relations[name]


class _From:
    """A FROM clause that grows by one relation at a time, and the columns that it has."""

    def __init__(self, rng: random.Random, queries: Queries) -> None:
        self._rng = rng
        self._queries = queries
        self.text = ""
        self.columns: list[Col] = []
        self.shown: list[Col] = []
        self._has_merged = False

    @property
    def has_unique_names(self) -> bool:
        """Whether ``*`` gives each column its own name, in an order on which Spark and DuckDB agree."""
        names = [c.name for c in self.shown]
        return (
            not self._has_merged
            and len(names) == len(set(names))
            and all(c.type != INEXACT for c in self.shown)
        )

    def add(self, name: str, depth: int, *, is_last: bool) -> None:
        text, alias, columns = self._queries.source(name, depth)
        new = [Col(f"{alias}.{column}", column, type_) for column, type_ in columns]
        if not self.text:
            self.text = text
            self.shown = list(new)
        else:
            self._join(text, new, is_last)
        self.columns += new

    def _join(self, text: str, new: list[Col], is_last: bool) -> None:
        common = [c.name for c in new if any(s.name == c.name for s in self.shown)]
        typed = [
            n for n in common if self._one(n, self.shown) == self._one(n, new) and self._can_merge(n, new)
        ]
        roll = self._rng.random()
        if roll < 0.15 and common and typed == common:
            self._has_merged = True
            self.text += f" NATURAL JOIN {text}"
            self.shown += [c for c in new if c.name not in common]
        elif roll < 0.3 and typed:
            self._has_merged = True
            chosen = self._rng.sample(typed, self._rng.randint(1, len(typed)))
            self.text += f" JOIN {text} USING ({', '.join(chosen)})"
            self.shown += [c for c in new if c.name not in chosen]
        else:
            self._join_on(text, new, roll, is_last)

    def _join_on(self, text: str, new: list[Col], roll: float, is_last: bool) -> None:
        self.shown += new
        pairs = [(a, b) for a in self.columns for b in new if a.type == b.type and a.type.can_be_key]
        if (roll < 0.37 and len(self.columns) < 5) or not pairs:
            # The ON of a join that follows a comma does not see what stands before the comma.
            self.text += f", {text}" if is_last and self._rng.random() < 0.5 else f" CROSS JOIN {text}"
            return
        keyed = [(a, b) for a, b in pairs if a.name == b.name == "k"] or pairs
        left, right = self._rng.choice(keyed if self._rng.random() < 0.75 else pairs)
        operator = "<=>" if self._rng.random() < 0.2 else "="
        condition = f"{left.ref} {operator} {right.ref}"
        if self._rng.random() < 0.15:
            condition += f" AND {Scalars(self._rng, [*self.columns, *new]).predicate(0)}"
        self.text += f" {self._rng.choice(('JOIN', 'INNER JOIN'))} {text} ON {condition}"

    def _one(self, name: str, columns: list[Col]) -> Type | None:
        """The type of the only column of this name, None where it is ambiguous."""
        found = [c.type for c in columns if c.name == name]
        return found[0] if len(found) == 1 else None

    def _can_merge(self, name: str, new: list[Col]) -> bool:
        type_ = self._one(name, new)
        return type_ is not None and type_.can_be_key
