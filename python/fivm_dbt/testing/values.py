"""Values of a scenario file become Python objects, by Spark type, and back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date, datetime, timezone
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation, localcontext

from fivm_dbt.catalog import SparkType
from fivm_dbt.refresh.engine import Row

_INTEGRAL_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}


def to_value(raw: object, type_: SparkType) -> object:
    """The Python object for a value of a scenario file. Raises ValueError where it does not fit the type.

    >>> to_value("2.5", SparkType.of("decimal(10,2)")), to_value("2024-02-01", SparkType.of("date"))
    (Decimal('2.50'), datetime.date(2024, 2, 1))
    >>> to_value([1, ["2.5"]], SparkType.of("struct<n:int,sums:array<decimal(4,2)>>"))
    {'n': 1, 'sums': [Decimal('2.50')]}
    """
    if raw is None:
        return None
    if type_.is_integral:
        return _integer(raw, type_)
    if type_.is_decimal:
        return _decimal(raw, type_)
    if type_.is_floating:
        return _float(raw, type_)
    if type_.text == "boolean":
        return _expect(raw, bool, type_)
    if type_.is_string:
        return _expect(raw, str, type_)
    if type_.text == "date":
        return _date(raw, type_)
    if type_.text in ("timestamp", "timestamp_ntz"):
        return _timestamp(raw, type_)
    if type_.text.startswith("array<"):
        element = SparkType(type_.text[len("array<") : -1])
        return [to_value(item, element) for item in _list(raw, type_)]
    if type_.struct_fields:
        (values,) = to_rows([_list(raw, type_)], [t for _, t in type_.struct_fields])
        return dict(zip((name for name, _ in type_.struct_fields), values, strict=True))
    raise ValueError(f"type {type_} cannot be used in a scenario")


def from_value(value: object) -> object:
    """What a scenario file holds for a Python object."""
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, (date, datetime)):
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def to_rows(raw: Sequence[Sequence[object]], types: Sequence[SparkType]) -> tuple[Row, ...]:
    """Rows with every value converted; ValueError for the first that does not fit."""
    rows = []
    for row in raw:
        if len(row) != len(types):
            raise ValueError(f"row {list(row)} has {len(row)} values, expected {len(types)}")
        rows.append(tuple(to_value(value, type_) for value, type_ in zip(row, types, strict=True)))
    return tuple(rows)


def quantized(value: Decimal, scale: int) -> Decimal:
    """``value`` rounded half up to ``scale`` digits, as Spark does."""
    with localcontext(prec=80):  # the default of 28 digits is less than Spark's 38
        return value.quantize(Decimal(1).scaleb(-scale), rounding=ROUND_HALF_UP)


def _expect(raw: object, wanted: type, type_: SparkType) -> object:
    if not isinstance(raw, wanted):
        raise ValueError(f"{raw!r} is not a {type_}")
    return raw


def _list(raw: object, type_: SparkType) -> list[object]:
    if not isinstance(raw, list):
        raise ValueError(f"{raw!r} is not a {type_}")
    return raw


def _integer(raw: object, type_: SparkType) -> int:
    if isinstance(raw, bool) or not isinstance(raw, int):
        raise ValueError(f"{raw!r} is not a {type_}")
    limit = 2 ** (_INTEGRAL_BITS[type_.text] - 1)
    if not -limit <= raw < limit:
        raise ValueError(f"{raw} does not fit {type_}")
    return raw


def _decimal(raw: object, type_: SparkType) -> Decimal:
    if isinstance(raw, bool) or not isinstance(raw, (int, float, str, Decimal)):
        raise ValueError(f"{raw!r} is not a {type_}")
    try:
        exact = Decimal(str(raw))
        value = quantized(exact, type_.scale)
    except InvalidOperation:
        raise ValueError(f"{raw!r} is not a {type_}") from None
    if value != exact or len(value.as_tuple().digits) > max(type_.precision, type_.scale):
        raise ValueError(f"{raw} does not fit {type_}")
    return value


def _float(raw: object, type_: SparkType) -> float:
    if isinstance(raw, bool) or not isinstance(raw, (int, float, str)):
        raise ValueError(f"{raw!r} is not a {type_}")
    try:
        value = float(raw)
    except ValueError:
        raise ValueError(f"{raw!r} is not a {type_}") from None
    return math.nan if math.isnan(value) else value  # one object, so that a row with NaN can be found again


def _date(raw: object, type_: SparkType) -> date:
    if isinstance(raw, date) and not isinstance(raw, datetime):
        return raw
    try:
        return date.fromisoformat(str(raw))
    except ValueError:
        raise ValueError(f"{raw!r} is not a {type_} (ISO: 2024-05-31)") from None


def _timestamp(raw: object, type_: SparkType) -> datetime:
    """An instant, in UTC and without time zone, which is how both engines return it."""
    try:
        value = raw if isinstance(raw, datetime) else datetime.fromisoformat(str(raw).replace("Z", "+00:00"))
    except ValueError:
        raise ValueError(f"{raw!r} is not a {type_} (ISO: 2024-05-31T12:00:00)") from None
    return value.astimezone(timezone.utc).replace(tzinfo=None) if value.tzinfo else value
