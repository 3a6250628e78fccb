"""These rows describe functions of sketches in a column; the aggregates that make sketches are refused."""

from __future__ import annotations

from fivm_dbt.catalog.types import BIGINT, BINARY, DOUBLE, STRING
from fivm_dbt.functions.function import Function

SKETCHES: tuple[Function, ...] = (
    Function("hll_sketch_estimate", BIGINT),
    Function("hll_union", BINARY),
    Function("theta_sketch_estimate", BIGINT),
    *(Function(f"theta_{name}", BINARY) for name in ("difference", "intersection", "union")),
    *(
        Function(f"tuple_{name}_{of}", BINARY)
        for name in (
            "difference",
            "intersection",
            "union",
            "difference_theta",
            "intersection_theta",
            "union_theta",
        )
        for of in ("double", "integer")
    ),
    *(Function(f"tuple_sketch_estimate_{of}", DOUBLE) for of in ("double", "integer")),
    *(Function(f"tuple_sketch_theta_{of}", DOUBLE) for of in ("double", "integer")),
    *(Function(f"tuple_sketch_summary_{of}") for of in ("double", "integer")),
    *(Function(f"kll_sketch_get_n_{of}", BIGINT) for of in ("bigint", "double", "float")),
    *(Function(f"kll_sketch_get_quantile_{of}") for of in ("bigint", "double", "float")),
    *(Function(f"kll_sketch_get_rank_{of}") for of in ("bigint", "double", "float")),
    *(Function(f"kll_sketch_merge_{of}", BINARY) for of in ("bigint", "double", "float")),
    *(Function(f"kll_sketch_to_string_{of}", STRING) for of in ("bigint", "double", "float")),
    Function("approx_top_k_estimate"),
)
