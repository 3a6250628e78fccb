"""A plan as one self-contained page: query, variable orders, view trees, and the path of each relation's changes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from fivm_dbt.explain.drawing import LINE, PADDING, Box, Drawing, Measured, order_drawing, tree_drawing
from fivm_dbt.plan.plan import Plan, ViewTree

COLOURS = ("#4c78a8", "#e45756", "#54a24b", "#eeca3b", "#b279a2", "#f58518", "#72b7b2", "#9d755d", "#ff9da6")
"""One per relation, readable on light and on dark, and told apart by most people."""


def page(plan: Plan, measured: Measured | None = None) -> str:
    """The page as HTML. ``measured`` is what the journal says of the last refresh, if anything."""
    environment = Environment(
        loader=PackageLoader("fivm_dbt.explain", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    why = "nothing is joined that one is kept of" if plan.recompute is None else "the model is recomputed"
    return environment.get_template("page.html.j2").render(
        model=plan.relation,
        sql=plan.sql.strip(),
        measured=measured.text if measured is not None else "",
        trees=[_tree(plan, tree, measured) for tree in plan.view_trees],
        why_none=why,
    )


def colours(tree: ViewTree) -> dict[str, str]:
    """The colour of each relation of a block, in the order of the query."""
    names = tree.views[0].relations if tree.views else ()
    return {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(names)}


def _tree(plan: Plan, tree: ViewTree, measured: Measured | None) -> dict[str, Any]:
    drawing, order = tree_drawing(plan, tree, measured), order_drawing(tree)
    by_relation = colours(tree)
    pictures = [_picture(drawing, by_relation, "view tree")]
    if order is not None:
        pictures.insert(0, _picture(order, {}, f"variable order, {tree.chosen}"))
    relations = [
        {"name": name, "colour": colour, "is_static": name in tree.static}
        for name, colour in by_relation.items()
    ]
    views = [
        {"name": box.lines[0], "relations": " ".join(box.relations), "notes": box.notes}
        for box in drawing.boxes
    ]
    return {
        "block": tree.block,
        "query_class": tree.query_class,
        "implied": tree.implied,
        "costs": tree.costs,
        "relations": relations,
        "pictures": pictures,
        "views": views,
    }


def _picture(drawing: Drawing, by_relation: dict[str, str], title: str) -> dict[str, Any]:
    return {
        "title": title,
        "width": drawing.width,
        "height": drawing.height,
        "boxes": [_box(box, by_relation) for box in drawing.boxes],
        "edges": list(_edges(drawing)),
    }


def _box(box: Box, by_relation: dict[str, str]) -> dict[str, Any]:
    lines = [{"text": text, "y": box.top + PADDING + (i + 0.72) * LINE} for i, text in enumerate(box.lines)]
    return {
        "title": "\n".join(f"{label} {text}".strip() for label, text in box.notes),
        "relations": " ".join(box.relations),
        "left": box.left,
        "top": box.top,
        "x": box.x,
        "width": box.width,
        "height": box.height,
        "is_leaf": box.shape in ("updatable", "static", "variable"),
        "is_static": box.shape == "static",
        "is_kept": box.is_kept,
        "colour": by_relation.get(box.own or ""),
        "lines": lines,
    }


def _edges(drawing: Drawing) -> Iterator[dict[str, Any]]:
    for above, below in drawing.edges:
        start, end = drawing.box(above), drawing.box(below)
        yield {
            "x1": start.x,
            "y1": start.bottom,
            "x2": end.x,
            "y2": end.top,
            "middle": (start.bottom + end.top) / 2,
            "relations": " ".join(end.relations),
        }
