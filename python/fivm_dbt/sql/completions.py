"""Completions edit a query's text, so that its result depends on no tie and no order of reading.

Spark may answer ``row_number() over (order by ts)`` in several ways where two rows have one ts. Each way is right, but
two evaluations need not agree. So the text is completed to ask for one of them, always one that the text as written
allows, and the completed text is what is maintained *and* recomputed.

A window is completed by a key of what its SELECT reads, if one is known, which are the group keys above GROUP BY;
else by the columns that the SELECT uses. Rows that are equal in the order and in all that is used give equal rows of
the result, whichever comes first; but only if all windows put them in the same order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from fivm_dbt.ir.node import Field, Node
from fivm_dbt.ir.places import notes
from fivm_dbt.sql.category_call import Categorical
from fivm_dbt.sql.completed_aggregates import CompletedAggregates
from fivm_dbt.sql.completed_windows import CompletedWindows
from fivm_dbt.sql.edits import Edit, Text, edited
from fivm_dbt.sql.functions import is_aggregate
from fivm_dbt.sql.group_keys import Projections
from fivm_dbt.sql.named_windows import check_definitions, definition_of
from fivm_dbt.sql.parse import unsupported
from fivm_dbt.sql.scope import Scope
from fivm_dbt.sql.select_names import SelectNames

if TYPE_CHECKING:
    from fivm_dbt.sql.lower import Lowering


class Completions:
    """The edits found while a query is lowered, and the calls that they make exact."""

    def __init__(self, sql: str) -> None:
        self.text = Text(sql)
        self._found: dict[Edit, None] = {}
        self._written_out: dict[Edit, None] = {}
        self._exact: set[int] = set()
        self.categorical: Categorical | None = None
        """A covariance with categorical variables, where there is one."""

    @property
    def edits(self) -> tuple[Edit, ...]:
        """All edits in the order of their places; of several at one place the innermost first."""
        return tuple(sorted(self._found, key=lambda e: e.position))

    @property
    def written_out(self) -> tuple[Edit, ...]:
        """The edits that put SQL of Spark in the place of what only fivm knows."""
        return tuple(sorted(self._written_out, key=lambda e: e.position))

    def makes_exact(self, call: exp.Expr) -> bool:
        """Whether the call of a function has one right result once the text is completed."""
        return self._place(call) in self._exact

    def of_select(
        self, lowering: Lowering, node: exp.Select, scope: Scope, relation: Node, projections: Projections
    ) -> None:
        """Complete the aggregates and windows that a SELECT computes itself.

        Raises FIVM106 where a result depends on ties and no completion would be what the text says.
        """
        check_definitions(node.args.get("windows") or [])
        select = SelectNames(
            self.text, lowering, node=node, scope=scope, relation=relation, projections=projections
        )
        windows, aggregates = CompletedWindows(self, select), CompletedAggregates(self, select)
        clauses = [node.args.get(key) for key in ("having", "qualify", "order")]
        own = [n for part in (*node.expressions, *(c for c in clauses if c is not None)) for n in _own(part)]
        own = [*_inner(node.args.get("windows") or [], own), *own]
        windows.tell_rows_apart([found for found in own if isinstance(found, exp.Window)])
        for found in own:
            if isinstance(found, exp.Window):
                windows.complete(found)
            elif is_aggregate(found):
                aggregates.complete(found)

    def of_limit(
        self, node: exp.Expr, ordered_by: Sequence[int | exp.Expr], outputs: Sequence[Field]
    ) -> None:
        """Complete the ORDER BY of a query with LIMIT by all columns of its result, by their positions.

        Rows that are equal in all of them are the same to whoever reads the result.
        """
        order = node.args["order"]
        missing = [i for i in range(len(outputs)) if i not in ordered_by]
        unordered = next((outputs[i] for i in missing if not outputs[i].type.is_groupable), None)
        end = self.text.end_of_order(order) if missing else None
        if unordered is not None or (missing and end is None):
            why = "its ORDER BY" if unordered is None else f"column {unordered.name} of type {unordered.type}"
            what = f"{why} does not tell which rows are the first"
            raise unsupported(order, what, "order by columns that tell all rows apart", code="FIVM107")
        if end is not None:
            self.insert(end, "".join(f", {i + 1}" for i in missing))

    # Edits, by tokens

    def add(self, edits: Iterable[Edit]) -> None:
        """What has been found elsewhere."""
        self._found.update(dict.fromkeys(edits))

    def insert(self, behind: int, text: str) -> None:
        """Put ``text`` behind a token."""
        self._found.setdefault(Edit(self.text.end(behind), 0, text))

    def wrap(self, first: int, last: int, before: str, after: str) -> None:
        """Put text before one token and behind another."""
        self._found.setdefault(Edit(self.text.start(first), 0, before))
        self.insert(last, after)

    def replace(self, first: int, last: int, text: str) -> None:
        """Put ``text`` in the place of the tokens from one to another."""
        start = self.text.start(first)
        self._found.setdefault(Edit(start, self.text.end(last) - start, text))

    def write_out(self, first: int, last: int, text: str) -> None:
        """Have Spark read ``text`` in the place of the tokens from one to another, which fivm reads as they are."""
        start = self.text.start(first)
        self._written_out.setdefault(Edit(start, self.text.end(last) - start, text))

    def touches(self, first: int, last: int) -> bool:
        """Whether something between two tokens is completed itself."""
        start, end = self.text.start(first), self.text.end(last)
        return any(start <= edit.position <= end for edit in self._found)

    def completed(self, start: int, end: int) -> str:
        """The text between two positions, completed so far; what is put in at its end is not in it."""
        inside = (edit for edit in self._found if start <= edit.position < end)
        moved = (replace(edit, position=edit.position - start) for edit in inside)
        return edited(self.text.sql[start:end], moved)

    def settle(self, call: exp.Expr) -> None:
        """Note that a call is exact after these edits."""
        place = self._place(call)
        if place is not None:
            self._exact.add(place)

    def _place(self, call: exp.Expr) -> int | None:
        if "start" in notes(call):
            return int(notes(call)["start"])
        found = self.text.call(call)
        return self.text.start(found[0]) if found is not None else None


def _inner(definitions: Sequence[exp.Window], own: Sequence[exp.Expr]) -> Iterator[exp.Expr]:
    """What belongs to the definitions of windows that some of ``own`` name."""
    used = {id(definition_of(n, definitions)) for n in own if isinstance(n, exp.Window)}
    for definition in definitions:
        if id(definition) in used:
            yield from (n for child in definition.iter_expressions() for n in _own(child))


def _own(node: exp.Expr) -> Iterator[exp.Expr]:
    """What belongs to a SELECT itself and not to a query in it, operands before what they are of."""
    if isinstance(node, exp.Query):
        return
    for child in node.iter_expressions():
        yield from _own(child)
    yield node
