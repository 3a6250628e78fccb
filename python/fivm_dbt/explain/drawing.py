"""A picture of a view tree has boxes with lines of text, and edges, laid out in layers.

As in section 4.10 of the thesis on the compiler from SQL to M3: a colour per relation, a shape for static and for
updatable ones, a double border for what is kept. Pages (:mod:`fivm_dbt.explain.page`) and PDF
(:mod:`fivm_dbt.explain.pdf`) draw the same boxes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from textwrap import wrap
from typing import Literal

from grandalf.graphs import Edge, Graph, Vertex
from grandalf.layouts import SugiyamaLayout

from fivm_dbt.explain.access import access_paths
from fivm_dbt.plan.model.plan import FactorisedPlan, Plan
from fivm_dbt.plan.model.shown import TreeView, ViewTree


@dataclass(frozen=True)
class Measured:
    """What is known of a model's last refresh: seconds of all of it, None where nobody has written them down, and the
    rows that states had when they were built, by their names.
    """

    refresh: int
    seconds: float | None
    rows: Mapping[str, int]

    @property
    def text(self) -> str:
        number = f"number {self.refresh}"
        return number if self.seconds is None else f"{number}, {self.seconds:.1f} s"


Shape = Literal["view", "updatable", "static", "variable"]

CHARACTER, LINE, PADDING = 7.3, 17.0, 10.0
"""Width of a character and height of a line of text, and the space around them, in pixels."""

_GAP = 28.0
_WIDEST = 30
"""Characters after which a list of payloads goes on in the next line."""


@dataclass(frozen=True)
class Box:
    """A node: its lines of text, what it is about, and its place; ``x`` and ``y`` are its centre.

    ``relations`` are those that it depends on, ``own`` the one that it is the leaf of. ``notes`` are told beside the
    picture.
    """

    key: str
    lines: tuple[str, ...]
    shape: Shape
    relations: tuple[str, ...] = ()
    own: str | None = None
    is_kept: bool = False
    notes: tuple[tuple[str, str], ...] = ()
    x: float = 0.0
    y: float = 0.0

    @property
    def width(self) -> float:
        return max(map(len, self.lines)) * CHARACTER + 2 * PADDING

    @property
    def height(self) -> float:
        return len(self.lines) * LINE + 2 * PADDING

    @property
    def top(self) -> float:
        return self.y - self.height / 2

    @property
    def bottom(self) -> float:
        return self.y + self.height / 2

    @property
    def left(self) -> float:
        return self.x - self.width / 2


@dataclass(frozen=True)
class Drawing:
    """Boxes with their places, edges from one above to one below, and the size of all."""

    boxes: tuple[Box, ...]
    edges: tuple[tuple[str, str], ...]
    width: float = 0.0
    height: float = 0.0

    def box(self, key: str) -> Box:
        return next(b for b in self.boxes if b.key == key)


@dataclass
class _Node:
    """A view of a tree with those below it."""

    view: TreeView
    children: list[_Node] = field(default_factory=list)

    @property
    def name(self) -> str:
        view, keys = self.view, ", ".join(self.view.keys)
        if view.variable.startswith("∃") or view.relations == (view.variable,):
            return f"{view.variable}[{keys}]"
        return f"V@{view.variable}[{keys}]" if view.variable else f"M[{keys}]"

    @property
    def own(self) -> str | None:
        """The relation of which it is the leaf."""
        return self.view.relations[0] if len(self.view.relations) == 1 and not self.children else None

    @property
    def relations(self) -> tuple[str, ...]:
        """Those whose changes come through it, an indicator's too."""
        below = [r for c in self.children for r in c.relations]
        return tuple(dict.fromkeys([*self.view.relations, *below]))


def tree_drawing(plan: Plan, tree: ViewTree, measured: Measured | None = None) -> Drawing:
    """The view tree of a block, its root on top, with rows that were counted when the states were built."""
    roots = _nested(tree.views)
    boxes: list[Box] = []
    edges: list[tuple[str, str]] = []

    def visit(node: _Node) -> str:
        key = f"n{len(boxes)}"
        boxes.append(_box(key, node, plan, tree, measured))
        edges.extend((key, visit(child)) for child in node.children)
        return key

    for root in roots:
        visit(root)
    return laid_out(boxes, edges)


def order_drawing(tree: ViewTree) -> Drawing | None:
    """The variable order of a block; None where it has recursive maps instead."""
    if not tree.branches:
        return None
    boxes: list[Box] = []
    edges: list[tuple[str, str]] = []
    path: list[str] = []
    for number, (variable, depth) in enumerate(tree.branches):
        boxes.append(Box(f"v{number}", (variable,), "variable"))
        del path[depth:]
        if path:
            edges.append((path[-1], boxes[-1].key))
        path.append(boxes[-1].key)
    return laid_out(boxes, edges)


def laid_out(boxes: Sequence[Box], edges: Sequence[tuple[str, str]]) -> Drawing:
    """Boxes in layers from the roots down, by Sugiyama's method; independent parts stand side by side."""
    vertices = {box.key: Vertex(box.key) for box in boxes}
    for box in boxes:
        vertices[box.key].view = _Room(box.width, box.height)
    graph = Graph(list(vertices.values()), [Edge(vertices[a], vertices[b]) for a, b in edges])
    placed: dict[str, Box] = {}
    right = 0.0
    for part in graph.C:
        layout = SugiyamaLayout(part)
        layout.xspace, layout.yspace = _GAP, 1.6 * _GAP
        layout.init_all()
        layout.draw()
        own = [box for box in boxes if vertices[box.key] in part.sV]
        at = {box.key: vertices[box.key].view.xy for box in own}
        left = min(at[b.key][0] - b.width / 2 for b in own)
        top = min(at[b.key][1] - b.height / 2 for b in own)
        for box in own:
            x, y = at[box.key]
            placed[box.key] = replace(box, x=x - left + right + PADDING, y=y - top + PADDING)
        right = max(placed[b.key].x + b.width / 2 for b in own) + _GAP
    found = tuple(placed[box.key] for box in boxes)
    width = max(b.x + b.width / 2 for b in found) + PADDING
    return Drawing(found, tuple(edges), width, max(b.bottom for b in found) + PADDING)


class _Room:
    """The room that a box takes, as the layout wants it."""

    def __init__(self, width: float, height: float) -> None:
        self.w, self.h, self.xy = width, height, (0.0, 0.0)


def _nested(views: Sequence[TreeView]) -> list[_Node]:
    """Views that are listed parents first, with their depths, as a forest."""
    roots: list[_Node] = []
    path: list[_Node] = []
    for view in views:
        node = _Node(view)
        del path[view.depth :]
        (path[-1].children if path else roots).append(node)
        path.append(node)
    return roots


def _box(key: str, node: _Node, plan: Plan, tree: ViewTree, measured: Measured | None) -> Box:
    view = node.view
    payload = (
        tuple(wrap(f"→ {', '.join(view.payload)}", _WIDEST, break_long_words=False)) if view.payload else ()
    )
    state = plan.root.relation if view.depth == 0 else view.kept
    if measured is not None and state is not None and state in measured.rows:
        payload += (f"{measured.rows[state]:,} rows when built",)
    shape: Shape = "view"
    if node.own is not None:
        shape = "static" if node.own in tree.static else "updatable"
    notes = [("", view.reason), *_definition(node), *((f"δ by {r}", d) for r, d in _deltas(node, tree))]
    kept = plan.helper(view.kept) if view.kept is not None else None
    if kept is not None:
        by = ", ".join(kept.state.grouped_by or (k.name for k in kept.state.keys)) or "one row"
        notes += [("table", kept.name), ("placed by", by)]
        notes += [("read by", str(path)) for path in access_paths(plan, kept)]
    is_kept = view.kept is not None or (view.depth == 0 and not isinstance(plan, FactorisedPlan))
    return Box(
        key,
        (node.name, *payload),
        shape=shape,
        relations=node.relations,
        own=node.own,
        is_kept=is_kept,
        notes=tuple(notes),
    )


def _definition(node: _Node) -> list[tuple[str, str]]:
    """``⊕`` over what is no key of the product of what is below."""
    if not node.children:
        return []
    return [("=", f"{_sum(node)}{' ⊗ '.join(c.name for c in node.children)}")]


def _sum(node: _Node) -> str:
    there = dict.fromkeys(k for c in node.children for k in c.view.keys)
    gone = [k for k in there if k not in node.view.keys]
    return f"⊕[{', '.join(gone)}] " if gone else ""


def _deltas(node: _Node, tree: ViewTree) -> list[tuple[str, str]]:
    """For each relation below what its change makes of this view (article, figure 7)."""
    if not node.children:
        return []
    found = []
    for relation in node.relations:
        if relation in tree.static:
            continue
        changed = (f"δ{c.name}" if relation in c.relations else c.name for c in node.children)
        found.append((relation, f"{_sum(node)}{' ⊗ '.join(changed)}"))
    return found
