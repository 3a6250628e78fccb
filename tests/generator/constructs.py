"""Random queries are made of constructs: a name, how often each is chosen, and where it may stand.

To generate a new construct, add a line to ``CONSTRUCTS`` and, in the module of its slot, the text that it becomes.
To have the planner maintain one, take it off ``NOT_YET``: a test fails as long as that list says too much.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from generator.queries.scalars import DATE, INT, Col


@dataclass(frozen=True)
class Place:
    """Where a construct would stand: the columns it may use, and what else decides."""

    columns: Sequence[Col] = ()
    depth: int = 1
    """How many levels of subqueries may still come."""
    new: Sequence[Col] = ()
    """In a join, the columns of its right side."""

    @property
    def keys(self) -> list[Col]:
        return [c for c in self.columns if c.type.can_be_key]

    @property
    def pairs(self) -> list[tuple[Col, Col]]:
        """Columns of both sides of a join that can be compared."""
        new = [c for c in self.new if c.type.can_be_key]
        return [(a, b) for a in self.keys for b in new if a.type == b.type]


Fits = Callable[[Place], bool]


def anywhere(place: Place) -> bool:
    return True


def over_a_key(place: Place) -> bool:
    return bool(place.keys)


def over_two_keys(place: Place) -> bool:
    return len(place.keys) > 1


def over_a_number(place: Place) -> bool:
    return any(c.type.is_exact_number and c.type.precision <= 20 for c in place.columns)


def over_an_integer(place: Place) -> bool:
    return any(c.type.is_integral for c in place.columns)


def over_an_int(place: Place) -> bool:
    return any(c.type == INT for c in place.columns)


def over_two_alike(place: Place) -> bool:
    types = [c.type for c in place.keys]
    return any(types.count(t) > 1 for t in types)


def over_a_date(place: Place) -> bool:
    return any(c.type == DATE for c in place.columns)


def over_alike_sides(place: Place) -> bool:
    return bool(place.pairs)


def over_alike_numbers(place: Place) -> bool:
    return any(a.type.is_exact_number for a, _ in place.pairs)


def above_a_level(place: Place) -> bool:
    return place.depth > 0


@dataclass(frozen=True)
class Construct:
    """A part of SQL. ``slot`` says what chooses it, ``family`` is its row in the table of nestings."""

    name: str
    slot: str
    weight: float
    fits: Fits = anywhere
    family: str = ""

    def __post_init__(self) -> None:
        if not self.family:
            object.__setattr__(self, "family", self.name)


def _all(slot: str, family: str, *members: tuple[str, float, Fits]) -> list[Construct]:
    return [Construct(name, slot, weight, fits, family) for name, weight, fits in members]


_LISTED: list[Construct] = [
    # How two relations are joined.
    Construct("inner join", "join", 20, over_alike_sides),
    Construct("cross join", "join", 5),
    Construct("natural join", "join", 3, family="inner join"),
    Construct("using", "join", 5, family="inner join"),
    Construct("left join", "join", 10),
    Construct("right join", "join", 5),
    Construct("full join", "join", 6),
    Construct("semi join", "join", 5),
    Construct("anti join", "join", 5),
    Construct("outer natural join", "join", 3, family="outer using"),
    Construct("outer using", "join", 3),
    Construct("self outer join", "join", 4, family="left join"),
    # Conditions, of inner joins and of the others.
    Construct("equality", "condition", 12, over_alike_sides, "inner join"),
    *_all(
        "condition",
        "theta join",
        ("equality and theta", 3, over_alike_sides),
        ("theta", 2, over_alike_numbers),
        ("band", 2, over_alike_numbers),
    ),
    Construct("outer equality", "outer condition", 8, over_alike_sides, "left join"),
    *_all(
        "outer condition",
        "outer theta join",
        ("outer equality and theta", 4, over_alike_sides),
        ("outer theta", 2, over_alike_numbers),
        ("outer band", 2, over_alike_numbers),
        ("outer one-sided", 1, anywhere),
    ),
    # What is filtered by.
    Construct("where", "where", 25, over_a_key),
    Construct("nullable side", "where", 10),
    Construct("exists", "where", 6, above_a_level),
    Construct("not exists", "where", 5, above_a_level),
    Construct("in", "where", 6, over_a_key),
    Construct("not in", "where", 5, over_a_key),
    Construct("scalar in where", "where", 5, over_a_number, "scalar subquery"),
    # How a subquery in an expression depends on the query around it, and where it stands.
    *_all(
        "correlation",
        "correlation",
        ("uncorrelated", 3, anywhere),
        ("correlated", 6, anywhere),
        ("correlated inequality", 2, anywhere),
        ("two levels", 1, above_a_level),
    ),
    *_all(
        "position",
        "subquery in expression",
        ("conjunct", 6, anywhere),
        ("under or", 1, anywhere),
        ("under case", 1, anywhere),
    ),
    # What a SELECT does with its rows.
    Construct("project", "head", 22),
    Construct("group by", "head", 24, over_a_key),
    Construct("global aggregate", "head", 8),
    Construct("distinct", "head", 6, over_a_key),
    Construct("window", "head", 11, over_a_key),
    Construct("qualify", "head", 4, over_a_key),
    Construct("top-k per group", "head", 4, over_a_key),
    Construct("limit", "head", 5, over_a_key),
    Construct("offset", "head", 2, over_a_key, "limit"),
    Construct("limited result", "tail", 6, over_a_key, "limit"),
    Construct("rollup", "head", 3, over_a_key),
    Construct("cube", "head", 2, over_a_key, "rollup"),
    Construct("grouping sets", "head", 3, over_a_key, "rollup"),
    *_all(
        "head",
        "explode",
        ("explode", 3, over_two_alike),
        ("posexplode", 2, over_two_alike),
        ("explode outer", 1, over_a_key),
    ),
    # Values of a select list, and filters over groups.
    Construct("case", "value", 8, over_a_key),
    Construct("scalar in select", "value", 5, above_a_level, "scalar subquery"),
    Construct("having", "having", 20),
    Construct("scalar in having", "having", 4, over_a_number, "scalar subquery"),
    # Aggregate functions.
    *_all(
        "aggregate",
        "sum",
        ("count", 16, anywhere),
        ("sum", 20, over_a_number),
        ("avg", 10, over_a_number),
    ),
    *_all("aggregate", "max", ("min", 6, over_a_key), ("max", 6, over_a_key)),
    *_all(
        "aggregate",
        "count distinct",
        ("count distinct", 5, over_a_key),
        ("count distinct of two", 2, over_two_keys),
        ("sum distinct", 3, over_a_number),
    ),
    *_all("aggregate", "filter", ("filter", 4, over_a_key)),
    *_all(
        "aggregate",
        "other aggregate",
        ("bool_and", 2, over_a_key),
        ("bool_or", 2, over_a_key),
        ("max_by", 2, over_a_key),
        ("min_by", 2, over_a_key),
        ("bit_and", 2, over_an_integer),
        ("bit_or", 2, over_an_integer),
        ("bit_xor", 2, over_an_integer),
        ("variance", 2, over_a_number),
        ("stddev", 2, over_a_number),
        ("covariance", 2, over_a_number),
        ("count_if", 2, over_a_key),
        ("collect_set", 2, over_a_key),
        ("collect_list", 2, over_a_key),
        ("median", 1, over_a_number),
        ("percentile", 1, over_a_number),
    ),
    Construct("grouping", "grouping", 3, family="rollup"),
    # Window functions.
    *_all(
        "window",
        "ranking",
        ("row_number", 3, anywhere),
        ("rank", 3, anywhere),
        ("dense_rank", 2, anywhere),
        ("ntile", 1, anywhere),
        ("percent_rank", 1, anywhere),
        ("cume_dist", 1, anywhere),
    ),
    *_all(
        "window",
        "neighbour",
        ("lag", 2, anywhere),
        ("lead", 2, anywhere),
        ("first_value", 2, anywhere),
        ("last_value", 2, anywhere),
        ("nth_value", 2, anywhere),
    ),
    *_all(
        "window",
        "frame",
        ("whole partition", 4, anywhere),
        ("rows frame", 3, anywhere),
        ("range frame", 3, anywhere),
        ("range between values", 2, over_an_int),
        ("range between intervals", 2, over_a_date),
        ("named window", 1, anywhere),
        ("window over groups", 2, anywhere),
    ),
    # What is appended to a FROM clause.
    *_all(
        "lateral",
        "lateral view",
        ("lateral view", 3, over_a_key),
        ("lateral view outer", 2, over_an_int),
        ("lateral view posexplode", 2, over_a_key),
        ("lateral view sequence", 2, over_an_int),
    ),
    Construct("lateral subquery", "lateral", 2, above_a_level),
    # What stands in a FROM clause besides a relation.
    Construct("subquery", "source", 22, above_a_level),
    Construct("cte", "source", 8, above_a_level),
    Construct("values", "source", 2),
    Construct("pattern", "source", 2),
    # Queries that are not one SELECT.
    Construct("union all", "shape", 10),
    Construct("union", "shape", 5),
    Construct("intersect", "shape", 3),
    Construct("except", "shape", 3),
    Construct("intersect all", "shape", 2, family="intersect"),
    Construct("except all", "shape", 2, family="except"),
    Construct("set chain", "shape", 2, above_a_level),
    Construct("pivot", "shape", 2, above_a_level),
    Construct("unpivot", "shape", 2, above_a_level),
    Construct("pipe", "shape", 2),
    Construct("clock", "where", 2, over_a_date),
]

CONSTRUCTS: dict[str, Construct] = {c.name: c for c in _LISTED}

ALWAYS = frozenset(
    ("project", "equality", "outer equality", "conjunct", "uncorrelated", "correlated", "count")
)
"""Left in every menu, because something has to stand where nothing else may."""

NOT_YET: tuple[str, ...] = ()
"""What the planner refuses as yet; a test fails when one is accepted. ``a > b``: a ``b`` in a subquery of an ``a``."""

MAY_BE_REFUSED: Mapping[str, frozenset[str]] = {
    "FIVM108": frozenset(("variance", "stddev", "covariance", "collect_set", "collect_list")),
}
"""Codes that a query with subqueries may be refused with because of one of these constructs.

Whether it is depends on what stands above them: a subquery in HAVING, too, is joined to what has been aggregated.
"""


@dataclass(frozen=True)
class Menu:
    """The constructs to choose from, by weight.

    ``composed`` is how many queries of any kind in any position there are besides for each of the others
    (:mod:`composed`).
    """

    weights: Mapping[str, float] = field(default_factory=lambda: {n: c.weight for n, c in CONSTRUCTS.items()})
    composed: float = 0.0

    @staticmethod
    def only(*names: str) -> Menu:
        """These constructs, and the little that is always needed.

        >>> Menu.only("left join").allows("left join"), Menu.only("left join").allows("full join")
        (True, False)
        """
        for name in names:
            if name not in CONSTRUCTS:
                raise ValueError(f"there is no construct {name} (expected one of {', '.join(CONSTRUCTS)})")
        return Menu({n: c.weight or 1 for n, c in CONSTRUCTS.items() if n in names or n in ALWAYS})

    @staticmethod
    def accepted() -> Menu:
        """What the planner maintains."""
        return Menu(composed=0.3).without(NOT_YET)

    def without(self, names: Iterable[str]) -> Menu:
        left_out = set(names) - ALWAYS
        return replace(self, weights={n: w for n, w in self.weights.items() if n not in left_out})

    def also(self, *names: str) -> Menu:
        return replace(self, weights={**self.weights, **{n: CONSTRUCTS[n].weight or 1 for n in names}})

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, weight in self.weights.items() if weight > 0)

    @property
    def families(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(CONSTRUCTS[name].family for name in self.names))

    def allows(self, name: str) -> bool:
        return self.weights.get(name, 0) > 0

    def fitting(self, slot: str, place: Place) -> list[str]:
        return [n for n in self.names if CONSTRUCTS[n].slot == slot and CONSTRUCTS[n].fits(place)]

    def choose(self, rng: random.Random, slot: str, place: Place, want: set[str]) -> str | None:
        """One of ``want`` that fits (and is then no longer wanted), else any by weight; None if nothing fits."""
        names = self.fitting(slot, place)
        wanted = [n for n in names if n in want]
        if wanted:
            want.discard(wanted[0])
            return wanted[0]
        return rng.choices(names, [self.weights[n] for n in names])[0] if names else None


def slots_wanted(want: Iterable[str]) -> set[str]:
    """The slots that must be filled for these constructs to appear."""
    return {CONSTRUCTS[name].slot for name in want}
