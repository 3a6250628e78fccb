"""A refresh of a model whose table has a head: each of its commits compares and sets it (ADR 0028, 0033).

Nobody claims a model. Who comes too late finds that the head is another one, and has written nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fivm_dbt.plan.model.head import HeadId, NextHead
from fivm_dbt.plan.model.plan import shortened
from fivm_dbt.refresh.decide import KEEPS_ROWS, beheaded, changed_by_others, is_conflict, raised_alarm
from fivm_dbt.refresh.engine import Commit
from fivm_dbt.refresh.heads import coverage, had_head, has_set, head_of_build, next_head, read_state
from fivm_dbt.refresh.model_run import ModelRun
from fivm_dbt.refresh.observe import Observed, State
from fivm_dbt.refresh.report import Action, InputChange
from fivm_dbt.refresh.run import Overtaken
from fivm_dbt.spark.heads import OVERTAKEN
from fivm_dbt.spark.merge import write_head
from fivm_dbt.steps.binding import Binding


class HeadedRun(ModelRun):
    """One call of a refresh of a model that has a head."""

    head: HeadId | None = None
    """The head that the next commit starts from, None where there is no table."""
    base = -1
    """The newest version of the table that is known."""
    is_new = False
    """Whether the model is built for the first time."""

    # What was left

    def _left(self, state: State | None) -> State:
        """What the last refresh has left, and its head to start from."""
        state = read_state(self.engine, self.plan.relation) if state is None else state
        self.head = state.head
        self.is_new = state.finished is None and not self.engine.exists(self.plan.relation)
        return state

    def _why_missing(self, state: State) -> str | None:
        """Why a model without a finished refresh is built, None where it is new."""
        if self.is_new or state.version >= 0:
            return None
        return f"state table {self.plan.state_relation} is missing"

    def _as_build(self, again: Action) -> Action:
        """What a build is called, ``again`` where it is not the first one."""
        return "built" if self.is_new else again

    def _load(self, state: State) -> str | None:
        """Take up what the last refresh has left; why the state is not that, where somebody else has written to it."""
        if self.head is None:
            return beheaded(self.plan)
        assert state.finished is not None
        detail, name = state.finished.detail, self.plan.state_relation
        self.base = state.version
        self.state_bytes = detail["state_bytes"]
        self._take_up(detail)
        left = int(detail["base"])
        # What others have written since the head was read is met where it is compared.
        since = [c for c in self.engine.commits(name, max(left, 0)) if left < c.version <= self.base]
        own = [c.version for c in since if c.operation not in KEEPS_ROWS]
        reason = changed_by_others(self.plan, since, own[-1]) if own else None
        if reason is None:
            self._measure(since)
        return reason

    def _take_up(self, detail: Mapping[str, Any]) -> None:
        """Take up what else the head says of the state."""

    def _of_state(self) -> dict[str, Any]:
        """What the head is to say of the state with the next commit."""
        return {"base": self.base}

    # The next head

    def _tell(
        self,
        action: Action,
        reason: str | None = None,
        changes: Sequence[InputChange] = (),
        rows: int | None = None,
    ) -> None:
        """Have the head say what is done, for people."""
        changed = {c.relation: [c.inserted, c.deleted] for c in changes if c.inserted or c.deleted}
        known = {"reason": reason, "changed": changed or None, "rows": rows}
        told = {key: value for key, value in known.items() if value is not None}
        self.told = {"action": action, "started_at": self.started_at, **told}

    def _covered(self, state: State, detail: Mapping[str, Any]) -> dict[str, Any]:
        """What the state covers with the next commit, which starts from the version ``base``."""
        every = {**detail, **self._state_detail(), **self._of_state(), **self.told}
        return coverage(self.plan, state.next_refresh, every | {"signature": shortened(self.plan.signature)})

    def _built(
        self, state: State, observed: dict[str, Observed], recorded: dict[str, int | None], binding: Binding
    ) -> tuple[NextHead, dict[str, Any]]:
        """The head of a build and what it covers. Its commit replaces the table, also one that has lost its head."""
        replaces = self.head is None and had_head(self.plan, self.engine)
        newest = self._newest() if self.head is not None or replaces else None
        self.base, self.state_bytes = -1 if newest is None else newest.version, None
        covered = self._covered(state, self._detail("build", observed, recorded, binding) | {"touched": None})
        name = self.plan.state_relation
        return head_of_build(self.head, newest, covered, name, replaces=replaces), covered

    def _set_head(self, covered: Mapping[str, Any]) -> None:
        """A commit of the head alone."""
        assert self.head is not None
        head = next_head(self.head, covered)
        try:
            self.engine.commit(write_head(self.plan, head), head.note(self.plan.state_relation), self.base)
        except Exception as error:
            self._check_overtaken(error)
            raise
        self._committed(head)

    def _committed(self, head: NextHead) -> None:
        """A commit has set this head; raises Overtaken where it was passed over, since another one came before."""
        commits = self.engine.commits(self.plan.state_relation, max(self.base, 0))
        since = [c for c in commits if c.version > self.base]
        if not any(has_set(head.id, c, self.plan.state_relation) for c in since):
            raise Overtaken
        self.head = head.id
        self._measure(since)

    def _check_overtaken(self, error: Exception) -> None:
        """Raise Overtaken where a write failed since another was faster.

        A row of data may have raised an alarm before that of the head was met: over newer states a delta is wrong.
        """
        raised = raised_alarm(error)
        if isinstance(error, Overtaken) or raised == OVERTAKEN or is_conflict(error):
            raise Overtaken from error
        if raised is not None and read_state(self.engine, self.plan.relation).head != self.head:
            raise Overtaken from error

    def _newest(self) -> Commit:
        return self.engine.commits(self.plan.state_relation, None)[0]

    # Figures

    def _measure(self, since: Sequence[Commit]) -> None:
        """Note the version and the size of the state, after the commits ``since`` the one that both are known of."""
        name = self.plan.state_relation
        growth = [c.growth for c in since]
        if self.state_bytes is not None and None not in growth:
            self.state_bytes += sum(g for g in growth if g is not None)
        else:
            self.state_bytes = self.engine.size(name)
        if since:
            self.base = since[0].version
