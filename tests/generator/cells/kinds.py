"""Kinds of queries can stand where a query can: they are the rows of the table of kinds and positions.

To add a kind, add a line to ``KINDS`` with its writer. All positions then hold it, correlated and not, in the
systematic table as well as in random queries.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from generator.cells.reading import Reading, number_of

Count = Literal["one", "at most one", "any"]


@dataclass(frozen=True)
class Kind:
    """``count`` says how many rows there can be, whatever is read.

    ``is_unique``: at most one where what is read has at most one row for the row outside. ``needs_outside``: an outer
    column is part of the kind. ``can_correlate``: it has a place for one.
    """

    name: str
    write: Callable[[Reading], str]
    count: Count = "any"
    is_unique: bool = False
    needs_outside: bool = False
    can_correlate: bool = True


def _items(r: Reading, narrow: str, *more: str) -> str:
    """The select list ``a``, and ``b``, ``c`` where any columns will do."""
    names = ("a",) if r.is_narrow else ("a", "b", "c")
    return ", ".join(f"{item} AS {name}" for item, name in zip((narrow, *more), names, strict=False))


def _rows(r: Reading) -> str:
    t = r.rows()
    return t.select(_items(r, t.x, t.k))


def _constants(r: Reading) -> str:
    t = r.rows()
    return t.select(_items(r, "5", "'z'"))


def _outer_columns(r: Reading) -> str:
    t, outer = r.rows(), r.outside[-1]
    return t.select(_items(r, outer.ref, f"{t.x} + 1"))


def _distinct(r: Reading) -> str:
    t = r.rows()
    return "SELECT DISTINCT" + t.select(_items(r, t.x, t.k)).removeprefix("SELECT")


def _total(r: Reading) -> str:
    t = r.rows()
    first, second = r.rng.choice(
        (("COUNT(*)", f"MAX({t.x})"), (f"MAX({t.x})", "COUNT(*)"), (f"SUM({t.x})", f"MIN({t.k})"))
    )
    return t.select(_items(r, first, second))


def _total_with_constant(r: Reading) -> str:
    t = r.rows()
    return t.select(_items(r, "COUNT(*) + 5" if r.is_narrow else "COUNT(*)", "5"))


def _total_with_outer(r: Reading) -> str:
    t, outer = r.rows(), r.outside[-1]
    first = f"COALESCE(MAX({t.x}), {outer.ref})" if r.is_narrow else "COUNT(*)"
    return t.select(_items(r, first, outer.ref))


def _total_over_outer(r: Reading) -> str:
    t, outer = r.rows(), r.outside[-1]
    inner = t.select(f"COALESCE({t.x}, {outer.ref}) AS e")
    return f"SELECT {_items(r, 'MAX(h.e)', 'COUNT(*)')} FROM ({inner}) AS h"


def _total_having(r: Reading) -> str:
    t = r.rows()
    condition = r.rng.choice(("COUNT(*) = 0", "COUNT(*) > 1", f"MAX({t.x}) IS NULL", f"SUM({t.x}) > 0"))
    return t.select(_items(r, f"MAX({t.x})", "COUNT(*)"), tail=f" HAVING {condition}")


def _having_alone(r: Reading) -> str:
    t = r.rows()
    return t.select(_items(r, "7", "'h'"), tail=f" HAVING COUNT(*) {r.rng.choice(('= 0', '>= 0', '> 1'))}")


def _grouped(r: Reading) -> str:
    t = r.rows()
    return t.select(_items(r, f"MAX({t.x})", t.k, "COUNT(*)"), tail=f" GROUP BY {t.k}")


def _grouped_having(r: Reading) -> str:
    t = r.rows()
    having = r.rng.choice(("COUNT(*) > 1", f"MIN({t.x}) < 2"))
    return t.select(_items(r, f"SUM({t.x})", t.k), tail=f" GROUP BY {t.k} HAVING {having}")


def _limit(r: Reading) -> str:
    t = r.rows()
    order = t.x if r.is_narrow else f"{t.x}, {t.k}"
    return t.select(_items(r, t.x, t.k), tail=f" ORDER BY {order} LIMIT 1")


def _offset(r: Reading) -> str:
    t = r.rows()
    order = t.x if r.is_narrow else f"{t.x}, {t.k}"
    return t.select(_items(r, t.x, t.k), tail=f" ORDER BY {order} LIMIT 1 OFFSET 1")


def _limited_total(r: Reading) -> str:
    t = r.rows()
    return t.select(_items(r, "COUNT(*)", f"MAX({t.x})"), tail=" LIMIT 1")


def _limited_groups(r: Reading) -> str:
    t = r.rows()
    return t.select(_items(r, "COUNT(*)", t.k), tail=f" GROUP BY {t.k} ORDER BY COUNT(*), {t.k} LIMIT 1")


def _window(r: Reading) -> str:
    t = r.rows()
    return t.select(_items(r, f"SUM({t.x}) OVER (PARTITION BY {t.k})", f"RANK() OVER (ORDER BY {t.x})"))


def _window_of_total(r: Reading) -> str:
    t = r.rows()
    return t.select(_items(r, "SUM(COUNT(*)) OVER ()", f"MAX({t.x})"))


def _window_of_groups(r: Reading) -> str:
    t = r.rows()
    value = f"SUM(COUNT(*)) OVER (ORDER BY {t.k})"
    return t.select(
        _items(r, value, t.k, f"RANK() OVER (ORDER BY MAX({t.x}), {t.k})"), tail=f" GROUP BY {t.k}"
    )


def _qualify(r: Reading) -> str:
    t = r.rows()
    inner = t.select(f"{t.x} AS a, {t.k} AS b, ROW_NUMBER() OVER (PARTITION BY {t.k} ORDER BY {t.x}) AS n")
    return f"SELECT {_items(r, 'p.a', 'p.b')} FROM ({inner}) AS p WHERE p.n = 1"


def _empty_grouping_set(r: Reading) -> str:
    t = r.rows()
    return t.select(_items(r, "COUNT(*)", f"SUM({t.x})"), tail=" GROUP BY GROUPING SETS (())")


def _rollup(r: Reading) -> str:
    t = r.rows()
    return t.select(_items(r, "COUNT(*)", t.k, f"GROUPING({t.k})"), tail=f" GROUP BY ROLLUP ({t.k})")


def _grouping_sets(r: Reading) -> str:
    t = r.rows()
    sets = f"(({t.k}), ({t.k}, {t.x}), ())"
    return t.select(_items(r, "COUNT(*)", t.k, t.x), tail=f" GROUP BY GROUPING SETS {sets}")


def _set_operation(operator: str) -> Callable[[Reading], str]:
    def write(r: Reading) -> str:
        first, second = r.rows(), r.rows()
        left = first.select(_items(r, first.x, first.k))
        right = second.select(_items(r, second.x, second.k))
        return f"{left} {operator} {right}"

    return write


def _union_of_totals(r: Reading) -> str:
    first, second = r.rows(), r.rows()
    left = first.select(_items(r, "COUNT(*)", f"MAX({first.x})"))
    return f"{left} UNION ALL {second.select(_items(r, f'MIN({second.x})', f'MAX({second.k})'))}"


def _list(function: str) -> Callable[[Reading], str]:
    def write(r: Reading) -> str:
        t = r.rows()
        list_ = f"{function}({t.x})"
        return t.select(_items(r, f"SIZE({list_})", f"SORT_ARRAY({list_})"))

    return write


def _count_distinct(r: Reading) -> str:
    t = r.rows()
    return t.select(_items(r, f"COUNT(DISTINCT {t.x})", f"COUNT(DISTINCT {t.x}, {t.k})"))


def _filter(r: Reading) -> str:
    t = r.rows()
    return t.select(_items(r, f"COUNT(*) FILTER (WHERE {t.x} > 0)", f"SUM({t.x}) FILTER (WHERE {t.x} <> 1)"))


def _within_group(r: Reading) -> str:
    t = r.rows()
    value = f"CAST(PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY {t.x}) AS INT)"
    return t.select(_items(r, value, f"PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY {t.x} DESC)"))


def _any_values(r: Reading) -> str:
    return "VALUES (1), (2), (NULL)" if r.is_narrow else "VALUES (1, 'a'), (2, NULL)"


def _rows_of_values(r: Reading) -> str:
    where = f" WHERE v.a = {r.outside[0].ref}" if r.outside else ""
    return f"SELECT {_items(r, 'v.a', 'v.b')} FROM (VALUES (1, 'a'), (2, 'b'), (2, NULL)) AS v(a, b){where}"


def _no_from(r: Reading) -> str:
    outer = r.outside[0].ref if r.outside else "2"
    return f"SELECT {_items(r, outer, '5')}"


def _join(r: Reading) -> str:
    return _joined(r, "JOIN")


def _left_join(r: Reading) -> str:
    return _joined(r, "LEFT JOIN")


def _full_join(r: Reading) -> str:
    return _joined(r, "FULL JOIN")


def _joined(r: Reading, how: str) -> str:
    t, other = r.rows(joins=True), r.plain()
    key, number = next(c for c in other.cols if c.type == t.key.type), number_of(other.cols)
    condition = f"{key.ref} = {t.k}"
    conditions = t.conditions
    if r.correlation is not None and r.correlation.place == "on" and how == "JOIN":
        condition, conditions = " AND ".join((condition, *conditions)), ()
    joined = t.__class__(f"{t.clause} {how} {other.text} ON {condition}", conditions, t.key, t.number, t.any)
    return joined.select(_items(r, f"COALESCE({number.ref}, {t.x})", t.k, number.ref))


def _explode(r: Reading) -> str:
    t = r.rows()
    return t.select(_items(r, f"EXPLODE(ARRAY({t.x}, 2))", t.k))


def _lateral_view(r: Reading) -> str:
    t = r.rows()
    clause = f"{t.clause} LATERAL VIEW EXPLODE(ARRAY({t.x}, {t.k})) lv AS e"
    return t.__class__(clause, t.conditions, t.key, t.number, t.any).select(_items(r, "lv.e", t.k))


def _total_of_groups(r: Reading) -> str:
    t = r.rows()
    inner = t.select(f"{t.k} AS k, COUNT(*) AS n", tail=f" GROUP BY {t.k}")
    return f"SELECT {_items(r, 'MAX(h.n)', 'COUNT(*)')} FROM ({inner}) AS h"


_LISTED = (
    Kind("rows", _rows, is_unique=True),
    Kind("constants", _constants, is_unique=True),
    Kind("outer columns", _outer_columns, is_unique=True, needs_outside=True),
    Kind("no FROM", _no_from, "one"),
    Kind("DISTINCT", _distinct, is_unique=True),
    Kind("join", _join, is_unique=True),
    Kind("left join", _left_join, is_unique=True),
    Kind("full join", _full_join),
    Kind("explode", _explode),
    Kind("LATERAL VIEW", _lateral_view),
    Kind("VALUES", _any_values, can_correlate=False),
    Kind("rows of VALUES", _rows_of_values),
    Kind("total", _total, "one"),
    Kind("total and constant", _total_with_constant, "one"),
    Kind("total and outer column", _total_with_outer, "one", needs_outside=True),
    Kind("total over outer column", _total_over_outer, "one", needs_outside=True),
    Kind("total HAVING", _total_having, "at most one"),
    Kind("HAVING alone", _having_alone, "at most one"),
    Kind("total of groups", _total_of_groups, "one"),
    Kind("total LIMIT", _limited_total, "one"),
    Kind("GROUP BY", _grouped, is_unique=True),
    Kind("GROUP BY HAVING", _grouped_having, is_unique=True),
    Kind("GROUP BY LIMIT", _limited_groups, "at most one"),
    Kind("GROUPING SETS (())", _empty_grouping_set, "one"),
    Kind("ROLLUP", _rollup),
    Kind("GROUPING SETS", _grouping_sets),
    Kind("LIMIT", _limit, "at most one"),
    Kind("LIMIT OFFSET", _offset, "at most one"),
    Kind("window", _window, is_unique=True),
    Kind("ROW_NUMBER = 1", _qualify, is_unique=True),
    Kind("window of a total", _window_of_total, "one"),
    Kind("window of groups", _window_of_groups, is_unique=True),
    Kind("UNION ALL", _set_operation("UNION ALL")),
    Kind("UNION", _set_operation("UNION")),
    Kind("INTERSECT", _set_operation("INTERSECT"), is_unique=True),
    Kind("INTERSECT ALL", _set_operation("INTERSECT ALL"), is_unique=True),
    Kind("EXCEPT", _set_operation("EXCEPT"), is_unique=True),
    Kind("EXCEPT ALL", _set_operation("EXCEPT ALL"), is_unique=True),
    Kind("UNION ALL of totals", _union_of_totals),
    Kind("COLLECT_LIST", _list("COLLECT_LIST"), "one"),
    Kind("COLLECT_SET", _list("COLLECT_SET"), "one"),
    Kind("ARRAY_AGG", _list("ARRAY_AGG"), "one"),
    Kind("COUNT DISTINCT", _count_distinct, "one"),
    Kind("FILTER", _filter, "one"),
    Kind("WITHIN GROUP", _within_group, "one"),
)

KINDS: dict[str, Kind] = {kind.name: kind for kind in _LISTED}
