"""What a project declares of a view holds of the table below it, where the view shows that table.

``V = π_{a as x}(R)`` has as many rows as R: a key x of V is a key a of R. Foreign keys are carried alike. One to a view
that leaves rows out is one to the whole table too: what is in ``σ_p(R)`` is in R. Of such a view itself nothing is
carried, as its keys hold of fewer rows, nor of one that joins or aggregates.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace

from fivm_dbt.catalog import Catalog, DatabaseView, EventTime, ForeignKey, Relation
from fivm_dbt.errors import FivmError
from fivm_dbt.ir.node import Node
from fivm_dbt.ir.reads import reads
from fivm_dbt.ir.scalar import ColumnId
from fivm_dbt.project.manifest import Declared, Nodes
from fivm_dbt.sql.lower import lower
from fivm_dbt.sql.unfold import unfold

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Shown:
    """A view over one table: the columns of that by the view's own, in lower case, and whether all rows are shown."""

    relation: str
    columns: Mapping[str, str]
    is_whole: bool

    def of(self, columns: tuple[str, ...]) -> tuple[str, ...] | None:
        """The columns of the table that some of the view's are; None where one is computed."""
        found = tuple(self.columns[c] for c in columns if c in self.columns)
        return found if len(found) == len(columns) else None


def with_keys_of_views(catalog: Catalog, nodes: Nodes) -> Catalog:
    """The catalog, where its tables have the keys and foreign keys that are declared of views over them."""
    declared = {view.name: nodes.declared(view.name) for view in catalog.views}
    targets = {key.target for r in catalog.relations for key in r.foreign_keys}
    if not targets & declared.keys() and not any(
        d.keys or d.foreign_keys or d.event_time for d in declared.values()
    ):
        return catalog
    found = ((view.name, _shown(view, catalog)) for view in catalog.views)
    shown = {name: of for name, of in found if of is not None}
    tables = {r.name: _pointing_at_tables(r, shown) for r in catalog.relations}
    for name, of in shown.items():
        tables[of.relation] = _with(tables[of.relation], of, declared[name], shown)
    return replace(catalog, relations=tuple(tables.values()))


def _shown(view: DatabaseView, catalog: Catalog) -> _Shown | None:
    """None where the view is not over one table, or its types are not known without a connection."""
    try:
        lowered = lower(unfold(f"SELECT * FROM {view.name}", catalog.views).sql, catalog)
    except FivmError as error:
        logger.debug("no keys are carried below %s: %s", view.name, error)
        return None
    *above, scan = lowered.node.walk()
    if scan.inputs or not all(n.is_row_level and (n.computes_columns or n.drops_rows) for n in above):
        return None
    columns = {}
    for name, field in zip(lowered.names, lowered.node.fields, strict=True):
        column = _column(lowered.node, field.id)
        if column is not None:
            columns[name.lower()] = column.lower()
    relation = next((read.source.relation for read in reads(scan)), None)
    return None if relation is None else _Shown(relation, columns, not any(n.drops_rows for n in above))


def _column(node: Node, column: ColumnId) -> str | None:
    """What one of the columns is called in the table at the bottom, None where it is computed."""
    while node.inputs:
        value = node.shown_as(column)
        if value is None or not value.is_column:
            return None
        (column,) = value.columns
        node = node.inputs[0]
    return column[1]


def _with(relation: Relation, of: _Shown, declared: Declared, shown: Mapping[str, _Shown]) -> Relation:
    """A table with what is declared of a view that shows it."""
    time = relation.event_time or _event_time(declared.event_time, of)
    if not of.is_whole:
        return replace(relation, event_time=time)
    keys = {key for written in declared.keys for key in [of.of(written)] if key is not None}
    foreign = {
        replace(key, columns=columns)
        for written in declared.foreign_keys
        for key in [_foreign(written, shown)]
        for columns in [of.of(written.columns)]
        if key is not None and columns is not None
    }
    return replace(
        relation,
        keys=tuple(sorted({*relation.keys, *keys})),
        foreign_keys=_sorted({*relation.foreign_keys, *foreign}),
        event_time=time,
    )


def _pointing_at_tables(relation: Relation, shown: Mapping[str, _Shown]) -> Relation:
    keys = (_foreign(key, shown) or key for key in relation.foreign_keys)
    return replace(relation, foreign_keys=_sorted(set(keys)))


def _foreign(key: ForeignKey, shown: Mapping[str, _Shown]) -> ForeignKey | None:
    """A foreign key with a table as its target, None where that column of a view is computed."""
    target = shown.get(key.target)
    if target is None:
        return key
    columns = target.of(key.target_columns)
    return None if columns is None else ForeignKey(key.columns, target.relation, columns)


def _sorted(keys: set[ForeignKey]) -> tuple[ForeignKey, ...]:
    return tuple(sorted(keys, key=lambda key: (key.columns, key.target)))


def _event_time(declared: EventTime | None, of: _Shown) -> EventTime | None:
    column = None if declared is None else of.of((declared.column.lower(),))
    return None if declared is None or column is None else replace(declared, column=column[0])
