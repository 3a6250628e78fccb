"""A way by which models are kept up to date: it builds its tables, and brings them up to date when asked."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.compare.cases import Compared, Model

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MODELS = "models"
"""The schema of what is kept."""


@dataclass(frozen=True)
class Ran:
    """What a run did, and what it was expected to take, in seconds: a refresh, a build. None is not known.

    ``chosen`` says how this package keeps the models. ``statements`` and ``rows_read`` are what it counts itself.
    """

    action: str
    expected: tuple[float, float] | None = None
    chosen: str = ""
    statements: int | None = None
    rows_read: int | None = None

    @staticmethod
    def of(each: Sequence[Ran]) -> Ran:
        """Of models in their order.

        >>> Ran.of([Ran("refreshed", (1, 9)), Ran("rebuilt", (5, 4)), Ran("refreshed", (2, 3))])
        Ran(action='2 refreshed, 1 rebuilt', expected=(8, 16), chosen='', statements=None, rows_read=None)
        """
        if len(each) == 1:
            return each[0]
        counts = Counter(ran.action for ran in each)
        action = ", ".join(f"{n} {what}" for what, n in counts.items()) if len(counts) > 1 else each[0].action
        known = [ran.expected for ran in each if ran.expected is not None]
        both = (sum(refresh for refresh, _ in known), sum(build for _, build in known))
        return Ran(
            action,
            expected=both if len(known) == len(each) else None,
            chosen=" / ".join(ran.chosen for ran in each if ran.chosen),
            statements=_sum([ran.statements for ran in each]),
            rows_read=_sum([ran.rows_read for ran in each]),
        )


def _sum(values: Sequence[int | None]) -> int | None:
    """None where one is not known."""
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


class Way(ABC):
    """Models that are kept by one way."""

    name: str

    def __init__(self, session: SparkSession, compared: Compared) -> None:
        self.session = session
        self.compared = compared

    def relation(self, model: Model) -> str:
        """What shows the rows of a model."""
        return f"{MODELS}.{model.name}_{self.name}"

    def shown(self, model: Model) -> str:
        """The query of a model's rows."""
        return f"SELECT * FROM {self.relation(model)}"

    @property
    def kept(self) -> tuple[Model, ...]:
        """The models that have rows to be compared."""
        return self.compared.models

    @property
    def names(self) -> dict[str, str]:
        """What bare names mean: tables of the data set, and models as this way keeps them."""
        data = self.compared.data
        tables = {table: f"{data.schema}.{table}" for table in data.tables}
        return tables | {model.name: self.relation(model) for model in self.compared.models}

    def sql(self, model: Model) -> str:
        """The query of a model over what it reads."""
        return model.over(self.names)

    def run(self) -> Ran:
        """Build all, or bring all up to date, in their order."""
        return Ran.of([self.keep(model) for model in self.compared.models])

    @abstractmethod
    def keep(self, model: Model) -> Ran:
        """Build one, or bring it up to date."""
