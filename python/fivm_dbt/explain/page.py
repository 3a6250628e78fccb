"""A plan becomes one self-contained page: query, a story and one picture, then view trees and the paths of changes.

A model without a view tree has its operators instead, with what each change makes and the statements.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from fivm_dbt.explain.deltas import delta_lines
from fivm_dbt.explain.drawing import LINE, PADDING, Box, Drawing, Measured, order_drawing, tree_drawing
from fivm_dbt.explain.flow_drawing import flow_drawing
from fivm_dbt.explain.operator_drawing import operator_drawing
from fivm_dbt.explain.statements import statement_lines
from fivm_dbt.explain.text import written
from fivm_dbt.explain.view_trees import trees_of
from fivm_dbt.explain.words import story
from fivm_dbt.naming import CLOCK
from fivm_dbt.plan.model.plan import MaintainedPlan, Plan
from fivm_dbt.plan.model.shown import ViewTree
from fivm_dbt.registry import Registry

COLOURS = ("#4c78a8", "#e45756", "#54a24b", "#eeca3b", "#b279a2", "#f58518", "#72b7b2", "#9d755d", "#ff9da6")
"""One per relation, readable on light and on dark, and told apart by most people."""

TEXTS: Registry[Callable[[Any], Iterable[tuple[str, str]]]] = Registry()
"""By kind of plan what stands below the operators: texts, each with its title."""


def page(plan: Plan, measured: Measured | None = None) -> str:
    """The page as HTML. ``measured`` is what the head says of the last refresh, if anything."""
    environment = Environment(
        loader=PackageLoader("fivm_dbt.explain", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    return environment.get_template("page.html.j2").render(
        model=plan.relation,
        sql="\n".join(written(plan)),
        measured=measured.text if measured is not None else "",
        sections=[_flow(plan, measured), *_theory(plan, measured)],
    )


def _theory(plan: Plan, measured: Measured | None) -> list[dict[str, Any]]:
    """How it is maintained, for people who know the papers."""
    return [_tree(plan, tree, measured) for tree in trees_of(plan)] or [_operators(plan, measured)]


def _flow(plan: Plan, measured: Measured | None) -> dict[str, Any]:
    """The story, and its picture."""
    drawing, by_relation = flow_drawing(plan, measured), input_colours(plan)
    noted = [box for box in drawing.boxes if box.notes]
    return {
        "heading": "In short",
        "story": story(plan),
        "about": "",
        "costs": (),
        "relations": _legend(by_relation, {i.name for i in plan.inputs if i.is_static}),
        "pictures": [_picture(drawing, by_relation, "from the inputs, through inner views, to the model")],
        # Names are words here, as many lines as they need.
        "views": [row | {"name": " ".join(box.lines)} for row, box in zip(_rows(noted), noted, strict=True)],
        "texts": [],
    }


def input_colours(plan: Plan) -> dict[str, str]:
    """The colour of each input of a model without a view tree."""
    return {item.name: COLOURS[i % len(COLOURS)] for i, item in enumerate(plan.inputs)}


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
    implied = f" {tree.implied[0].upper()}{tree.implied[1:]}." if tree.implied else ""
    return {
        "heading": f"View tree of {tree.block}",
        "story": (),
        "about": f"Query class: {tree.query_class}.{implied}",
        "costs": tree.costs,
        "relations": _legend(by_relation, tree.static),
        "pictures": pictures,
        "views": _rows(drawing.boxes),
        "texts": [],
    }


def _operators(plan: Plan, measured: Measured | None) -> dict[str, Any]:
    """The section of a model without a view tree."""
    drawing, by_relation = operator_drawing(plan, measured), input_colours(plan)
    texts = TEXTS.of(plan)
    return {
        "heading": "Operators",
        "story": (),
        "about": f"No view tree: {plan.why_no_tree}.",
        "costs": (),
        "relations": _legend(by_relation, {i.name for i in plan.inputs if i.is_static}),
        "pictures": [_picture(drawing, by_relation, "operators, from the inputs up to the model")],
        # The model comes first.
        "views": _rows(drawing.boxes[::-1]),
        "texts": list(texts(plan)) if texts is not None else [],
    }


@TEXTS.add(MaintainedPlan)
def _texts(plan: MaintainedPlan) -> Iterator[tuple[str, str]]:
    """What a change of each input makes, and the statements."""
    moved = [(item.name, f"When {item.name} changes") for item in plan.inputs if not item.is_static]
    if plan.clock_kinds:
        moved.append((CLOCK, "When the clock moves"))
    yield from ((title, "\n".join(delta_lines(plan, name))) for name, title in moved)
    yield "Statements", "\n".join(statement_lines(plan))


def _legend(by_relation: Mapping[str, str], static: Collection[str]) -> list[dict[str, Any]]:
    return [
        {"name": name, "colour": colour, "is_static": name in static} for name, colour in by_relation.items()
    ]


def _rows(boxes: Iterable[Box]) -> list[dict[str, Any]]:
    return [{"name": box.lines[0], "relations": " ".join(box.relations), "notes": box.notes} for box in boxes]


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
