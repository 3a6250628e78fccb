"""The datasets of the F-IVM article by their shapes: relations, keys, and what is computed over their join."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fivm_dbt.catalog import Catalog, Column, Relation
from fivm_dbt.testing.workbench import TableSpec

CONTINUOUS, MIXED, CATEGORICAL, SUM = KINDS = ("continuous", "mixed", "categorical", "sum")


@dataclass(frozen=True)
class Joined:
    """A relation: its join variables, and how many variables of its own it has, some of them ``categorical``.

    ``rows`` are those of facts, whose keys are drawn; None of a dimension, which has a row for each key.
    """

    name: str
    keys: tuple[str, ...]
    own: int
    categorical: int = 0
    rows: int | None = None

    @property
    def variables(self) -> tuple[str, ...]:
        return tuple(f"{self.name}_{n}" for n in range(self.own))

    @property
    def spec(self) -> TableSpec:
        return TableSpec(self.name, tuple(Column.of(c, "int") for c in (*self.keys, *self.variables)))


@dataclass(frozen=True)
class Shape:
    """A dataset: its relations, how they are joined, how many values join variables have, and one variable to sum."""

    name: str
    tables: tuple[Joined, ...]
    join: str
    domains: Mapping[str, int]
    summed: str
    order: Mapping[str, Any] | None = None

    @property
    def catalog(self) -> Catalog:
        return Catalog.of(Relation(t.name, t.spec.columns) for t in self.tables)

    @property
    def variables(self) -> list[str]:
        return [v for t in self.tables for v in t.variables]

    def sql(self, kind: str) -> str:
        """One covariance over all variables, or the one sum."""
        if kind == SUM:
            return f"select sum({self.summed}) as total from {self.join}"
        return f"select fivm_covariance({', '.join(self._arguments(kind))}) as m from {self.join}"

    def _arguments(self, kind: str) -> Iterator[str]:
        for table in self.tables:
            groups = {CONTINUOUS: 0, MIXED: table.categorical, CATEGORICAL: table.own}[kind]
            for n, variable in enumerate(table.variables):
                yield f"fivm_categorical({variable})" if n < groups else variable

    def sums(self, variables: int | None = None) -> list[str]:
        """The moments of the first so many variables, each as an aggregate of its own."""
        names = self.variables[:variables]
        products = [f"sum({name} * {other})" for n, name in enumerate(names) for other in names[n:]]
        return ["count(*)", *(f"sum({name})" for name in names), *products]


RETAILER = Shape(
    "retailer",
    (
        Joined("inventory", ("locn", "dateid", "ksn"), 1, rows=100_000),
        Joined("location", ("locn", "zip"), 14),
        Joined("census", ("zip",), 15),
        Joined("item", ("ksn",), 4, categorical=3),
        Joined("weather", ("locn", "dateid"), 5, categorical=2),
    ),
    "inventory join location on inventory.locn = location.locn join census on location.zip = census.zip "
    "join item on inventory.ksn = item.ksn "
    "join weather on inventory.locn = weather.locn and inventory.dateid = weather.dateid",
    {"locn": 100, "dateid": 50, "ksn": 500, "zip": 80},
    "inventory_0",
    {"locn": [{"dateid": ["ksn"]}, "zip"]},
)
HOUSING = Shape(
    "housing",
    tuple(
        Joined(name, ("postcode",), own, categorical, rows)
        for name, own, categorical, rows in (
            ("house", 10, 3, 40_000),
            ("shop", 4, 2, 10_000),
            ("institution", 3, 2, 10_000),
            ("restaurant", 3, 2, 10_000),
            ("people", 3, 1, None),
            ("transport", 3, 2, None),
        )
    ),
    "house "
    + " ".join(
        f"join {n} on house.postcode = {n}.postcode"
        for n in ("shop", "institution", "restaurant", "people", "transport")
    ),
    {"postcode": 5_000},
    "house.postcode",
)
FAVORITA = Shape(
    "favorita",
    (
        Joined("sales", ("date", "store", "item"), 2, categorical=1, rows=100_000),
        Joined("stores", ("store",), 4, categorical=4),
        Joined("items", ("item",), 3, categorical=3),
        Joined("transactions", ("date", "store"), 1),
        Joined("holiday", ("date",), 4, categorical=4),
        Joined("oil", ("date",), 1),
    ),
    "sales join stores on sales.store = stores.store join items on sales.item = items.item "
    "join transactions on sales.date = transactions.date and sales.store = transactions.store "
    "join holiday on sales.date = holiday.date join oil on sales.date = oil.date",
    {"date": 100, "store": 50, "item": 400},
    "sales_1",
)
SHAPES = {shape.name: shape for shape in (RETAILER, HOUSING, FAVORITA)}
