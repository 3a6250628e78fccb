"""The delta of a pattern's marks has these names and expressions (:mod:`fivm_dbt.features.match.delta.marks`)."""

from __future__ import annotations

from dataclasses import dataclass

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import BIGINT
from fivm_dbt.features.match.ir.match import KEYS
from fivm_dbt.features.match.ir.runs import HEADS, Runs
from fivm_dbt.ir.aggregate import AggregateCall
from fivm_dbt.ir.node import Item, Node, Side
from fivm_dbt.ir.reads import Scan
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.naming import COUNT

FIRST_PART, LAST_PART, FIRST_AT, IS_ADDED = "first_part", "last_part", "first_at", "is_added"
LAST_OWN, KEPT_HEADS = "last_own", "kept_heads"
IS_APPENDED, LOW, UPTO, OLDS, END = "is_appended", "low_part", "upto_part", "old_marks", "end_part"


@dataclass(frozen=True)
class Columns:
    """What is said again and again of the ``runs`` whose marks the state ``relation`` keeps."""

    runs: Runs
    relation: str
    prefix: str

    def name(self, what: str) -> str:
        """The name of a staged set."""
        return f"{self.prefix}_{what}"

    def staged(self, what: str, node: Node, alias: str) -> Scan:
        """A staged set with the columns of ``node``."""
        return Scan(self.name(what), alias, tuple((f.name, f.type) for f in node.fields), Side.DELTA)

    @property
    def rows(self) -> Scan:
        """The kept rows."""
        (rows,) = self.runs.inputs
        assert isinstance(rows, Scan)
        return rows

    @property
    def delta(self) -> Scan:
        """What has changed of the kept rows."""
        rows = self.rows
        return Scan(rows.relation, f"{rows.alias}_delta", (*rows.columns, (COUNT, BIGINT)), Side.DELTA)

    def of(self, alias: str, value: Scalar) -> Scalar:
        """An expression over the kept rows, over another scan of them."""
        own = self.rows.alias
        return value.substitute(lambda c: Scalar.column(alias, c[1]) if c[0] == own else None)

    def state(self, alias: str) -> Scan:
        """The marks before the refresh."""
        columns = (*((k.name, k.type) for k in self.runs.keys), *self.runs.mark_fields)
        return Scan(self.relation, alias, columns, Side.OLD)

    def keys(self, alias: str) -> tuple[Item, ...]:
        return tuple(Item(k.name, Scalar.column(alias, k.name), k.type) for k in self.runs.keys)

    def same_key(self, one: str, other: str) -> tuple[Scalar, ...]:
        pairs = ((Scalar.column(one, k.name), Scalar.column(other, k.name)) for k in self.runs.keys)
        return tuple(over("a.x <=> a.y", x=x, y=y) for x, y in pairs)

    def row_of_key(self, rows: str, keys: str) -> tuple[Scalar, ...]:
        """Whether a row of a scan of the kept rows is of a key."""
        pairs = ((self.of(rows, k.value), Scalar.column(keys, k.name)) for k in self.runs.keys)
        return tuple(over("a.x <=> a.y", x=x, y=y) for x, y in pairs)

    @property
    def heads(self) -> str:
        """The column of the first parts of periods that marks of a key are written with."""
        return last(HEADS) if self.runs.open_slots is None else KEPT_HEADS

    def latest(self, alias: str) -> Scalar:
        """The slot of a key's last mark."""
        return self.runs.latest.substitute(lambda c: Scalar.column(alias, c[1]) if c[0] == KEYS else None)


def last(name: str) -> str:
    """What a column of the last mark is called beside others."""
    return f"latest_{name}"


def written(name: str, value: Scalar, type_: SparkType) -> AggregateCall:
    """An aggregate as it stands."""
    return AggregateCall.as_written(name, "", value, type_)


def over(sql: str, **known: Scalar) -> Scalar:
    """An expression written over columns of a, which stand for others.

    >>> over("a.x + 1", x=Scalar.column("r", "n")).sql
    'r.n + 1'
    """
    return Scalar.parse(sql).substitute(lambda c: known.get(c[1]))
