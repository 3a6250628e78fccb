"""Names that were probably meant."""

from __future__ import annotations

import pytest

from fivm_dbt.suggest import did_you_mean, near_name


@pytest.mark.parametrize(
    ("name", "candidates", "meant"),
    [
        ("quantiy", ["price", "quantity"], "quantity"),
        ("QUANTIY", ["price", "Quantity"], "Quantity"),
        ("quantity", ["price", "quantity"], "quantity"),
        ("k", ["price", "quantity"], None),
        ("raw.oders", ["raw.orders", "raw.items"], "raw.orders"),
        ("a", [], None),
    ],
)
def test_the_nearest_name_is_the_one_that_was_meant(
    name: str, candidates: list[str], meant: str | None
) -> None:
    assert near_name(name, candidates) == meant
    assert did_you_mean(name, candidates) == (f"did you mean {meant}?" if meant else "")


def test_which_of_two_equally_near_names_is_said_does_not_depend_on_their_order() -> None:
    assert near_name("col_c", {"col_a", "col_b"}) == near_name("col_c", ["col_b", "col_a"])
