"""A request is what the planner is asked."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from fivm_dbt.catalog import Catalog, TableStatistics
from fivm_dbt.config import Config
from fivm_dbt.naming import kept_under
from fivm_dbt.plan.model.inputs import Reader
from fivm_dbt.sql.unfold import Unfolded, unfold
from fivm_dbt.viewtree.variable_order import VariableOrder


@dataclass(frozen=True)
class ModelRequest:
    """What the planner is asked: the model's relation, its compiled SQL, what it reads, and its configuration.

    ``session`` are the settings that change what SQL means (time zone, case sensitivity, timestamp type). ``order`` is
    a variable order from a file, before that of the configuration; ``project`` is the dbt project; ``is_read`` says
    that other fivm models read this one, and ``readers`` which ones do, as far as that is asked; ``measured`` are the
    sizes of the inputs by which ``fivm_strategy: auto`` chooses helper views.
    """

    relation: str
    sql: str
    catalog: Catalog
    config: Config
    session: tuple[tuple[str, str], ...] = ()
    order: VariableOrder | None = None
    project: str = ""
    is_read: bool = False
    readers: tuple[Reader, ...] = ()
    measured: TableStatistics | None = None

    @property
    def kept_under(self) -> str:
        """The relation beside which all that is kept of the model lies."""
        return kept_under(self.relation, self.config.fivm_helper_schema)

    @property
    def has_readers(self) -> bool:
        """Whether somebody reads the change feed: other fivm models, or the table that the model is exposed as."""
        return self.is_read or self.config.fivm_expose == "table"

    @cached_property
    def unfolded(self) -> Unfolded:
        """The SQL over tables and fivm models alone: the queries of views are in it. Raises FIVM101, FIVM303."""
        return unfold(self.sql, self.catalog.views)

    @property
    def text(self) -> str:
        """The SQL that is planned."""
        return self.unfolded.sql
