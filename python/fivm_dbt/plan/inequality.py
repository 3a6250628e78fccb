"""Aggregates that are correlated by an inequality: what is kept of ``G = γ_c(D ⋈_{x θ c} R)``, D being the outer values.

S are the sums of R by x and by what is compared for equality (for VWAP the volume by price). Over S there are three ways:

* ``reevaluate``: nothing else is kept. What stands over G is evaluated whenever something changed, G by one sweep over
  S and D in the order of x and c.
* ``parameterised``: G is kept, one value per outer value in use. A changed sum of S meets the outer values that it is in
  range of, a new outer value reads S, and a value that is no longer in use leaves with its outer value.
* ``ranges``: G is kept, over H in place of S: sums per bucket of x on several levels. The range of a new outer value is
  the union over the levels of the buckets beside its own, which are looked up.

(Multilevel IVM, sections 3.1.3, 3.3 and 4.4. Which way: :mod:`fivm_dbt.viewtree.inequality_costs`.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from sqlglot import exp

from fivm_dbt.catalog import SparkType, TableStatistics
from fivm_dbt.catalog.types import BIGINT, INT
from fivm_dbt.config import Inequality
from fivm_dbt.delta.term import scans
from fivm_dbt.ir.buckets import BITS, BUCKET, LEVEL, PARENT, Buckets
from fivm_dbt.ir.nodes import Aggregate, AggregateCall, Field, Filter, Item, Join, Map, Node, Scan, UnionAll, Window
from fivm_dbt.ir.on_demand import OnDemand
from fivm_dbt.ir.rename import with_meaning
from fivm_dbt.ir.scalar import ColumnId, Scalar, column_ast
from fivm_dbt.naming import PREFIX, storable, unique_name
from fivm_dbt.plan.blocks import Block
from fivm_dbt.plan.kept_views import KeptViews, column_of
from fivm_dbt.plan.payload_views import PayloadViews, Piece
from fivm_dbt.plan.plan import InequalityHelper
from fivm_dbt.rings.products import sum_of_products
from fivm_dbt.rings.registry import ROWS, Component, components, finish
from fivm_dbt.viewtree.inequality_costs import Sizes, Way, buckets_of, costs
from fivm_dbt.viewtree.statistics import DISTINCT
from fivm_dbt.viewtree.statistics import ROWS as UNKNOWN_ROWS

Operator = Literal["<", "<=", ">", ">="]

_OPERATORS: dict[type[exp.Expr], tuple[Operator, Operator]] = {
    exp.LT: ("<", ">"),
    exp.LTE: ("<=", ">="),
    exp.GT: (">", "<"),
    exp.GTE: (">=", "<="),
}
"""A comparison as it is written, and with its sides exchanged."""

_BUCKET_BITS = 64
_DIGITS = 18
"""A bigint has room for so many decimal digits."""


@dataclass(frozen=True)
class Correlation:
    """``aggregate`` over the join of a ``domain`` with the ``factors`` of R, by ``value operator outer`` and ``equal``.

    ``own`` are conditions on R alone, ``beside`` those on the domain alone.
    """

    aggregate: Aggregate
    domain: Node
    factors: tuple[Node, ...]
    own: tuple[Scalar, ...]
    beside: tuple[Scalar, ...]
    equal: tuple[Scalar, ...]
    comparison: Scalar
    value: Scalar
    operator: Operator
    outer: Scalar

    @property
    def types(self) -> dict[ColumnId, SparkType]:
        return {f.id: f.type for node in (self.domain, *self.factors) for f in node.fields}

    def over(self, domain: Node, factors: tuple[Node, ...], meaning: Mapping[ColumnId, Scalar]) -> Correlation:
        """The same over other relations, with ``meaning`` in place of columns that these call otherwise."""
        aggregate = replace(
            self.aggregate,
            input=Join((domain, *factors), ()),
            keys=with_meaning(self.aggregate.keys, meaning),
            calls=with_meaning(self.aggregate.calls, meaning),
        )
        return replace(
            self,
            aggregate=aggregate,
            domain=domain,
            factors=factors,
            own=with_meaning(self.own, meaning),
            beside=with_meaning(self.beside, meaning),
            equal=with_meaning(self.equal, meaning),
            comparison=with_meaning(self.comparison, meaning),
            value=with_meaning(self.value, meaning),
            outer=with_meaning(self.outer, meaning),
        )


def correlation_of(node: Aggregate) -> Correlation | None:
    """``node`` as an aggregate correlated by one inequality; None for any other."""
    if not node.adds_up or node.factored is not None or not node.keys or not isinstance(node.input, Join):
        return None
    domain = next((f for f in node.input.factors if _is_domain(f, node)), None)
    if domain is None:
        return None
    factors = tuple(f for f in node.input.factors if f is not domain)
    ours, theirs = frozenset(c for f in factors for c in f.ids), domain.ids
    arguments = (c.argument for c in node.calls if c.argument is not None)
    if not factors or any(not argument.columns <= ours for argument in arguments):
        return None
    own, beside, equal, compared = [], [], [], []
    for predicate in node.input.predicates:
        if not predicate.columns or not predicate.columns <= ours | theirs:
            return None
        if predicate.columns <= ours:
            own.append(predicate)
        elif predicate.columns <= theirs:
            beside.append(predicate)
        elif _is_equality(predicate, ours, theirs):
            equal.append(predicate)
        else:
            compared.append(predicate)
    sides = _sides(compared[0], ours, theirs) if len(compared) == 1 else None
    if sides is None:
        return None
    return Correlation(node, domain, factors, tuple(own), tuple(beside), tuple(equal), compared[0], *sides)


def _is_domain(factor: Node, node: Aggregate) -> bool:
    """Whether a factor of an aggregate's input has each of its groups once, and no row for anything else."""
    is_set = isinstance(factor, Aggregate) and not factor.calls and bool(factor.keys)
    return is_set and all(k.value.is_column and k.value.columns <= factor.ids for k in node.keys)


def _is_equality(predicate: Scalar, ours: frozenset[ColumnId], theirs: frozenset[ColumnId]) -> bool:
    node = predicate.ast()
    if not isinstance(node, (exp.EQ, exp.NullSafeEQ)):
        return False
    left, right = Scalar(node.this).columns, Scalar(node.expression).columns
    return bool(left and right) and ((left <= ours and right <= theirs) or (left <= theirs and right <= ours))


def _sides(
    predicate: Scalar, ours: frozenset[ColumnId], theirs: frozenset[ColumnId]
) -> tuple[Scalar, Operator, Scalar] | None:
    """A comparison as ``value of R, operator, value of the domain``."""
    node = predicate.ast()
    operators = _OPERATORS.get(type(node))
    if operators is None:
        return None
    left, right = Scalar(node.this.unnest()), Scalar(node.expression.unnest())
    if left.columns and left.columns <= ours and right.columns and right.columns <= theirs:
        return left, operators[0], right
    if left.columns and left.columns <= theirs and right.columns and right.columns <= ours:
        return right, operators[1], left
    return None


@dataclass
class InequalityHelpers:
    """Keeps what is chosen for one model's aggregates over inequalities, in ``views``.

    ``setting`` is ``fivm_inequality``; ``buckets`` are those of its states where the model says it. ``measurable`` says
    what ``auto`` would like to know, ``chosen`` what was taken and why.
    """

    views: KeptViews
    setting: Inequality
    measured: TableStatistics | None
    buckets: int | None
    splits_sums: bool
    measurable: dict[str, set[str]] = field(default_factory=dict)
    chosen: list[InequalityHelper] = field(default_factory=list)

    def applies(self, found: Correlation) -> bool:
        """Whether it is for here: the outer values come and go, and what is compared can be a key."""
        types = found.types
        used = (found.comparison, *found.equal)
        is_keyed = all(types[c].is_groupable for s in used for c in s.columns)
        return is_keyed and self.views.can_change(found.domain)

    def kept(self, found: Correlation, before: Correlation) -> Node:
        """The aggregate over what is kept for it. ``before`` is ``found`` over the inputs, of which the sizes are."""
        spread, why_not = _spread(found)
        sizes = self._sizes(before, spread.levels if spread is not None else None)
        way, reason = self._choice(sizes, why_not)
        first = len(self.views.views)
        node = {"reevaluate": self._on_demand, "parameterised": self._parameterised}.get(
            way, lambda f: self._over_ranges(f, spread)
        )(found)
        names = tuple(v.name for v in self.views.views[first:])
        estimates = tuple((w, round(cost)) for w, cost in costs(sizes).items())
        self.chosen.append(InequalityHelper(before.comparison.sql, way, reason, names, estimates, why_not))
        return node

    # The choice

    def _choice(self, sizes: Sizes, why_not: str | None) -> tuple[Way, str]:
        if self.setting == "ranges" and why_not is not None:
            return "parameterised", f"ranges do not apply: {why_not}"
        if self.setting != "auto":
            return self.setting, f"fivm_inequality: {self.setting}"
        found = costs(sizes)
        least = min(found, key=lambda way: found[way])
        known = "by the sizes that were measured" if self.measured is not None else "by default sizes"
        return least, f"the fewest rows per refresh, {known}"

    def _sizes(self, found: Correlation, levels: int | None) -> Sizes:
        inner, outer = Join(found.factors, ()), found.domain
        rows, outer_rows = self._rows(inner), self._rows(outer)
        values = self._distinct(inner, found.value.columns)
        equal = frozenset(c for p in found.equal for c in p.columns) & inner.ids
        groups = min(rows, self._distinct(inner, equal))
        outer_columns = frozenset(c for p in (found.comparison, *found.equal) for c in p.columns) & outer.ids
        rate, outer_rate = self._rates(inner, outer)
        return Sizes(
            rows=rows,
            keys=min(rows, values * groups),
            groups=groups,
            outer_rows=outer_rows,
            outer_values=min(outer_rows, self._distinct(outer, outer_columns)),
            rate=rate,
            outer_rate=outer_rate,
            levels=levels,
            buckets=self.buckets or buckets_of(max(rows, outer_rows)),
        )

    def _rows(self, node: Node) -> float:
        """Rows of the largest relation below: most joins are from a foreign key to a key."""
        counted = [self._rows_of(s.relation) for s in scans(node)]
        return float(max(counted, default=1))

    def _rows_of(self, relation: str) -> int:
        self.measurable.setdefault(relation, set())
        known = self.measured.rows_of(relation) if self.measured is not None else None
        return max(1, UNKNOWN_ROWS if known is None else known)

    def _distinct(self, node: Node, columns: Iterable[ColumnId]) -> float:
        product = 1.0
        for column in sorted(columns):
            found = _input_column(node, column)
            known = None
            if found is not None:
                self.measurable.setdefault(found[0], set()).add(found[1])
                known = self.measured.distinct_of(*found) if self.measured is not None else None
            product *= max(1, DISTINCT if known is None else known)
        return product

    def _rates(self, inner: Node, outer: Node) -> tuple[float, float]:
        """How often R and L change, the one that changes oftener once per refresh: by the fourth root of their rows."""
        weights = [self._rows(node) ** 0.25 if self.views.can_change(node) else 0.0 for node in (inner, outer)]
        if {s.relation for s in scans(inner)} & {s.relation for s in scans(outer)}:
            weights = [max(weights)] * 2
        most = max(weights) or 1.0
        return weights[0] / most, weights[1] / most

    # The three ways

    def _parameterised(self, found: Correlation) -> Node:
        rows, own, domain = self._relations(found)
        block = self._block(found, rows, domain, own)
        views = PayloadViews(block)
        return views.result([self._sums(views, found.equal), views.as_it_is(1)])

    def _on_demand(self, found: Correlation) -> Node:
        rows, own, domain = self._relations(found)
        block = self._block(found, rows, domain, own)
        views = PayloadViews(block)
        sums, values = self._sums(views, found.equal), views.as_it_is(1)
        result = views.result([sums, values])
        alias = self.views.alias
        sweep = _Sweep(own, result, sums, values, alias(), alias())
        swept = sweep.rows()
        return OnDemand(swept if swept is not None else sweep.joined())

    def _over_ranges(self, found: Correlation, spread: _Spread | None) -> Node:
        assert spread is not None
        rows, own, domain = self._relations(found)
        inner, meaning = _bucketed(rows, spread.code(own.value), spread.levels, self.views.alias())
        outer, outer_meaning = _bucketed(domain, spread.code(own.outer), spread.levels, self.views.alias())
        meaning |= outer_meaning
        equal = tuple(p.substitute(meaning.get) for p in own.equal)
        pairs = [(inner.alias, n, outer.alias, n) for n in (LEVEL, PARENT)]
        same = tuple(Scalar.equal((a, b), (c, d)) for a, b, c, d in pairs)
        beside = _beside(own.operator, inner.alias, outer.alias)
        aggregate = replace(
            own.aggregate,
            keys=with_meaning(own.aggregate.keys, meaning),
            calls=with_meaning(own.aggregate.calls, meaning),
            input=Join((inner, outer), (*equal, *same, beside)),
        )
        block = Block(aggregate, (inner, outer), (*equal, *same, beside), self.splits_sums)
        views = PayloadViews(block)
        return views.result([self._sums(views, (*equal, *same), "per range"), views.as_it_is(1)])

    def _sums(self, views: PayloadViews, equal: tuple[Scalar, ...], what: str = "by key") -> Piece:
        """The sums of R, kept: placed by what has to be equal, where anything has to."""
        made = views.view([views.as_it_is(0)], frozenset((0, 1)), self.views.alias())
        compared = frozenset(c for p in equal for c in p.columns)
        by = [column_of(column) for part, column in made.columns.items() if part.columns & compared]
        keys = ", ".join(k.name for k in made.node.keys)
        reason = f"sums of {views.block.names[0]} {what} ({keys}), which outer values are compared with"
        return made.kept_as(self.views.keep(made.node, tuple(dict.fromkeys(by)), reason))

    def _block(self, found: Correlation, rows: Node, domain: Node, own: Correlation) -> Block:
        conditions = (*own.equal, own.comparison)
        aggregate = replace(own.aggregate, input=Join((rows, domain), conditions))
        return Block(aggregate, (rows, domain), conditions, self.splits_sums)

    def _relations(self, found: Correlation) -> tuple[Node, Correlation, Node]:
        """R as one relation and the domain, each under the conditions on it alone, and ``found`` over these."""
        present = Scalar(exp.Not(this=exp.Is(this=exp.paren(found.value.ast()), expression=exp.Null())))
        if found.value.is_column:
            present = Scalar.is_not_null(next(iter(found.value.columns)))
        domain: Node = Filter(found.domain, found.beside) if found.beside else found.domain
        if len(found.factors) == 1:
            return Filter(found.factors[0], (*found.own, present)), found, domain
        joined = Join(found.factors, (*found.own, present))
        rows, meaning = _projected(joined, _used(found) & joined.ids, self.views.alias())
        return rows, found.over(domain, (rows,), meaning), domain


def _used(found: Correlation) -> frozenset[ColumnId]:
    """The columns of R that are compared or added up."""
    arguments = (c.argument for c in found.aggregate.calls if c.argument is not None)
    return frozenset(c for s in (found.comparison, *found.equal, *arguments) for c in s.columns)


def _projected(node: Node, columns: frozenset[ColumnId], alias: str) -> tuple[Map, dict[ColumnId, Scalar]]:
    """Some columns of ``node`` as one relation, and what they are called there."""
    items, meaning = _items(node, columns, alias, ())
    return Map(node, alias, items), meaning


def _items(
    node: Node, columns: frozenset[ColumnId], alias: str, taken: tuple[str, ...]
) -> tuple[tuple[Item, ...], dict[ColumnId, Scalar]]:
    items: list[Item] = []
    meaning: dict[ColumnId, Scalar] = {}
    for f in node.fields:
        if f.id in columns:
            items.append(Item(unique_name(storable(f.name), {*taken, *(i.name for i in items)}), f.scalar, f.type))
            meaning[f.id] = Scalar.column(alias, items[-1].name)
    return tuple(items), meaning


def _bucketed(node: Node, code: Scalar, levels: int, alias: str) -> tuple[Buckets, dict[ColumnId, Scalar]]:
    items, meaning = _items(node, node.ids, alias, (LEVEL, PARENT, BUCKET))
    return Buckets(node, alias, items, code, levels), meaning


def _input_column(node: Node, column: ColumnId) -> tuple[str, str] | None:
    """The column of an input that a column of ``node`` is, if it is one as it stands."""
    if isinstance(node, Scan):
        return (node.relation, column[1]) if column in node.ids else None
    if isinstance(node, (Map, Aggregate)):
        items = node.items if isinstance(node, Map) else node.keys
        value = next((i.value for i in items if (node.alias, i.name) == column), None)
        if value is None or not value.is_column:
            return None
        column = next(iter(value.columns))
    found: Iterator[tuple[str, str] | None] = (_input_column(child, column) for child in node.inputs)
    return next((f for f in found if f is not None), None)


# Ranges


@dataclass(frozen=True)
class _Spread:
    """How values of a common ``type`` are numbered by bigints in their order, and how many levels of buckets these need."""

    type: SparkType
    levels: int

    def code(self, value: Scalar) -> Scalar:
        node, text = value.ast(), self.type.text
        if self.type.is_decimal:
            # Exact: as many digits as the numbers have, the point moved behind the last one.
            scaled = exp.cast(node, text, dialect="spark")
            shift = SparkType.decimal(self.type.scale + 1, 0)
            power = exp.cast(exp.Literal.number(10**self.type.scale), shift.text, dialect="spark")
            node = exp.Mul(this=scaled, expression=power)
        elif text == "date":
            node = exp.Anonymous(this="UNIX_DATE", expressions=[node])
        elif text == "timestamp":
            node = exp.Anonymous(this="UNIX_MICROS", expressions=[node])
        return Scalar(exp.cast(node, BIGINT.text, dialect="spark"))


def _spread(found: Correlation) -> tuple[_Spread | None, str | None]:
    """How both sides are numbered, or why they cannot be."""
    types = _compared_types(found)
    if types is None:
        return None, "an expression is compared, not a column on either side"
    common = _common(*types)
    shown = " with ".join(dict.fromkeys(t.text for t in types))
    if common is None:
        return None, f"{shown} cannot be numbered in one order"
    if common.is_decimal:
        if common.precision > _DIGITS:
            return None, f"{shown} has more than {_DIGITS} digits"
        bits = (10**common.precision).bit_length() + 1
    elif common.text in ("date", "timestamp"):
        bits = {"date": 24, "timestamp": _BUCKET_BITS}[common.text]
    elif common.is_integral:
        bits = max({"tinyint": 8, "smallint": 16, "int": 32}.get(t.text, 64) for t in types)
    else:
        return None, f"{shown} has no floor"
    return _Spread(common, -(-bits // BITS)), None


def _compared_types(found: Correlation) -> tuple[SparkType, SparkType] | None:
    if not (found.value.is_column and found.outer.is_column):
        return None
    types = found.types
    return types[next(iter(found.value.columns))], types[next(iter(found.outer.columns))]


def _common(one: SparkType, other: SparkType) -> SparkType | None:
    """A type that both are compared in, as Spark compares them: exactly."""
    if one.is_integral and other.is_integral:
        return BIGINT
    if (one.is_decimal or one.is_integral) and (other.is_decimal or other.is_integral):
        scale = max(one.scale, other.scale)
        digits = max(t.precision - t.scale for t in (one, other))
        return SparkType.decimal(digits + scale, scale) if digits + scale <= 38 else None
    return one if one == other and not _is_nested(one) else None


def _is_nested(type_: SparkType) -> bool:
    return type_.text.startswith(("array", "struct", "map"))


def _beside(operator: Operator, inner: str, outer: str) -> Scalar:
    """``bucket θ own bucket``; what may be equal is so on the finest level, where a bucket is a value."""
    strict = {"<": exp.LT, ">": exp.GT}[operator[0]]
    bucket, own = column_ast(inner, BUCKET), column_ast(outer, BUCKET)
    compared: exp.Expr = strict(this=bucket, expression=own)
    if operator.endswith("="):
        finest = exp.EQ(this=column_ast(inner, LEVEL), expression=exp.Literal.number(0))
        same = exp.and_(exp.EQ(this=bucket.copy(), expression=own.copy()), finest)
        compared = exp.paren(exp.or_(compared, same))
    return Scalar(compared)


# Evaluation on demand


@dataclass(frozen=True)
class _Sweep:
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
    def components(self) -> tuple[tuple[Component, Scalar], ...]:
        """Each component of the calls, with what a row of S contributes to it."""
        assert self.result.factored is not None
        one = Scalar.number(1)
        made: dict[Component, Scalar] = {
            ROWS: sum_of_products((self.result.factored.rows,), one, ROWS.ring, BIGINT)
        }
        for call, parts in zip(self.result.calls, self.result.factored.calls, strict=True):
            for component, products in zip(components(call), parts, strict=True):
                made.setdefault(component, sum_of_products(products, one, component.ring, component.type))
        return tuple(made.items())

    def joined(self) -> Map:
        """The same by joining D with S, where the two sides have no common order that is known here."""
        calls = tuple(
            AggregateCall(f"part_{n}", "sum", value, _column_type(component), _column_type(component))
            for n, (component, value) in enumerate(self.components)
        )
        return self._finished(Aggregate(self.result.input, self.alias, self.result.keys, calls), self.alias)

    def rows(self) -> Map | None:
        """None where an expression is compared, or types differ in more than their width."""
        pairs = self._pairs()
        if pairs is None:
            return None
        place, *equal = pairs
        common = [
            _Side(f"{PREFIX}at" if n == 0 else f"equal_{n}", one, other, type_)
            for n, (one, other, type_, _) in enumerate(pairs)
        ]
        needed = [(one, other) for one, other, _, is_null_safe in pairs if not is_null_safe]
        outer = tuple(Field(self.alias, f"outer_{n}", k.type) for n, k in enumerate(self.result.keys, 1))
        parts = [(f"part_{n}", component, value) for n, (component, value) in enumerate(self.components)]
        null = Scalar(exp.Null())
        summed = Map(
            _present(self.sums.node, [one for one, _ in needed]),
            self.alias,
            (
                *(Item(s.name, s.one.cast(s.type.text), s.type) for s in common),
                *(Item(f.name, null.cast(f.type.text), f.type) for f in outer),
                *(Item(name, value.cast(_column_type(c).text), _column_type(c)) for name, c, value in parts),
                Item("is_outer", Scalar.number(0), INT),
            ),
        )
        zero = Scalar.number(0)
        asked = Map(
            _present(self.values.node, [other for _, other in needed]),
            self.alias,
            (
                *(Item(s.name, s.other.cast(s.type.text), s.type) for s in common),
                *(Item(f.name, k.value, f.type) for f, k in zip(outer, self.result.keys, strict=True)),
                *(Item(name, zero.cast(_column_type(c).text), _column_type(c)) for name, c, _ in parts),
                Item("is_outer", Scalar.number(1), INT),
            ),
        )
        both = UnionAll((summed, asked), self.alias)
        window = Window(both, self.placed, (), self._running(common, outer, parts))
        is_outer = exp.EQ(this=column_ast(self.placed, "is_outer"), expression=exp.Literal.number(1))
        some = exp.NEQ(this=column_ast(self.placed, "part_0"), expression=exp.Literal.number(0))
        wanted = Filter(window, (Scalar(is_outer), Scalar(some)))
        return self._finished(wanted, self.placed)

    def _running(
        self, common: list[_Side], outer: tuple[Field, ...], parts: list[tuple[str, Component, Scalar]]
    ) -> tuple[Item, ...]:
        is_down = self.found.operator[0] == ">"
        # Rows of the outer query come last where equal values are in range.
        is_last = self.found.operator.endswith("=")
        order = exp.Order(
            expressions=[
                exp.Ordered(this=column_ast(self.alias, common[0].name), desc=is_down),
                exp.Ordered(this=column_ast(self.alias, "is_outer"), desc=not is_last),
            ]
        )
        spec = exp.WindowSpec(kind="ROWS", start="UNBOUNDED", start_side="PRECEDING", end="CURRENT ROW")
        partition = [column_ast(self.alias, s.name) for s in common[1:]]

        def running(name: str) -> Scalar:
            return Scalar(
                exp.Window(
                    this=exp.Sum(this=column_ast(self.alias, name)),
                    partition_by=[p.copy() for p in partition],
                    order=order.copy(),
                    spec=spec.copy(),
                )
            )

        return (
            *(Item(f.name, f.scalar, f.type) for f in outer),
            *(Item(name, running(name), _column_type(c)) for name, c, _ in parts),
            Item("is_outer", Scalar.column(self.alias, "is_outer"), INT),
        )

    def _pairs(self) -> list[tuple[Scalar, Scalar, SparkType, bool]] | None:
        """What is compared, first by the inequality: of S, of D, in which type, and whether NULL equals NULL."""
        types = {f.id: f.type for node in (self.sums.node, self.values.node) for f in node.fields}
        known = dict(self.sums.columns)
        sides = [(self.found.value, self.found.outer, False)]
        for predicate in self.found.equal:
            node = predicate.ast()
            one, other = Scalar(node.this.unnest()), Scalar(node.expression.unnest())
            if one not in known:
                one, other = other, one
            sides.append((one, other, isinstance(node, exp.NullSafeEQ)))
        found = []
        for one, other, is_null_safe in sides:
            if one not in known or not other.is_column:
                return None
            ours = known[one]
            common = _common(types[next(iter(ours.columns))], types[next(iter(other.columns))])
            if common is None:
                return None
            found.append((ours, other, common, is_null_safe))
        return found

    def _finished(self, rows: Node, alias: str) -> Map:
        """The groups as the aggregate shows them."""
        places = {component: f"part_{n}" for n, (component, _) in enumerate(self.components)}
        named = [k.name for k in self.result.keys]
        if isinstance(rows, Filter):
            named = [f"outer_{n}" for n, _ in enumerate(named, 1)]
        items = [
            Item(k.name, Scalar.column(alias, name), k.type)
            for k, name in zip(self.result.keys, named, strict=True)
        ]
        for call in self.result.calls:
            value = finish(call, lambda component: Scalar.column(alias, places[component]))
            items.append(Item(call.name, value, call.type))
        return Map(rows, self.result.alias, tuple(items))


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


def _column_type(component: Component) -> SparkType:
    return component.type
