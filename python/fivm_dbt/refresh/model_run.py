"""What the refreshes of maintained and of recomputed models have in common: what is shown, and what is left behind."""

from __future__ import annotations

from fivm_dbt.naming import sibling
from fivm_dbt.plan.plan import inner_views
from fivm_dbt.refresh.journal import Entry
from fivm_dbt.refresh.observe import Observed
from fivm_dbt.refresh.publish import drop_states, show_again, show_helpers
from fivm_dbt.refresh.report import Report
from fivm_dbt.refresh.run import Run


class ModelRun(Run):
    """One call of a refresh of a model that is not of time parts."""

    def _wait(
        self, finished: Entry, observed: dict[str, Observed], why: str | None, *, rolled: bool
    ) -> Report:
        """Leave the model as it is: the histories of its inputs keep what changed until somebody asks for it."""
        self._show()
        moved = [name for name, o in observed.items() if o.moved]
        reasons = [f"{', '.join(moved)} changed"] if moved else []
        reasons += [why] if why is not None else []
        return self._report(
            "waiting",
            finished.refresh,
            reason="; ".join(reasons) or "its result changes by itself",
            rolled=rolled,
        )

    @property
    def is_summed(self) -> bool:
        """Whether the model's view adds up rows of a key."""
        return False

    def _show(self) -> None:
        """Put the model's view back where it is gone or altered: what is shown is the states."""
        is_shown = show_again(self.plan, self.engine, is_summed=self.is_summed)
        self.shown_again = is_shown or self.shown_again

    def _complete_build(self, finished: Entry) -> None:
        """Do the last things that a build does, where the last refresh was one and was cut off before them.

        That is to drop the root of an older layout, and to show the last inner view.
        """
        if finished.detail["kind"] != "build":
            return
        is_shown = not self.plan.helpers or self.engine.exists(self.plan.helpers[-1].name)
        if not is_shown or self.engine.exists(sibling(self.plan.relation, "root")):
            self._remove_orphans(finished)

    def _remove_orphans(self, last: Entry | None) -> None:
        """Drop the tables of the last build that this plan does not have, and show its inner views for theirs."""
        before = inner_views(last.detail["signature"]) if last is not None else set()
        if last is not None:
            tables = {*last.detail["states"], *before, sibling(self.plan.relation, "root")}
            drop_states(self.engine, tables - {self.plan.state_relation})
        show_helpers(self.plan, self.engine, before)
