"""A project declares how a relation is divided into time parts (ViewDF, section 4.1)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from fivm_dbt.parts.length import Length

PART_TIMESTAMP = "part_timestamp"
"""Column of a viewdf model: when the part of a row begins, an instant."""


@dataclass(frozen=True)
class TimeParts:
    """``column`` says when a row was, ``length`` how long a part is: None for that of the model that reads it.

    ``lateness`` is how much later than the relation's newest part a row may still come. Where it is declared, a part
    without rows that ended longer ago than that is there, and empty; where it is not, such a part is waited for.
    ``is_computed`` says that the relation is a viewdf model, whose parts are there once they have been computed.
    """

    column: str
    length: Length | None
    lateness: timedelta | None = None
    is_computed: bool = False
