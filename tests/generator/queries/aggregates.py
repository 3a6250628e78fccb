"""Random aggregate calls are made by the name of their construct."""

from __future__ import annotations

from collections.abc import Callable

from generator.constructs import Menu, Place
from generator.queries.query import Block
from generator.queries.scalars import (
    ARRAY,
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INEXACT,
    Scalars,
    Type,
    summed,
    wider,
)

Call = tuple[str, Type]


def aggregate(menu: Menu, block: Block, scalars: Scalars, depth: int = 0) -> Call:
    """An aggregate call, or an expression over such."""
    place = Place(scalars.columns, depth)
    name = menu.choose(scalars.rng, "aggregate", place, block.want) or "count"
    block.use(name)
    return _CALLS[name](scalars, menu, block)


def having(scalars: Scalars) -> str:
    """A condition over COUNT and SUM."""
    rng = scalars.rng
    choices = [f"COUNT(*) > {rng.randint(1, 2)}", f"COUNT({rng.choice(scalars.columns).ref}) >= 1"]
    numbers = [c for c in scalars.numbers if c.type.precision <= 18]
    if numbers:
        column = rng.choice(numbers)
        choices += [f"SUM({column.ref}) > {rng.randint(-2, 2)}", f"AVG({column.ref}) IS NOT NULL"]
    return rng.choice(choices)


def _count(s: Scalars, menu: Menu, block: Block) -> Call:
    return f"COUNT({s.rng.choice(['*', '1', *(c.ref for c in s.columns)])})", BIGINT


def _sum(s: Scalars, menu: Menu, block: Block) -> Call:
    column = s.rng.choice(s.summable)
    roll = s.rng.random()
    if roll < 0.12:
        return f"SUM({column.ref}) + COUNT(*)", wider(summed(column.type), 20)
    if roll < 0.24:
        return f"CASE WHEN COUNT({column.ref}) > 1 THEN SUM({column.ref}) END", summed(column.type)
    value, type_ = s.same_kind(column)
    return f"SUM({value})", summed(type_)


def _avg(s: Scalars, menu: Menu, block: Block) -> Call:
    column = s.rng.choice(s.summable)
    value, type_ = s.same_kind(column)
    if type_.precision > 18:
        value, type_ = f"CAST({column.ref} AS DECIMAL(18, 2))", Type("decimal", 18, 2)
    return f"AVG({value})", DOUBLE if type_.is_integral else INEXACT


def _extreme(function: str) -> Callable[[Scalars, Menu, Block], Call]:
    def call(s: Scalars, menu: Menu, block: Block) -> Call:
        value, type_ = s.same_kind(s.rng.choice(s.keys))
        return f"{function}({value})", type_

    return call


def _count_distinct(s: Scalars, menu: Menu, block: Block) -> Call:
    value, _ = s.same_kind(s.rng.choice(s.keys))
    return f"COUNT(DISTINCT {value})", BIGINT


def _count_distinct_of_two(s: Scalars, menu: Menu, block: Block) -> Call:
    first, second = s.rng.sample(s.keys, 2)
    return f"COUNT(DISTINCT {first.ref}, {second.ref})", BIGINT


def _sum_distinct(s: Scalars, menu: Menu, block: Block) -> Call:
    column = s.rng.choice(s.summable)
    return f"SUM(DISTINCT {column.ref})", summed(column.type)


def _filter(s: Scalars, menu: Menu, block: Block) -> Call:
    choices = ["COUNT(*)", f"COUNT({s.rng.choice(s.keys).ref})"]
    types = [BIGINT, BIGINT]
    if s.summable and menu.allows("sum"):
        column = s.rng.choice(s.summable)
        choices.append(f"SUM({column.ref})")
        types.append(summed(column.type))
    if menu.allows("max"):
        column = s.rng.choice(s.keys)
        choices.append(f"MAX({column.ref})")
        types.append(column.type)
    chosen = s.rng.randrange(len(choices))
    return f"{choices[chosen]} FILTER (WHERE {s.predicate(0)})", types[chosen]


def _truth(function: str) -> Callable[[Scalars, Menu, Block], Call]:
    def call(s: Scalars, menu: Menu, block: Block) -> Call:
        return f"{function}({s.predicate(0)})", BOOLEAN

    return call


def _extreme_by(function: str) -> Callable[[Scalars, Menu, Block], Call]:
    """At times equal orders mean equal values; otherwise the planner completes the order."""

    def call(s: Scalars, menu: Menu, block: Block) -> Call:
        value = s.rng.choice(s.keys)
        other = s.rng.choice(s.keys)
        roll = s.rng.random()
        if roll < 0.4 and value.type.is_exact_number:
            return f"{function}(CASE WHEN {value.ref} > 0 THEN {value.ref} END, -{value.ref})", value.type
        if roll < 0.6:
            return f"{function}({value.ref}, {value.ref})", value.type
        return f"{function}({value.ref}, {other.ref})", value.type

    return call


def _bits(function: str) -> Callable[[Scalars, Menu, Block], Call]:
    def call(s: Scalars, menu: Menu, block: Block) -> Call:
        column = s.rng.choice([c for c in s.columns if c.type.is_integral])
        return f"{function}({column.ref})", column.type

    return call


def _spread(*functions: str) -> Callable[[Scalars, Menu, Block], Call]:
    def call(s: Scalars, menu: Menu, block: Block) -> Call:
        return f"{s.rng.choice(functions)}({s.rng.choice(s.summable).ref})", DOUBLE

    return call


def _covariance(s: Scalars, menu: Menu, block: Block) -> Call:
    """Of two numbers, or of one with itself. Of doubles, so that DuckDB and Spark divide alike."""
    function = s.rng.choice(
        ("COVAR_POP", "COVAR_SAMP", "CORR", "REGR_SLOPE", "REGR_INTERCEPT", "REGR_SXX", "REGR_COUNT")
    )
    first, second = (f"CAST({s.rng.choice(s.summable).ref} AS DOUBLE)" for _ in range(2))
    return f"{function}({first}, {second})", BIGINT if function == "REGR_COUNT" else DOUBLE


def _count_if(s: Scalars, menu: Menu, block: Block) -> Call:
    return f"COUNT_IF({s.predicate(0)})", BIGINT


def _collected(function: str) -> Callable[[Scalars, Menu, Block], Call]:
    """Sorted, here or by the planner, because Spark collects in any order."""

    def call(s: Scalars, menu: Menu, block: Block) -> Call:
        call = f"{function}({s.rng.choice(s.keys).ref})"
        return (call if s.rng.random() < 0.5 else f"SORT_ARRAY({call})"), ARRAY

    return call


def _median(s: Scalars, menu: Menu, block: Block) -> Call:
    return f"MEDIAN({s.rng.choice(s.summable).ref})", DOUBLE


def _percentile(s: Scalars, menu: Menu, block: Block) -> Call:
    column, share = s.rng.choice(s.summable), s.rng.choice(("0.25", "0.5", "0.9"))
    if s.rng.random() < 0.5:
        return f"PERCENTILE({column.ref}, {share})", DOUBLE
    return f"PERCENTILE_CONT({share}) WITHIN GROUP (ORDER BY {column.ref})", DOUBLE


_CALLS: dict[str, Callable[[Scalars, Menu, Block], Call]] = {
    "count": _count,
    "sum": _sum,
    "avg": _avg,
    "min": _extreme("MIN"),
    "max": _extreme("MAX"),
    "count distinct": _count_distinct,
    "count distinct of two": _count_distinct_of_two,
    "sum distinct": _sum_distinct,
    "filter": _filter,
    "bool_and": _truth("BOOL_AND"),
    "bool_or": _truth("BOOL_OR"),
    "max_by": _extreme_by("MAX_BY"),
    "min_by": _extreme_by("MIN_BY"),
    "bit_and": _bits("BIT_AND"),
    "bit_or": _bits("BIT_OR"),
    "bit_xor": _bits("BIT_XOR"),
    "variance": _spread("VAR_POP", "VAR_SAMP", "VARIANCE", "SKEWNESS", "KURTOSIS"),
    "stddev": _spread("STDDEV", "STDDEV_POP", "STDDEV_SAMP"),
    "covariance": _covariance,
    "count_if": _count_if,
    "collect_set": _collected("COLLECT_SET"),
    "collect_list": _collected("COLLECT_LIST"),
    "median": _median,
    "percentile": _percentile,
}
