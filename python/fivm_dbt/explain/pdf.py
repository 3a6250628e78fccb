"""The pictures of :mod:`fivm_dbt.explain.page` become a PDF, a page for each variable order and view tree."""

from __future__ import annotations

import io
from typing import Any

from fivm_dbt.errors import FivmError
from fivm_dbt.explain.drawing import LINE, PADDING, Box, Drawing, Measured, order_drawing, tree_drawing
from fivm_dbt.explain.operator_drawing import operator_drawing
from fivm_dbt.explain.page import colours, input_colours
from fivm_dbt.explain.view_trees import trees_of
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.plan.model.shown import ViewTree

_POINTS = 72.0
_MARGIN = 60.0


def pdf(plan: Plan, measured: Measured | None = None) -> bytes:
    """The pages. Raises FIVM505 where matplotlib is missing."""
    try:
        from matplotlib.backends.backend_pdf import PdfPages
    except ImportError:
        raise FivmError(
            "FIVM505", "matplotlib is missing, which draws PDF", remedy='pip install "matplotlib>=3.8"'
        ) from None
    stream = io.BytesIO()
    # Without a date the same plan is the same file.
    with PdfPages(stream, metadata={"Title": plan.relation, "CreationDate": None}) as pages:
        for tree in trees_of(plan):
            order = order_drawing(tree)
            if order is not None:
                pages.savefig(_figure(order, {}, f"variable order of {tree.block}, {tree.chosen}"))
            pages.savefig(_figure(tree_drawing(plan, tree, measured), colours(tree), _title(plan, tree)))
        if not trees_of(plan):
            title = f"operators of {plan.relation}; no view tree: {plan.why_no_tree}"
            pages.savefig(_figure(operator_drawing(plan, measured), input_colours(plan), title))
    return stream.getvalue()


def _title(plan: Plan, tree: ViewTree) -> str:
    return f"view tree of {tree.block} in {plan.relation}: {tree.query_class}"


def _figure(drawing: Drawing, by_relation: dict[str, str], title: str) -> Any:
    from matplotlib.figure import Figure

    width, height = max(drawing.width, 8.0 * len(title)), drawing.height + _MARGIN
    figure = Figure(figsize=(width / _POINTS, height / _POINTS))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, width)
    # The origin of the boxes is at the top.
    axes.set_ylim(height, 0)
    axes.axis("off")
    axes.text(PADDING, _MARGIN / 2, title, fontsize=10, va="center")
    for above, below in drawing.edges:
        start, end = drawing.box(above), drawing.box(below)
        xs, ys = (start.x, end.x), (start.bottom + _MARGIN, end.top + _MARGIN)
        axes.plot(xs, ys, color="#8a93a3", linewidth=0.9, zorder=1)
    for box in drawing.boxes:
        _draw(axes, box, by_relation.get(box.own or ""))
    return figure


def _draw(axes: Any, box: Box, colour: str | None) -> None:
    from matplotlib.patches import FancyBboxPatch

    rounding = 3.0 if box.shape == "view" else 14.0
    style = "--" if box.shape == "static" else "-"
    for inset in (0.0, 3.0) if box.is_kept else (0.0,):
        axes.add_patch(
            FancyBboxPatch(
                (box.left + inset, box.top + _MARGIN + inset),
                box.width - 2 * inset,
                box.height - 2 * inset,
                boxstyle=f"round,pad=0,rounding_size={rounding - inset if rounding > inset else 1}",
                facecolor="#f4f6f9" if inset == 0 else "none",
                edgecolor="#5b6473",
                linestyle=style,
                linewidth=0.9,
                zorder=2,
            )
        )
    if colour is not None:
        y = box.top + _MARGIN + 6
        axes.plot((box.left + 14, box.left + box.width - 14), (y, y), color=colour, linewidth=3, zorder=3)
    for number, text in enumerate(box.lines):
        y = box.top + _MARGIN + PADDING + (number + 0.55) * LINE
        axes.text(box.x, y, text, fontsize=8.5, family="DejaVu Sans Mono", ha="center", va="center", zorder=4)
