"""The ``fivm_*`` keys of models that learn are validated all at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from fivm_dbt.config import Config, listed, wrong_keys
from fivm_dbt.errors import FivmError
from fivm_dbt.learning.moments import Moments
from fivm_dbt.suggest import did_you_mean


def _texts(value: Any) -> Any:
    """YAML reads a category that is a number as a number."""
    return {k: str(v) for k, v in value.items()} if isinstance(value, Mapping) else value


Names = Annotated[tuple[str, ...], BeforeValidator(listed)]


class LearningConfig(BaseModel):
    """What all models that learn from a covariance can be told."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    fivm_features: Names | None = None
    fivm_group_by: Names | None = None
    fivm_every: Literal["never"] | Annotated[int, Field(ge=1)] = 1
    fivm_max_categories: int = Field(default=1_000, ge=1)

    def checked(self, names: Sequence[str], moments: Moments) -> tuple[str, ...]:
        """The variables ``names``, none of which has more categories than are allowed. Raises FIVM208."""
        for name in names:
            many = len(moments.categories.get(name, ()))
            if many > self.fivm_max_categories:
                raise FivmError(
                    "FIVM208",
                    f"{name} has {many:,} categories, and fivm_max_categories is {self.fivm_max_categories:,}",
                    remedy="group rare categories in the covariance, or raise fivm_max_categories",
                )
        return tuple(names)


class RegressionConfig(LearningConfig):
    """Configuration of a regression. The first value of each choice is the default."""

    fivm_label: str
    fivm_ridge: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    fivm_solver: Literal["cholesky", "gradient_descent"] = "cholesky"
    fivm_tolerance: float = Field(default=1e-9, gt=0, lt=1)
    fivm_max_iterations: int = Field(default=10_000, ge=1)
    fivm_reference: Annotated[Mapping[str, str], BeforeValidator(_texts)] = Field(default_factory=dict)
    fivm_holdout: str | None = None

    def features_of(self, moments: Moments) -> tuple[str, ...]:
        """The features, all variables but the label by default. Raises FIVM201 for what is no variable."""
        known = [name for name in moments.names if name != self.fivm_label]
        if not moments.count:
            # Without rows nobody knows which variables are categorical.
            return self.fivm_features or tuple(known)
        if self.fivm_label in moments.categorical:
            raise _wrong(f"fivm_label: {self.fivm_label} is categorical, and a regression needs a number")
        if self.fivm_label not in moments.variables:
            raise _wrong(_unknown("fivm_label", self.fivm_label, moments.variables))
        features = tuple(known) if self.fivm_features is None else self.fivm_features
        for name in features:
            if name == self.fivm_label:
                raise _wrong(f"fivm_features: {name} is the label")
            if name not in known:
                raise _wrong(_unknown("fivm_features", name, known))
        for name, category in self.fivm_reference.items():
            if name not in moments.categorical:
                raise _wrong(_unknown("fivm_reference", name, sorted(moments.categorical)))
            if category not in moments.categories[name]:
                raise _wrong(_unknown("fivm_reference", category, moments.categories[name]))
        return self.checked(features, moments)


class ComponentsConfig(LearningConfig):
    """Configuration of principal components, of variables in units of their deviations by default."""

    fivm_scaled: bool = True

    def variables_of(self, moments: Moments) -> tuple[str, ...]:
        """The continuous variables, all by default. Raises FIVM201."""
        wanted = self.fivm_features or moments.variables
        for name in wanted:
            if name in moments.categorical:
                raise _wrong(f"fivm_features: {name} is categorical, and components are of numbers")
            if name not in moments.variables:
                raise _wrong(_unknown("fivm_features", name, moments.variables))
        return tuple(wanted)


class InformationConfig(LearningConfig):
    """Configuration of mutual information, ranked about a label where there is one."""

    fivm_label: str | None = None

    def variables_of(self, moments: Moments) -> tuple[str, ...]:
        """The categorical variables that are compared, all by default, and the label. Raises FIVM201."""
        wanted = [*(self.fivm_features or sorted(moments.categorical))]
        wanted += [self.fivm_label] if self.fivm_label not in (None, *wanted) else []
        return self.checked(_categorical("fivm_features", wanted, moments), moments)


class TreeConfig(LearningConfig):
    """Configuration of a Chow-Liu tree, which begins at ``fivm_root``."""

    fivm_root: str | None = None

    def variables_of(self, moments: Moments) -> tuple[str, ...]:
        """The categorical variables that the tree is of, all by default. Raises FIVM201."""
        wanted = [*(self.fivm_features or sorted(moments.categorical))]
        found = _categorical("fivm_features", wanted, moments)
        if self.fivm_root is not None and self.fivm_root not in found:
            raise _wrong(_unknown("fivm_root", self.fivm_root, found))
        return self.checked(found, moments)


def _categorical(key: str, wanted: Sequence[str], moments: Moments) -> tuple[str, ...]:
    for name in wanted:
        if name in moments.variables:
            raise _wrong(f"{key}: {name} is continuous, put it in bins: fivm_categorical(width_bucket(...))")
        if moments.count and name not in moments.categorical:
            raise _wrong(_unknown(key, name, sorted(moments.categorical)))
    return tuple(wanted)


C = TypeVar("C", bound=LearningConfig)


def load(kind: type[C], meta: Mapping[str, object], *, model: str | None = None) -> C:
    """The configuration in a model's ``meta``. Raises FIVM201 with every unknown key and wrong value at once."""
    # What a folder of models is told, dbt gives to each of them: keys of maintained models are none of ours.
    given = {
        key: value
        for key, value in meta.items()
        if key.startswith("fivm_") and (key in kind.model_fields or key not in Config.model_fields)
    }
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        problems = [_problem(kind, dict(detail)) for detail in error.errors()]
        raise wrong_keys(problems, model) from None


def _problem(kind: type[LearningConfig], detail: Mapping[str, Any]) -> str:
    key = str(detail["loc"][0])
    if detail["type"] == "extra_forbidden":
        meant = did_you_mean(key, kind.model_fields)
        return f"{key} is no key of such a model" + (f", {meant}" if meant else "")
    if detail["type"] == "missing":
        return f"{key} is missing"
    return f"{key}: {detail['input']!r} is not allowed ({detail['msg'].lower()})"


def _unknown(key: str, name: str, known: Sequence[str]) -> str:
    told = f"{key}: there is no {name} among {', '.join(known) or 'nothing'}"
    meant = did_you_mean(name, known)
    return f"{told}, {meant}" if meant else told


def _wrong(problem: str) -> FivmError:
    return wrong_keys([problem], None)
