"""A user writes variable orders in YAML: ``{locn: [{dateid: ksn}, zip]}``."""

from __future__ import annotations

from fivm_dbt.errors import FivmError
from fivm_dbt.viewtree.variable_order import OrderNode, VariableOrder


def nested_order(value: object) -> VariableOrder:
    """The order that nested lists and mappings describe. FIVM204 for anything else in them.

    A name is a variable without others below, a mapping gives what is below each of its names, a list are siblings.

    >>> str(nested_order({"A": ["B", {"C": ["D", "E"]}]}))
    'A – {B, C – {D, E}}'
    """
    return VariableOrder(_nodes(value))


def _nodes(value: object) -> tuple[OrderNode, ...]:
    if value is None:
        return ()
    if isinstance(value, str):
        return (OrderNode(value),)
    if isinstance(value, dict):
        return tuple(OrderNode(_name(name), _nodes(below)) for name, below in value.items())
    if isinstance(value, list):
        return tuple(node for item in value for node in _nodes(item))
    raise FivmError(
        "FIVM204",
        f"{value!r} in the order is neither a name, nor a list, nor a mapping of names",
        remedy="write {locn: [{dateid: ksn}, zip]} for locn above dateid and zip, and dateid above ksn",
    )


def _name(name: object) -> str:
    if not isinstance(name, str):
        raise FivmError(
            "FIVM204", f"{name!r} in the order is no name", remedy="put names of variables in quotes"
        )
    return name
