"""The value of ``fivm_covariance`` tells count, sums and products of its rows, exactly."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple


class Term(NamedTuple):
    """A column of the design matrix: a continuous variable, or whether a row has a category of a categorical one.

    The intercept has no variable, and a continuous variable no category.
    """

    variable: str
    category: str | None = None


INTERCEPT = Term("")

Pair = tuple[Term, Term]


@dataclass(frozen=True)
class Moments:
    """Σ 1, Σ x, Σ x·y over some rows (F-IVM article, Definition 6), and by category (Definition 9).

    ``products`` has each pair of continuous variables once, and ``cells`` what is not zero of the products with a
    category, both ways round.
    """

    variables: tuple[str, ...]
    count: Fraction = Fraction(0)
    sums: Mapping[str, Fraction] = field(default_factory=dict)
    products: Mapping[tuple[str, str], Fraction] = field(default_factory=dict)
    cells: Mapping[Pair, Fraction] = field(default_factory=dict)
    categorical: frozenset[str] = frozenset()

    @staticmethod
    def read(text: str) -> Moments:
        """The struct of ``fivm_covariance`` as JSON.

        >>> found = Moments.read('{"count":2,"variables":["x"],"sums":[3.5],"products":[9.25]}')
        >>> found.of(Term("x"), INTERCEPT), found.of(Term("x"), Term("x"))
        (Fraction(7, 2), Fraction(37, 4))
        """
        given = json.loads(text, parse_float=Decimal)
        names = tuple(str(name) for name in given["variables"])
        pairs = [(a, b) for at, a in enumerate(names) for b in names[at:]]
        cells: dict[Pair, Fraction] = {}
        categorical: set[str] = set()
        for cell in given.get("cells") or ():
            one = _term(cell, "variable", "category", names)
            other = _term(cell, "other", "other_category", names)
            cells[one, other] = cells[other, one] = Fraction(cell["value"])
            categorical |= {term.variable for term in (one, other) if term.category is not None}
        return Moments(
            names,
            count=Fraction(given["count"]),
            sums={name: Fraction(value) for name, value in zip(names, given["sums"], strict=True)},
            products={pair: Fraction(value) for pair, value in zip(pairs, given["products"], strict=True)},
            cells=cells,
            categorical=frozenset(categorical),
        )

    def __add__(self, other: Moments) -> Moments:
        """Those of the rows of both, which have the same variables."""
        return Moments(
            self.variables,
            count=self.count + other.count,
            sums=_added(self.sums, other.sums),
            products=_added(self.products, other.products),
            cells=_added(self.cells, other.cells),
            categorical=self.categorical | other.categorical,
        )

    def of(self, one: Term, other: Term) -> Fraction:
        """Σ one·other; zero where no row has both."""
        if one == other == INTERCEPT:
            return self.count
        if one == INTERCEPT:
            one, other = other, one
        if other == INTERCEPT:
            if one.category is not None:
                return self.cells.get((one, one), Fraction(0))
            return self.sums.get(one.variable, Fraction(0))
        if one.category is None and other.category is None:
            names = (one.variable, other.variable)
            return self.products.get(names, self.products.get(names[::-1], Fraction(0)))
        return self.cells.get((one, other), Fraction(0))

    def about_means(self, one: Term, other: Term) -> float:
        """Σ (x − x̄)·(y − ȳ), taken before it becomes a double: far from zero no digits are lost. Zero without rows."""
        if not self.count:
            return 0.0
        together = self.of(one, INTERCEPT) * self.of(other, INTERCEPT) / self.count
        return float(self.of(one, other) - together)

    @cached_property
    def categories(self) -> Mapping[str, tuple[str, ...]]:
        """By categorical variable the categories that some row has, in the order of their texts."""
        found: dict[str, set[str]] = defaultdict(set)
        for term, _ in self.cells:
            if term.category is not None:
                found[term.variable].add(term.category)
        return {name: tuple(sorted(found[name])) for name in sorted(found)}

    @property
    def names(self) -> tuple[str, ...]:
        """All variables, the continuous ones first."""
        return (*self.variables, *sorted(self.categorical))


def _term(cell: Mapping[str, Any], variable: str, category: str, continuous: tuple[str, ...]) -> Term:
    name = str(cell[variable])
    return Term(name) if name in continuous else Term(name, str(cell[category]))


def _added(one: Mapping[Any, Fraction], other: Mapping[Any, Fraction]) -> dict[Any, Fraction]:
    return {key: one.get(key, Fraction(0)) + other.get(key, Fraction(0)) for key in {**one, **other}}
