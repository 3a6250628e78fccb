"""Deltas may be products, and a join's delta stays one (F-IVM article, section 6).

A change of many rows is often a sum of few products: the same items for all stores, a column of a matrix added to
others. Kept as its factors it has the sum of their sizes instead of the product, and a marginalisation goes into the
one factor that has the variable:

    ``ΔR[A, B] = ⊎_t F_1[t, A] ⊗ F_2[t, B]``      ``⊎_A S[A, C] ⊗ ΔR[A, B] = ⊎_t (⊎_A S[A, C] ⊗ F_1[t, A]) ⊗ F_2[t, B]``
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import BIGINT
from fivm_dbt.delta.key_sets import KeySet
from fivm_dbt.ir.factored import Product
from fivm_dbt.ir.higher_order import Total
from fivm_dbt.ir.node import Item, Node, Side
from fivm_dbt.ir.nodes import Join
from fivm_dbt.ir.reads import Scan
from fivm_dbt.ir.scalar import Scalar


@dataclass(frozen=True)
class Factor:
    """A factor of a delta, staged under ``name``: its ``payload`` for each product (``terms``) and its ``keys``."""

    name: str
    terms: tuple[str, ...]
    keys: tuple[tuple[str, SparkType], ...]
    payload: tuple[tuple[str, SparkType], ...]

    def scan(self, alias: str) -> Scan:
        """Its rows, as those of a relation that is there only in a refresh that has the product."""
        terms = tuple((term, BIGINT) for term in self.terms)
        return Scan(self.name, alias, (*terms, *self.keys, *self.payload), Side.DELTA)


def joined(factors: Sequence[Factor], aliases: Sequence[str]) -> Join:
    """The product of factors, each under an alias: joined by the terms that they share."""
    scans = tuple(f.scan(alias) for f, alias in zip(factors, aliases, strict=True))
    return Join(scans, tuple(same_terms(factors, aliases)))


def same_terms(factors: Sequence[Factor], aliases: Sequence[str]) -> Iterator[Scalar]:
    """That rows of factors belong to the same terms."""
    first: dict[str, str] = {}
    for factor, alias in zip(factors, aliases, strict=True):
        for term in factor.terms:
            if term in first:
                yield Scalar.equal((first[term], term), (alias, term))
            first.setdefault(term, alias)


@dataclass(frozen=True)
class FactorisedDelta:
    """``Δview[keys] = ⊎_terms factors[0] ⊗ factors[1] ⊗ …``, each component of the payload by itself."""

    name: str
    view: str
    factors: tuple[Factor, ...]


@dataclass(frozen=True)
class Part:
    """A connected part of a join: ``factor[terms, keys] = Σ totals`` over ``node``, factors and kept views."""

    factor: Factor
    node: Node
    keys: tuple[Item, ...]
    totals: tuple[Total, ...]


@dataclass(frozen=True)
class ProductDelta:
    """The delta of a view where that of a view below it, ``of``, is factorised: parts that share no variable.

    Over ``node``, the join of the parts by their terms, ``keys`` are those of the view's state, ``rows`` and
    ``payload`` what is added up. ``gives`` is this delta as factors, for those who read the view; None where nobody
    adds up its payloads. ``key_sets`` are the affected keys that the parts look up.
    """

    of: FactorisedDelta
    parts: tuple[Part, ...]
    node: Node
    keys: tuple[Scalar, ...]
    rows: Product
    payload: tuple[tuple[Product, ...], ...]
    gives: FactorisedDelta | None
    key_sets: tuple[KeySet, ...] = ()
