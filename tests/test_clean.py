"""``fivm_clean``: only what models of this project have left that are gone, views before the states that they read."""

from __future__ import annotations

import re

import pytest

from fivm_dbt.engines.spark.engine import Answer
from fivm_dbt.naming import kept_under
from fivm_dbt.operations.clean import Leftover, drop, leftovers


class Warehouse:
    """Answers SHOW and DESCRIBE for relations with properties, and notes what is dropped."""

    def __init__(self, relations: dict[str, dict[str, str]], views: tuple[str, ...] = ()) -> None:
        self.relations = relations
        self.views = views
        self.dropped: list[str] = []

    def __call__(self, sql: str, *, fetch: bool) -> Answer:
        if sql.startswith("DROP"):
            self.dropped.append(sql)
            return Answer((), ())
        if (shown := re.fullmatch(r"SHOW (TABLE|VIEW)S IN (.+)", sql)) is not None:
            kind, schema = shown.groups()
            names = self.views if kind == "VIEW" else tuple(self.relations)
            rows = [(schema, n.split(".")[1], False) for n in names if n.startswith(f"{schema}.")]
            return Answer(
                ("namespace", f"{kind.lower()}Name", "isTemporary"), (*rows, (schema, "x__fivm_tmp", True))
            )
        name = sql.removeprefix("DESCRIBE TABLE EXTENDED ")
        kind = "VIEW" if name in self.views else "MANAGED"
        facts = ", ".join(f"{k}={v}" for k, v in self.relations[name].items())
        rows = [("k", "int", ""), ("", "", ""), ("Type", kind, ""), ("Provider", "delta", "")]
        rows += [("View Text", "select k from t", ""), ("Table Properties", f"[{facts}]", "")]
        return Answer(("col_name", "data_type", "comment"), tuple(rows))


def _of(model: str, project: str | None = "shop") -> dict[str, str]:
    return {"fivm.model": model} | ({"fivm.project": project} if project else {})


GONE = {
    "mart.old": {"fivm.root": "mart.old__fivm_root"},
    "mart.old__fivm_root": _of("mart.old"),
    "mart.old__fivm_view_1_orders": _of("mart.old"),
    "mart.old__fivm_snapshot_orders": _of("mart.old"),
}
THERE = {
    "mart.daily": {"fivm.root": "mart.daily__fivm_root"},
    "mart.daily__fivm_root": _of("mart.daily"),
    "mart.daily__fivm_view_1_orders": _of("mart.daily"),
    "mart.theirs__fivm_root": _of("mart.theirs", "another_project"),
    "mart.unmarked__fivm_root": _of("mart.unmarked", None),
    "mart.my__fivm_table": {"owner": "me"},
    "mart.orders": {},
    "mart.plain_view": {},
    "mart.fivm_journal": {},
}
VIEWS = ("mart.old", "mart.daily", "mart.plain_view")


def test_only_models_of_this_project_that_are_gone() -> None:
    found = leftovers(Warehouse(GONE | THERE, VIEWS), ["mart"], "shop", {"mart.daily": "mart.daily"})
    assert found == [
        Leftover("mart.old", True, "mart.old"),
        *(Leftover(name, False, "mart.old") for name in sorted(GONE)[1:]),
    ]


def test_nothing_where_every_model_is_there() -> None:
    warehouse = Warehouse(GONE | THERE, VIEWS)
    assert (
        leftovers(warehouse, ["mart"], "shop", {"MART.Daily": "mart.daily", "`mart`.old": "mart.old"}) == []
    )
    assert leftovers(warehouse, ["mart"], "another_project", {"mart.theirs": "mart.theirs"}) == []


def test_views_are_dropped_before_their_states() -> None:
    warehouse = Warehouse(GONE | THERE, VIEWS)
    drop(warehouse, leftovers(warehouse, ["mart"], "shop", {"mart.daily": "mart.daily"}))
    assert warehouse.dropped[0] == "DROP VIEW IF EXISTS mart.old"
    assert sorted(warehouse.dropped[1:]) == [f"DROP TABLE IF EXISTS {name}" for name in sorted(GONE)[1:]]


@pytest.mark.parametrize("schemas", [["mart", "`MART`"], ["mart", "stage"]])
def test_schemas_are_looked_at_once(schemas: list[str]) -> None:
    relations = GONE | {"stage.left__fivm_root": _of("stage.left")}
    found = leftovers(Warehouse(relations, VIEWS[:1]), schemas, "shop", {})
    assert len(found) == 4 + ("stage" in schemas)


KEPT = kept_under("mart.daily", "helpers")
MOVED = THERE | {
    "mart.daily__fivm_parts": _of("mart.daily"),
    f"{KEPT}__fivm_state": _of("mart.daily"),
    f"{KEPT}__fivm_view_1_orders": _of("mart.daily"),
}


@pytest.mark.parametrize("shows_new", [False, True])
def test_states_that_are_in_another_schema_now(*, shows_new: bool) -> None:
    """What the model still shows stays until its next run."""
    shown = f"{KEPT}__fivm_state" if shows_new else "mart.daily__fivm_root"
    warehouse = Warehouse(MOVED | {"mart.daily": {"fivm.root": shown}}, VIEWS[1:])
    found = leftovers(warehouse, ["mart", "helpers"], "shop", {"mart.daily": KEPT})
    old = ["mart.daily__fivm_root", "mart.daily__fivm_view_1_orders"]
    assert [item.name for item in found] == (old if shows_new else [])
