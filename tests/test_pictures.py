"""``fivm explain --format html`` and ``pdf``: what the pictures show, where boxes stand, and that no text is lost."""

from __future__ import annotations

import os
import re
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from fivm_dbt.catalog import Catalog
from fivm_dbt.cli import main
from fivm_dbt.config import load_config
from fivm_dbt.explain.drawing import Box, Drawing, Measured, laid_out, order_drawing, tree_drawing
from fivm_dbt.explain.flow_drawing import flow_drawing
from fivm_dbt.explain.graph import dot
from fivm_dbt.explain.operator_drawing import operator_drawing
from fivm_dbt.explain.page import colours, page
from fivm_dbt.explain.pdf import pdf
from fivm_dbt.features.viewdf.plan.planner import plan_viewdf
from fivm_dbt.parts.length import Length
from fivm_dbt.parts.parted import TimeParts
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.plan.request import ModelRequest
from fixtures import browser
from fixtures.models import plan_of, relation

COLUMNS = {
    "inventory": "locn int, dateid int, ksn int, units bigint",
    "location": "locn int, zip int, rgn int",
    "census": "zip int, population bigint",
    "item": "ksn int, category int, price decimal(8,2)",
    "weather": "locn int, dateid int, rain int",
}
QUERY = """
select location.rgn, sum(inventory.units * item.price) as value, sum(census.population * weather.rain) as wet
from inventory natural join location natural join census natural join item natural join weather
where item.category <> 3 group by location.rgn
"""


def _plan(static: tuple[str, ...] = ("census", "item"), **meta: object) -> Plan:
    tables = [relation(n, c, is_static=n in static) for n, c in COLUMNS.items()]
    return plan_of(QUERY, tables, {"fivm_strategy": "factorized"} | meta)


def _overlap(a: Box, b: Box) -> bool:
    apart_x = abs(a.x - b.x) >= (a.width + b.width) / 2
    apart_y = abs(a.y - b.y) >= (a.height + b.height) / 2
    return not (apart_x or apart_y)


def _check(drawing: Drawing) -> None:
    for a, b in combinations(drawing.boxes, 2):
        assert not _overlap(a, b), (a, b)
    for box in drawing.boxes:
        assert box.left >= 0 and box.left + box.width <= drawing.width
        assert box.top >= 0 and box.bottom <= drawing.height
    for above, below in drawing.edges:
        assert drawing.box(above).bottom < drawing.box(below).top


@pytest.mark.parametrize(
    "meta",
    [{}, {"fivm_result": "factorized"}, {"fivm_strategy": "recursive"}, {"fivm_strategy": "auto"}],
    ids=str,
)
def test_boxes_stand_apart_and_below_what_they_are_part_of(meta: dict[str, object]) -> None:
    for tree in _plan(**meta).view_trees:
        drawing = tree_drawing(_plan(**meta), tree)
        assert len(drawing.boxes) == len(tree.views)
        _check(drawing)
        order = order_drawing(tree)
        if order is not None:
            _check(order)
            assert [b.lines[0] for b in order.boxes] == [v for v, _ in tree.branches]


def test_independent_trees_stand_side_by_side() -> None:
    drawing = laid_out([Box("a", ("left",), "view"), Box("b", ("right", "of it"), "view")], [])
    _check(drawing)


def test_what_a_box_says() -> None:
    plan = _plan()
    (tree,) = plan.view_trees
    drawing = tree_drawing(plan, tree, Measured(4, 1.5, {plan.helpers[0].name: 1234}))
    assert {b.own: b.shape for b in drawing.boxes if b.own} == {
        "inventory": "updatable",
        "location": "updatable",
        "census": "static",
        "item": "static",
        "weather": "updatable",
    }
    assert {b.is_kept for b in drawing.boxes if b.shape == "view"} >= {True}
    assert [b.lines[-1] for b in drawing.boxes if "when built" in b.lines[-1]] == ["1,234 rows when built"]
    notes = [dict(b.notes) for b in drawing.boxes if b.own is None]
    assert all(n["="].startswith("⊕[") or " ⊗ " in n["="] or n["="] for n in notes)
    paths = [n for n in notes if "δ by inventory" in n]
    assert paths and all("δ" in n["δ by inventory"] for n in paths)
    assert not any("δ by census" in n for n in notes), "what is static has no delta"
    kept = [dict(b.notes) for b in drawing.boxes if b.is_kept and "table" in dict(b.notes)]
    assert {n["table"] for n in kept} == {v.name for v in plan.helpers}
    assert all(n["placed by"] and "read by" in n for n in kept)


def test_the_page_is_whole_and_refers_to_nothing() -> None:
    plan = _plan()
    text = page(plan, Measured(4, 1.25, {}))
    assert "Last refresh: number 4, 1.2 s" in text
    assert "Last refresh: number 5<" in page(plan, Measured(5, None, {}))
    assert "http" not in text and "<link" not in text and "src=" not in text
    assert "prefers-color-scheme: dark" in text
    assert "item.category &lt;&gt; 3" in text
    (tree,) = plan.view_trees
    for name, colour in colours(tree).items():
        assert f'data-relation="{name}"' in text and colour in text
    pictures = re.findall(r"<svg .*?</svg>", text, re.DOTALL)
    assert len(pictures) == 3
    shown = [ElementTree.fromstring(p.replace("<svg ", "<svg xmlns:x='x' ", 1)) for p in pictures]
    assert len(shown[0].findall("g")) == len(plan.inputs) + len(plan.views)
    assert len(shown[2].findall("g")) == len(tree.views)
    assert page(plan) == page(_plan()), "the same plan is the same page"


MART = """
select i.locn, i.units, w.rain, c.population, row_number() over (partition by i.ksn order by i.dateid, i.locn) as place
from inventory i left join weather w on i.locn = w.locn
left join (select zip, sum(population) as population from census group by zip) c on c.zip = i.locn
where i.units > 0
"""


def _mart(**meta: object) -> Plan:
    return plan_of(MART, [relation(n, c, is_static=n == "weather") for n, c in COLUMNS.items()], meta)


def test_a_model_without_a_tree_shows_its_operators() -> None:
    plan = _mart()
    assert not plan.view_trees
    drawing = operator_drawing(plan, Measured(3, 1.5, {plan.root.relation: 1234}))
    _check(drawing)
    model = drawing.box(f"view {plan.top.name}")
    assert model.lines[0] == "m"
    assert "1,234 rows when built" in model.lines
    assert set(model.relations) == {"inventory", "weather", "census"}
    # All that is kept, all inputs that are read, and each operator with its rule.
    assert {b.key for b in drawing.boxes if b.is_kept} == {f"view {v.name}" for v in plan.stored}
    assert {b.own: b.shape for b in drawing.boxes if b.own} == {
        "inventory": "updatable",
        "weather": "static",
        "census": "updatable",
    }
    rules = {b.lines[0]: dict(b.notes)["Δ"] for b in drawing.boxes if "Δ" in dict(b.notes)}
    assert rules["OuterJoin"].startswith("ring delta in the left side; affected left rows")
    assert rules["Window"].startswith("affected keys (kept.ksn)")
    for box in drawing.boxes:
        assert box is model or any(below == box.key for _, below in drawing.edges)
    census = [b for b in drawing.boxes if "census" in b.relations]
    assert model in census and drawing.box("input census") in census


def test_the_first_picture_goes_from_the_inputs_to_the_model() -> None:
    plan = _mart()
    drawing = flow_drawing(plan, Measured(3, 1.5, {plan.root.relation: 1234}))
    _check(drawing)
    assert {b.own for b in drawing.boxes if b.own} == {"inventory", "weather", "census"}
    assert {b.key for b in drawing.boxes if b.is_kept} == {"model", *(v.name for v in plan.helpers)}
    model = drawing.box("model")
    assert model.lines == ("m", "the model", "1,234 rows when built")
    assert not any(below == "model" for _, below in drawing.edges)
    for box in drawing.boxes:
        assert box is model or any(below == box.key for _, below in drawing.edges)
    assert "kept so that" in drawing.box(plan.helpers[0].name).notes[0][1]
    recomputed = flow_drawing(_mart(fivm_policy="full"))
    assert sorted(recomputed.edges) == [("model", n) for n in ("census", "inventory", "weather")]
    joined = flow_drawing(_plan(fivm_result="factorized"))
    assert not joined.box("model").is_kept, "its rows are joined when it is read"


def test_the_page_begins_with_the_story() -> None:
    shown = page(_mart())
    assert (
        shown.index("<h2>In short</h2>")
        < shown.index("m is computed from")
        < shown.index("<h2>Operators</h2>")
    )
    assert "When a row of inventory changes, " in shown and "When a row of weather changes" not in shown
    assert "Of weather no change is expected (fivm_static)." in shown


def test_the_page_of_a_model_without_a_tree_says_what_each_change_makes() -> None:
    plan = _mart()
    shown = page(plan)
    ElementTree.fromstring(re.search(r"<svg.*?</svg>", shown, re.DOTALL)[0])  # type: ignore[index]
    assert "<summary>When inventory changes</summary>" in shown
    assert "<summary>When census changes</summary>" in shown
    assert "When weather changes" not in shown
    assert "MERGE INTO" in shown
    assert pdf(plan) == pdf(plan)
    recomputed = page(_mart(fivm_policy="full"))
    assert "the model is recomputed" in recomputed
    assert ">census</text>" in recomputed


def test_a_model_that_is_computed_by_parts_shows_what_it_reads() -> None:
    catalog = Catalog.of([relation("raw.e", "id int, ts timestamp, x int")])
    config = load_config({"fivm_part_length": "day", "fivm_start": "2024-01-01"})
    sql = "select id, sum(x) as s from (select /*+ fivm_part('j') */ * from raw.e) group by id"
    request = ModelRequest("db.m", sql, catalog, config, session=(("timezone", "UTC"),))
    plan = plan_viewdf(request, {"raw.e": TimeParts("ts", Length.of("day", "UTC"), None)})
    assert operator_drawing(plan).edges == (("model", "input raw.e"),)
    shown = page(plan)
    assert "No view tree: the model is computed by parts." in shown
    assert "<summary>Parts and statements</summary>" in shown
    assert '"raw.e" -> "db.m__fivm_root"' in dot(plan)


def test_pages_without_a_tree() -> None:
    single = plan_of("select ksn, count(*) as n from item group by ksn", [relation("item", COLUMNS["item"])])
    assert "No view tree: no inner join needs one." in page(single)
    assert pdf(single).startswith(b"%PDF")
    assert "the model is recomputed" in page(_plan(fivm_strategy="reevaluate"))


@pytest.mark.long
def test_a_left_join_in_a_browser(repository: Path, tmp_path: Path) -> None:
    """``FIVM_UPDATE=1`` writes the picture in the docs anew."""
    tables = "create table customers (customer_id int, customer string, city string);\n"
    tables += "create table orders (order_id int, customer_id int, amount decimal(10, 2));\n"
    query = "select c.customer_id, c.customer, o.order_id, o.amount\nfrom customers c\n"
    file = tmp_path / "left_mart.sql"
    file.write_text(f"{tables}{query}left join orders o on c.customer_id = o.customer_id\n")
    done = CliRunner().invoke(main, ["explain", str(file), "--format", "html"])
    assert done.exit_code == 0, done.output
    html = tmp_path / "page.html"
    html.write_text(done.output)
    assert "analytics.left_mart</h1>" in browser.shown(f"file://{html}")
    picture = browser.pictured(f"file://{html}", tmp_path / "page.png", 1_000, 950)
    assert len(picture) > 20_000
    if os.environ.get("FIVM_UPDATE"):
        (repository / "docs" / "images" / "explain_page.png").write_bytes(picture)


def test_the_view_tree_of_the_page_about_learning(repository: Path, tmp_path: Path) -> None:
    """Of the page's first query, as ``fivm explain`` draws it. ``FIVM_UPDATE=1`` writes the picture anew."""
    text = (repository / "docs" / "learning.md").read_text(encoding="utf-8")
    tables, query = re.findall(r"^```sql\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)[:2]
    file = tmp_path / "moments.sql"
    file.write_text(f"{tables}{query}", encoding="utf-8")
    command = ["explain", str(file), "--strategy", "factorized", "--format", "html"]
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 0, done.output
    drawn = _picture(done.output, "view tree")
    kept = repository / "docs" / "images" / "learning_tree.svg"
    if os.environ.get("FIVM_UPDATE"):
        kept.write_text(drawn, encoding="utf-8")
    assert len(ElementTree.fromstring(drawn).findall("{http://www.w3.org/2000/svg}g")) == 5
    assert kept.read_text(encoding="utf-8") == drawn


def _picture(html: str, title: str) -> str:
    """A picture of a page as a file of its own, with the rules of the page's style that are about pictures."""
    rules = html.partition("<style>\n")[2].partition("</style>")[0]
    about = re.compile(r":root|@media|  :root|}|pre, svg|svg text|\.(box|inner|edge|static) ")
    style = "\n".join(rule for rule in rules.splitlines() if about.match(rule))
    (shown,) = re.findall(rf'<svg ([^>]*aria-label="{title}">)(.*?</svg>)', html, re.DOTALL)
    return f'<svg xmlns="http://www.w3.org/2000/svg" {shown[0]}\n<style>\n{style}\n</style>{shown[1]}\n'


def test_pdf_has_a_page_per_picture() -> None:
    found = pdf(_plan())
    assert found.startswith(b"%PDF") and len(re.findall(rb"/Type /Page\b", found)) == 2
    assert pdf(_plan()) == found


@pytest.mark.parametrize(("form", "start"), [("html", b"<!DOCTYPE html>"), ("pdf", b"%PDF")])
def test_on_the_command_line(form: str, start: bytes, tmp_path: Path) -> None:
    file = tmp_path / "q.sql"
    tables = "".join(f"create table {n} ({c});\n" for n, c in COLUMNS.items())
    file.write_text(tables + QUERY, encoding="utf-8")
    result = CliRunner().invoke(main, ["explain", str(file), "--strategy", "factorized", "--format", form])
    assert result.exit_code == 0 and result.stdout_bytes.startswith(start)
