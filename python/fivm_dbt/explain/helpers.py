"""Other tools show a model's inner views: a description, the columns, and what each is computed from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from fivm_dbt.delta.term import scans
from fivm_dbt.naming import COUNT, PARTITION, split_name
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.plan.model.view import View


@dataclass(frozen=True)
class HelperColumn:
    """A column of a helper's table."""

    name: str
    type: str
    description: str


@dataclass(frozen=True)
class Helper:
    """An inner view: its relation, and the relations that it reads, inputs of the model or helpers before it."""

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
    note = "; as the query's shape has it, sizes may choose otherwise when it is built" if is_default else ""
    helpers = tuple(_helper(plan, view, note) for view in plan.helpers)
    return Helpers(plan.relation, helpers, is_default)


def _helper(plan: Plan, view: View, note: str) -> Helper:
    state = view.state
    keys = ", ".join(k.name for k in state.keys) or "none"
    payload = ", ".join(["count", *(f"sum({p.lift_sql})" for p in state.payload)])
    columns = [HelperColumn(PARTITION, "string", f"partition: {state.partitioning.reason}")]
    columns += [HelperColumn(k.name, k.type.text, f"key: {k.value.sql}") for k in state.keys]
    columns.append(HelperColumn(COUNT, "bigint", "how many rows the key stands for"))
    columns += [HelperColumn(p.name, p.type.text, f"sum of {p.lift_sql}") for p in state.payload]
    return Helper(
        view.name,
        f"inner view of {plan.model}: {view.reason}; key {keys}; payload {payload}{note}",
        tuple(columns),
        tuple(dict.fromkeys(scan.relation for scan in scans(view.core))),
    )
