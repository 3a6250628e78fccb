"""A MATCH_RECOGNIZE gives columns: its measures, and with ALL ROWS PER MATCH and ONE ROW PER PART more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from fivm_dbt.catalog.types import BIGINT
from fivm_dbt.features.match.ir.match import FINAL, FOUND, NUMBER, ROW, RUNNING, Ordering
from fivm_dbt.features.match.sql.expressions import Reader, Registers, Rows
from fivm_dbt.ir.node import Item
from fivm_dbt.ir.places import notes
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.sql.expressions import unparenthesized
from fivm_dbt.sql.parse import unsupported
from fivm_dbt.sql.part import Part

if TYPE_CHECKING:
    from fivm_dbt.sql.lower import Lowering


@dataclass(frozen=True)
class Measure:
    """A measure over registers, and where it was written."""

    name: str
    value: Scalar
    written: exp.Expr


@dataclass(frozen=True)
class MatchOutput:
    """The columns of the clause ``node`` over ``part``, whose measures are over the registers ``held``."""

    lowering: Lowering
    part: Part
    node: exp.MatchRecognize
    rows: Rows
    held: Registers

    def is_of_all_rows(self) -> bool:
        """Whether ALL ROWS PER MATCH is asked for."""
        text = (self.node.args["rows"].name if self.node.args.get("rows") is not None else "").upper()
        if "UNMATCHED" in text:
            remedy = "take the rows that are left from the input with an anti join"
            raise unsupported(self.node, "WITH UNMATCHED ROWS is not maintained", remedy)
        return text.startswith("ALL")

    def measures(self, reader: Reader, all_rows: bool) -> list[Measure]:
        """MEASURES, over registers."""
        result = []
        for measure in self.node.args.get("measures") or []:
            value, mode = measure.this, measure.args.get("window_frame")
            if not isinstance(value, exp.Alias):
                raise unsupported(value, "a measure has no name", "write ... AS name", code="FIVM112")
            inner = unparenthesized(value.this)
            if mode and all_rows and not isinstance(inner, (exp.Func, exp.Column)):
                what = f"{mode} before more than one function"
                raise unsupported(value, what, "compute the parts as measures of their own")
            relation = FINAL if not all_rows or mode == "FINAL" else RUNNING
            own = Reader(reader.rows, reader.variables, reader.typer, reader.registers, relation)
            scalar = own.scalar(inner)
            if notes(self.node).get("per_part") and (FOUND, NUMBER) in scalar.columns:
                what = (
                    "MATCH_NUMBER() in ONE ROW PER PART: what holds in several parts is no match of a number"
                )
                raise unsupported(value, what, "leave it out")
            result.append(Measure(value.alias, scalar, value))
        return result

    def items(
        self,
        partition: tuple[Item, ...],
        order: tuple[Ordering, ...],
        measures: list[Measure],
        all_rows: bool,
        times: tuple[Item, ...],
    ) -> tuple[Item, ...]:
        """All columns behind PARTITION BY. ``times`` are those of ORDER BY in ONE ROW PER PART."""
        fields = {(FOUND, NUMBER): BIGINT, **self.held.types(FINAL), **self.held.types(RUNNING)}
        names = [m.name for m in measures]
        computed = self.lowering.items(
            names, [m.value for m in measures], fields, [m.written for m in measures]
        )
        before, behind = self._shown(partition, order) if all_rows else (times, ())
        items = (*before, *computed, *behind)
        taken: set[str] = set()
        for name in (*(i.name for i in partition), *(i.name for i in before), *names):
            if name.lower() in taken:
                what = f"MATCH_RECOGNIZE gives two columns that are called {name}"
                raise unsupported(self.node, what, "name the measure differently", code="FIVM112")
            taken.add(name.lower())
        return tuple(items)

    def _shown(
        self, partition: tuple[Item, ...], order: tuple[Ordering, ...]
    ) -> tuple[tuple[Item, ...], tuple[Item, ...]]:
        """The columns of the input that ALL ROWS PER MATCH shows: those of ORDER BY, and the others.

        They are registers, so that a match that is undecided has all that is shown of its rows.
        """
        by = [o.column for o in order]
        keys = {i.name.lower() for i in partition}
        items: dict[str, Item] = {}
        for name, f in self.part.outputs:
            if name.lower() not in keys:
                column = self.rows.names[name.lower()]
                self.rows.use(column)
                register = self.held.add("last", None, Scalar.column(ROW, column), f.type)
                items[column] = Item(name, Scalar.column(RUNNING, register.name), f.type)
        before = tuple(items[c] for c in dict.fromkeys(by) if c in items)
        return before, tuple(i for c, i in items.items() if c not in by)

    def times(self, order: tuple[Ordering, ...]) -> tuple[Item, ...]:
        """The columns of ORDER BY, of the row in the part."""
        names = {self.rows.names[name.lower()]: name for name, _ in self.part.outputs}
        items = []
        for column in dict.fromkeys(by.column for by in order):
            type_ = self.rows.columns[column].type
            register = self.held.add("last", None, Scalar.column(ROW, column), type_)
            items.append(Item(names[column], Scalar.column(FINAL, register.name), type_))
        return tuple(items)
