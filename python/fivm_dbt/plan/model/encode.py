"""Plans become plain JSON values: a node is an object with its class name, an expression is its Spark SQL."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from enum import Enum

from pydantic import BaseModel

from fivm_dbt.catalog import SparkType
from fivm_dbt.ir.scalar import Scalar


def encode(value: object) -> object:
    """``value`` as JSON-able data. Raises TypeError for what has no stable text."""
    if isinstance(value, Scalar):
        return value.sql
    if isinstance(value, SparkType):
        return value.text
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", exclude_defaults=True)
    if is_dataclass(value) and not isinstance(value, type):
        return {
            "class": type(value).__name__,
            **{f.name: encode(getattr(value, f.name)) for f in fields(value)},
        }
    if isinstance(value, (tuple, list)):
        return [encode(item) for item in value]
    if isinstance(value, dict):
        return {str(key): encode(item) for key, item in value.items()}
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    raise TypeError(f"cannot encode {type(value).__name__}")
