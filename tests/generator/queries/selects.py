"""A random SELECT does something with the rows of its FROM clause: project, group, rank, cut off, explode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from generator.constructs import Place
from generator.queries.aggregates import aggregate, having
from generator.queries.joins import From
from generator.queries.query import Block, Query
from generator.queries.rows import alike, sequence
from generator.queries.scalars import BIGINT, BOOLEAN, INT, Col, Scalars, Type
from generator.queries.subqueries import scalar_subquery, subquery_truth
from generator.queries.windows import order_item, partition, total_order, windowed

if TYPE_CHECKING:
    from generator.queries.sql import Queries

Shown = list[tuple[str, Type]]


def project(queries: Queries, block: Block, s: Scalars, source: str, clause: From) -> Query:
    """Columns and expressions, or ``*``; bags keep their duplicates."""
    rng = s.rng
    block.use("project")
    if not block.want and rng.random() < 0.15 and clause.has_unique_names:
        return block.finish(f"SELECT * FROM {source}", tuple((c.name, c.type) for c in clause.shown))
    items: list[str] = []
    columns: Shown = []
    for number in range(rng.randint(1, 4)):
        value, type_ = s.value(rng.choice(s.columns))
        _show(items, columns, f"c{number}", value, type_)
    if block.want or rng.random() < 0.15:
        name = queries.menu.choose(rng, "value", Place(s.columns, block.depth), block.want)
        if name == "case":
            block.use(name)
            column = rng.choice(s.keys)
            _show(items, columns, "c8", f"CASE WHEN {s.predicate()} THEN {column.ref} END", column.type)
        if name == "scalar in select":
            block.use(name)
            truth = subquery_truth(queries, block, s) if rng.random() < 0.4 else None
            _show(items, columns, "c9", *((truth, BOOLEAN) if truth else scalar_subquery(queries, block, s)))
    if rng.random() < 0.1:
        _show(items, columns, "constant", str(rng.randint(0, 3)), INT)
    return block.finish(f"SELECT {', '.join(items)} FROM {source}", columns)


def _show(items: list[str], columns: Shown, name: str, value: str, type_: Type) -> None:
    items.append(f"{value} AS {name}")
    columns.append((name, type_))


def _global(queries: Queries, block: Block, s: Scalars, source: str, clause: From) -> Query:
    block.use("global aggregate")
    items: list[str] = []
    columns: Shown = []
    _aggregates(queries, block, s, items, columns)
    return block.finish(f"SELECT {', '.join(items)} FROM {source}{_having(queries, block, s, 0.15)}", columns)


def _aggregates(queries: Queries, block: Block, s: Scalars, items: list[str], columns: Shown) -> None:
    for number in range(s.rng.randint(1, 3)):
        value, type_ = aggregate(queries.menu, block, s, block.depth)
        _show(items, columns, f"a{number}", value, type_)


def _having(queries: Queries, block: Block, s: Scalars, share: float) -> str:
    rng = s.rng
    is_wanted = block.want & {"having", "scalar in having"}
    if not is_wanted and rng.random() > share:
        return ""
    name = queries.menu.choose(rng, "having", Place(s.columns, block.depth), block.want)
    if name is None:
        return ""
    if name == "scalar in having" and block.depth > 0:
        # Spark wants what a correlated subquery names to be grouped by: only uncorrelated ones here.
        value, _ = scalar_subquery(queries, block, Scalars(rng, []))
        block.use(name)
        return f" HAVING COUNT(*) {rng.choice(('>', '>=', '<', '<>'))} {value}"
    block.use("having")
    return f" HAVING {having(s)}"


def _grouped(queries: Queries, block: Block, s: Scalars, source: str, clause: From) -> Query:
    """GROUP BY columns, expressions, ordinals or aliases, not all of them shown."""
    rng = s.rng
    block.use("group by")
    items: list[str] = []
    columns: Shown = []
    group: list[str] = []
    for number, column in enumerate(rng.sample(s.keys, min(len(s.keys), rng.randint(1, 2)))):
        value, type_ = s.value(column)
        if rng.random() < 0.12:
            group.append(value)  # a key that is not shown
            continue
        _show(items, columns, f"g{number}", value, type_)
        # GROUP BY prefers a column to an alias of the same name.
        is_free = all(c.name != f"g{number}" for c in s.columns)
        group.append(rng.choice((value, value, str(len(items)), f"g{number}" if is_free else value)))
    _aggregates(queries, block, s, items, columns)
    tail = _having(queries, block, s, 0.2)
    return block.finish(f"SELECT {', '.join(items)} FROM {source} GROUP BY {', '.join(group)}{tail}", columns)


def _grouping_sets(form: str) -> Callable[[Queries, Block, Scalars, str, From], Query]:
    """ROLLUP, CUBE or GROUPING SETS over plain columns.

    Not ``GROUP BY a, b GROUPING SETS (...)``: sqlglot reads it as ``GROUP BY a, b, GROUPING SETS (...)``, which is
    something else.
    """

    def head(queries: Queries, block: Block, s: Scalars, source: str, clause: From) -> Query:
        rng = s.rng
        block.use(form)
        keys = rng.sample(s.keys, min(len(s.keys), rng.randint(1, 3 if form == "rollup" else 2)))
        items: list[str] = []
        columns: Shown = []
        for number, column in enumerate(keys):
            if rng.random() < 0.85:
                _show(items, columns, f"g{number}", column.ref, column.type)
        _aggregates(queries, block, s, items, columns)
        if queries.menu.allows("grouping") and ("grouping" in block.want or rng.random() < 0.5):
            block.want.discard("grouping")
            block.use("grouping")
            _show(items, columns, "gr", f"GROUPING({rng.choice(keys).ref})", INT)
            if rng.random() < 0.5:
                _show(items, columns, "gid", f"GROUPING_ID({', '.join(c.ref for c in keys)})", BIGINT)
        tail = _having(queries, block, s, 0.15)
        group = _group_clause(s, form, keys)
        return block.finish(f"SELECT {', '.join(items)} FROM {source} GROUP BY {group}{tail}", columns)

    return head


def _group_clause(s: Scalars, form: str, keys: list[Col]) -> str:
    refs = [c.ref for c in keys]
    listed = ", ".join(refs)
    if form != "grouping sets":
        return s.rng.choice((f"{form.upper()}({listed})", f"{listed} WITH {form.upper()}"))
    sets = [s.rng.sample(refs, s.rng.randint(0, len(refs))) for _ in range(s.rng.randint(1, 3))]
    texts = [f"({', '.join(chosen)})" for chosen in (refs, *sets)]  # Spark wants each key in one of the sets
    return f"GROUPING SETS ({', '.join(texts)})"


def _distinct(queries: Queries, block: Block, s: Scalars, source: str, clause: From) -> Query:
    block.use("distinct")
    items: list[str] = []
    columns: Shown = []
    for number, column in enumerate(s.rng.sample(s.keys, min(len(s.keys), s.rng.randint(1, 3)))):
        _show(items, columns, f"c{number}", *s.value(column))
    return block.finish(f"SELECT DISTINCT {', '.join(items)} FROM {source}", columns)


def _keys_shown(s: Scalars, most: int = 3) -> tuple[list[str], Shown]:
    """Some columns that can be compared, and nothing else."""
    items: list[str] = []
    columns: Shown = []
    for number, column in enumerate(s.rng.sample(s.keys, min(len(s.keys), s.rng.randint(1, most)))):
        _show(items, columns, f"c{number}", column.ref, column.type)
    return items, columns


def _window(queries: Queries, block: Block, s: Scalars, source: str, clause: From) -> Query:
    rng = s.rng
    if "window over groups" in block.want or (
        rng.random() < 0.1 and queries.menu.allows("window over groups")
    ):
        return _window_over_groups(queries, block, s, source)
    block.use("window")
    items, columns = _keys_shown(s)
    named = []
    for number in range(rng.choice((1, 1, 2)) if queries.menu.allows("whole partition") else 1):
        alias = queries.alias("w")
        call = windowed(queries.menu, block, s, alias, beside=number > 0)
        _show(items, columns, f"w{number}", call.text, call.type)
        if call.named:
            named.append(call.named)
    tail = f" WINDOW {', '.join(named)}" if named else ""
    return block.finish(f"SELECT {', '.join(items)} FROM {source}{tail}", columns)


def _window_over_groups(queries: Queries, block: Block, s: Scalars, source: str) -> Query:
    """A window function over what an aggregate of the same SELECT gives."""
    rng = s.rng
    block.want.discard("window over groups")
    block.use("window", "window over groups", "group by", "count")
    key, other = rng.choice(s.keys), rng.choice(s.keys)
    order = order_item(s, f"COUNT({other.ref})")
    call = rng.choice((f"RANK() OVER (ORDER BY {order})", f"SUM(COUNT(*)) OVER (ORDER BY {order})"))
    items = f"{key.ref} AS g0, COUNT({other.ref}) AS a0, {call} AS w0"
    columns = (("g0", key.type), ("a0", BIGINT), ("w0", INT if call.startswith("RANK") else BIGINT))
    return block.finish(f"SELECT {items} FROM {source} GROUP BY {key.ref}", columns)


def _qualify(queries: Queries, block: Block, s: Scalars, source: str, clause: From) -> Query:
    rng = s.rng
    block.use("qualify")
    items, columns = _keys_shown(s)
    over = Scalars(rng, s.keys)
    ties = order_item(over, rng.choice(s.keys).ref)
    condition = rng.choice(
        (
            f"ROW_NUMBER() OVER ({partition(over)}ORDER BY {total_order(over)}) <= {rng.randint(1, 2)}",
            f"RANK() OVER ({partition(over)}ORDER BY {ties}) = 1",
            f"COUNT(*) OVER ({partition(over).strip()}) > 1",
        )
    )
    return block.finish(f"SELECT {', '.join(items)} FROM {source} QUALIFY {condition}", columns)


def _top_k(queries: Queries, block: Block, s: Scalars, source: str, clause: From) -> Query:
    """The first rows of each group: a filter over ROW_NUMBER in a subquery."""
    rng = s.rng
    block.use("top-k per group")
    items, columns = _keys_shown(s)
    over = Scalars(rng, s.keys)
    rank = f"ROW_NUMBER() OVER ({partition(over)}ORDER BY {total_order(over)}) AS place"
    inner = f"SELECT {', '.join(items)}, {rank} FROM {source}"
    shown = ", ".join(name for name, _ in columns)
    condition = rng.choice(("place <= 2", "place = 1", "place BETWEEN 2 AND 3"))
    return block.finish(f"SELECT {shown} FROM ({inner}) AS {queries.alias('t')} WHERE {condition}", columns)


def limited_result(block: Block, s: Scalars, columns: Sequence[tuple[str, Type]]) -> str:
    """ORDER BY and LIMIT behind any SELECT whose result can be ordered totally: nothing for others.

    Columns are ordered by with their positions and with their names, which may be names of other columns in FROM.
    """
    names = [name for name, _ in columns]
    if block.uses & {"limit", "offset"} or not all(type_.can_be_key for _, type_ in columns):
        return ""
    block.use("limited result")
    keys = [s.rng.choice((name, str(number))) for number, name in enumerate(names, start=1)]
    s.rng.shuffle(keys)
    order = ", ".join(order_item(s, key) for key in keys)
    return f" ORDER BY {order} LIMIT {s.rng.randint(1, 4)}"


def _limit(form: str) -> Callable[[Queries, Block, Scalars, str, From], Query]:
    """ORDER BY every column of the result, so that there is one answer."""

    def head(queries: Queries, block: Block, s: Scalars, source: str, clause: From) -> Query:
        rng = s.rng
        block.use(form)
        items, columns = _keys_shown(s)
        names = [name for name, _ in columns]
        rng.shuffle(names)
        order = ", ".join(order_item(s, name) for name in names)
        tail = f" LIMIT {rng.randint(1, 4)}"
        if form == "offset":
            tail = rng.choice((f"{tail} OFFSET {rng.randint(1, 2)}", f" OFFSET {rng.randint(1, 2)}"))
        return block.finish(f"SELECT {', '.join(items)} FROM {source} ORDER BY {order}{tail}", columns)

    return head


def _explode(form: str) -> Callable[[Queries, Block, Scalars, str, From], Query]:
    def head(queries: Queries, block: Block, s: Scalars, source: str, clause: From) -> Query:
        rng = s.rng
        block.use(form)
        items, columns = _keys_shown(s, most=2)
        if form == "explode outer":
            if s.of("int") and rng.random() < 0.5:
                array, type_ = sequence(s), INT
            else:
                column = rng.choice(s.keys)
                array, type_ = f"ARRAY({column.ref})", column.type
            call = f"EXPLODE_OUTER(CASE WHEN {s.predicate(0)} THEN {array} END) AS e0"
        else:
            chosen = alike(s, rng.choice((2, 2, 3)))
            type_ = chosen[0].type
            array = f"ARRAY({', '.join(c.ref for c in chosen)})"
            call = f"EXPLODE({array}) AS e0" if form == "explode" else f"POSEXPLODE({array}) AS (p0, e0)"
        if form == "posexplode":
            columns.append(("p0", INT))
        items.append(call)
        columns.append(("e0", type_))
        return block.finish(f"SELECT {', '.join(items)} FROM {source}", columns)

    return head


HEADS: dict[str, Callable[[Queries, Block, Scalars, str, From], Query]] = {
    "project": project,
    "group by": _grouped,
    "global aggregate": _global,
    "distinct": _distinct,
    "window": _window,
    "qualify": _qualify,
    "top-k per group": _top_k,
    "limit": _limit("limit"),
    "offset": _limit("offset"),
    "rollup": _grouping_sets("rollup"),
    "cube": _grouping_sets("cube"),
    "grouping sets": _grouping_sets("grouping sets"),
    "explode": _explode("explode"),
    "posexplode": _explode("posexplode"),
    "explode outer": _explode("explode outer"),
}
