"""Buckets are made of each row by itself: they are linear."""

from __future__ import annotations

from dataclasses import replace

from fivm_dbt.catalog.types import BIGINT
from fivm_dbt.delta.term import Derive, Term
from fivm_dbt.ir.buckets import Buckets
from fivm_dbt.ir.node import Item
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.naming import COUNT


def delta_of_buckets(node: Buckets, delta: Derive) -> tuple[Term, ...]:
    """``Δ buckets(R) = buckets(ΔR)``; the multiplicity is carried along as a column."""
    terms = []
    for term in delta(node.input):
        constant = term.multiplicity.as_number is not None
        count = () if constant else (Item(COUNT, term.multiplicity, BIGINT),)
        multiplicity = term.multiplicity if constant else Scalar.column(node.alias, COUNT)
        terms.append(Term(replace(node, input=term.node, items=node.items + count), multiplicity))
    return tuple(terms)
