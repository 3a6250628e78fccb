"""The inputs of a plan: what is read of each relation, which never change, and which cannot be maintained over."""

from __future__ import annotations

from fivm_dbt.catalog import Catalog, Column, DatabaseView, Relation, check_records_changes
from fivm_dbt.config import Config
from fivm_dbt.delta.term import scans
from fivm_dbt.errors import FivmError, expected_one_of
from fivm_dbt.ir.node import Node
from fivm_dbt.naming import PREFIX, split_name
from fivm_dbt.plan.model.inputs import PlanInput
from fivm_dbt.plan.retention import Retained


def static_inputs(config: Config, catalog: Catalog) -> frozenset[str]:
    """The canonical names of the inputs promised not to change. FIVM201 for a name that is no input."""
    names = {r.name for r in catalog.relations if r.is_static}
    for written in config.fivm_static:
        found = [r.name for r in catalog.relations if _is_called(r, written)]
        if not found:
            known = expected_one_of([r.name for r in catalog.relations])
            is_view = any(_is_called(view, written) for view in catalog.views)
            raise FivmError(
                "FIVM201",
                f"fivm_static: {written} is {'a view over inputs' if is_view else 'not an input'} ({known})",
                remedy="name what it reads" if is_view else "correct the name",
            )
        names.update(found)
    return frozenset(names)


def _check_names(name: str, columns: tuple[Column, ...]) -> None:
    """FIVM112 where an input has columns of our own, as a state table has."""
    hidden = [c.name for c in columns if c.name.lower().startswith(PREFIX)]
    if hidden:
        raise FivmError(
            "FIVM112",
            f"{name} has columns {', '.join(hidden)}: names that begin with {PREFIX} are those of state tables",
            remedy="read the model and not its state, or rename the columns upstream",
        )


def _check_comparable(name: str, columns: tuple[Column, ...]) -> None:
    """FIVM111 where the net change of an input cannot be computed: its rows have to be told apart bit for bit."""
    for column in columns:
        if not column.type.is_groupable:
            raise FivmError(
                "FIVM111",
                f"{name}.{column.name} has type {column.type}: {column.type.why_ungroupable}",
                remedy="extract what the model needs in a table model upstream, or list the input in fivm_static",
            )


def _is_called(relation: Relation | DatabaseView, written: str) -> bool:
    parts, wanted = split_name(relation.name), split_name(written)
    return parts[-len(wanted) :] == wanted


def inputs_read(
    core: Node, catalog: Catalog, static: frozenset[str], dropped: Retained
) -> tuple[PlanInput, ...]:
    """Each relation read, with the union of the columns that its scans keep, in the catalog's order.

    Of one whose dropped parts are told from deleted rows also the column that they are told by.
    """
    used: dict[str, set[str]] = {}
    for scan in scans(core):
        used.setdefault(scan.relation, set()).update(name for name, _ in scan.columns)
    result = []
    for name in sorted(used):
        relation = catalog.find(name)
        if relation is None:
            raise ValueError(f"{name} is scanned but not in the catalog")
        check_records_changes(relation)
        retention = dropped.get(name)
        told_by = None if retention is None else relation.column(retention.column)
        columns = tuple(c for c in relation.columns if c.name in used[name] or c == told_by)
        _check_names(name, columns)
        if name not in static:
            _check_comparable(name, columns)
        result.append(PlanInput(relation, columns, name in static, retention))
    return tuple(result)
