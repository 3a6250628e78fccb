"""A model sees some rows of an input: those which its filters let through, wherever the input is read.

A change of other rows is irrelevant: it need not be staged (J. A. Blakeley, N. Coburn, P.-Å. Larson, "Updating derived
relations: detecting irrelevant and autonomously computable updates", TODS 14(3), 1989). ``σ_p(ΔR)`` may stand for
``ΔR`` where every read of R is ``σ_p(R)``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from fivm_dbt.delta.term import scans
from fivm_dbt.ir.clock import clock_kinds
from fivm_dbt.ir.node import Node
from fivm_dbt.ir.reads import Scan
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.ir.total import is_total
from fivm_dbt.naming import old_rows
from fivm_dbt.plan.model.inputs import PlanInput
from fivm_dbt.plan.model.view import View
from fivm_dbt.rewrite.flatten_joins import parts_of_join


def with_conditions(inputs: Sequence[PlanInput], views: Sequence[View]) -> tuple[PlanInput, ...]:
    """The inputs with the conditions that hold wherever one of the views reads them.

    Of a static input every change is told, of one whose parts are dropped every row that went. So it is of a parent
    that is promised to be there: children may refer to a row that no filter lets through, and a new version of it is
    no new parent to them.
    """
    reads = [read for view in views for read in _reads(view.core, ())]
    asked = {scan.relation for view in views for term in view.terms for scan in scans(term.node)}
    return tuple(
        item
        if item.is_static or item.retention is not None or old_rows(item.name) in asked
        else replace(item, conditions=_shared(_of_input(item.name, reads)))
        for item in inputs
    )


def _reads(node: Node, above: tuple[Scalar, ...]) -> Iterator[tuple[Scan, tuple[Scalar, ...]]]:
    """Each place where a relation is read, and the conditions that stand right above it."""
    factors, predicates = parts_of_join(node)
    if factors != (node,):
        for factor in factors:
            yield from _reads(factor, (*above, *predicates))
    elif node.inputs:
        for position, below in enumerate(node.inputs):
            yield from _reads(below, above if node.passes_rows and position == 0 else ())
    else:
        yield from ((scan, above) for scan in scans(node))


def _of_input(name: str, reads: Iterable[tuple[Scan, tuple[Scalar, ...]]]) -> list[tuple[Scalar, ...]]:
    """Of each place where an input is read the conditions over its own columns, which are called as in the input."""
    found = []
    for scan, above in reads:
        if scan.relation == name:
            types = {f.id: f.type for f in scan.fields}
            own = [p for p in above if p.columns and p.columns <= scan.ids and not clock_kinds(p)]
            found.append(tuple(p.substitute(_bare) for p in own if is_total(p, types)))
    return found


def _bare(column: tuple[str, str]) -> Scalar:
    return Scalar.column("", column[1])


def _shared(each: Sequence[tuple[Scalar, ...]]) -> tuple[Scalar, ...]:
    """The conditions that all of the places have."""
    first = each[0] if each else ()
    return tuple(dict.fromkeys(p for p in first if all(p in others for others in each)))
