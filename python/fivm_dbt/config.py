"""The ``fivm_*`` keys of a model are validated all at once.

Keys stand under ``meta`` (flat), because dbt drops or rejects unknown top-level keys. A value of a later version
is refused as not available yet, never ignored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from fivm_dbt.declares import Declares
from fivm_dbt.errors import FivmError, expected_one_of
from fivm_dbt.parts.length import DAY, Length
from fivm_dbt.suggest import did_you_mean

Granularity = Literal["hour", "day", "month", "year"]


Strategy = Literal["auto", "first_order", "factorized", "recursive", "reevaluate"]
"""Which inner views are kept."""


Inequality = Literal["auto", "reevaluate", "parameterised", "ranges"]
"""What is kept of an aggregate that is correlated by an inequality."""


Pass = Literal[
    "column_pruning",
    "delta_first",
    "eager_aggregation",
    "key_ranges",
    "look_ups",
    "magic_sets",
    "marks",
    "met_first",
    "nested_extremes",
    "products",
    "relevant_changes",
    "separators",
    "shared_aggregates",
    "sought",
    "split_sums",
    "time_ranges",
]
"""What makes plans cheaper and not more right: each can be left out, to see what it does."""


def listed(value: Any) -> Any:
    """One name is a list of it."""
    return (value,) if isinstance(value, str) else value


def _as_text(value: Any) -> Any:
    """YAML reads a date as a date."""
    return value.isoformat() if isinstance(value, date) else value


class Config(BaseModel):
    """Configuration of one model. The first value of each choice is the default."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    fivm_strategy: Strategy = "auto"
    fivm_policy: Literal["incremental", "auto", "full"] = "incremental"
    fivm_partition_by: str | None = None
    fivm_apply: Literal["auto", "merge", "replace", "append"] = "auto"
    fivm_fold_after: int = Field(default=20, ge=1)
    fivm_merge: Literal["grouped", "per_partition"] = "grouped"
    fivm_depth: Literal["full"] | Annotated[int, Field(ge=1)] = "full"
    fivm_variable_order: Any = None
    fivm_without: Annotated[tuple[Pass, ...], BeforeValidator(listed)] = ()
    fivm_static: tuple[str, ...] = ()
    fivm_rings: Annotated[tuple[str, ...], BeforeValidator(listed)] = ()
    fivm_result: Literal["listing", "factorized"] = "listing"
    fivm_inequality: Inequality = "auto"
    fivm_float: Literal["recompute", "approximate"] = "recompute"
    fivm_product_rows: int = Field(default=50_000, ge=1)
    fivm_buckets: int | None = Field(default=None, ge=1, le=4096)
    fivm_trust_keys: bool = False
    fivm_declares: Declares | None = None
    fivm_on_change: Literal["rebuild", "fail"] = "rebuild"
    fivm_rebuild: Literal["auto", "never"] = "auto"
    fivm_refresh: Literal["eager", "lazy"] = "eager"
    fivm_start: Annotated[str | None, BeforeValidator(_as_text)] = None
    fivm_part_timestamp: bool = False
    fivm_part_length: str | int | None = None
    fivm_time_zone: str | None = None
    fivm_lateness: str | int | None = None
    fivm_plain_change: str = "all"
    fivm_part_order: Literal["oldest", "stalest"] = "oldest"
    fivm_expose: Literal["view", "table"] = "view"
    fivm_helper_schema: str | None = None
    fivm_retention: str | int | None = None
    fivm_rollup: str | int | None = None
    fivm_dropped_parts: Literal["keep", "retract"] = "keep"

    @property
    def part_length(self) -> Length:
        """``fivm_part_length``, a day if it is not given. Raises FIVM201."""
        return Length.of(self.fivm_part_length) if self.fivm_part_length is not None else DAY

    def check_maintained(self) -> None:
        """Raise FIVM201 for keys that mean something of viewdf models alone."""
        names = ("fivm_start", "fivm_retention", "fivm_rollup")
        given = [name for name in names if getattr(self, name) is not None]
        if given:
            raise FivmError(
                "FIVM201",
                f"{', '.join(given)}: only models with materialized='viewdf' are computed part by part",
                remedy="leave it out, or write the model as viewdf (docs/time-parts.md)",
            )

    batch_size: Granularity | None = None
    """dbt's own key: the length of the time partitions when the partition column is inferred."""


KEYS = tuple(sorted(name for name in Config.model_fields if name.startswith("fivm_")))
"""The keys under ``meta``."""


def load_config(meta: Mapping[str, object], *, model: str | None = None) -> Config:
    """The configuration in a model's ``meta``; other people's keys there are left alone.

    Raises FIVM201 with every unknown key and wrong value at once, FIVM203 for what does not go together yet.
    """
    given = {key: value for key, value in meta.items() if key.startswith("fivm_") or key == "batch_size"}
    try:
        config = Config.model_validate(given)
    except ValidationError as error:
        problems = [_problem(dict(detail)) for detail in error.errors()]
        raise wrong_keys(problems, model) from None
    _refuse_later(config, model)
    return config


def wrong_keys(problems: Sequence[str], model: str | None) -> FivmError:
    """The error that names every problem with the keys of a model."""
    remedy = "correct these keys under meta in the model's config"
    return FivmError("FIVM201", "; ".join(problems), remedy=remedy, model=model)


def wrong_value(key: str, value: object) -> str:
    """What is wrong with the value of a known key; empty where nothing is.

    >>> wrong_value("fivm_refresh", "lasy")
    "fivm_refresh: 'lasy' is not allowed (expected one of 'eager', 'lazy'): did you mean lazy?"
    >>> wrong_value("fivm_refresh", "lazy")
    ''
    """
    try:
        Config.model_validate({key: value})
    except ValidationError as error:
        return "; ".join(_problem(dict(detail)) for detail in error.errors())
    return ""


def _problem(detail: dict[str, Any]) -> str:
    place = ".".join(str(part) for part in detail["loc"])
    if detail["type"] == "extra_forbidden" and len(detail["loc"]) == 1:
        return f"unknown key {place}: {did_you_mean(place, KEYS) or expected_one_of(KEYS)}"
    if detail["type"] == "literal_error":
        allowed = detail["ctx"]["expected"].replace(" or ", ", ")
        meant = did_you_mean(str(detail["input"]), [name.strip("'") for name in allowed.split(", ")])
        shown = f": {meant}" if meant else ""
        return f"{place}: {detail['input']!r} is not allowed (expected one of {allowed}){shown}"
    return f"{place}: {detail['input']!r}: {detail['msg'].lower()}"


def _refuse_later(config: Config, model: str | None) -> None:
    """Raise FIVM203 for keys that do not go together yet."""
    if config.fivm_expose == "table" and config.fivm_result == "factorized":
        raise FivmError(
            "FIVM203",
            "not available in this version: fivm_expose: table of a model with fivm_result: factorized",
            remedy="leave one of them out",
            model=model,
        )
