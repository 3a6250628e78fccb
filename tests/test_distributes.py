"""Which views are read by parts of their payloads: those that are joined, multiplied once and added up."""

from __future__ import annotations

import pytest

from fivm_dbt.catalog.types import BIGINT, INT
from fivm_dbt.delta.distributes import read_by_parts
from fivm_dbt.ir.comparison import Comparison
from fivm_dbt.ir.factored import Product
from fivm_dbt.ir.node import Node
from fivm_dbt.ir.nodes import Filter, Join
from fivm_dbt.ir.reads import Scan
from fivm_dbt.ir.scalar import Scalar


def _view(name: str, alias: str | None = None) -> Scan:
    return Scan(name, alias or name, (("k", INT), ("rows", BIGINT), ("s", BIGINT)))


def _column(table: str, name: str) -> Scalar:
    return Scalar.column(table, name)


def _product(*factors: tuple[str, str]) -> Product:
    return Product(1, tuple((_column(*factor), BIGINT) for factor in factors))


V, W = _view("v"), _view("w")
ON_KEYS = Comparison(_column("v", "k"), "=", _column("w", "k")).scalar
BOTH: Node = Join((V, W), (ON_KEYS,))
ROWS = _product(("v", "rows"), ("w", "rows"))
SUM = _product(("v", "s"), ("w", "rows"))
KEYS = [_column("v", "k")]


def test_products_of_joined_views() -> None:
    assert read_by_parts(BOTH, KEYS, [ROWS, SUM]) == {"v", "w"}
    nested = Join((Join((V, W), (ON_KEYS,)), _view("u")), ())
    assert read_by_parts(nested, KEYS, [_product(("v", "rows"), ("w", "rows"), ("u", "rows"))]) == {
        "v",
        "w",
        "u",
    }


def test_the_same_view_twice_is_multiplied_by_itself() -> None:
    twice = Join((V, _view("v", "v2")), ())
    assert read_by_parts(twice, KEYS, [_product(("v", "rows"), ("v2", "rows"))]) == {"v"}


@pytest.mark.parametrize(
    "products",
    [
        [ROWS, _product(("v", "s"))],
        [ROWS, _product(("v", "s"), ("w", "rows"), ("w", "s"))],
        [
            ROWS,
            Product(
                1, ((_column("v", "s"), BIGINT), (Scalar.times(_column("w", "s"), _column("w", "s")), BIGINT))
            ),
        ],
    ],
    ids=["no factor", "two factors", "an expression"],
)
def test_a_product_has_one_factor_of_a_view(products: list[Product]) -> None:
    assert read_by_parts(BOTH, KEYS, products) == {"v"}


def test_nothing_is_compared_or_grouped_by_a_payload() -> None:
    more = Comparison(_column("w", "s"), ">", Scalar.number(3)).scalar
    product = [_product(("v", "rows"), ("w", "s"))]
    assert read_by_parts(Join((V, W), (ON_KEYS, more)), KEYS, product) == {"v"}
    assert read_by_parts(BOTH, [_column("w", "s")], product) == {"v"}


def test_nothing_stands_between_the_aggregate_and_the_view() -> None:
    there = Filter(W, (Comparison(_column("w", "rows"), ">", Scalar.number(0)).scalar,))
    assert read_by_parts(Join((V, there), (ON_KEYS,)), KEYS, [ROWS, SUM]) == {"v"}
    assert read_by_parts(Filter(BOTH, (ON_KEYS,)), KEYS, [ROWS]) == frozenset()
    again = Join((V, Filter(_view("v", "v2"), ()), W), (ON_KEYS,))
    assert read_by_parts(again, KEYS, [ROWS]) == {"w"}, "one way is not all ways"
