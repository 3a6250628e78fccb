"""CAST with ANSI off gives NULL for what cannot be read; what does not fit wraps or is cut off."""

from __future__ import annotations

import math
import re
from datetime import date, datetime, timedelta
from decimal import Decimal, InvalidOperation

from fivm_dbt.testing.interpreter.errors import NotUnderstood
from fivm_dbt.testing.interpreter.types import BIGINT, INT, Type
from fivm_dbt.testing.interpreter.values import MapValue, Value, as_timestamp, fits, rounded, single, wrapped

_SPACE = "".join(map(chr, range(33))) + "\x7f"
_EPOCH = datetime(1970, 1, 1)


def cast(value: Value, source: Type, target: Type) -> Value:
    """``value`` of type ``source`` as a ``target``."""
    if value is None or source == target:
        return value
    if target.is_integral:
        return _to_integer(value, source, target)
    if target.is_decimal:
        return _to_decimal(value, source, target)
    if target.is_floating:
        return _to_float(value, source, target)
    if target.name == "string":
        return to_string(value, source)
    if target.name == "boolean":
        return _to_boolean(value, source)
    if target.is_time:
        return _to_time(value, source, target)
    if target.name == "binary" and source.name == "string":
        return value.encode()
    if target.name == source.name == "array":
        return tuple(cast(v, source.args[0], target.args[0]) for v in value)
    if target.name == source.name == "struct":
        fields = zip(value, source.args, target.args, strict=True)
        return tuple(cast(v, a[1], b[1]) for v, a, b in fields)
    if target.name == source.name == "map":
        (k1, v1), (k2, v2) = source.args, target.args
        return MapValue((cast(k, k1, k2), cast(v, v1, v2)) for k, v in value)
    raise NotUnderstood(f"cast of {source} as {target}")


def _to_integer(value: Value, source: Type, target: Type) -> int | None:
    if source.name == "boolean":
        return int(value)
    if source.is_integral:
        return wrapped(value, target)
    if source.is_decimal:
        return wrapped(int(value), target)
    if source.is_floating:
        if math.isnan(value):
            return 0
        wide = BIGINT if target == BIGINT else INT
        limit = 1 << (63 if wide == BIGINT else 31)
        whole = int(max(-limit, min(limit - 1, value))) if math.isfinite(value) else 0
        if math.isinf(value) or abs(value) >= limit:
            whole = limit - 1 if value > 0 else -limit
        return wrapped(whole, target)
    if source.name == "string":
        found = re.fullmatch(r"([+-]?)(\d+)(\.\d*)?|([+-]?)\.\d+", value.strip(_SPACE))
        if not found:
            return None
        whole = int((found.group(1) or "") + (found.group(2) or "0"))
        return whole if fits(whole, target) else None
    if source.name in ("timestamp",):
        return wrapped((value - _EPOCH) // timedelta(seconds=1), target)
    raise NotUnderstood(f"cast of {source} as {target}")


def _to_decimal(value: Value, source: Type, target: Type) -> Decimal | None:
    if source.is_integral or source.is_decimal or source.name == "boolean":
        return rounded(Decimal(value), target)
    if source.is_floating:
        return rounded(Decimal(repr(value)), target) if math.isfinite(value) else None
    if source.name == "string":
        try:
            exact = Decimal(value.strip(_SPACE))
        except InvalidOperation:
            return None
        return rounded(exact, target) if exact.is_finite() and "_" not in value else None
    raise NotUnderstood(f"cast of {source} as {target}")


def _to_float(value: Value, source: Type, target: Type) -> float | None:
    if source.name == "string":
        text = value.strip(_SPACE).lower()
        words = {"nan": "nan", "inf": "inf", "+inf": "inf", "-inf": "-inf"}
        words |= {"infinity": "inf", "+infinity": "inf", "-infinity": "-inf"}
        if text not in words and not re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?[df]?", text):
            return None
        number = float(words.get(text, text.rstrip("df")))
    elif source.is_numeric or source.name == "boolean":
        number = float(value)
    elif source.name == "timestamp":
        number = (value - _EPOCH) / timedelta(seconds=1)
    else:
        raise NotUnderstood(f"cast of {source} as {target}")
    return single(number) if target.name == "float" else number


def _to_boolean(value: Value, source: Type) -> bool | None:
    if source.is_numeric:
        return bool(value != 0)
    if source.name == "string":
        text = value.strip(_SPACE).lower()
        if text in ("t", "true", "y", "yes", "1"):
            return True
        return False if text in ("f", "false", "n", "no", "0") else None
    raise NotUnderstood(f"cast of {source} as boolean")


def _to_time(value: Value, source: Type, target: Type) -> Value:
    if source.name == "string":
        return (
            read_date(value) if target.name == "date" else read_timestamp(value, target.name == "timestamp")
        )
    if source.is_time:
        return as_timestamp(value).date() if target.name == "date" else as_timestamp(value)
    if source.is_numeric and target.name == "timestamp":
        if source.is_floating and not math.isfinite(value):
            return None
        return _EPOCH + timedelta(
            microseconds=int(Decimal(repr(value) if source.is_floating else value) * 10**6)
        )
    raise NotUnderstood(f"cast of {source} as {target}")


def read_date(text: str) -> date | None:
    """A date as a cast reads it."""
    found = re.fullmatch(r"(\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T].*)?)?)?", text.strip(_SPACE), re.DOTALL)
    if not found:
        return None
    try:
        return date(int(found.group(1)), int(found.group(2) or 1), int(found.group(3) or 1))
    except ValueError:
        return None


_TIME = re.compile(
    r"(\d{4,6})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T](?:(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?)?)?)?)?)?"
    r"\s*(Z|UTC|GMT|[+-]\d{1,2}(?::?\d{2})?)?"
)


def read_timestamp(text: str, has_zone: bool) -> datetime | None:
    """A timestamp as a cast reads it, in a session in UTC."""
    stripped = text.strip(_SPACE)
    found = _TIME.fullmatch(stripped)
    if not found:
        if re.search(r"\d[ T]?[A-Za-z]", stripped):
            raise NotUnderstood("a timestamp with a named zone")
        return None
    year, month, day, hour, minute, second = (
        int(g or d) for g, d in zip(found.groups()[:6], (1, 1, 1, 0, 0, 0), strict=True)
    )
    try:
        moment = datetime(
            year, month, day, hour, minute, second, int(((found.group(7) or "") + "000000")[:6])
        )
    except ValueError:
        return None
    zone = found.group(8)
    if zone and zone[0] in "+-" and has_zone:
        digits = zone[1:].replace(":", "").rjust(2, "0")
        offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:] or 0))
        moment -= offset if zone[0] == "+" else -offset
    return moment.replace(tzinfo=None)


def to_string(value: Value, source: Type) -> str:
    """The text that a cast to a string gives."""
    if source.name == "boolean":
        return "true" if value else "false"
    if source.is_floating:
        return java_double(value, source.name == "float")
    if source.is_decimal:
        return str(value) if value or value.as_tuple().exponent > -7 else f"0E{value.as_tuple().exponent}"
    if source.name in ("timestamp", "timestamp_ntz"):
        text = value.strftime("%H:%M:%S")
        fraction = f".{value.microsecond:06d}".rstrip("0") if value.microsecond else ""
        return f"{value.year:04d}-{value.month:02d}-{value.day:02d} {text}{fraction}"
    if source.name == "date":
        return f"{value.year:04d}-{value.month:02d}-{value.day:02d}"
    if source.name == "binary":
        return str(value.decode(errors="replace"))
    if source.name == "array":
        return "[" + ", ".join("null" if v is None else to_string(v, source.args[0]) for v in value) + "]"
    if source.name == "struct":
        fields = zip(value, source.args, strict=True)
        return "{" + ", ".join("null" if v is None else to_string(v, t) for v, (_, t) in fields) + "}"
    if source.is_integral or source.name in ("string", "null"):
        return str(value)
    raise NotUnderstood(f"cast of {source} as string")


def java_double(value: float, is_single: bool = False) -> str:
    """A double as Java writes it.

    >>> java_double(1e10), java_double(0.1), java_double(100.0), java_double(1e-5)
    ('1.0E10', '0.1', '100.0', '1.0E-5')
    """
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0:
        return "-0.0" if math.copysign(1, value) < 0 else "0.0"
    text = repr(value)
    if is_single:
        text = next(t for d in range(1, 10) if single(float(t := f"{value:.{d}g}")) == value)
    sign, digits, exponent = Decimal(text).as_tuple()
    assert isinstance(exponent, int)
    figures = "".join(map(str, digits)).rstrip("0") or "0"
    place = len(digits) + exponent
    minus = "-" if sign else ""
    if 1e-3 <= abs(value) < 1e7:
        if place <= 0:
            return f"{minus}0.{'0' * -place}{figures}"
        whole, rest = figures[:place].ljust(place, "0"), figures[place:]
        return f"{minus}{whole}.{rest or '0'}"
    return f"{minus}{figures[0]}.{figures[1:] or '0'}E{place - 1}"
