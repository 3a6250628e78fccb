"""Many numbers in one column: an array, which is added element by element (ADR 0083).

A covariance of m variables has ``1 + m + m(m + 1)/2`` numbers. Their product over two relations is bilinear: each
entry of it is one element of the left vector times one of the right (F-IVM article, Definition 6). So a statement
names the two elements of each entry by their numbers, in two constant arrays, and not by an expression each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import groupby

from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import BIGINT
from fivm_dbt.ir.factored import Entry, Product
from fivm_dbt.ir.scalar import Scalar, as_type
from fivm_dbt.naming import PREFIX
from fivm_dbt.rings.decimals import OVERFLOW
from fivm_dbt.rings.integers import INTEGERS
from fivm_dbt.rings.numbers import Numbers, Typed

_PACKED_FROM = 32


def is_packed(numbers: int) -> bool:
    """Whether so many numbers of a call are kept as vectors: Spark plans and compiles an expression for each column."""
    return numbers >= _PACKED_FROM


@dataclass(frozen=True)
class Vectors(Numbers):
    """``size`` numbers of the ring ``element``, which are added and negated one by one."""

    element: Numbers
    size: int

    @property
    def is_exact(self) -> bool:
        return self.element.is_exact

    @property
    def may_overflow(self) -> bool:
        return self.element.may_overflow

    @property
    def type(self) -> SparkType:
        return SparkType.of(f"array<{self.element.type}>")

    def zero(self) -> exp.Expr:
        return exp.Anonymous(
            this="ARRAY_REPEAT", expressions=[self.element.zero(), exp.Literal.number(self.size)]
        )

    def add(self, left: exp.Expr, right: exp.Expr) -> exp.Expr:
        return zipped(left, right, lambda a, b: self.element.stored(self.element.add(a, b)))

    def negate(self, value: exp.Expr) -> exp.Expr:
        return transformed(value, self.element.negate)

    def one(self) -> exp.Expr:
        return exp.Anonymous(
            this="ARRAY_REPEAT", expressions=[self.element.one(), exp.Literal.number(self.size)]
        )

    def multiply(self, factors: Sequence[Typed]) -> exp.Expr:
        """The product element by element; a factor that is a number is one of each element."""
        (first, type_), *vectors = [f for f in factors if f[1].is_array]
        numbers = [f for f in factors if not f[1].is_array]
        found, known = first.ast(), type_.element
        for vector, other in vectors:
            kind = self.element.over([known, other.element])
            found = zipped(found, vector.ast(), _product(kind, known, other.element))
            known = kind.type
        if not numbers:
            return found
        return transformed(found, lambda x: self.element.multiply([(Scalar(x), known), *numbers]))

    def over(self, types: Sequence[SparkType]) -> Vectors:
        own = [t.element if t.is_array else t for t in types]
        return Vectors(self.element.over(own), self.size)

    def lifted(self, multiplicity: Scalar, value: Scalar, type_: SparkType) -> Scalar:
        return Scalar(self.multiply([(value, type_), (multiplicity, BIGINT)]))

    def total(self, value: exp.Expr) -> exp.Expr:
        """The sum over rows, which have to be few: one task has all of them.

        What many rows are added up from is added up by the places of the elements first (``spark/vectors.py``).
        """
        listed = exp.ArrayAgg(this=value, nulls_excluded=True)
        return exp.Reduce(this=listed, initial=self.zero(), merge=_function(self.add, "total", "next"))

    def partial(self, value: Scalar) -> Scalar:
        return Scalar(self.checked(self.total(value.ast()), OVERFLOW))

    def checked(self, value: exp.Expr, message: str) -> exp.Expr:
        return transformed(value, lambda x: self.element.checked(x, message)) if self.may_overflow else value

    def is_moved(self, total: exp.Expr) -> exp.Expr:
        return exp.Anonymous(this="EXISTS", expressions=[total, _function(self.element.is_moved, "x")])

    def lost(self, column: exp.Expr) -> exp.Expr:
        is_null = _function(lambda x: exp.Is(this=x, expression=exp.Null()), "x")
        some = exp.Anonymous(this="EXISTS", expressions=[column, is_null])
        return exp.GT(this=exp.CountIf(this=some), expression=exp.Literal.number(0))

    def sum_of(self, products: tuple[Product, ...], multiplicity: Scalar) -> Scalar:
        """``multiplicity × product``, element by element, of one product that has entries; or of vectors as a whole.

        Entries with elements of the same vectors are one expression; others stand behind each other.
        """
        if not all(product.entries for product in products):
            return super().sum_of(products, multiplicity)
        (product,) = products
        shared, entries = _shared(product)
        times = [product.factors[f] for f in shared]
        if multiplicity.as_number != 1:
            times.append((multiplicity, BIGINT))
        runs = [list(run) for _, run in groupby(entries, _form)]
        arrays = [self._run(product.factors, run, times) for run in runs]
        whole = arrays[0] if len(arrays) == 1 else exp.Anonymous(this="CONCAT", expressions=arrays)
        return Scalar(whole)

    def _run(self, factors: Sequence[Typed], entries: Sequence[Entry], times: Sequence[Typed]) -> exp.Expr:
        """Entries that have elements of the same vectors, with the same numbers, each so many times."""
        vectors = [(place, f) for place, (f, n) in enumerate(entries[0]) if n >= 0]
        if not vectors:
            return self._of_numbers(factors, entries, times)
        times = [*(factors[f] for f, n in entries[0] if n < 0), *times]
        found: Typed | None = None
        for place, f in vectors:
            vector, own = factors[f][0], factors[f][1].element
            is_last = (place, f) == vectors[-1]
            known = [] if found is None else [found[1]]
            numbers = self.element if is_last else self.element.over([*known, own])
            each = _Each(numbers, vector, own, times if is_last else ())
            places = _numbered([entry[place][1] for entry in entries])
            found = Scalar(each.over(places) if found is None else each.behind(*found, places)), numbers.type
        assert found is not None
        return found[0].ast()

    def _of_numbers(
        self, factors: Sequence[Typed], entries: Sequence[Entry], times: Sequence[Typed]
    ) -> exp.Expr:
        """Products of at most two whole numbers are those of elements of a vector, too, which is made once a row."""
        own = sorted({f for entry in entries for f, _ in entry})
        is_paired = all(len(entry) <= 2 for entry in entries) and all(factors[f][1].is_integral for f in own)
        if not is_packed(len(entries)) or not is_paired or self.element != INTEGERS:
            return exp.Array(expressions=[self._number(factors, entry, times) for entry in entries])
        place = {f: n for n, f in enumerate(own, start=1)}
        weight = [self.element.multiply(times)] if times else []
        values = [self.element.one(), *(self.element.multiply([factors[f]]) for f in own), *weight]
        pairs = [[place[f] for f, _ in entry] for entry in entries]
        one, other = ([(*pair, 0, 0)[side] for pair in pairs] for side in (0, 1))
        last = [exp.Literal.number(len(values))] if weight else []

        def products(made: exp.Expr) -> exp.Expr:
            def product(a: exp.Expr, b: exp.Expr) -> exp.Expr:
                elements = [_element(made.copy(), n) for n in (a, b, *last)]
                return reduce(lambda x, y: exp.Mul(this=x, expression=y), elements)

            return zipped(_numbered(one), _numbered(other), product)

        made = exp.Array(expressions=[exp.Array(expressions=values)])
        return _element(transformed(made, products, "made"), exp.Literal.number(1))

    def _number(self, factors: Sequence[Typed], entry: Entry, times: Sequence[Typed]) -> exp.Expr:
        own = [*(factors[f] for f, _ in entry), *times]
        return self.element.multiply(own) if own else self.element.one()


@dataclass(frozen=True)
class _Each:
    """Elements of a vector, times the same numbers."""

    numbers: Numbers
    vector: Scalar
    type: SparkType
    times: Sequence[Typed]

    def over(self, places: exp.Expr) -> exp.Expr:
        """Those at some places."""
        return transformed(places, lambda n: self.numbers.multiply([self._at(n), *self.times]), "n")

    def behind(self, others: Scalar, type_: SparkType, places: exp.Expr) -> exp.Expr:
        """Each of them times another value."""
        return zipped(
            others.ast(),
            places,
            lambda a, n: self.numbers.multiply([(Scalar(a), type_), self._at(n), *self.times]),
        )

    def _at(self, place: exp.Expr) -> Typed:
        return Scalar(_element(self.vector.ast(), place)), self.type


def element_of(vector: Scalar, place: int) -> Scalar:
    """An element of a vector, counted from 0.

    >>> element_of(Scalar.column("v", "moments"), 2).sql
    'ELEMENT_AT(v.moments, 3)'
    """
    return Scalar(_element(vector.ast(), exp.Literal.number(place + 1)))


def listed(values: Sequence[Scalar]) -> Scalar:
    """Values as a vector.

    >>> listed([Scalar.column("a", "x"), Scalar.number(1)]).sql
    'ARRAY(a.x, 1)'
    """
    return Scalar(exp.Array(expressions=[value.ast() for value in values]))


def product_of(members: Sequence[Product]) -> Product | None:
    """Products as the entries of one of vectors; None where one has a sign or a coefficient.

    >>> v, w, n = (Scalar.column(*c) for c in (("a", "v"), ("b", "w"), ("b", "n")))
    >>> vector = SparkType.of("array<bigint>")
    >>> one = Product(1, ((element_of(v, 0), BIGINT), (element_of(w, 2), BIGINT)))
    >>> found = product_of([one, Product(1, ((element_of(v, 1), BIGINT), (n, BIGINT)))])
    >>> [value.sql for value, _ in found.factors], found.entries
    (['a.v', 'b.w', 'b.n'], (((0, 0), (1, 2)), ((0, 1), (2, -1))))
    """
    if any(m.coefficient != 1 or m.entries for m in members):
        return None
    places: dict[Typed, int] = {}
    entries = []
    for member in members:
        entry = []
        for value, type_ in member.factors:
            vector, element = _as_element(value)
            factor = (vector, SparkType.of(f"array<{type_}>") if element >= 0 else type_)
            entry.append((places.setdefault(factor, len(places)), element))
        entries.append(tuple(entry))
    return Product(1, tuple(places), tuple(entries))


def gathered(values: Sequence[Scalar], type_: SparkType) -> exp.Expr:
    """``ARRAY(values)``, each cast to a type, where elements of the same vector are one expression.

    >>> v = Scalar.column("", "v")
    >>> gathered([element_of(v, 1), element_of(v, 2)], BIGINT).sql("spark")
    'TRANSFORM(ARRAY(2, 3), __fivm_n -> CAST(ELEMENT_AT(v, __fivm_n) AS BIGINT))'
    """
    arrays: list[exp.Expr] = []
    for vector, run in groupby(map(_as_element, values), lambda pair: pair[0] if pair[1] >= 0 else None):
        own = list(run)
        if vector is None:
            arrays.append(exp.Array(expressions=[as_type(value.ast(), type_.text) for value, _ in own]))
            continue
        arrays.append(_cast_elements(vector, [n for _, n in own], type_))
    return arrays[0] if len(arrays) == 1 else exp.Anonymous(this="CONCAT", expressions=arrays)


def variable(name: str) -> exp.Identifier:
    """A variable of a lambda: no alias of a relation has its name, which would hide the relation's columns."""
    return exp.to_identifier(f"{PREFIX}{name}")


def transformed(array: exp.Expr, of: Callable[[exp.Expr], exp.Expr], called: str = "x") -> exp.Expr:
    """``TRANSFORM(array, x -> of(x))``."""
    return exp.Transform(this=array, expression=_function(of, called))


def zipped(left: exp.Expr, right: exp.Expr, of: Callable[[exp.Expr, exp.Expr], exp.Expr]) -> exp.Expr:
    """``ZIP_WITH(left, right, (a, b) -> of(a, b))``."""
    return exp.Anonymous(this="ZIP_WITH", expressions=[left, right, _function(of, "a", "b")])


def _function(of: Callable[..., exp.Expr], *names: str) -> exp.Lambda:
    """``(names) -> of(names)``."""
    variables = [variable(name) for name in names]
    return exp.Lambda(this=of(*(v.copy() for v in variables)), expressions=variables)


def _cast_elements(vector: Scalar, places: Sequence[int], type_: SparkType) -> exp.Expr:
    return transformed(_numbered(places), lambda n: as_type(_element(vector.ast(), n), type_.text), "n")


def _product(numbers: Numbers, left: SparkType, right: SparkType) -> Callable[[exp.Expr, exp.Expr], exp.Expr]:
    return lambda a, b: numbers.multiply([(Scalar(a), left), (Scalar(b), right)])


def _form(entry: Entry) -> tuple[int, ...]:
    """The factors of an entry, where it has elements of vectors: with the same ones entries are one expression."""
    return tuple(f for f, _ in entry) if any(n >= 0 for _, n in entry) else ()


def _shared(product: Product) -> tuple[list[int], list[Entry]]:
    """The numbers that all entries have, and the entries without them."""
    every = reduce(lambda a, b: a & b, (set(entry) for entry in product.entries))
    shared = sorted(f for f, n in every if n < 0)
    entries = []
    for entry in product.entries:
        rest = list(entry)
        for f in shared:
            rest.remove((f, -1))
        entries.append(tuple(rest))
    return shared, entries


def _numbered(places: Sequence[int]) -> exp.Array:
    """Places of elements as ELEMENT_AT counts them."""
    return exp.Array(expressions=[exp.Literal.number(n + 1) for n in places])


def _element(vector: exp.Expr, number: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this="ELEMENT_AT", expressions=[vector, number])


def _as_element(value: Scalar) -> tuple[Scalar, int]:
    """The vector that a value is an element of, and its place; the value itself and -1 where it is none."""
    node = value.ast()
    if isinstance(node, exp.Anonymous) and node.name == "ELEMENT_AT":
        vector, number = node.expressions
        if isinstance(vector, exp.Column) and isinstance(number, exp.Literal):
            return Scalar(vector.copy()), int(number.name) - 1
    return value, -1
