"""Categorical variables tell of each other, and a tree of them tells most of it (F-IVM article, 2; Chow and Liu).

I(X; Y) = Σ p(x, y)·ln(p(x, y) / (p(x)·p(y))), in nats, p being shares of the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import log

from fivm_dbt.learning.moments import Moments, Term


@dataclass(frozen=True)
class Information:
    """What two variables tell of each other; of a variable and itself, its entropy."""

    variable: str
    other: str
    nats: float


def entropy(moments: Moments, name: str) -> float:
    """H(X) = −Σ p(x)·ln p(x)."""
    shares = [
        float(moments.of(Term(name, c), Term(name, c)) / moments.count) for c in moments.categories[name]
    ]
    return -sum(p * log(p) for p in shares if p > 0)


def mutual_information(moments: Moments, one: str, other: str) -> float:
    """I(X; Y); rounding does not make it negative."""
    total = 0.0
    for a in moments.categories[one]:
        here = moments.of(Term(one, a), Term(one, a))
        for b in moments.categories[other]:
            both = moments.of(Term(one, a), Term(other, b))
            if both > 0:
                there = moments.of(Term(other, b), Term(other, b))
                total += float(both / moments.count) * log(both * moments.count / (here * there))
    return max(0.0, total)


def all_pairs(moments: Moments, names: Sequence[str]) -> list[Information]:
    """Of each pair of variables once, and of each variable its entropy; nothing where there are no rows."""
    if not moments.count:
        return []
    known = [name for name in sorted(names) if moments.categories.get(name)]
    found = [Information(name, name, entropy(moments, name)) for name in known]
    found += [Information(a, b, mutual_information(moments, a, b)) for a, b in combinations(known, 2)]
    return found


def chow_liu(pairs: Sequence[Information], root: str | None = None) -> list[Information]:
    """The edges of the spanning tree with the most mutual information, from parent to child (Prim).

    Of pairs that tell the same the first by their names is taken, so that the tree is the same each time. It begins at
    ``root``, or at the first variable.
    """
    names = sorted({name for p in pairs for name in (p.variable, p.other)})
    nats = {(p.variable, p.other): p.nats for p in pairs if p.variable != p.other}
    nats |= {(b, a): value for (a, b), value in nats.items()}
    if not names:
        return []
    inside, edges = [root if root in names else names[0]], list[Information]()
    while len(inside) < len(names):
        outside = [name for name in names if name not in inside]
        best = min(
            ((a, b) for a in inside for b in outside), key=lambda pair: (-nats[pair], *sorted(pair), pair)
        )
        edges.append(Information(*best, nats[best]))
        inside.append(best[1])
    return edges
