"""Families are sets of queries that mean the same over the tables of ``cells``."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

Texts = tuple[str, ...]
Write = Callable[["Parts"], Texts]


class Parts:
    """Random parts of a pair's queries: a relation with columns ``k`` and ``x``, conditions on it, an aggregate."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.inside = rng.choice(_INSIDE)

    def item(self, alias: str = "t") -> str:
        """The relation as an item of FROM; all items of a pair are the same rows."""
        return f"{self.inside} AS {alias}"

    def condition(self, alias: str = "t") -> str:
        return self.rng.choice(("{0}.x > 0", "{0}.x <= 2", "{0}.x IS NOT NULL", "{0}.x <> {0}.k")).format(
            alias
        )

    @property
    def correlation(self) -> str:
        return self.rng.choice(("t.k = o.k", "t.k <=> o.k", "t.k < o.k"))

    def aggregate(self) -> str:
        return self.rng.choice(("SUM({0})", "MAX({0})", "MIN({0})", "COUNT({0})", "COUNT(DISTINCT {0})"))


_INSIDE = (
    "s",
    "(SELECT k, y AS x FROM u)",
    "(SELECT k, x FROM s UNION ALL SELECT k, y FROM u)",
    "(SELECT s.k, u.y AS x FROM s JOIN u ON s.k = u.k)",
    "(SELECT k, MAX(x) AS x FROM s GROUP BY k)",
)


@dataclass(frozen=True)
class Family:
    """Queries that mean the same, two or more; ``write`` fills in random parts."""

    name: str
    write: Write


def _exists(p: Parts) -> Texts:
    c, head = p.condition(), "SELECT o.id, o.k FROM o"
    where = f"FROM {p.item()} WHERE t.k = o.k AND {c}"
    return (
        f"{head} WHERE EXISTS (SELECT 1 {where})",
        f"{head} LEFT SEMI JOIN {p.item()} ON t.k = o.k AND {c}",
        f"{head} WHERE o.k IN (SELECT t.k FROM {p.item()} WHERE {c})",
        f"{head} WHERE (SELECT COUNT(*) {where}) > 0",
        f"{head} JOIN (SELECT DISTINCT t.k FROM {p.item()} WHERE {c}) AS d ON d.k = o.k",
    )


def _not_exists(p: Parts) -> Texts:
    c, head = p.condition(), "SELECT o.id, o.k FROM o"
    where = f"FROM {p.item()} WHERE t.k = o.k AND {c}"
    return (
        f"{head} WHERE NOT EXISTS (SELECT 1 {where})",
        f"{head} LEFT ANTI JOIN {p.item()} ON t.k = o.k AND {c}",
        f"{head} WHERE (SELECT COUNT(*) {where}) = 0",
        f"{head} LEFT JOIN (SELECT DISTINCT t.k FROM {p.item()} WHERE {c}) AS d ON d.k = o.k WHERE d.k IS NULL",
    )


def _in(p: Parts) -> Texts:
    correlation, head = p.correlation, "SELECT o.id, o.v FROM o WHERE"
    return (
        f"{head} o.v IN (SELECT t.x FROM {p.item()} WHERE {correlation})",
        f"{head} EXISTS (SELECT 1 FROM {p.item()} WHERE {correlation} AND t.x = o.v)",
    )


def _not_in(p: Parts) -> Texts:
    correlation, head = p.correlation, "SELECT o.id, o.v FROM o WHERE"
    same = "(t.x = o.v OR t.x IS NULL OR o.v IS NULL)"
    return (
        f"{head} o.v NOT IN (SELECT t.x FROM {p.item()} WHERE {correlation})",
        f"{head} NOT EXISTS (SELECT 1 FROM {p.item()} WHERE {correlation} AND {same})",
    )


def _not_in_alone(p: Parts) -> Texts:
    head = "SELECT o.id, o.v FROM o"
    return (
        f"{head} WHERE o.v NOT IN (SELECT t.x FROM {p.item()})",
        f"{head} CROSS JOIN (SELECT COUNT(*) AS n, COUNT(t.x) AS m FROM {p.item()}) AS c "
        f"WHERE c.n = 0 OR (c.n = c.m AND o.v IS NOT NULL AND NOT EXISTS (SELECT 1 FROM {p.item()} WHERE t.x = o.v))",
    )


def _cte(p: Parts) -> Texts:
    inner = f"SELECT t.k, COUNT(*) AS n, MAX(t.x) AS m FROM {p.item()} GROUP BY t.k"
    tail = "ON a.n = b.n AND a.k < b.k"
    return (
        f"WITH c AS ({inner}) SELECT a.k, b.k AS other, a.m FROM c AS a JOIN c AS b {tail}",
        f"SELECT a.k, b.k AS other, a.m FROM ({inner}) AS a JOIN ({inner}) AS b {tail}",
    )


def _set_order(operator: str) -> Write:
    def write(p: Parts) -> Texts:
        left, right = f"SELECT t.k, t.x FROM {p.item()} WHERE {p.condition()}", "SELECT k, v AS x FROM o"
        return f"{left} {operator} {right}", f"{right} {operator} {left}"

    return write


def _union(p: Parts) -> Texts:
    left, right = f"SELECT t.k, t.x FROM {p.item()}", "SELECT k, v AS x FROM o"
    both = f"({left} UNION ALL {right}) AS b"
    return (
        f"{left} UNION {right}",
        f"SELECT DISTINCT b.k, b.x FROM {both}",
        f"SELECT b.k, b.x FROM {both} GROUP BY b.k, b.x",
    )


def _except(p: Parts) -> Texts:
    same = f"SELECT 1 FROM {p.item()} WHERE t.k <=> o.k AND t.x <=> o.v"
    return (
        f"SELECT k, v FROM o EXCEPT SELECT t.k, t.x FROM {p.item()}",
        f"SELECT DISTINCT o.k, o.v FROM o WHERE NOT EXISTS ({same})",
    )


def _intersect(p: Parts) -> Texts:
    same = f"SELECT 1 FROM {p.item()} WHERE t.k <=> o.k AND t.x <=> o.v"
    return (
        f"SELECT k, v FROM o INTERSECT SELECT t.k, t.x FROM {p.item()}",
        f"SELECT DISTINCT o.k, o.v FROM o WHERE EXISTS ({same})",
    )


def _filter(p: Parts) -> Texts:
    c, aggregate = p.condition(), p.aggregate()
    group = p.rng.choice((" GROUP BY t.k", ""))
    shown = "t.k, " if group else ""
    case = aggregate.format(f"CASE WHEN {c} THEN t.x END")
    return (
        f"SELECT {shown}{aggregate.format('t.x')} FILTER (WHERE {c}) AS a FROM {p.item()}{group}",
        f"SELECT {shown}{case} AS a FROM {p.item()}{group}",
    )


def _window(p: Parts) -> Texts:
    aggregate = p.rng.choice(("SUM({0})", "MAX({0})", "COUNT({0})", "MIN({0})"))
    value = aggregate.format("t.x")
    groups = f"(SELECT t.k, {value} AS a FROM {p.item()} GROUP BY t.k)"
    return (
        f"SELECT t.k, t.x, {value} OVER (PARTITION BY t.k) AS a FROM {p.item()}",
        f"SELECT t.k, t.x, g.a FROM {p.item()} JOIN {groups} AS g ON g.k <=> t.k",
        f"SELECT q.k, q.x, {aggregate.format('t.x')} AS a FROM (SELECT t.k, t.x, ROW_NUMBER() OVER (PARTITION BY t.k "
        f"ORDER BY t.x) AS n FROM {p.item()}) AS q JOIN {p.item()} ON t.k <=> q.k GROUP BY q.k, q.x, q.n",
    )


def _rank(p: Parts) -> Texts:
    earlier = f"SELECT COUNT(*) FROM {p.item('e')} WHERE e.k <=> t.k AND (e.x < t.x OR e.x IS NULL AND t.x IS NOT NULL)"
    return (
        f"SELECT t.k, t.x, RANK() OVER (PARTITION BY t.k ORDER BY t.x) AS a FROM {p.item()}",
        f"SELECT t.k, t.x, 1 + ({earlier}) AS a FROM {p.item()}",
    )


def _running(p: Parts) -> Texts:
    until = f"SELECT SUM(e.x) FROM {p.item('e')} WHERE e.k <=> t.k AND (e.x <= t.x OR e.x IS NULL)"
    return (
        f"SELECT t.k, t.x, SUM(t.x) OVER (PARTITION BY t.k ORDER BY t.x) AS a FROM {p.item()}",
        f"SELECT t.k, t.x, ({until}) AS a FROM {p.item()}",
    )


def _scalar(p: Parts) -> Texts:
    aggregate = p.rng.choice(("SUM({0})", "MAX({0})", "COUNT({0})", "COUNT(DISTINCT {0})")).format("t.x")
    c, head = p.condition(), "SELECT o.id, o.k"
    shown = "COALESCE(g.a, 0)" if aggregate.startswith("COUNT") else "g.a"
    inner = f"SELECT {aggregate} AS a FROM {p.item()} WHERE t.k = o.k AND {c}"
    groups = f"SELECT t.k, {aggregate} AS a FROM {p.item()} WHERE {c} GROUP BY t.k"
    return (
        f"{head}, ({inner}) AS a FROM o",
        f"{head}, l.a FROM o, LATERAL ({inner}) AS l",
        f"{head}, l.a FROM o LEFT JOIN LATERAL ({inner}) AS l ON TRUE",
        f"{head}, {shown} AS a FROM o LEFT JOIN ({groups}) AS g ON g.k = o.k",
    )


def _compared(p: Parts) -> Texts:
    operator = p.rng.choice(("<", ">=", "="))
    inner = f"SELECT COUNT(*) AS a FROM {p.item()} WHERE t.k = o.k"
    groups = f"SELECT t.k, COUNT(*) AS a FROM {p.item()} GROUP BY t.k"
    return (
        f"SELECT o.id, o.v FROM o WHERE o.v {operator} ({inner})",
        f"SELECT o.id, o.v FROM o, LATERAL ({inner}) AS l WHERE o.v {operator} l.a",
        f"SELECT o.id, o.v FROM o LEFT JOIN ({groups}) AS g ON g.k = o.k WHERE o.v {operator} COALESCE(g.a, 0)",
    )


def _distinct(p: Parts) -> Texts:
    return (
        f"SELECT DISTINCT t.k, t.x FROM {p.item()}",
        f"SELECT t.k, t.x FROM {p.item()} GROUP BY t.k, t.x",
        f"SELECT q.k, q.x FROM (SELECT t.k, t.x, ROW_NUMBER() OVER (PARTITION BY t.k, t.x ORDER BY t.k) AS n "
        f"FROM {p.item()}) AS q WHERE q.n = 1",
    )


def _count_distinct(p: Parts) -> Texts:
    return (
        f"SELECT t.k, COUNT(DISTINCT t.x) AS n FROM {p.item()} GROUP BY t.k",
        f"SELECT d.k, COUNT(d.x) AS n FROM (SELECT DISTINCT t.k, t.x FROM {p.item()}) AS d GROUP BY d.k",
        f"SELECT t.k, SIZE(COLLECT_SET(t.x)) AS n FROM {p.item()} GROUP BY t.k",
    )


def _having(p: Parts) -> Texts:
    aggregate = p.aggregate().format("t.x")
    condition = p.rng.choice(("{0} > 1", "{0} IS NULL", "{0} <= 3"))
    inner = f"SELECT t.k, {aggregate} AS a, COUNT(*) AS n FROM {p.item()} GROUP BY t.k"
    return (
        f"{inner} HAVING {condition.format(aggregate)}",
        f"SELECT q.k, q.a, q.n FROM ({inner}) AS q WHERE {condition.format('q.a')}",
    )


def _total_having(p: Parts) -> Texts:
    condition = p.rng.choice(("{0} = 0", "{0} > 2", "{0} >= 0"))
    inner = f"SELECT MAX(t.x) AS a, COUNT(*) AS n FROM {p.item()}"
    return (
        f"{inner} HAVING {condition.format('COUNT(*)')}",
        f"SELECT q.a, q.n FROM ({inner}) AS q WHERE {condition.format('q.n')}",
    )


def _exists_total_having(p: Parts) -> Texts:
    least = p.rng.choice((0, 1, 2))
    inner = f"FROM {p.item()} WHERE t.k = o.k"
    return (
        f"SELECT o.id, o.k FROM o WHERE EXISTS (SELECT 1 {inner} HAVING COUNT(*) >= {least})",
        f"SELECT o.id, o.k FROM o WHERE (SELECT COUNT(*) {inner}) >= {least}",
    )


def _left_join(p: Parts) -> Texts:
    c = p.condition()
    on = f"t.k = o.k AND {c}"
    return (
        f"SELECT o.id, o.k, t.x FROM o LEFT JOIN {p.item()} ON {on}",
        f"SELECT o.id, o.k, l.x FROM o LEFT JOIN LATERAL (SELECT t.x FROM {p.item()} WHERE {on}) AS l ON TRUE",
        f"SELECT o.id, o.k, t.x FROM o JOIN {p.item()} ON {on} UNION ALL "
        f"SELECT o.id, o.k, NULL FROM o WHERE NOT EXISTS (SELECT 1 FROM {p.item()} WHERE {on})",
    )


def _full_join(p: Parts) -> Texts:
    return (
        f"SELECT o.id, o.k, t.x FROM o FULL JOIN {p.item()} ON t.k = o.k",
        f"SELECT o.id, o.k, t.x FROM o LEFT JOIN {p.item()} ON t.k = o.k UNION ALL "
        f"SELECT NULL, NULL, t.x FROM {p.item()} LEFT ANTI JOIN o ON t.k = o.k",
    )


def _rollup(p: Parts) -> Texts:
    return (
        f"SELECT t.k, t.x, COUNT(*) AS n FROM {p.item()} GROUP BY ROLLUP (t.k, t.x)",
        f"SELECT t.k, t.x, COUNT(*) AS n FROM {p.item()} GROUP BY GROUPING SETS ((t.k, t.x), (t.k), ())",
        f"SELECT t.k, t.x, COUNT(*) AS n FROM {p.item()} GROUP BY t.k, t.x UNION ALL "
        f"SELECT t.k, NULL, COUNT(*) FROM {p.item()} GROUP BY t.k UNION ALL "
        f"SELECT NULL, NULL, COUNT(*) FROM {p.item()} HAVING COUNT(*) > 0",
    )


def _under_or(p: Parts) -> Texts:
    inner = f"EXISTS (SELECT 1 FROM {p.item()} WHERE t.k = o.k AND {p.condition()})"
    return (
        f"SELECT o.id, o.v FROM o WHERE {inner} OR o.v > 1",
        f"SELECT o.id, o.v FROM o WHERE o.v > 1 UNION ALL "
        f"SELECT o.id, o.v FROM o WHERE {inner} AND COALESCE(o.v <= 1, TRUE)",
        f"SELECT o.id, o.v FROM o WHERE CASE WHEN {inner} THEN TRUE ELSE o.v > 1 END",
        f"SELECT o.id, o.v FROM o WHERE NOT (NOT {inner} AND NOT COALESCE(o.v > 1, FALSE))",
    )


def _limit(p: Parts) -> Texts:
    count = p.rng.choice((1, 2, 3))
    return (
        f"SELECT t.k, t.x FROM {p.item()} ORDER BY t.k, t.x LIMIT {count}",
        f"SELECT q.k, q.x FROM (SELECT t.k, t.x, ROW_NUMBER() OVER (ORDER BY t.k, t.x) AS n "
        f"FROM {p.item()}) AS q WHERE q.n <= {count}",
    )


def _top_of_each(p: Parts) -> Texts:
    count = p.rng.choice((1, 2))
    ranked = f"SELECT t.k, t.x, ROW_NUMBER() OVER (PARTITION BY t.k ORDER BY t.x DESC) AS n FROM {p.item()}"
    inner = f"SELECT t.x FROM {p.item()} WHERE t.k = o.k ORDER BY t.x DESC LIMIT {count}"
    return (
        f"SELECT o.id, l.x FROM o, LATERAL ({inner}) AS l",
        f"SELECT o.id, q.x FROM o JOIN ({ranked}) AS q ON q.k = o.k WHERE q.n <= {count}",
    )


def _join_order(p: Parts) -> Texts:
    return (
        f"SELECT o.id, t.x, u.y FROM o JOIN {p.item()} ON t.k = o.k JOIN u ON u.k = t.k",
        f"SELECT o.id, t.x, u.y FROM u, {p.item()}, o WHERE o.k = t.k AND t.k = u.k",
    )


FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        Family("EXISTS", _exists),
        Family("NOT EXISTS", _not_exists),
        Family("IN", _in),
        Family("NOT IN", _not_in),
        Family("NOT IN uncorrelated", _not_in_alone),
        Family("CTE", _cte),
        Family("UNION ALL in either order", _set_order("UNION ALL")),
        Family("INTERSECT in either order", _set_order("INTERSECT")),
        Family("INTERSECT ALL in either order", _set_order("INTERSECT ALL")),
        Family("UNION", _union),
        Family("EXCEPT", _except),
        Family("INTERSECT", _intersect),
        Family("FILTER", _filter),
        Family("window", _window),
        Family("RANK", _rank),
        Family("running sum", _running),
        Family("scalar", _scalar),
        Family("scalar compared", _compared),
        Family("DISTINCT", _distinct),
        Family("COUNT DISTINCT", _count_distinct),
        Family("HAVING", _having),
        Family("HAVING of a total", _total_having),
        Family("EXISTS of a total", _exists_total_having),
        Family("LEFT JOIN", _left_join),
        Family("FULL JOIN", _full_join),
        Family("ROLLUP", _rollup),
        Family("EXISTS below OR", _under_or),
        Family("LIMIT", _limit),
        Family("top rows of each", _top_of_each),
        Family("order of joins", _join_order),
    )
}
"""To add one, add a line and its writer: the texts need the same number of columns, of types that compare."""
