"""Other tools show a model's inner views: a description, the columns, and what each is computed from."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from fivm_dbt.delta.term import scans
from fivm_dbt.explain.words import descriptions, short
from fivm_dbt.naming import COUNT, PARTITION, split_name
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.plan.model.view import View

_COLUMN = re.compile(r"\b([A-Za-z_]\w*)\.([A-Za-z_]\w*)\b")
_AS_SHAPED = "(As the shape of the query has it; when the model is built, sizes may choose otherwise.)"


@dataclass(frozen=True)
class HelperColumn:
    """A column of a helper's table."""

    name: str
    type: str
    description: str


@dataclass(frozen=True)
class Helper:
    """An inner view: its relation, and what it reads: helpers before it, and inputs as the model's text calls them.

    A table that the model reads through a view of the database is that view.
    """

    relation: str
    description: str
    columns: tuple[HelperColumn, ...]
    reads: tuple[str, ...]

    @property
    def name(self) -> str:
        return split_name(self.relation)[-1]


@dataclass(frozen=True)
class Helpers:
    """The helpers of a model, each after those that it reads."""

    model: str
    helpers: tuple[Helper, ...]
    is_default: bool = False
    """Whether this is the layout that the query's shape gives, of a model that nothing is known to be built of."""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Helpers:
        """Raises KeyError or TypeError for data of another form."""
        helpers = tuple(
            Helper(
                str(h["relation"]),
                str(h["description"]),
                tuple(HelperColumn(**c) for c in h["columns"]),
                tuple(str(r) for r in h["reads"]),
            )
            for h in data["helpers"]
        )
        return Helpers(str(data["model"]), helpers, bool(data["is_default"]))


def helpers_of(plan: Plan, *, is_default: bool = False) -> Helpers:
    """The helpers of a plan; of the structural default, with ``is_default``, the descriptions say so."""
    note = f" {_AS_SHAPED}" if is_default else ""
    told = descriptions(plan)
    helpers = tuple(_helper(plan, view, f"{told[view.name]}.{note}") for view in plan.helpers)
    return Helpers(plan.relation, helpers, is_default)


def _helper(plan: Plan, view: View, description: str) -> Helper:
    state, through = view.state, plan.unfolded.through
    columns = [HelperColumn(PARTITION, "string", f"where the row lies: {state.partitioning.reason}")]
    columns += [HelperColumn(k.name, k.type.text, _meaning(plan, view, k.value.sql)) for k in state.keys]
    how_many = "how often the row is there" if view.is_bag else "how many rows are added up in this one"
    columns.append(HelperColumn(COUNT, "bigint", how_many))
    columns += [
        HelperColumn(p.name, p.type.text, f"sum of {_meaning(plan, view, p.lift_sql)}") for p in state.payload
    ]
    return Helper(
        view.name,
        f"{description} Inner view of {short(plan.relation)}, maintained by its refreshes.",
        tuple(columns),
        tuple(
            dict.fromkeys(name for s in scans(view.core) for name in through.get(s.relation, (s.relation,)))
        ),
    )


def _meaning(plan: Plan, view: View, expression: str) -> str:
    """An expression with the names of relations in the places of aliases; a column as ``amount of orders``."""
    relations = {scan.alias: scan.relation for scan in scans(view.core)}

    def named(alias: str, column: str) -> tuple[str, str]:
        """The relation that a column comes from, empty where it is computed, and how it is called there."""
        relation = relations.get(alias)
        below = None if relation is None else plan.helper(relation)
        if below is None:
            return "" if relation is None else short(relation), column
        key = next((k.value.sql for k in below.state.keys if k.name == column), "")
        column_of, _, relation = _meaning(plan, below, key).partition(" of ")
        return (relation, column_of) if _COLUMN.fullmatch(key) else ("", column)

    whole = _COLUMN.fullmatch(expression)
    if whole is not None:
        relation, column = named(*whole.groups())
        return f"{column} of {relation}" if relation else column
    return _COLUMN.sub(lambda m: ".".join(filter(None, named(*m.groups()))), expression)
