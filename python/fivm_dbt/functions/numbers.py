"""These rows describe functions of numbers, and operators that have names."""

from __future__ import annotations

from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import BIGINT, BINARY, BOOLEAN, DOUBLE, INT, STRING
from fivm_dbt.functions.function import Function
from fivm_dbt.functions.type_rules import (
    absolute,
    arithmetic,
    bits,
    bits_as_first,
    common,
    first,
    formatted_number,
    remainder,
    rounded,
    whole,
)  # fmt: skip

_FLOAT, _SMALLINT = SparkType("float"), SparkType("smallint")
_OF_DOUBLES = (
    "acos acosh asin asinh atan atan2 atanh cbrt cos cosh cot csc degrees exp expm1 hypot ln log log10 log1p log2 "
    "radians rint sec sin sinh sqrt tan tanh e pi"
)

NUMBERS: tuple[Function, ...] = (
    *(Function(name, DOUBLE) for name in _OF_DOUBLES.split()),
    Function("power", DOUBLE, ("pow",)),
    Function("sign", DOUBLE, ("signum",)),
    Function("nanvl", common),
    # Of the argument's type.
    Function("abs", absolute),
    Function("negative", absolute),
    Function("positive", absolute),
    Function("round", rounded),
    Function("bround", rounded),
    Function("ceil", whole, ("ceiling",)),
    Function("floor", whole),
    Function("pmod", remainder),
    Function("mod", remainder, ("%",)),
    Function("try_mod", remainder),
    Function("try_add", arithmetic(exp.Add)),
    Function("try_subtract", arithmetic(exp.Sub)),
    Function("try_multiply", arithmetic(exp.Mul)),
    Function("try_divide", arithmetic(exp.Div)),
    Function("+", arithmetic(exp.Add)),
    Function("-", arithmetic(exp.Sub)),
    Function("*", arithmetic(exp.Mul)),
    Function("/", arithmetic(exp.Div)),
    Function("div", BIGINT),
    # Whole numbers and bits.
    Function("factorial", BIGINT),
    Function("width_bucket", BIGINT),
    Function("bin", STRING),
    Function("conv", STRING),
    Function("bit_count", INT),
    Function("bit_get", SparkType("tinyint"), ("getbit",)),
    Function("&", bits),
    Function("|", bits),
    Function("^", bits),
    Function("~", first),
    Function("shiftleft", bits_as_first, ("<<",)),
    Function("shiftright", bits_as_first, (">>",)),
    Function("shiftrightunsigned", bits_as_first, (">>>",)),
    Function("bitmap_bit_position", BIGINT),
    Function("bitmap_bucket_number", BIGINT),
    Function("bitmap_count", BIGINT),
    # From and to text.
    Function("to_number", formatted_number),
    Function("try_to_number", formatted_number),
    Function("to_char", STRING, ("to_varchar",)),
    Function("xpath_double", DOUBLE, ("xpath_number",)),
    Function("xpath_float", _FLOAT),
    Function("xpath_short", _SMALLINT),
    # Vectors: arrays of floats.
    Function("vector_cosine_similarity", _FLOAT),
    Function("vector_inner_product", _FLOAT),
    Function("vector_l2_distance", _FLOAT),
    Function("vector_norm", _FLOAT),
    Function("vector_normalize", first),
    # Comparisons, and logic.
    *(Function(name, BOOLEAN) for name in "= == <=> != <> < <= > >= ! not and or between in".split()),
    *(Function(name, BOOLEAN) for name in ("equal_null", "isnull", "isnotnull", "isnan")),
    # Casts that are written as calls.
    *(Function(name, SparkType(name)) for name in "tinyint smallint int bigint float double boolean".split()),
    Function("string", STRING),
    Function("binary", BINARY),
    *(Function(name, SparkType(name)) for name in ("date", "timestamp")),
    Function("decimal", SparkType("decimal(10,0)")),
    Function("time", refused="the type TIME is not maintained yet"),
    Function("cast"),
)  # fmt: skip
