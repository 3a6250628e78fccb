"""Spark's data types have the structure that maintenance needs: integral, decimal, floating, groupable."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

_ALIASES = {
    "integer": "int",
    "long": "bigint",
    "short": "smallint",
    "byte": "tinyint",
    "real": "float",
    "dec": "decimal",
    "numeric": "decimal",
    "bool": "boolean",
    "text": "string",
}
_INTEGRAL_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
_UNGROUPABLE = ("map<", "variant", "interval", "void", "geometry", "geography")


@dataclass(frozen=True)
class SparkType:
    """A Spark SQL type by its text in lower case, as ``DESCRIBE`` prints it.

    >>> SparkType.of("DECIMAL(12, 2)").precision, SparkType.of("integer").text
    (12, 'int')
    """

    text: str

    @staticmethod
    def of(text: str) -> SparkType:
        """The type written as ``text`` in a column definition; synonyms become the name Spark prints."""
        compact = re.sub(r"\s*([(),<>:])\s*", r"\1", text.strip().lower())
        compact = re.sub(r"\s+", " ", compact)
        head = re.match(r"[a-z_]+", compact)
        if head and head.group() in _ALIASES:
            compact = _ALIASES[head.group()] + compact[head.end() :]
        return SparkType("decimal(10,0)" if compact == "decimal" else compact)

    @staticmethod
    def decimal(precision: int, scale: int) -> SparkType:
        """``decimal(precision, scale)``, both at most 38."""
        return SparkType(f"decimal({min(precision, 38)},{min(scale, 38)})")

    @cached_property
    def _decimal(self) -> tuple[int, int] | None:
        match = re.fullmatch(r"decimal\((\d+)(?:,(\d+))?\)", self.text)
        return (int(match.group(1)), int(match.group(2) or 0)) if match else None

    @property
    def is_decimal(self) -> bool:
        return self._decimal is not None

    @property
    def is_integral(self) -> bool:
        return self.text in _INTEGRAL_DIGITS

    @property
    def is_floating(self) -> bool:
        return self.text in ("float", "double")

    @property
    def is_exact(self) -> bool:
        """Whether values that are equal in an order are the same: 0.0 and -0.0 are not, alone or in a struct.

        >>> SparkType.of("struct<a:int,b:double>").is_exact, SparkType.of("array<int>").is_exact
        (False, True)
        """
        return self.is_groupable and re.search(r"\b(float|double)\b|collate", self.text) is None

    @property
    def is_value(self) -> bool:
        """Whether values are single ones that are the same where they are equal.

        >>> SparkType.of("string").is_value, SparkType.of("double").is_value, SparkType.of("array<int>").is_value
        (True, False, False)
        """
        return self.is_exact and not self.is_array and not self.struct_fields

    @property
    def is_numeric(self) -> bool:
        return self.is_decimal or self.is_integral or self.is_floating

    @property
    def is_array(self) -> bool:
        return self.text.startswith("array<")

    @property
    def element(self) -> SparkType:
        """The type of the elements of an array.

        >>> SparkType.of("array<decimal(38,2)>").element.text
        'decimal(38,2)'
        """
        return SparkType(self.text[len("array<") : -1])

    @property
    def is_string(self) -> bool:
        return self.text == "string" or self.text.startswith(("varchar(", "char("))

    @property
    def is_temporal(self) -> bool:
        return self.text in ("date", "timestamp", "timestamp_ntz")

    @property
    def is_clock(self) -> bool:
        """Whether values are what a clock shows, in no zone that is known."""
        return self.text in ("date", "timestamp_ntz")

    @property
    def precision(self) -> int:
        """Digits of a decimal, or of the decimal that holds every value of an integral type."""
        return self._decimal[0] if self._decimal else _INTEGRAL_DIGITS[self.text]

    @property
    def scale(self) -> int:
        return self._decimal[1] if self._decimal else 0

    def field(self, name: str) -> SparkType | None:
        """The type of a struct's field, None where there is none of that name.

        >>> str(SparkType.of("struct<a:int,b:struct<c:decimal(5,2)>>").field("B"))
        'struct<c:decimal(5,2)>'
        """
        return next((t for called, t in self.struct_fields if called.lower() == name.lower()), None)

    @property
    def struct_fields(self) -> list[tuple[str, SparkType]]:
        """Names and types of a struct's fields, none for other types."""
        if not self.text.startswith("struct<"):
            return []
        named = (part.partition(":") for part in _split(self.text[len("struct<") : -1]))
        return [(called.strip().strip("`"), SparkType(type_.strip())) for called, _, type_ in named]

    def element_columns(self, *, inline: bool = False) -> list[tuple[str, SparkType]] | None:
        """The columns that explode makes of an array or a map, or inline of an array of structs; None of other types.

        >>> SparkType.of("map<string,array<int>>").element_columns()
        [('key', SparkType(text='string')), ('value', SparkType(text='array<int>'))]
        """
        if self.is_array:
            element = self.element
            return (element.struct_fields or None) if inline else [("col", element)]
        if self.text.startswith("map<") and not inline:
            key, value = _split(self.text[len("map<") : -1])
            return [("key", SparkType(key.strip())), ("value", SparkType(value.strip()))]
        return None

    @property
    def is_groupable(self) -> bool:
        """Whether Spark can group by and compare values of this type, bit for bit (no maps, variants, collations)."""
        return not any(word in self.text for word in _UNGROUPABLE) and " collate " not in self.text

    @property
    def why_ungroupable(self) -> str:
        """What is missing of a type that is not groupable."""
        if "map<" in self.text:
            return "Spark groups by maps, but does not compare them (<=>, EXCEPT), as a refresh compares keys"
        if " collate " in self.text:
            return (
                "strings that are equal by their collation may differ, and it is open which of them is shown"
            )
        if "interval" in self.text or "void" in self.text:
            return "Delta has no columns of this type"
        return "Spark neither groups by such values nor compares them"

    def __str__(self) -> str:
        return self.text


def product_digits(left: SparkType, right: SparkType) -> tuple[int, int]:
    """Precision and scale that a product needs to keep every digit; a type has at most 38.

    >>> product_digits(SparkType.of("decimal(12,2)"), SparkType.of("decimal(13,2)"))
    (26, 4)
    """
    return left.precision + right.precision + 1, left.scale + right.scale


def sum_digits(left: SparkType, right: SparkType) -> tuple[int, int]:
    """Precision and scale that a sum or a difference needs.

    >>> sum_digits(SparkType.of("decimal(12,2)"), SparkType.of("decimal(5,4)"))
    (15, 4)
    """
    scale = max(left.scale, right.scale)
    return max(left.precision - left.scale, right.precision - right.scale) + scale + 1, scale


def _split(text: str) -> list[str]:
    """The parts between commas that are in no brackets."""
    depth, start, parts = 0, 0, []
    for position, character in enumerate(text):
        depth += {"<": 1, "(": 1, ">": -1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append(text[start:position])
            start = position + 1
    return [*parts, text[start:]]


BOOLEAN, INT, BIGINT, DOUBLE = (SparkType(name) for name in ("boolean", "int", "bigint", "double"))
STRING, BINARY, DATE, TIMESTAMP = (SparkType(name) for name in ("string", "binary", "date", "timestamp"))
