"""These rows describe Spark's aggregate functions."""

from __future__ import annotations

from fivm_dbt.catalog.types import BIGINT, BINARY, BOOLEAN, DOUBLE
from fivm_dbt.functions.function import Aggregate, Bits, Function, Order
from fivm_dbt.functions.type_rules import (
    average,
    first,
    list_of_first,
    listed,
    of_share,
    several,
    total,
    value_of_share,
)

_SKETCH = "its sketch depends on the order in which rows are read"
_ZEROS, _ONES = "unhex(repeat('00', 4096))", "unhex(repeat('FF', 4096))"


def _of_doubles(name: str, *aliases: str) -> Aggregate:
    return Aggregate(name, DOUBLE, aliases, bits=Bits.OTHER)


def _refused(name: str, why: str, *aliases: str) -> Aggregate:
    return Aggregate(name, aliases=aliases, refused=why, bits=Bits.OTHER)


AGGREGATES: tuple[Function, ...] = (
    # Counts and sums.
    Aggregate("count", BIGINT, nothing="0"),
    Aggregate("sum", total, bits=Bits.OF_EXACT),
    Aggregate("avg", average, ("mean",), bits=Bits.OF_EXACT),
    Aggregate("try_sum", total, bits=Bits.OF_EXACT, duckdb="SUM"),
    Aggregate("try_avg", average, bits=Bits.OF_EXACT, duckdb="AVG"),
    Aggregate("count_if", BIGINT, nothing="0"),
    Aggregate("regr_count", BIGINT, nothing="0"),
    Aggregate("approx_count_distinct", BIGINT, nothing="0"),
    # One of the values.
    Aggregate("min", first, of_itself=True),
    Aggregate("max", first, of_itself=True),
    Aggregate("any_value", first, order=Order.ANY_ROW, takes_nulls=True),
    Aggregate("first", first, ("first_value",), order=Order.FIRST, takes_nulls=True),
    Aggregate("last", first, ("last_value",), order=Order.LAST, takes_nulls=True),
    Aggregate("max_by", several, order=Order.TIES),
    Aggregate("min_by", several, order=Order.TIES),
    Aggregate("mode", first, order=Order.TIES, within_group=True, needs_argument=False),
    # Truth values and bits.
    Aggregate("bool_and", BOOLEAN, ("every",), of_itself=True, duckdb="BOOL_AND"),
    Aggregate("bool_or", BOOLEAN, ("any", "some"), of_itself=True, duckdb="BOOL_OR"),
    Aggregate("bit_and", first, of_itself=True),
    Aggregate("bit_or", first, of_itself=True),
    Aggregate("bit_xor", first, of_itself=True, is_idempotent=False),
    Aggregate("bitmap_construct_agg", BINARY, nothing=_ZEROS),
    Aggregate("bitmap_or_agg", BINARY, nothing=_ZEROS),
    Aggregate("bitmap_and_agg", BINARY, nothing=_ONES),
    # Lists.
    Aggregate("collect_list", list_of_first, ("array_agg",), nothing="ARRAY()", order=Order.LIST, bits=Bits.OTHER),
    Aggregate("collect_set", list_of_first, nothing="ARRAY()", order=Order.LIST, bits=Bits.OTHER),
    Aggregate("listagg", listed, ("string_agg",), order=Order.TEXT, within_group=True),
    # Moments and other statistics in doubles.
    _of_doubles("stddev_samp", "std", "stddev"),
    _of_doubles("stddev_pop"),
    _of_doubles("var_samp", "variance"),
    _of_doubles("var_pop"),
    _of_doubles("covar_samp"),
    _of_doubles("covar_pop"),
    _of_doubles("corr"),
    _of_doubles("skewness"),
    _of_doubles("kurtosis"),
    _of_doubles("regr_avgx"),
    _of_doubles("regr_avgy"),
    _of_doubles("regr_intercept"),
    _of_doubles("regr_r2"),
    _of_doubles("regr_slope"),
    _of_doubles("regr_sxx"),
    _of_doubles("regr_sxy"),
    _of_doubles("regr_syy"),
    Aggregate("median", of_share),
    Aggregate("percentile", of_share),
    Aggregate("percentile_cont", of_share, within_group=True),
    Aggregate("percentile_disc", of_share, within_group=True),
    Aggregate("approx_percentile", value_of_share, ("percentile_approx",), bits=Bits.OTHER),
    # Of GROUPING SETS: not over rows, but over the sets of keys.
    Aggregate("grouping"),
    Aggregate("grouping_id", BIGINT, needs_argument=False),
    # A table of counters that are added up: the same bytes in any order.
    Aggregate(
        "count_min_sketch", BINARY, nothing="", parameters=("column", "epsilon", "confidence", "seed")
    ),
    # Refused.
    _refused("histogram_numeric", "its bins depend on the order in which rows are read"),
    _refused("approx_top_k", _SKETCH),
    _refused("approx_top_k_accumulate", _SKETCH),
    _refused("approx_top_k_combine", _SKETCH),
    _refused("hll_sketch_agg", _SKETCH),
    _refused("hll_union_agg", _SKETCH),
    *(_refused(f"theta_{name}_agg", _SKETCH) for name in ("sketch", "union", "intersection")),
    *(
        _refused(f"tuple_{name}_agg_{of}", _SKETCH)
        for name in ("sketch", "union", "intersection")
        for of in ("double", "integer")
    ),
    *(
        _refused(f"kll_{name}_agg_{of}", _SKETCH)
        for name in ("sketch", "merge")
        for of in ("bigint", "double", "float")
    ),
    _refused("schema_of_variant_agg", "Spark does not say how it merges types, which may depend on the order of rows"),
    *(_refused(f"vector_{name}", "it adds floats in the order in which rows are read") for name in ("avg", "sum")),
    _refused("measure", "it belongs to metric views, which are no inputs"),
)  # fmt: skip
