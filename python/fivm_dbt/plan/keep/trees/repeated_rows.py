"""An aggregate over repeated rows gets the views of one over each row once.

``γ_K(ε(R1 ⋈ … ⋈ Rn)) = γ_K(ε(V1 ⋈ … ⋈ Vm))`` where ε makes copies of a row by few columns of it, or by none, as ROLLUP
does. The views are those of ``γ_P(R1 ⋈ … ⋈ Rn)``, P being these columns and the parts of the keys K that
rows have. Copies add up like the rows that they are of, so they can be made last.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from fivm_dbt.catalog import SparkType
from fivm_dbt.ir.aggregate import Aggregate
from fivm_dbt.ir.clock import clock_kinds
from fivm_dbt.ir.node import Item
from fivm_dbt.ir.nodes import Explode
from fivm_dbt.ir.scalar import Scalar, replaced


@dataclass(frozen=True)
class RepeatedRows:
    """An aggregate over a generator. ``parts`` are what its keys and the generator need of a row, with types."""

    aggregate: Aggregate
    copies: Explode
    parts: tuple[tuple[Scalar, SparkType], ...]

    @staticmethod
    def of(node: Aggregate) -> RepeatedRows | None:
        """``node`` as such an aggregate; None where it is none, or where a call asks which copy a row is.

        A generator that reads arrays is left alone: there are as many of them as rows.
        """
        copies = node.input
        if not isinstance(copies, Explode):
            return None
        if clock_kinds(copies.generator):
            return None
        if any(not s.columns <= copies.input.ids for call in node.calls for s in call.scalars):
            return None
        parts = copies.parts_of(key.value for key in node.keys)
        if not parts:
            return None
        types = {f.scalar: f.type for f in copies.input.fields} | {
            value: key.type
            for key in node.keys
            for value in (key.value, key.value.or_null)
            if value is not None
        }
        return RepeatedRows(node, copies, tuple((part, types[part]) for part in parts))

    def once(self) -> Aggregate:
        """``γ_P`` over each row once."""
        keys = tuple(Item(f"part_{n}", part, type_) for n, (part, type_) in enumerate(self.parts, start=1))
        return replace(self.aggregate, input=self.copies.input, keys=keys, is_global=False)

    def over(self, result: Aggregate) -> Aggregate:
        """The aggregate itself over the views of which ``result`` is :meth:`once`."""
        known = {part: key.value for (part, _), key in zip(self.parts, result.keys, strict=True)}
        return replace(
            result,
            input=replace(self.copies, input=result.input, generator=replaced(self.copies.generator, known)),
            keys=tuple(Item(k.name, replaced(k.value, known), k.type) for k in self.aggregate.keys),
            is_global=self.aggregate.is_global,
        )
