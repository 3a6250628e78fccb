"""Least and greatest values are added by MIN and MAX, which take nothing away again: a semiring has no inverse.

Its elements are pairs of the least and the greatest of some values. Groups are put together by MIN and MAX, and rows
that join by what the query computes of them: ``x + y``, ``x × y``, ``p AND q``, ``p OR q``. These are distributive,

    ``max(x + y) = max x + max y``      ``max(x × y) = max of min x × min y, min x × max y, ..., max x × max y``

over all pairs of rows that join by one key: an expression in which each relation stands once is extreme where each of
its relations is. So (max, +), (min, +), (max, ×) and (or, and) are read off the least and greatest values of relations,
and no list of pairs is needed. Without an inverse a group that has lost a row is computed anew. (F-IVM article,
Definition 1 and Example 1: semirings.)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import product

from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import BOOLEAN, product_digits, sum_digits
from fivm_dbt.ir.scalar import ColumnId, Scalar, as_type, grouped
from fivm_dbt.ir.total import is_total
from fivm_dbt.rings.split import as_decimal, exact_decimal, exact_type

_PART, _EXTENT = "part", "extent"
MOST_CORNERS = 16
"""Least and greatest values of more than four relations at once are too much to write down."""


@dataclass(frozen=True)
class Extent:
    """The least and the greatest of some values, as columns; None of the one that nobody asks for."""

    least: Scalar | None
    greatest: Scalar | None

    @property
    def ends(self) -> tuple[Scalar | None, Scalar | None]:
        return self.least, self.greatest


@dataclass(frozen=True)
class Term:
    """An expression as a tree: a ``value``, an ``extent`` of values, or an operator over ``parts``.

    A chain of one operator is one node, so that its operands can be put together by relation. ``type`` is that of the
    value: it has room for every digit.
    """

    operator: str
    type: SparkType
    parts: tuple[Term, ...] = ()
    value: Scalar | None = None
    extent: Extent | None = None

    @property
    def tables(self) -> frozenset[str]:
        """The relations that it is about. What was taken out, and what stands for it, is about none that is left."""
        if self.operator in (_PART, _EXTENT):
            return frozenset({_PART})
        own = frozenset[str]() if self.value is None else self.value.tables
        return own.union(*(part.tables for part in self.parts))

    @property
    def sign(self) -> int:
        """1 where the value grows with the part that was taken out, -1 where it falls, 0 where it may do both.

        A condition may do both: with NULL on the other side it is NULL or false.
        """
        return next(sign for term, sign in self._walk(1) if term.operator == _PART)

    def _walk(self, sign: int) -> Iterator[tuple[Term, int]]:
        """The terms in it, each with whether the value grows or falls with it."""
        yield self, sign
        for part in self.parts:
            yield from part._walk(sign * _SIGNS.get(self.operator, 0))

    def least(self) -> Scalar | None:
        """The least value, None where it would take too many words."""
        return self._extreme("least")

    def greatest(self) -> Scalar | None:
        """The greatest value.

        >>> types = {("a", "x"): SparkType("int"), ("b", "y"): SparkType("decimal(8,2)")}
        >>> term = read(Scalar.parse("a.x * b.y"), types.__getitem__, may_add=True)
        >>> rest, own = taken(term, {"b"})
        >>> own.type.text, read_extent(rest, Extent(Scalar.parse("k.lo"), Scalar.parse("k.hi"))).greatest().sql
        ('decimal(8,2)', 'GREATEST(CAST(a.x AS DECIMAL(10, 0)) * k.lo, CAST(a.x AS DECIMAL(10, 0)) * k.hi)')
        """
        return self._extreme("greatest")

    def _extreme(self, wanted: str) -> Scalar | None:
        choices = []
        for term, sign in self._walk(1 if wanted == "greatest" else -1):
            if term.extent is not None:
                ends = {-1: (term.extent.least,), 1: (term.extent.greatest,)}.get(sign, term.extent.ends)
                choices.append([(term.extent, end) for end in ends if end is not None])
        corners = list(product(*choices))
        if len(corners) > MOST_CORNERS:
            return None
        found = [self._ast(dict(corner)) for corner in corners]
        if len(found) == 1:
            return Scalar(found[0])
        function = exp.Least if wanted == "least" else exp.Greatest
        return Scalar(function(this=found[0], expressions=found[1:]))

    def _ast(self, chosen: Mapping[Extent, Scalar]) -> exp.Expr:
        if self.extent is not None:
            return chosen[self.extent].ast()
        if self.value is not None:
            return self.value.ast()
        operands = [grouped(part._ast(chosen)) for part in self.parts]
        if self.operator in _UNARY:
            return _UNARY[self.operator](this=operands[0])
        binary = _CHAINS[self.operator]
        return reduce(lambda left, right: binary(this=left, expression=right), operands)


_CHAINS: Mapping[str, type[exp.Binary]] = {
    "sum": exp.Add,
    "product": exp.Mul,
    "and": exp.And,
    "or": exp.Or,
}
_UNARY: Mapping[str, type[exp.Unary]] = {"neg": exp.Neg, "not": exp.Not}

_SIGNS = {"sum": 1, "neg": -1}
"""Whether an operator grows or falls with all of its operands."""

TypeOf = Callable[[ColumnId], SparkType]


def read(value: Scalar, type_of: TypeOf, *, may_add: bool) -> Term | None:
    """An expression as a tree; None where its parts cannot be told apart, or digits may be lost.

    ``may_add`` says that a sum or product of integers which has no room stops the statement. Otherwise it would start
    again from the other end, and no order is left.
    """
    if value.is_column:
        type_ = type_of(*value.columns)
        is_plain = (
            type_.is_integral or type_.is_decimal or type_.is_temporal or type_.is_string or type_ == BOOLEAN
        )
        return Term("value", type_, value=value) if is_plain and type_.is_exact else None
    return _read(value.ast(), type_of, may_add=may_add)


def _read(node: exp.Expr, type_of: TypeOf, *, may_add: bool) -> Term | None:
    node = node.unnest()
    if isinstance(node, (exp.And, exp.Or, exp.Not)):
        parts = [_read(each, type_of, may_add=may_add) for each in node.iter_expressions()]
        if any(part is None or part.type != BOOLEAN for part in parts):
            return None
        name = {exp.And: "and", exp.Or: "or", exp.Not: "not"}[type(node)]
        return _chained(name, [part for part in parts if part is not None], BOOLEAN)
    if isinstance(node, (exp.Add, exp.Sub, exp.Mul, exp.Neg)):
        parts = [_number(each, type_of, may_add=may_add) for each in node.iter_expressions()]
        known = [part for part in parts if part is not None]
        if len(known) < len(parts):
            return None
        if isinstance(node, exp.Sub):
            known[1] = Term("neg", known[1].type, (known[1],))
        name = {exp.Mul: "product", exp.Neg: "neg"}.get(type(node), "sum")
        type_ = _type_of_chain(name, known)
        return None if type_ is None else _chained(name, known, type_)
    return _leaf(node, type_of)


def _number(node: exp.Expr, type_of: TypeOf, *, may_add: bool) -> Term | None:
    """An operand of arithmetic, as a decimal."""
    term = _read(node, type_of, may_add=may_add)
    if term is None or not (term.type.is_decimal or (term.type.is_integral and may_add)):
        return None
    if term.value is None or term.type.is_decimal:
        return term
    to = as_decimal(term.type, term.value.ast())
    return replace(term, type=to, value=Scalar(as_type(term.value.ast(), to.text)))


def _leaf(node: exp.Expr, type_of: TypeOf) -> Term | None:
    scalar = Scalar(node.copy())
    types = {column: type_of(column) for column in scalar.columns}
    if is_total(scalar, types):
        return Term("value", BOOLEAN, value=scalar)
    type_ = exact_type(node, type_of)
    return None if type_ is None else Term("value", type_, value=scalar)


def _chained(operator: str, parts: Sequence[Term], type_: SparkType) -> Term:
    flat = [
        each for part in parts for each in (part.parts if part.operator == operator in _CHAINS else (part,))
    ]
    return Term(operator, type_, tuple(flat))


def _type_of_chain(operator: str, parts: Sequence[Term]) -> SparkType | None:
    """The type of a sum or product in any order of its operands."""
    digits = {"sum": sum_digits, "product": product_digits}.get(operator)
    type_ = parts[0].type
    for part in parts[1:]:
        assert digits is not None
        wider = exact_decimal(digits, type_, part.type)
        if wider is None:
            return None
        type_ = wider
    return type_


def taken(term: Term, tables: Collection[str]) -> tuple[Term, Term] | None:
    """What is left of a term, and the part of it over some relations; None where they stand in several places.

    What is left has a mark where the part was.
    """
    if term.tables <= set(tables):
        return _marked(term)
    own = [part for part in term.parts if part.tables and part.tables <= set(tables)]
    mixed = [part for part in term.parts if part.tables & set(tables) and part not in own]
    if len(mixed) + bool(own) != 1:
        return None
    if mixed:
        found = taken(mixed[0], tables)
        if found is None:
            return None
        rest, part = found
        return replace(term, parts=tuple(rest if each is mixed[0] else each for each in term.parts)), part
    type_ = own[0].type if len(own) == 1 else _type_of_own(term, own)
    if type_ is None:
        return None
    mark, part = _marked(own[0] if len(own) == 1 else Term(term.operator, type_, tuple(own)))
    return replace(term, parts=(*(each for each in term.parts if each not in own), mark)), part


def _marked(part: Term) -> tuple[Term, Term]:
    """A mark for a part, and the part: of ``-x`` and ``NOT p`` it is ``x`` and ``p`` that is kept."""
    if part.operator not in _UNARY:
        return Term(_PART, part.type), part
    mark, below = _marked(part.parts[0])
    return replace(part, parts=(mark,)), below


def _type_of_own(term: Term, own: Sequence[Term]) -> SparkType | None:
    return BOOLEAN if term.type == BOOLEAN else _type_of_chain(term.operator, own)


def read_extent(term: Term, extent: Extent) -> Term:
    """A term with the extent of the part that was :func:`taken` out of it."""
    if term.operator == _PART:
        return Term(_EXTENT, term.type, extent=extent)
    return replace(term, parts=tuple(read_extent(part, extent) for part in term.parts))
