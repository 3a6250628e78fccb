"""Configuration of a model: everything wrong at once, later capabilities refused, other people's keys left alone."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from fivm_dbt.config import Config, load_config
from fivm_dbt.errors import FivmError
from fivm_dbt.project.unused_keys import unused_keys


def _refusal(meta: dict[str, object]) -> FivmError:
    with pytest.raises(FivmError) as caught:
        load_config(meta, model="daily")
    return caught.value


def test_defaults() -> None:
    assert load_config({}) == Config()
    assert load_config({"owner": "me", "contains_pii": True}) == Config()


def test_values() -> None:
    config = load_config(
        {
            "fivm_partition_by": "day",
            "fivm_merge": "per_partition",
            "fivm_static": ["raw.a"],
            "fivm_buckets": 16,
            "fivm_on_change": "fail",
            "batch_size": "day",
        }
    )
    assert config.fivm_partition_by == "day"
    assert config.fivm_merge == "per_partition"
    assert config.fivm_static == ("raw.a",)
    assert config.fivm_buckets == 16
    assert (config.fivm_on_change, config.batch_size) == ("fail", "day")


def test_everything_wrong_is_told_at_once() -> None:
    error = _refusal({"fivm_strategie": "auto", "fivm_merge": "all", "fivm_buckets": 0, "batch_size": "week"})
    assert error.code.number == "FIVM201"
    assert error.model == "daily"
    for part in (
        "unknown key fivm_strategie: did you mean fivm_strategy?",
        "fivm_merge: 'all' is not allowed (expected one of 'grouped', 'per_partition')",
        "fivm_buckets: 0",
        "batch_size: 'week' is not allowed (expected one of 'hour', 'day', 'month', 'year')",
    ):
        assert part in error.message
    assert error.message.count("; ") == 3


@pytest.mark.parametrize(
    "meta",
    [
        {"fivm_static": "raw.a"},
        {"fivm_buckets": 5000},
        {"fivm_buckets": "many"},
        {"fivm_lease_minutes": 5},
        {"fivm_trust_keys": "perhaps"},
        {"fivm_depth": "deep"},
        {"fivm_depth": 0},
        {"fivm_partition_by": 3},
        {"fivm_": 1},
    ],
    ids=str,
)
def test_wrong_values(meta: dict[str, object]) -> None:
    error = _refusal(meta)
    assert error.code.number == "FIVM201"
    assert next(iter(meta)) in error.message


def test_what_does_not_go_together_yet_is_refused() -> None:
    error = _refusal({"fivm_expose": "table", "fivm_result": "factorized"})
    assert error.code.number == "FIVM203"
    assert "fivm_expose: table" in error.message


def test_names_that_were_probably_meant() -> None:
    error = _refusal({"fivm_polici": "auto", "fivm_apply": "merg", "fivm_zzzzzz": 1})
    for part in (
        "unknown key fivm_polici: did you mean fivm_policy?",
        "fivm_apply: 'merg' is not allowed (expected one of 'auto', 'merge', 'replace', 'append'): did you mean merge?",
        "unknown key fivm_zzzzzz: expected one of fivm_apply, ",
    ):
        assert part in error.message
    listed = _refusal({"fivm_without": ["look_up"]}).message
    assert listed.startswith("fivm_without.0: 'look_up' is not allowed") and listed.endswith(
        "did you mean look_ups?"
    )


@pytest.mark.parametrize(
    ("config", "told"),
    [
        (
            {"materialized": "fivm", "meta": {"fivm_policy": "auto"}, "file_format": "delta", "tags": ["a"]},
            (),
        ),
        ({"on_schema_change": "ignore", "lookback": 1, "unique_key": None, "pre-hook": []}, ()),
        (
            {"fivm_strategy": "recursive"},
            ("fivm_strategy has no effect outside meta: write config(meta={'fivm_strategy': 'recursive'})",),
        ),
        (
            {"fivm_strategy": "factorised"},
            (
                "fivm_strategy has no effect outside meta: write it there; fivm_strategy: 'factorised' is not "
                "allowed (expected one of 'auto', 'first_order', 'factorized', 'recursive', 'reevaluate'): "
                "did you mean factorized?",
            ),
        ),
        (
            {"fivm_strategie": "auto"},
            ("fivm_strategie has no effect outside meta: there is no such key; did you mean fivm_strategy?",),
        ),
        (
            {"unique_key": ["id"], "incremental_strategy": "merge", "on_schema_change": "append_new_columns"},
            (
                "unique_key has no effect on fivm models: the rows that changed are found without it",
                "incremental_strategy has no effect on fivm models: meta fivm_apply says how changes are written",
                "on_schema_change has no effect on fivm models: meta fivm_on_change says what happens when "
                "the query has changed",
            ),
        ),
        (
            {"partition_by": ["day"], "file_format": "parquet"},
            (
                "partition_by has no effect on fivm models: meta fivm_partition_by names the column that "
                "partitions the state",
                "file_format 'parquet' has no effect on fivm models: the state is always a Delta table",
            ),
        ),
    ],
)
def test_keys_that_nobody_reads(config: dict[str, object], told: tuple[str, ...]) -> None:
    assert tuple(unused_keys(config)) == told


def test_defaults_written_out_are_accepted() -> None:
    written = {
        "fivm_strategy": "first_order",
        "fivm_policy": "incremental",
        "fivm_apply": "merge",
        "fivm_depth": "full",
        "fivm_result": "listing",
        "fivm_float": "recompute",
        "fivm_trust_keys": False,
        "fivm_refresh": "eager",
        "fivm_start": None,
        "fivm_expose": "view",
    }
    config = load_config(written)
    assert (config.fivm_strategy, config.fivm_apply) == ("first_order", "merge")


def test_a_config_does_not_change() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Config().fivm_merge = "per_partition"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("declares", "told"),
    [
        ({"key": ["a"]}, "fivm_declares.key: "),
        ({"keys": [[]]}, "fivm_declares.keys.0: "),
        ({"keys": [1]}, "fivm_declares.keys.0: 1"),
        ({"dependencies": ["a, b"]}, "expected: zip -> city, state"),
        ({"dependencies": ["a -> b -> c"]}, "fivm_declares.dependencies.0: 'a -> b -> c'"),
        ({"dependencies": ["a, -> b"]}, "fivm_declares.dependencies.0: 'a, -> b'"),
        ({"foreign_keys": [{"columns": "a"}]}, "fivm_declares.foreign_keys.0.to: "),
        ({"foreign_keys": [{"columns": "a", "to": "t", "to_columns": ["b", "c"]}]}, "differ in number"),
    ],
)
def test_declarations_that_cannot_be_read(declares: dict[str, object], told: str) -> None:
    error = _refusal({"fivm_declares": declares})
    assert error.code.number == "FIVM201" and told in error.message


def test_declarations_of_the_docs() -> None:
    page = (Path(__file__).parent.parent / "docs/configuration.md").read_text()
    block = page.split("## Declared keys")[1].split("```yaml\n")[1].split("```")[0]
    meta = yaml.safe_load(block)["sources"][0]["tables"][0]["config"]["meta"]
    declares = load_config(meta).fivm_declares
    assert declares is not None
    assert declares.columns == {"store_id", "region", "number", "zip", "city", "state"}
    assert declares.keys == (("store_id",), ("region", "number"))
