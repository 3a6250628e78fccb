"""A relation declares keys, foreign keys and functional dependencies in dbt's ``meta``.

For what dbt's constraints and tests cannot say, or are not there to say::

    meta:
      fivm_declares:
        keys: [store_id, [day, store_id]]
        foreign_keys: [{columns: store_id, to: ref('stores'), to_columns: id}]
        dependencies: ["zip -> city, state"]
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from fivm_dbt.catalog import Dependency


def _names(value: Any) -> Any:
    """Column names in lower case; one name is a list of it."""
    values = (value,) if isinstance(value, str) else value
    return (
        tuple(v.lower() if isinstance(v, str) else v for v in values)
        if isinstance(values, (list, tuple))
        else value
    )


def _dependency(value: Any) -> Any:
    """``a, b -> c, d``.

    >>> _dependency("Zip -> city, state")
    Dependency(determinant=('zip',), dependent=('city', 'state'))
    """
    sides = value.split("->") if isinstance(value, str) else []
    found = [tuple(name.strip().lower() for name in side.split(",")) for side in sides]
    if len(found) != 2 or not all(name for side in found for name in side):
        raise ValueError(
            "columns that determine and columns that are determined are expected: zip -> city, state"
        )
    return Dependency(*found)


Names = Annotated[tuple[str, ...], Field(min_length=1), BeforeValidator(_names)]
"""Column names in lower case; one name may be written without a list."""


class ForeignKeyOf(BaseModel):
    """A foreign key; ``to`` is a ``ref()``, a ``source()``, or a name as SQL has it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    columns: Names
    to: str
    to_columns: Names

    @model_validator(mode="after")
    def _same_length(self) -> ForeignKeyOf:
        if len(self.columns) != len(self.to_columns):
            raise ValueError("columns and to_columns differ in number")
        return self


class Declares(BaseModel):
    """The value of ``fivm_declares``."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    keys: tuple[Names, ...] = ()
    foreign_keys: tuple[ForeignKeyOf, ...] = ()
    dependencies: tuple[Annotated[Dependency, BeforeValidator(_dependency)], ...] = ()

    @property
    def columns(self) -> frozenset[str]:
        """All columns of the relation itself that are named."""
        keys = {c for key in (*self.keys, *(f.columns for f in self.foreign_keys)) for c in key}
        return frozenset(keys | {c for d in self.dependencies for c in (*d.determinant, *d.dependent)})
