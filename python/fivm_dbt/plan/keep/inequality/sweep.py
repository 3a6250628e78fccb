"""A sweep evaluates ``γ_c(D ⋈_{x θ c} S)`` over sums by key, without keeping it."""

from __future__ import annotations

from dataclasses import dataclass

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import INT
from fivm_dbt.ir.aggregate import Aggregate
from fivm_dbt.ir.build import NULL
from fivm_dbt.ir.comparison import Comparison
from fivm_dbt.ir.node import Field, Item, Node
from fivm_dbt.ir.nodes import Filter, Map, UnionAll
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.ir.window import Window
from fivm_dbt.ir.window_call import running
from fivm_dbt.naming import PREFIX
from fivm_dbt.plan.keep.inequality.aggregate_parts import parts_of, shown, summed
from fivm_dbt.plan.keep.inequality.correlation import Correlation, common_type
from fivm_dbt.plan.keep.trees.payload_views import Piece
from fivm_dbt.rings.component import Component


@dataclass(frozen=True)
class Sweep:
    """``γ_c(D ⋈ S)`` as running sums over both in the order of what is compared: each row is read once.

    At a place of both, S comes before D where equal values are in range, and else behind.
    """

    found: Correlation
    result: Aggregate
    sums: Piece
    values: Piece
    alias: str
    placed: str

    @property
    def parts(self) -> tuple[tuple[str, Component, Scalar], ...]:
        """Each component of the calls, with what a row of S contributes to it."""
        return parts_of(self.result)

    def joined(self) -> Map:
        """The same by joining D with S, where the two sides have no common order that is known here."""
        grouped = Aggregate(self.result.input, self.alias, self.result.keys, summed(self.parts))
        keys = tuple((k, k.name) for k in self.result.keys)
        return Map(grouped, self.result.alias, shown(self.result, self.alias, keys))

    def rows(self) -> Map | None:
        """None where an expression is compared, or types differ in more than their width."""
        pairs = self._pairs()
        if pairs is None:
            return None
        common = [
            _Side(f"{PREFIX}at" if n == 0 else f"equal_{n}", one, other, type_)
            for n, (one, other, type_, _) in enumerate(pairs)
        ]
        needed = [(one, other) for one, other, _, is_null_safe in pairs if not is_null_safe]
        outer = tuple(Field(self.alias, f"outer_{n}", k.type) for n, k in enumerate(self.result.keys, 1))
        parts = self.parts
        sums = Map(
            _present(self.sums.node, [one for one, _ in needed]),
            self.alias,
            (
                *(Item(s.name, s.one.cast(s.type.text), s.type) for s in common),
                *(Item(f.name, NULL.cast(f.type.text), f.type) for f in outer),
                *(Item(name, value.cast(c.type.text), c.type) for name, c, value in parts),
                Item("is_outer", Scalar.number(0), INT),
            ),
        )
        asked = Map(
            _present(self.values.node, [other for _, other in needed]),
            self.alias,
            (
                *(Item(s.name, s.other.cast(s.type.text), s.type) for s in common),
                *(Item(f.name, k.value, f.type) for f, k in zip(outer, self.result.keys, strict=True)),
                *(Item(name, Scalar(c.numbers.zero()), c.type) for name, c, _ in parts),
                Item("is_outer", Scalar.number(1), INT),
            ),
        )
        both = UnionAll((sums, asked), self.alias)
        window = Window(both, self.placed, (), self._running(common, outer, parts))
        is_outer = Comparison(Scalar.column(self.placed, "is_outer"), "=", Scalar.number(1))
        some = Comparison(Scalar.column(self.placed, "part_0"), "<>", Scalar.number(0))
        wanted = Filter(window, (is_outer.scalar, some.scalar))
        keys = tuple((k, f.name) for k, f in zip(self.result.keys, outer, strict=True))
        return Map(wanted, self.result.alias, shown(self.result, self.placed, keys))

    def _running(
        self, common: list[_Side], outer: tuple[Field, ...], parts: tuple[tuple[str, Component, Scalar], ...]
    ) -> tuple[Item, ...]:
        is_down = self.found.operator[0] == ">"
        # Rows of the outer query come last where equal values are in range.
        is_last = self.found.operator.endswith("=")
        is_outer = Scalar.column(self.alias, "is_outer")
        at, *equal = (Scalar.column(self.alias, s.name) for s in common)
        order = ((at, is_down), (is_outer, not is_last))
        return (
            *(Item(f.name, f.scalar, f.type) for f in outer),
            *(Item(name, running(self._total(name, c), equal, order), c.type) for name, c, _ in parts),
            Item("is_outer", is_outer, INT),
        )

    def _total(self, name: str, component: Component) -> Scalar:
        return Scalar(component.numbers.total(Scalar.column(self.alias, name).ast()))

    def _pairs(self) -> list[tuple[Scalar, Scalar, SparkType, bool]] | None:
        """What is compared, first by the inequality: of S, of D, in which type, and whether NULL equals NULL."""
        types = {f.id: f.type for node in (self.sums.node, self.values.node) for f in node.fields}
        known = dict(self.sums.columns)
        sides = [(self.found.value, self.found.outer, False)]
        for predicate in self.found.equal:
            compared = Comparison.of(predicate)
            assert compared is not None
            if compared.left not in known:
                compared = compared.turned
            sides.append((compared.left, compared.right, compared.operator == "<=>"))
        found = []
        for one, other, is_null_safe in sides:
            if one not in known or not other.is_column:
                return None
            ours = known[one]
            common = common_type(types[next(iter(ours.columns))], types[next(iter(other.columns))])
            if common is None:
                return None
            found.append((ours, other, common, is_null_safe))
        return found


@dataclass(frozen=True)
class _Side:
    """A column of the sweep: what it is of S, and of D."""

    name: str
    one: Scalar
    other: Scalar
    type: SparkType


def _present(node: Node, values: list[Scalar]) -> Node:
    """Rows in which what is compared is not NULL."""
    return Filter(node, tuple(Scalar.is_not_null(next(iter(v.columns))) for v in values)) if values else node
