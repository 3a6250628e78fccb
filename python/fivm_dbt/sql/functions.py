"""Which functions are not plain row-level functions: non-deterministic, aggregating, generating, or of a window."""

from __future__ import annotations

from sqlglot import exp

from fivm_dbt.functions.lookup import function_name as function_name
from fivm_dbt.sql.parse import span_of

NON_DETERMINISTIC = frozenset(
    "aes_encrypt rand randn random randstr uniform uuid shuffle monotonically_increasing_id spark_partition_id "
    "input_file_name input_file_block_start input_file_block_length current_timestamp current_date current_time now "
    "localtimestamp curdate getdate current_user user session_user current_catalog current_database current_schema "
    "version reflect java_method try_reflect".split()
)

CLOCKS = {
    "current_date": "date",
    "curdate": "date",
    "current_timestamp": "timestamp",
    "now": "timestamp",
    "getdate": "timestamp",
    "localtimestamp": "timestamp_ntz",
}
"""The functions that read the clock, and which of its columns each is."""

_SPECIAL_TIMES = frozenset("now today tomorrow yesterday".split())

AGGREGATES = frozenset(
    "any any_value approx_count_distinct approx_percentile approx_top_k array_agg avg bit_and bit_or bit_xor "
    "bitmap_construct_agg bitmap_or_agg bool_and bool_or collect_list collect_set collect_union corr count count_if "
    "count_min_sketch covar_pop covar_samp every first first_value grouping grouping_id histogram_numeric "
    "hll_sketch_agg hll_union_agg kurtosis last last_value listagg max max_by mean median min min_by mode "
    "percentile percentile_approx percentile_cont percentile_disc regr_avgx regr_avgy regr_count regr_intercept "
    "regr_r2 regr_slope regr_sxx regr_sxy regr_syy schema_of_variant_agg skewness some std stddev stddev_pop "
    "stddev_samp string_agg sum theta_sketch_agg theta_union_agg try_avg try_sum var_pop var_samp variance".split()
)

GENERATORS = frozenset(
    "explode explode_outer posexplode posexplode_outer inline inline_outer stack json_tuple variant_explode "
    "variant_explode_outer".split()
)

TIME_WINDOWS = frozenset("window session_window window_time".split())

WINDOW_ONLY = frozenset("row_number rank dense_rank percent_rank cume_dist ntile lag lead nth_value".split())


def is_special_time(text: str) -> bool:
    """Whether Spark reads a string as a time by the clock: ``now``, ``today`` and so on, maybe with a time zone."""
    words = text.strip().lower().split(" ")
    return words[0] in _SPECIAL_TIMES


def is_aggregate(node: exp.Expr) -> bool:
    """Whether ``node`` is a call of an aggregate function."""
    return isinstance(node, exp.AggFunc) or function_name(node) in AGGREGATES


def clock_column(node: exp.Expr) -> str | None:
    """The column of the clock that a call means, None for everything else: also where its place is not known."""
    name = function_name(node)
    has_arguments = bool(node.expressions) or (not isinstance(node, exp.Anonymous) and bool(node.this))
    if name not in CLOCKS or has_arguments or span_of(node) is None:
        return None
    return CLOCKS[name]


def is_non_deterministic(node: exp.Expr) -> bool:
    """Whether two evaluations of ``node`` may differ: random values, clocks, session and file names."""
    name = function_name(node)
    if isinstance(node, exp.TsOrDsToDate) or (
        isinstance(node, exp.Cast) and node.to.is_type(*exp.DataType.TEMPORAL_TYPES)
    ):
        text = node.this
        return isinstance(text, exp.Literal) and text.is_string and is_special_time(text.this)
    clocks = (exp.CurrentDate, exp.CurrentTime, exp.CurrentTimestamp, exp.CurrentDatetime, exp.CurrentUser)
    if isinstance(node, (exp.Rand, exp.Randn, exp.Uuid, *clocks)):
        return True
    if name in ("unix_timestamp", "time_to_unix", "to_unix_timestamp", "time_str_to_unix"):
        return not any(isinstance(child, exp.Expr) for child in node.iter_expressions())
    if (
        isinstance(node, exp.Column)
        and not node.table
        and node.name.lower() in ("current_date", "current_timestamp")
    ):
        return True
    return name in NON_DETERMINISTIC
