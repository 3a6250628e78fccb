"""These rows describe functions that are not of one row, and functions with another value each time."""

from __future__ import annotations

from fivm_dbt.catalog.types import BIGINT, DOUBLE, INT, STRING
from fivm_dbt.functions.function import Function, Kind, Order, Other, Rule
from fivm_dbt.functions.type_rules import first

_METADATA = "it is no function of rows"


def _window(name: str, type_: Rule, order: Order) -> Function:
    return Function(
        name, type_, kind=Kind.WINDOW, order=order, takes_nulls=name in ("lag", "lead", "nth_value")
    )


def _generator(name: str, *parameters: str, outer: bool = True, refused: str = "") -> tuple[Function, ...]:
    names = (name, f"{name}_outer") if outer else (name,)
    return tuple(Function(n, kind=Kind.GENERATOR, parameters=parameters, refused=refused) for n in names)


WINDOW_FUNCTIONS: tuple[Function, ...] = (
    _window("row_number", INT, Order.ROW),
    _window("ntile", INT, Order.ROW),
    _window("lag", first, Order.ROW),
    _window("lead", first, Order.ROW),
    _window("nth_value", first, Order.NTH),
    _window("rank", INT, Order.PEERS),
    _window("dense_rank", INT, Order.PEERS),
    _window("percent_rank", DOUBLE, Order.PEERS),
    _window("cume_dist", DOUBLE, Order.PEERS),
)

GENERATORS: tuple[Function, ...] = (
    *_generator("explode", "collection"),
    *_generator("posexplode", "collection"),
    *_generator("inline", "input"),
    *_generator("stack", outer=False),
    *_generator(
        "json_tuple", outer=False, refused="it is not maintained yet: get_json_object gives single values"
    ),
    *_generator("variant_explode", "input", refused="Spark does not compare variants"),
)

TABLES: tuple[Function, ...] = (
    Function("range", kind=Kind.TABLE),
    *(
        Function(name, kind=Kind.TABLE, other=Other.SESSION, refused=_METADATA)
        for name in (
            "collations",
            "python_worker_logs",
            "sql_keywords",
            "table_changes",
            "table_changes_by_path",
        )
    ),
)

OTHER_EACH_TIME: tuple[Function, ...] = (
    Function("rand", DOUBLE, ("random",), other=Other.RANDOM),
    Function("randn", DOUBLE, other=Other.RANDOM),
    Function("randstr", STRING, other=Other.RANDOM),
    Function("uniform", other=Other.RANDOM),
    Function("uuid", STRING, other=Other.RANDOM),
    Function("shuffle", first, other=Other.RANDOM),
    Function("aes_encrypt", other=Other.RANDOM),
    Function("monotonically_increasing_id", BIGINT, other=Other.SESSION),
    Function("spark_partition_id", INT, other=Other.SESSION),
    Function("input_file_name", STRING, other=Other.SESSION),
    Function("input_file_block_start", BIGINT, other=Other.SESSION),
    Function("input_file_block_length", BIGINT, other=Other.SESSION),
    Function("current_user", STRING, ("session_user", "user"), other=Other.SESSION),
    Function("current_catalog", STRING, other=Other.SESSION),
    Function("current_database", STRING, ("current_schema",), other=Other.SESSION),
    Function("current_path", STRING, other=Other.SESSION),
    Function("version", STRING, other=Other.SESSION),
    Function("reflect", STRING, ("java_method",), other=Other.SESSION),
    Function("try_reflect", STRING, other=Other.SESSION),
)
