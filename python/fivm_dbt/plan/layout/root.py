"""The root of a model fixes what its state keeps, and computes the model's columns from a state row.

The operators above the topmost aggregate look at one row each, so they are not maintained but evaluated when the
model is read (its view). Without an aggregate on top the state is a bag: the row as key, its multiplicity as payload.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from fivm_dbt.catalog import Presentation, SparkType
from fivm_dbt.catalog.types import INT
from fivm_dbt.delta.own_delta import STORED, has_own_delta
from fivm_dbt.errors import FivmError
from fivm_dbt.ir.aggregate import Aggregate
from fivm_dbt.ir.copies import Copies
from fivm_dbt.ir.factored import Product
from fivm_dbt.ir.local import Local
from fivm_dbt.ir.node import Field, Item, Node
from fivm_dbt.ir.nodes import Filter, Map
from fivm_dbt.ir.on_demand import is_on_demand
from fivm_dbt.ir.presentation import presentation
from fivm_dbt.ir.scalar import ColumnId, Scalar
from fivm_dbt.naming import COUNT, PARTITION, PREFIX, storable, unique_name
from fivm_dbt.plan.layout.packed import packed
from fivm_dbt.plan.model.state import PayloadColumn
from fivm_dbt.rings.component import ROWS, Component
from fivm_dbt.rings.registry import finish, named_components
from fivm_dbt.rings.vectors import is_packed


@dataclass(frozen=True)
class Root:
    """``core`` is maintained, a state row has ``keys`` and ``payload``, ``outputs`` show where ``filters`` hold.

    ``local`` is the operator on top where that is recomputed per key: its key is in the state's columns ``local_keys``,
    so that the old rows of an affected key are read from the state itself. ``is_reevaluated`` says that a part of it is
    evaluated on demand, so that all of it is, and all old rows are read from the state.
    """

    core: Node
    keys: tuple[Item, ...]
    payload: tuple[PayloadColumn, ...]
    is_global: bool
    is_bag: bool
    outputs: tuple[tuple[str, Scalar], ...]
    filters: tuple[Scalar, ...]
    shown: tuple[tuple[str, str | None], ...]
    local: Local | None = None
    local_keys: tuple[str, ...] = ()
    rows: Product | None = None
    is_reevaluated: bool = False
    meant: tuple[Scalar, ...] = ()
    """What the columns ``local_keys`` are computed as: a state is placed by one that is a period of time."""

    @property
    def is_aggregate(self) -> bool:
        """Whether a state row adds up a group, so that its change is no row's coming or going."""
        return not self.is_bag and self.local is None

    @property
    def has_one_row(self) -> bool:
        """Whether it is an aggregate without keys: its bucket must not be told by its values, which change."""
        return self.is_global or (self.local is not None and self.local.is_global)

    def presentation(self, state: str, *, is_set: bool = False) -> Presentation:
        """How rows of a state are shown; one that ``is_set`` has no multiplicities: each row once."""
        return presentation(state, self.outputs, self.filters, repeats=self.is_bag and not is_set)


def find_root(query: Node, names: tuple[str, ...]) -> Root:
    """Split ``query`` at its topmost aggregate. ``names`` are the model's column names."""
    outputs = {f.id: f.scalar for f in query.fields}
    filters: list[Scalar] = []
    node = query
    while isinstance(node, (Map, Filter)):
        if isinstance(node, Filter):
            filters += node.predicates
            node = node.input
            continue
        if local_under(node) is None:
            break
        meaning = {(node.alias, i.name): i.value for i in node.items}
        outputs = {key: value.substitute(meaning.get) for key, value in outputs.items()}
        filters = [f.substitute(meaning.get) for f in filters]
        node = node.input
    named = tuple(zip(names, outputs.values(), strict=True))
    is_reevaluated = is_on_demand(node)
    if isinstance(node, Local) and is_reevaluated:
        return replace(_local_root(node, named, tuple(filters)), is_reevaluated=True)
    if isinstance(node, Aggregate) and node.adds_up:
        return _aggregate_root(node, named, tuple(filters))
    if isinstance(node, Local):
        return _local_root(node, named, tuple(filters))
    if isinstance(query, Copies):
        listed = _bag_root(Map(query.input, query.alias, query.items), names)
        return replace(listed, rows=query.times)
    if is_reevaluated:
        return replace(_with_own_columns(_bag_root(query, names)), is_reevaluated=True)
    if has_own_delta(query):
        return _with_own_columns(_bag_root(query, names))
    return _bag_root(query, names)


def _with_own_columns(root: Root) -> Root:
    """A bag whose core has the state's columns, so that rows of the state can be taken away from its own."""
    keys = tuple(Item(k.name, Scalar.column(STORED, k.name), k.type) for k in root.keys)
    return replace(root, core=Map(root.core, STORED, root.keys), keys=keys)


def local_under(node: Node) -> Local | None:
    """The operator that is local to a key under projections and filters, if any stand over one."""
    while isinstance(node, (Map, Filter)):
        node = node.input
    return node if isinstance(node, Local) else None


def _local_root(node: Local, outputs: tuple[tuple[str, Scalar], ...], filters: tuple[Scalar, ...]) -> Root:
    """A bag whose rows carry the key of the operator that makes them: those of an affected key are replaced."""
    node, local_fields = node.with_key_shown()
    taken = {COUNT, PARTITION}
    items: list[Item] = []
    column_of: dict[Scalar, str] = {}

    def column(wanted: str, value: Scalar, type_: SparkType) -> str:
        if value not in column_of:
            name = unique_name(storable(wanted), taken)
            taken.add(name)
            item = Item(name, value, type_)
            _check_key(item)
            items.append(item)
            column_of[value] = name
        return column_of[value]

    local_keys = tuple(column(f.name, f.scalar, f.type) for f in local_fields)
    kept = {f.id: Scalar.column("", column(f.name, f.scalar, f.type)) for f in _used_fields(node, outputs)}
    shown = tuple((n, column_of.get(value) if value.is_column else None) for n, value in outputs)
    present = tuple((n, value.substitute(kept.get)) for n, value in outputs)
    core: Node = Filter(node, filters) if filters else node
    rows = Map(core, f"{node.alias}_rows", tuple(items))
    keys = tuple(Item(i.name, Scalar.column(rows.alias, i.name), i.type) for i in items)
    if not keys:
        keys = (Item(f"{PREFIX}row", Scalar.number(1), INT),)
    one_each = node.has_row_per_key
    meant = tuple(k.value for k in node.key) if one_each else ()
    return Root(
        rows,
        keys,
        payload=(),
        is_global=False,
        is_bag=not one_each,
        outputs=present,
        filters=(),
        shown=shown,
        local=node,
        local_keys=local_keys,
        meant=meant,
    )


def _used_fields(node: Local, outputs: tuple[tuple[str, Scalar], ...]) -> tuple[Field, ...]:
    used = {c for _, value in outputs for c in value.columns}
    return tuple(f for f in node.fields if f.id in used)


def added_up(node: Aggregate) -> tuple[tuple[Item, ...], tuple[PayloadColumn, ...], Product | None]:
    """The keys and the payload of a state that keeps ``node``, and how many rows of the query a row of its input is."""
    rows = node.factored.rows if node.factored is not None else None
    return _stored_keys(node), _payload(node), rows


def _aggregate_root(
    node: Aggregate, outputs: tuple[tuple[str, Scalar], ...], filters: tuple[Scalar, ...]
) -> Root:
    keys, payload, rows = added_up(node)
    column_of = {component: value for p in payload for component, value in p.values}
    column_of[ROWS] = Scalar.column("", COUNT)
    stored = {(node.alias, k.name): kept.name for k, kept in zip(node.keys, keys, strict=True)}
    meaning = {key: Scalar.column("", name) for key, name in stored.items()}
    for call in node.calls:
        meaning[(node.alias, call.name)] = finish(call, column_of.__getitem__)
    shown = tuple((name, _key_shown(value, stored)) for name, value in outputs)
    present = tuple((name, value.substitute(meaning.get)) for name, value in outputs)
    kept = tuple(f.substitute(meaning.get) for f in filters)
    return Root(
        node.input,
        keys,
        payload=payload,
        is_global=node.is_global,
        is_bag=False,
        outputs=present,
        filters=kept,
        shown=shown,
        rows=rows,
    )


def _stored_keys(node: Aggregate) -> tuple[Item, ...]:
    """The keys under names that a Delta table takes without column mapping."""
    taken = {COUNT, PARTITION}
    keys = []
    for key in node.keys:
        _check_key(key)
        name = unique_name(storable(key.name), taken)
        taken.add(name)
        keys.append(Item(name, key.value, key.type))
    return tuple(keys)


def _key_shown(value: Scalar, stored: Mapping[ColumnId, str]) -> str | None:
    if not value.is_column:
        return None
    (column,) = value.columns
    return stored.get(column)


def _payload(node: Aggregate) -> tuple[PayloadColumn, ...]:
    """The components of all calls, equal ones once, named after what they add up."""
    found: dict[Component, PayloadColumn] = {}
    taken: set[str] = {COUNT}
    for number, call in enumerate(node.calls):
        for position, (kind, component) in enumerate(named_components(call).items()):
            if component in found:
                continue
            label = f"{kind}_{_label(call.argument)}" if kind else call.name
            name = unique_name(f"{PREFIX}{label}", taken)
            taken.add(name)
            products = node.factored.calls[number][position] if node.factored is not None else None
            found[component] = PayloadColumn(name, component, products)
    columns = tuple(found.values())
    has_many = any(is_packed(len(named_components(call))) for call in node.calls)
    return packed(columns) if has_many else columns


def _label(argument: Scalar | None) -> str:
    if argument is None or not argument.is_column:
        return "value"
    ((_, name),) = argument.columns
    return "".join(c if c.isalnum() or c == "_" else "_" for c in name.lower())


def _bag_root(query: Node, names: tuple[str, ...]) -> Root:
    """Every output column is a key, but constants, which every row shares, are not stored."""
    keys: list[Item] = []
    outputs: list[tuple[str, Scalar]] = []
    shown: list[tuple[str, str | None]] = []
    taken: set[str] = set()
    values = {i.name: i.value for i in query.items} if isinstance(query, Map) else {}
    constants = {name: value for name, value in values.items() if not value.columns}
    for name, field in zip(names, query.fields, strict=True):
        if field.name in constants:
            outputs.append((name, constants[field.name]))
            shown.append((name, None))
            continue
        column = unique_name(storable(field.name), taken | {COUNT, PARTITION})
        taken.add(column.lower())
        keys.append(Item(column, values.get(field.name, field.scalar), field.type))
        _check_key(keys[-1])
        outputs.append((name, Scalar.column("", column)))
        shown.append((name, column))
    if not keys:
        # Nothing but constants: all rows are one key.
        keys.append(Item(f"{PREFIX}row", Scalar.number(1), INT))
    core = query.input if isinstance(query, Map) else query
    return Root(
        core,
        tuple(keys),
        payload=(),
        is_global=False,
        is_bag=True,
        outputs=tuple(outputs),
        filters=(),
        shown=tuple(shown),
    )


def _check_key(key: Item) -> None:
    if not key.type.is_groupable:
        raise FivmError(
            "FIVM111",
            f"{key.name} has type {key.type}: {key.type.why_ungroupable}",
            remedy="CAST it to a string or a struct, or leave the column out",
        )
