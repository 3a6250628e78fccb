"""These rows describe the functions that fivm has and Spark has not: a refresh never sends their names to Spark."""

from __future__ import annotations

from fivm_dbt.functions.function import Aggregate, Bits, Function
from fivm_dbt.functions.type_rules import first

COVARIANCE, CATEGORICAL = "fivm_covariance", "fivm_categorical"
WEIGHT, PRESENT, DEGREE = "fivm_weight", "fivm_present", "fivm_degree"

LEARNING: tuple[Function, ...] = (
    Aggregate(COVARIANCE, bits=Bits.OF_EXACT, nothing=""),
    Function(CATEGORICAL, first),
    Function(WEIGHT, first),
    Function(PRESENT, first),
    Function(DEGREE, first),
)
