"""What models learn from is read as rows: keys, and the moments of their rows as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from fivm_dbt.catalog import Column
from fivm_dbt.errors import FivmError
from fivm_dbt.learning.config import LearningConfig
from fivm_dbt.learning.moments import Moments

_FIELDS = ("count:", "variables:", "sums:", "products:")


@dataclass(frozen=True)
class Shape:
    """The columns of a query to learn from: ``keys`` of groups, moments, and what tells rows that are held out."""

    keys: tuple[Column, ...]
    moments: str
    holdout: str | None

    @staticmethod
    def of(columns: Sequence[Column], config: LearningConfig, holdout: str | None = None) -> Shape:
        """Which columns these are. Raises FIVM208 where there is no covariance, or several."""
        found = [c.name for c in columns if c.type.text.startswith("struct") and _is_covariance(c)]
        if len(found) != 1:
            told = "no column" if not found else f"several columns ({', '.join(found)})"
            raise FivmError(
                "FIVM208",
                f"{told} of the query can be learned from: one has to be a fivm_covariance(...)",
                remedy="select one covariance, and the columns that it is grouped by",
            )
        others = [c for c in columns if c.name not in (found[0], holdout)]
        for name in (*(config.fivm_group_by or ()), *([] if holdout is None else [holdout])):
            if name not in {c.name for c in columns}:
                raise FivmError(
                    "FIVM208",
                    f"the query has no column {name}, which fivm_group_by or fivm_holdout names",
                    remedy="select it beside the covariance",
                )
        wanted = config.fivm_group_by
        keys = others if wanted is None else [c for name in wanted for c in others if c.name == name]
        return Shape(tuple(keys), found[0], holdout)


def _is_covariance(column: Column) -> bool:
    return all(field in column.type.text.lower().replace(" ", "") for field in _FIELDS)


Key = tuple[str | None, ...]


@dataclass(frozen=True)
class Group:
    """The moments of a group: of the rows to learn from, and of those held out."""

    key: Key
    moments: Moments
    holdout: Moments | None


def groups_of(rows: Iterable[Sequence[object]], shape: Shape) -> list[Group]:
    """The groups of rows of keys as text, whether they are held out, and moments; moments of equal keys are added.

    A variable that is categorical in one group is so in all.
    """
    found: dict[tuple[Key, bool], Moments] = {}
    many = len(shape.keys)
    for row in rows:
        key: Key = tuple(None if value is None else str(value) for value in row[:many])
        is_out = shape.holdout is not None and str(row[many]).lower() == "true"
        moments = Moments.read(str(row[-1]))
        known = found.get((key, is_out))
        found[key, is_out] = moments if known is None else known + moments
    categorical = frozenset[str]().union(*(m.categorical for m in found.values()))
    same = {at: replace(m, categorical=categorical) for at, m in found.items()}
    keys = sorted({key for key, _ in same}, key=lambda key: tuple((v is not None, v or "") for v in key))
    return [
        Group(key, same.get((key, False)) or _nothing(same[key, True]), same.get((key, True))) for key in keys
    ]


def total(groups: Iterable[Group]) -> Moments:
    """The moments of all rows to learn from, and of those held out."""
    every = [m for g in groups for m in (g.moments, g.holdout) if m is not None]
    found = every[0] if every else Moments(())
    for moments in every[1:]:
        found += moments
    return found


def _nothing(like: Moments) -> Moments:
    return Moments(like.variables, categorical=like.categorical)
