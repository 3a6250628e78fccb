"""Names of everything that is created, and how identifiers are written."""

from __future__ import annotations

import pytest
import sqlglot

from fivm_dbt.naming import (
    MAX_IDENTIFIER,
    RESERVED,
    canonical,
    quote,
    relation_name,
    sibling,
    split_name,
    staged_name,
    unique_name,
)
from fivm_dbt.steps.binding import staged_input, staged_state
from fixtures.models import plan_of, relation


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("k", "k"),
        ("_k2", "_k2"),
        ("K", "`K`"),
        ("2k", "`2k`"),
        ("a-b", "`a-b`"),
        ("a b", "`a b`"),
        ("a.b", "`a.b`"),
        ("a`b", "`a``b`"),
        ("order", "`order`"),
        ("größe", "`größe`"),
        ("", "``"),
    ],
)
def test_quote(name: str, written: str) -> None:
    assert quote(name) == written


@pytest.mark.parametrize("word", sorted(RESERVED))
def test_reserved_words_are_quoted(word: str) -> None:
    assert quote(word) == f"`{word}`"
    sqlglot.parse_one(f"select t.{quote(word)} as {quote(word)} from t", dialect="spark")


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("flights", ("flights",)),
        ("Raw.Flights", ("raw", "flights")),
        ("`Raw`.`My Flights`", ("raw", "my flights")),
        ("cat.`a.b`.c", ("cat", "a.b", "c")),
        ("`a``b`", ("a`b",)),
        (" raw . t ", ("raw", "t")),
    ],
)
def test_split_name(name: str, parts: tuple[str, ...]) -> None:
    assert split_name(name) == parts


@pytest.mark.parametrize("name", ["raw.flights", "`my raw`.t", "cat.`a.b`.`c``d`", "t"])
def test_canonical_names_stay_as_they_are(name: str) -> None:
    assert canonical(name) == name
    assert canonical(name.upper()) == name
    assert relation_name(*split_name(name)) == name


def test_missing_parts_are_left_out() -> None:
    assert relation_name(None, "", "Raw", "T") == "raw.t"


def test_sibling() -> None:
    assert sibling("analytics.daily", "root") == "analytics.daily__fivm_root"
    assert sibling("`my marts`.`daily sums`", "root") == "`my marts`.`daily sums__fivm_root`"


def test_long_names_are_cut_and_stay_apart() -> None:
    first, second = ("m" * 150 + end for end in "ab")
    names = [sibling(f"analytics.{name}", "root").split(".")[1] for name in (first, second)]
    assert len(set(names)) == 2
    assert all(len(name) == MAX_IDENTIFIER for name in names)
    staged = [staged_name(f"analytics.{name}", "raw.t") for name in (first, second)]
    assert len(set(staged)) == 2
    assert all(len(name) < 2 * MAX_IDENTIFIER for name in staged)


def test_staged_names_are_plain_and_carry_the_model() -> None:
    name = staged_name("analytics.`Daily Sums`", "delta_raw.`My T`")
    assert quote(name) == name
    assert staged_name("analytics.a", "delta_raw.t") != staged_name("analytics.b", "delta_raw.t")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("a.b", "delta_raw.t"), ("a_b", "delta_raw.t")),
        (("analytics.`x-y`", "delta_raw.t"), ("analytics.x_y", "delta_raw.t")),
        (("analytics.m", "delta_raw.`a-b`"), ("analytics.m", "delta_raw.a_b")),
        (("analytics.m", "delta_raw.a_b"), ("analytics.m", "delta_raw_a.b")),
    ],
    ids=str,
)
def test_staged_names_of_different_things_differ(one: tuple[str, str], other: tuple[str, str]) -> None:
    """All threads of dbt share one session, and a model stages all its inputs in it."""
    assert staged_name(*one) != staged_name(*other)


def test_the_delta_of_the_root_is_not_that_of_an_input() -> None:
    tables = [relation("of_root", "k int")]
    plan = plan_of("select k from of_root", tables)
    assert staged_input(plan, "of_root") != staged_state(plan, plan.top)
    assert staged_input(plan, plan.root.relation) != staged_state(plan, plan.top)


def test_snapshots_of_different_inputs_differ() -> None:
    tables = [
        relation("raw.a_b", "k int", is_recreated=True),
        relation("raw_a.b", "k int", is_recreated=True),
    ]
    plan = plan_of("select x.k from raw.a_b x join raw_a.b y on x.k = y.k", tables)
    assert plan.snapshot_table("raw.a_b") != plan.snapshot_table("raw_a.b")


def test_unique_name() -> None:
    assert unique_name("f", set()) == "f"
    assert unique_name("F", {"f", "f_2"}) == "F_3"
