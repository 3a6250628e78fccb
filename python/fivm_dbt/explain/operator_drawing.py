"""A model without a view tree has a picture too: inputs, operators above them, inner views, the model on top.

Where a view tree shows how a join is kept, this shows what a change goes through: at each operator its rule.
"""

from __future__ import annotations

from textwrap import shorten, wrap

from fivm_dbt.delta.rule import told
from fivm_dbt.explain.access import access_paths
from fivm_dbt.explain.drawing import Box, Drawing, Measured, laid_out
from fivm_dbt.ir.node import Node
from fivm_dbt.ir.nodes import Filter, Map
from fivm_dbt.ir.on_demand import is_on_demand
from fivm_dbt.ir.reads import Scan
from fivm_dbt.naming import split_name
from fivm_dbt.plan.model.plan import MaintainedPlan, Plan
from fivm_dbt.plan.model.view import View

_WIDEST, _LONGEST = 34, 96
"""Characters in a line of a box, and in all of its description; the notes have the rest."""


def operator_drawing(plan: Plan, measured: Measured | None = None) -> Drawing:
    """The operators of all views of a plan; of a recomputed model and of one computed by parts, just what it reads."""
    return _Picture(plan, measured).drawn()


class _Picture:
    def __init__(self, plan: Plan, measured: Measured | None) -> None:
        self.plan = plan
        self.measured = measured
        self.views = {view.name: view for view in plan.views}
        self.static = {item.name for item in plan.inputs if item.is_static}
        self.boxes: dict[str, Box] = {}
        self.edges: dict[tuple[str, str], None] = {}

    def drawn(self) -> Drawing:
        if isinstance(self.plan, MaintainedPlan):
            self._view(self.plan.top)
        else:
            self._read_only()
        return laid_out(tuple(self.boxes.values()), tuple(self.edges))

    def _read_only(self) -> None:
        why = self.plan.why_recomputed or "computed part by part"
        inputs = [self._input(item.name) for item in self.plan.inputs]
        name = split_name(self.plan.relation)[-1]
        lines = (name, *wrap(why, _WIDEST))
        relations = tuple(r for box in inputs for r in box.relations)
        self.boxes["model"] = Box(
            "model",
            lines,
            shape="view",
            relations=relations,
            own=None,
            is_kept=True,
            notes=(("", why), *self._table()),
        )
        self.edges.update(dict.fromkeys(("model", box.key) for box in inputs))

    def _view(self, view: View) -> Box:
        key = f"view {view.name}"
        if key not in self.boxes:
            below = self._operator(view.core, f"{key} 1", view, is_own=view.is_bag)
            is_kept = view in self.plan.stored
            self.boxes[key] = Box(
                key,
                self._lines(view),
                shape="view",
                relations=below.relations,
                own=None,
                is_kept=is_kept,
                notes=tuple(self._notes(view)),
            )
            self.edges[key, below.key] = None
        return self.boxes[key]

    def _lines(self, view: View) -> tuple[str, ...]:
        state = view.state
        name = self.plan.relation if view is self.plan.top else view.name
        keys = ", ".join(k.name for k in state.keys) or "one row"
        payload = ", ".join(state.stored_names)
        lines = [split_name(name)[-1], *wrap(shorten(f"[{keys}]", _LONGEST, placeholder=" …"), _WIDEST)]
        if payload:
            lines += wrap(shorten(f"→ {payload}", _LONGEST, placeholder=" …"), _WIDEST)
        if self.measured is not None and state.relation in self.measured.rows:
            lines.append(f"{self.measured.rows[state.relation]:,} rows when built")
        return tuple(lines)

    def _notes(self, view: View) -> list[tuple[str, str]]:
        by = ", ".join(view.state.grouped_by or (k.name for k in view.state.keys)) or "one row"
        notes = [("", view.reason), ("table", view.state.relation), ("placed by", by)]
        return notes + [("read by", str(path)) for path in access_paths(self.plan, view)]

    def _table(self) -> tuple[tuple[str, str], ...]:
        return (("table", self.plan.state_relation),)

    def _operator(self, node: Node, key: str, view: View, *, is_own: bool) -> Box:
        if isinstance(node, Scan):
            kept = self.views.get(node.relation)
            return self._view(kept) if kept is not None else self._input(node.relation)
        is_below_own = is_own and isinstance(node, (Map, Filter))
        below = [
            self._operator(child, f"{key}.{number}", view, is_own=is_below_own)
            for number, child in enumerate(node.inputs, start=1)
        ]
        described = node.described
        how = "evaluated when anything changed" if is_on_demand(view.core) else told(node, is_own=is_own)
        kind, _, rest = described.partition(" ")
        lines = (kind, *wrap(shorten(rest, _LONGEST, placeholder=" …"), _WIDEST))
        relations = tuple(dict.fromkeys(r for box in below for r in box.relations))
        self.boxes[key] = Box(
            key,
            lines,
            shape="view",
            relations=relations,
            own=None,
            is_kept=False,
            notes=(("=", described), ("Δ", how)),
        )
        self.edges.update(dict.fromkeys((key, box.key) for box in below))
        return self.boxes[key]

    def _input(self, name: str) -> Box:
        key, is_static = f"input {name}", name in self.static
        item = next((i for i in self.plan.inputs if i.name == name), None)
        columns = ", ".join(c.name for c in item.columns) if item is not None else ""
        shown = wrap(shorten(columns, _LONGEST, placeholder=" …"), _WIDEST)
        note = "static: no change of it is looked for" if is_static else f"columns: {columns}"
        box = Box(
            key,
            (split_name(name)[-1], *shown),
            "static" if is_static else "updatable",
            (name,),
            name,
            notes=(("", note),),
        )
        return self.boxes.setdefault(key, box)
