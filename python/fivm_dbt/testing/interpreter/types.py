"""Types of Spark SQL have a common type for any two of them (ANSI mode is off)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from fivm_dbt.testing.interpreter.errors import NotUnderstood


@dataclass(frozen=True)
class Type:
    """A type: its name, and what it is made of.

    ``decimal`` has precision and scale, ``array`` its element, ``map`` key and value, ``struct`` pairs of name and
    type. ``daytime`` and ``yearmonth`` are the two kinds of interval.
    """

    name: str
    args: tuple[Any, ...] = ()

    def __str__(self) -> str:
        if self.name == "struct":
            return f"struct<{','.join(f'{n}:{t}' for n, t in self.args)}>"
        if self.name in ("array", "map"):
            return f"{self.name}<{','.join(map(str, self.args))}>"
        return f"decimal({self.args[0]},{self.args[1]})" if self.name == "decimal" else self.name

    @property
    def is_integral(self) -> bool:
        return self.name in BITS

    @property
    def is_decimal(self) -> bool:
        return self.name == "decimal"

    @property
    def is_floating(self) -> bool:
        return self.name in ("float", "double")

    @property
    def is_numeric(self) -> bool:
        return self.is_integral or self.is_decimal or self.is_floating

    @property
    def is_time(self) -> bool:
        return self.name in ("date", "timestamp", "timestamp_ntz")


NULL, BOOLEAN, STRING, BINARY, DATE = (Type(n) for n in ("null", "boolean", "string", "binary", "date"))
TIMESTAMP, NTZ, DOUBLE, FLOAT = (Type(n) for n in ("timestamp", "timestamp_ntz", "double", "float"))
TINYINT, SMALLINT, INT, BIGINT = (Type(n) for n in ("tinyint", "smallint", "int", "bigint"))
DAYTIME, YEARMONTH = Type("daytime"), Type("yearmonth")

BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
_NUMBERS = ("tinyint", "smallint", "int", "bigint", "decimal", "float", "double")
_SYNONYMS = {"integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint", "real": "float"}
_SYNONYMS |= {"dec": "decimal", "numeric": "decimal", "bool": "boolean", "text": "string", "void": "null"}
_SYNONYMS |= {"timestamp_ltz": "timestamp"}
_ATOMIC = {t.name for t in (NULL, BOOLEAN, STRING, BINARY, DATE, TIMESTAMP, NTZ)} | set(_NUMBERS)


def decimal(precision: int, scale: int) -> Type:
    return Type("decimal", (min(precision, 38), min(scale, 38)))


def array(element: Type) -> Type:
    return Type("array", (element,))


def struct(*fields: tuple[str, Type]) -> Type:
    return Type("struct", fields)


def adjusted(precision: int, scale: int) -> Type:
    """The type of a result of arithmetic: beyond 38 digits the scale gives way, down to six."""
    if precision <= 38:
        return Type("decimal", (precision, scale))
    return Type("decimal", (38, max(38 - (precision - scale), min(scale, 6))))


def as_decimal(type_: Type) -> Type:
    """The decimal that holds every value of an integral type."""
    return type_ if type_.is_decimal else decimal(_DIGITS[type_.name], 0)


def parse_type(text: str) -> Type:
    """The type that DESCRIBE prints as ``text``.

    >>> str(parse_type("struct<a:int,b:array<decimal(10,2)>>"))
    'struct<a:int,b:array<decimal(10,2)>>'
    """
    text = re.sub(r"\s*([(),<>:])\s*", r"\1", text.strip())
    inner = re.fullmatch(r"(?is)(array|map|struct)<(.*)>", text)
    if inner:
        kind, parts = inner.group(1).lower(), _split(inner.group(2))
        if kind != "struct":
            return Type(kind, tuple(parse_type(p) for p in parts))
        fields = (p.partition(":") for p in parts)
        return Type("struct", tuple((name.strip("` "), parse_type(t)) for name, _, t in fields))
    text = text.lower()
    head = re.match(r"\w+", text)
    name = _SYNONYMS.get(head.group(), head.group()) if head else text
    if name == "decimal":
        digits = re.findall(r"\d+", text)
        return decimal(int(digits[0]), int(digits[1]) if len(digits) > 1 else 0) if digits else decimal(10, 0)
    if name == "varchar":
        return STRING
    if name not in _ATOMIC or " " in text:
        raise NotUnderstood(f"type {text}")
    return Type(name)


def _split(text: str) -> list[str]:
    depth, parts = 0, [""]
    for character in text:
        depth += {"<": 1, "(": 1, ">": -1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def type_of(node: exp.Expr) -> Type:
    """The type that a cast names."""
    text = node.sql(dialect="spark").lower()
    interval = re.match(r"interval (day|hour|minute|second|year|month)", text)
    if interval:
        return YEARMONTH if interval.group(1) in ("year", "month") else DAYTIME
    return parse_type(text)


def _common_decimal(left: Type, right: Type) -> Type:
    (p1, s1), (p2, s2) = as_decimal(left).args, as_decimal(right).args
    scale = max(s1, s2)
    # Too many digits: those after the point give way.
    digits = max(p1 - s1, p2 - s2)
    return decimal(digits + scale, scale) if digits + scale <= 38 else decimal(38, max(0, 38 - digits))


def _numbers(left: Type, right: Type) -> Type:
    if left.is_floating or right.is_floating:
        both = {left.name, right.name}
        return FLOAT if both <= {"float", "tinyint", "smallint", "int", "bigint"} else DOUBLE
    if left.is_decimal or right.is_decimal:
        return _common_decimal(left, right)
    return max(left, right, key=lambda t: _NUMBERS.index(t.name))


def wider(left: Type, right: Type) -> Type | None:
    """The type of a column that has values of both, None where there is none: of UNION, CASE, COALESCE, IN, arrays."""
    if left == right or right == NULL:
        return left
    if left == NULL:
        return right
    if left.is_numeric and right.is_numeric:
        return _numbers(left, right)
    if left.is_time and right.is_time:
        return max(left, right, key=lambda t: ("date", "timestamp_ntz", "timestamp").index(t.name))
    names = {left.name, right.name}
    if "string" in names:
        other = right if left == STRING else left
        is_promoted = other.is_numeric or other.is_time
        return STRING if is_promoted else None
    if left.name == right.name == "array":
        element = wider(left.args[0], right.args[0])
        return None if element is None else array(element)
    if left.name == right.name == "map":
        pairs = [wider(a, b) for a, b in zip(left.args, right.args, strict=True)]
        return None if None in pairs else Type("map", tuple(pairs))
    if left.name == right.name == "struct" and len(left.args) == len(right.args):
        fields = [(a[0], wider(a[1], b[1])) for a, b in zip(left.args, right.args, strict=True)]
        same = all(a[0].lower() == b[0].lower() for a, b in zip(left.args, right.args, strict=True))
        return None if not same or any(t is None for _, t in fields) else Type("struct", tuple(fields))
    return None


def compared(left: Type, right: Type) -> Type | None:
    """The type as which two operands of a comparison are compared: a string becomes what the other one is."""
    if "string" not in (left.name, right.name) or left == right:
        return wider(left, right)
    other = right if left == STRING else left
    if other == NULL:
        return STRING
    if other.is_decimal:
        return DOUBLE
    return other if other.is_numeric or other.is_time or other in (BOOLEAN,) else None
