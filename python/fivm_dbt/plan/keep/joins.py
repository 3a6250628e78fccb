"""Joins stand over rows kept by what is compared, or kept whole beside what is evaluated on demand."""

from __future__ import annotations

from dataclasses import dataclass, replace

from fivm_dbt.ir.node import Item, Node, used
from fivm_dbt.ir.nodes import Join
from fivm_dbt.ir.on_demand import is_on_demand
from fivm_dbt.ir.one_sided import OneSided
from fivm_dbt.ir.scalar import ColumnId, Scalar
from fivm_dbt.plan.keep.helper_views import Wanted
from fivm_dbt.plan.keep.join_parts import compared, connected, item_of
from fivm_dbt.plan.keep.kept_rows import KeptRows, Meaning
from fivm_dbt.plan.keep.kept_views import KeptViews
from fivm_dbt.plan.keep.time.near_inputs import near_time


@dataclass(frozen=True)
class KeptJoins:
    """Keeps what joins over visited inputs need. ``meaning`` is what columns are called by now."""

    kept: KeptViews
    rows: KeptRows
    wanted: Wanted

    def one_sided(
        self, node: OneSided, meaning: Meaning, needed: frozenset[ColumnId], *, is_single: bool
    ) -> tuple[Node, Meaning]:
        """An outer or semi join, its sides kept where a change of the other one looks for their rows.

        Of these rows are the columns that are ``needed`` above, and those that are compared.
        """
        if is_on_demand(node):
            return self._beside_on_demand(node, meaning)
        left, right, predicates = node.left, node.right, node.predicates
        if self.wanted.only_needed or not self.kept.can_change(right):
            return node, meaning
        needed |= used(predicates)
        pairs = compared(predicates, left, right)
        near = [self._near(left, right, predicates), self._near(right, left, predicates)]
        if pairs and is_single and not (near[0] and self.kept.is_input(left)):
            keys = near[0] or tuple(item_of(a, left) for a, _ in pairs)
            how = "time" if near[0] else "key"
            kept = self.rows.by_key(left, needed & left.ids, keys, f"the left rows of a join, by its {how}")
            left, meaning, predicates = kept.applied(meaning, predicates)
        what = "the right side of an outer join"
        if not node.shows_right:
            what = "the keys that a semi or anti join looks for"
        is_kept = pairs and (is_single or not node.shows_right) and not near[1]
        if is_kept or not self.kept.is_input(right):
            keys = near[1] or tuple(item_of(b, right) for _, b in pairs)
            kept = self.rows.by_key(right, needed & right.ids, keys, what)
            right, meaning, predicates = kept.applied(meaning, predicates)
        return replace(node, left=left, right=right, predicates=predicates), meaning

    def _beside_on_demand(self, node: OneSided, meaning: Meaning) -> tuple[Node, Meaning]:
        """A join with something that is evaluated on demand: the other side is kept as a whole if it reads inputs."""
        sides, predicates = [node.left, node.right], node.predicates
        for position, side in enumerate(sides):
            if self.kept.is_read(side):
                pairs = compared(predicates, side, sides[1 - position])
                kept = self.rows.whole(side, tuple(item_of(a, side) for a, _ in pairs))
                sides[position], meaning, predicates = kept.applied(meaning, predicates)
        left, right = sides
        return replace(node, left=left, right=right, predicates=predicates), meaning

    def inner(self, node: Join, meaning: Meaning, needed: frozenset[ColumnId]) -> tuple[Node, Meaning]:
        """What is joined with inner views becomes views too: each connected part of the inputs, each other factor.

        Of these are the columns that are ``needed`` above, and those that are compared.
        """
        inputs = [f for f in node.factors if self.kept.is_input(f)]
        inner = [f for f in node.factors if f not in inputs]
        predicates = node.predicates
        if (
            self.wanted.only_needed
            or not any(self.kept.can_change(f) for f in inner)
            or len(node.factors) == 1
        ):
            return node, meaning
        demanded = is_on_demand(node)
        parts: list[tuple[Node, bool]] = [
            (f, self.kept.scanned(f) is not None or (demanded and not self.kept.is_read(f))) for f in inner
        ]
        for members in connected(inputs, predicates):
            own = frozenset(c for m in members for c in m.ids)
            within = tuple(p for p in predicates if p.columns and p.columns <= own)
            predicates = tuple(p for p in predicates if p not in within)
            whole = members[0] if len(members) == 1 and not within else Join(tuple(members), within)
            parts.append((whole, False))
        factors: list[Node] = []
        for position, (part, is_kept) in enumerate(parts):
            if is_kept:
                factors.append(part)
                continue
            others = Join(tuple(p for i, (p, _) in enumerate(parts) if i != position), ())
            near = () if demanded else self._near(part, others, predicates)
            if near and self.kept.is_input(part):
                factors.append(part)
                continue
            keys = near or tuple(item_of(a, part) for a, _ in compared(predicates, part, others))
            if demanded:
                kept = self.rows.whole(part, keys)
            else:
                looked_at = (needed | used(predicates)) & part.ids
                kept = self.rows.by_key(part, looked_at, keys, "the rows that an inner view is joined with")
            new, meaning, predicates = kept.applied(meaning, predicates)
            parts[position] = (new, True)
            factors.append(new)
        return Join(tuple(factors), predicates), meaning

    def _near(self, rows: Node, other: Node, predicates: tuple[Scalar, ...]) -> tuple[Item, ...]:
        """The day of rows that a change of the other ones meets near its own time."""
        is_utc = self.wanted.is_utc
        found = near_time(rows, other, predicates, is_utc=is_utc) if self.wanted.by_time else None
        return () if found is None else (found,)
