"""Each kind of model that learns gives a table: its columns, and its rows from groups of moments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from fivm_dbt.learning.components import principal_components
from fivm_dbt.learning.config import (
    ComponentsConfig,
    InformationConfig,
    LearningConfig,
    RegressionConfig,
    TreeConfig,
)
from fivm_dbt.learning.information import all_pairs, chow_liu
from fivm_dbt.learning.moments import Term
from fivm_dbt.learning.payload import Group, Key, total
from fivm_dbt.learning.regression import train

Value = str | float | int | None
Row = tuple[Value, ...]
Before = Mapping[Key, Mapping[Term, float]]
"""By group the coefficients of the last training."""


C = TypeVar("C", bound=LearningConfig)


@dataclass(frozen=True)
class Kind(Generic[C]):
    """A kind of model: the columns of its table after the keys of a group, and how their values are learned."""

    config: type[C]
    columns: Mapping[str, str]
    learn: Callable[[Sequence[Group], C, Before], list[tuple[Key, Row]]]


def _regression(groups: Sequence[Group], config: RegressionConfig, before: Before) -> list[tuple[Key, Row]]:
    features = config.features_of(total(groups))
    rows: list[tuple[Key, Row]] = []
    for group in groups:
        found = train(
            group.moments, config, features, holdout=group.holdout, before=before.get(group.key, {})
        )
        of_all = (found.count, found.iterations, found.loss, found.r2, found.r2_holdout)
        rows += [
            (
                group.key,
                (p.term.variable, p.term.category, p.coefficient, p.standard_error, *of_all),
            )
            for p in found.parameters
        ]
    return rows


def _information(groups: Sequence[Group], config: InformationConfig, before: Before) -> list[tuple[Key, Row]]:
    names, label = config.variables_of(total(groups)), config.fivm_label
    rows: list[tuple[Key, Row]] = []
    for group in groups:
        pairs = all_pairs(group.moments, names)
        about = sorted(
            (p for p in pairs if label in (p.variable, p.other) and p.variable != p.other),
            key=lambda p: (-p.nats, p.variable, p.other),
        )
        ranks = {(p.variable, p.other): rank for rank, p in enumerate(about, start=1)}
        rows += [(group.key, (p.variable, p.other, p.nats, ranks.get((p.variable, p.other)))) for p in pairs]
    return rows


def _tree(groups: Sequence[Group], config: TreeConfig, before: Before) -> list[tuple[Key, Row]]:
    names = config.variables_of(total(groups))
    return [
        (group.key, (edge.variable, edge.other, edge.nats))
        for group in groups
        for edge in chow_liu(all_pairs(group.moments, names), config.fivm_root)
    ]


def _components(groups: Sequence[Group], config: ComponentsConfig, before: Before) -> list[tuple[Key, Row]]:
    names = config.variables_of(total(groups))
    return [
        (group.key, (number, variable, loading, component.share))
        for group in groups
        for number, component in enumerate(
            principal_components(group.moments, names, is_scaled=config.fivm_scaled), start=1
        )
        for variable, loading in component.loadings
    ]


KINDS: Mapping[str, Kind[Any]] = {
    "fivm_regression": Kind(
        RegressionConfig,
        {
            "variable": "string",
            "category": "string",
            "coefficient": "double",
            "standard_error": "double",
            "count": "double",
            "iterations": "int",
            "loss": "double",
            "r2": "double",
            "r2_holdout": "double",
        },
        _regression,
    ),
    "fivm_information": Kind(
        InformationConfig,
        {"variable": "string", "other": "string", "information": "double", "rank": "int"},
        _information,
    ),
    "fivm_pca": Kind(
        ComponentsConfig,
        {"component": "int", "variable": "string", "loading": "double", "share": "double"},
        _components,
    ),
    "fivm_chow_liu": Kind(
        TreeConfig, {"parent": "string", "child": "string", "information": "double"}, _tree
    ),
}
"""By materialization. A variable that is '' is the intercept; continuous variables have no category."""
