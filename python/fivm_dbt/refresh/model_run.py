"""What the refreshes of maintained and of recomputed models have in common: what is shown, and what is left behind."""

from __future__ import annotations

from fivm_dbt.naming import sibling
from fivm_dbt.plan.model.plan import inner_views
from fivm_dbt.refresh.observe import Coverage, Observed
from fivm_dbt.refresh.publish import drop_states, show_again, show_helpers
from fivm_dbt.refresh.report import Report
from fivm_dbt.refresh.run import Run


class ModelRun(Run):
    """One call of a refresh of a model that is not of time parts."""

    def _wait(
        self, finished: Coverage, observed: dict[str, Observed], why: str | None, *, rolled: bool
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

    def _complete_build(self, finished: Coverage) -> None:
        """Do the last things that a build does, where the last refresh was one and was cut off before them.

        That is to drop the root of an older layout, and to show the last inner view.
        """
        if finished.detail["kind"] != "build":
            return
        is_shown = not self.plan.helpers or self.engine.exists(self.plan.helpers[-1].name)
        if not is_shown or self.engine.exists(sibling(self.plan.relation, "root")):
            self._remove_orphans(finished)

    def _remove_orphans(self, last: Coverage | None) -> None:
        """Drop states of older layouts, a table each, and show the inner views in the place of the ``last`` ones."""
        before = inner_views(last.detail["signature"]) if last is not None else set()
        older = sorted(before | {view.name for view in self.plan.helpers})
        # Whether all of this has been done the root tells, which goes last.
        drop_states(self.engine, [*older, sibling(self.plan.relation, "root")])
        show_helpers(self.plan, self.engine, before)
