"""``adapter.fivm_explain`` shows how a model is maintained, as text or as a page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from fivm_dbt.bridge.connection import engine_of
from fivm_dbt.bridge.models import model_node, plan_of_node
from fivm_dbt.bridge.told import told
from fivm_dbt.engines.spark.engine import SparkEngine
from fivm_dbt.errors import FivmError
from fivm_dbt.explain.text import explain
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.refresh.cost_report import cost_lines, known_costs
from fivm_dbt.refresh.heads import read_state
from fivm_dbt.refresh.history import history

if TYPE_CHECKING:
    from fivm_dbt.explain.drawing import Measured


def fivm_explain(adapter: Any, name: str, form: str = "text", *, statements: bool = False) -> str:
    """How a model is maintained, as text; as ``html`` or ``pdf`` the file in the target directory that has it."""
    with told(name):
        plan = plan_of_node(adapter, model_node(adapter, name))
        if form == "text":
            return "\n".join([explain(plan, statements=statements), *_costs(engine_of(adapter), plan)])
        if form not in ("html", "pdf"):
            raise FivmError(
                "FIVM201",
                f"no format {form} (expected one of 'text', 'html', 'pdf')",
                remedy="choose another",
            )
        # Every dbt run imports this module, and few draw.
        from fivm_dbt.explain.page import page
        from fivm_dbt.explain.pdf import pdf

        measured = _measured(engine_of(adapter), plan)
        file = Path(adapter.config.project_target_path) / f"{plan.model}.{form}"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(page(plan, measured).encode() if form == "html" else pdf(plan, measured))
        return str(file)


def _costs(engine: SparkEngine, plan: Plan) -> list[str]:
    """What refreshes have cost, where the model has been built."""
    costs, may_build = known_costs(engine, plan.state_relation), plan.config.fivm_rebuild == "auto"
    lines = list(cost_lines(costs, is_read=plan.is_read, may_build=may_build))
    return ["", "== what refreshes have cost", *lines] if lines else []


def _measured(engine: SparkEngine, plan: Plan) -> Measured | None:
    """What the last finished refresh has left, None where there is none."""
    from fivm_dbt.explain.drawing import Measured

    finished = read_state(engine, plan.state_relation).finished
    if finished is None:
        return None
    told = next(iter(history(engine, plan.relation, plan.state_relation, 1)), None)
    rows = {state: int(size[0]) for state, size in finished.detail.get("sizes", {}).items()}
    return Measured(finished.refresh, None if told is None else told.seconds, rows)
