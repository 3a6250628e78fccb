"""A model reads relations, and a catalog holds them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Literal

from fivm_dbt.catalog.database_view import DatabaseView
from fivm_dbt.catalog.types import SparkType
from fivm_dbt.errors import FivmError
from fivm_dbt.naming import canonical
from fivm_dbt.parts.intervals import Intervals
from fivm_dbt.parts.length import Length

RelationKind = Literal["table", "fivm", "factorized"]
"""``fivm``: a model that is shown from its root state; ``factorized``: one that is joined when it is read."""


@dataclass(frozen=True)
class Column:
    """A column: its name as Spark prints it, and its type."""

    name: str
    type: SparkType

    @staticmethod
    def of(name: str, type_text: str) -> Column:
        return Column(name, SparkType.of(type_text))


@dataclass(frozen=True)
class ForeignKey:
    """Every non-null ``columns`` value occurs in ``target_columns`` of relation ``target``."""

    columns: tuple[str, ...]
    target: str
    target_columns: tuple[str, ...]


@dataclass(frozen=True)
class Dependency:
    """Rows that agree on ``determinant`` agree on ``dependent``; columns in lower case."""

    determinant: tuple[str, ...]
    dependent: tuple[str, ...]


@dataclass(frozen=True)
class EventTime:
    """The column that says when what a row tells of happened; how long the relation's parts are, and how late rows are.

    ``part`` and ``lateness`` are lengths as they are configured: ``minute``, ``2 hours``.
    """

    column: str
    part: str | None = None
    lateness: str | None = None


@dataclass(frozen=True)
class Retention:
    """Parts of a relation, each a ``length`` long by its ``column``, are dropped once they are older than ``age``.

    Older is what ended that long before the end of the newest part. To drop a part is not to delete its rows: what was
    computed from them stays.
    """

    column: str
    length: Length
    age: timedelta

    def old(self, parts: Intervals, newest: int) -> Intervals:
        """Those of ``parts`` that may be dropped where ``newest`` is the newest part."""
        if not parts:
            return parts
        last = self.length.part_of(self.length.end_of(newest) - self.age) - 1
        return parts & Intervals.of((parts.first, last))


@dataclass(frozen=True)
class Presentation:
    """How a fivm model shows its root state: a SELECT over the one table ``root`` that maps each state row by itself.

    Because no state row looks at another one, the same SELECT over a change of ``root`` is the change of the model. Not
    where it adds up rows that were appended (``is_summed``): there two versions have to be compared.
    """

    root: str
    sql: str
    is_summed: bool = False


@dataclass(frozen=True)
class Relation:
    """A relation that a model reads.

    ``name`` is canonical (:func:`fivm_dbt.naming.canonical`); ``is_static`` promises that it never changes;
    ``is_recreated`` says that its table is dropped and created anew (a dbt seed), so that only an own snapshot
    can tell what changed; ``presentation`` is there for fivm models.
    """

    name: str
    columns: tuple[Column, ...]
    kind: RelationKind = "table"
    is_static: bool = False
    is_recreated: bool = False
    keys: tuple[tuple[str, ...], ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    presentation: Presentation | None = None
    dependencies: tuple[Dependency, ...] = ()
    event_time: EventTime | None = None
    retention: Retention | None = None

    @property
    def determines(self) -> tuple[Dependency, ...]:
        """The declared dependencies, and those of the declared keys, which determine every column."""
        every = tuple(c.name.lower() for c in self.columns)
        return (*(Dependency(key, every) for key in self.keys), *self.dependencies)

    @property
    def promises(self) -> tuple[str, ...]:
        """What is declared of its rows, as text: keys, foreign keys and dependencies."""
        return tuple(sorted(map(repr, (*self.keys, *self.foreign_keys, *self.dependencies))))

    def promising(self, texts: Collection[str]) -> Relation:
        """The relation with those of its promises alone that are among these."""
        return replace(
            self,
            keys=tuple(key for key in self.keys if repr(key) in texts),
            foreign_keys=tuple(key for key in self.foreign_keys if repr(key) in texts),
            dependencies=tuple(d for d in self.dependencies if repr(d) in texts),
        )

    def column(self, name: str) -> Column | None:
        """The column called ``name``, compared without case as Spark does."""
        return next((c for c in self.columns if c.name.lower() == name.lower()), None)


def check_records_changes(relation: Relation) -> None:
    """Raise FIVM303 for a model whose result is joined when it is read: nobody records what changes in it."""
    if relation.kind == "factorized":
        raise FivmError(
            "FIVM303",
            f"{relation.name} has fivm_result: factorized, and records no changes of its result",
            remedy=f"leave fivm_result out of {relation.name}, or read it in models that are not fivm's",
        )


@dataclass(frozen=True)
class Catalog:
    """The relations by canonical name, and the views over them, which are no relations of their own."""

    relations: tuple[Relation, ...]
    views: tuple[DatabaseView, ...] = ()

    @staticmethod
    def of(relations: Iterable[Relation], views: Iterable[DatabaseView] = ()) -> Catalog:
        return Catalog(
            tuple(sorted(relations, key=lambda r: r.name)), tuple(sorted(views, key=lambda v: v.name))
        )

    def promising(self, recorded: Mapping[str, Collection[str]]) -> Catalog:
        """With those of the promises of its relations alone that are recorded by relation."""
        kept = tuple(r.promising(recorded.get(r.name, ())) for r in self.relations)
        return replace(self, relations=kept)

    def find(self, name: str) -> Relation | None:
        """The relation written as ``name``, quoted or not."""
        wanted = canonical(name)
        return next((r for r in self.relations if r.name == wanted), None)
