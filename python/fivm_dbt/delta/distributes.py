"""Which views an aggregate reads so that parts of a payload are as good as all of it.

A product of payloads distributes over their addition (F-IVM article, section 3).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fivm_dbt.delta.term import scans
from fivm_dbt.ir.factored import Product
from fivm_dbt.ir.node import Node
from fivm_dbt.ir.scalar import ColumnId, Scalar


def read_by_parts(core: Node, keys: Iterable[Scalar], products: Sequence[Product]) -> frozenset[str]:
    """The relations of which several rows of a key, whose payloads add up to that of the key, give the same sums.

        Σ_K (a + b) × S = Σ_K a × S + Σ_K b × S

    ``core`` is what is aggregated by ``keys`` into sums of ``products``. The relations are joined in it, by columns
    other than their payload, and each product has one factor of them. Anything else looks at a payload as a whole:
    whether a group is there, how two of them compare.
    """
    nodes, conditions = core.joined()
    compared = {column for value in (*conditions, *keys) for column in value.columns}
    joined = {id(node) for node in nodes}
    found: dict[str, bool] = {}
    for scan in scans(core):
        one = id(scan) in joined and all(_has_one_factor(p, scan.alias, compared) for p in products)
        found[scan.relation] = one and found.get(scan.relation, True)
    return frozenset(name for name, distributes in found.items() if distributes)


def _has_one_factor(product: Product, alias: str, compared: set[ColumnId]) -> bool:
    """Whether a product has one factor of a relation, a column by which nothing is joined or grouped."""
    own = [value for value, _ in product.factors if any(table == alias for table, _ in value.columns)]
    return len(own) == 1 and own[0].is_column and not own[0].columns & compared
