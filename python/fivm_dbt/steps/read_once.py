"""One place in a refresh may read a relation's change: the change runs there, and is no statement."""

from __future__ import annotations

from collections.abc import Callable, Collection

from fivm_dbt.delta.key_sets import lookups
from fivm_dbt.delta.prune import prune_terms
from fivm_dbt.delta.term import scans
from fivm_dbt.ir.node import Node, Side
from fivm_dbt.ir.nodes import Filter, Join, Map, Values
from fivm_dbt.ir.reads import Scan
from fivm_dbt.naming import old_rows
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.steps.order import key_sets

_READS_EACH_ONCE = (Filter, Join, Map, Scan, Values)
"""Operators whose SQL has each of their inputs in one place."""


IsLarge = Callable[[str], bool]
"""Whether a relation is too large to be handed to all tasks.

Of a change that is there Spark knows that it is small, and hands it to all tasks. It takes for large what is computed
on the way: both sides of the join are sorted then, and to sort a large one takes longer than a statement.
"""


def read_once(plan: Plan, moved: Collection[str], is_large: IsLarge) -> str | None:
    """The input whose change is read by a single delta, where it alone has ``moved``; None where it has to be staged.

    It is staged too where something is asked of it before: keys, times, dropped parts, whether it was to be static; and
    where it is joined with a relation that ``is_large``.
    """
    if len(moved) != 1 or plan.clock_kinds:
        return None
    (name,) = moved
    item = plan.input(name)
    if item.is_static or item.retention is not None or item.starts_with_snapshot or plan.times_of(name):
        return None
    if any(view.key_sets or view.products for view in plan.stored):
        return None
    changed = frozenset({name, old_rows(name), *(view.name for view in plan.helpers)})
    terms = [term for view in plan.stored for term in prune_terms(view.terms, changed)]
    readers = [term.node for term in terms if _reads(term.node, name)]
    is_once = len(readers) == 1 and _reads(readers[0], name) == 1 and _is_plain(readers[0])
    if not is_once or any(view.eager_delta(changed) is not None for view in plan.stored):
        return None
    return None if _meets_large(readers[0], is_large) else name


def shown_once(plan: Plan, moved: Collection[str], is_large: IsLarge) -> frozenset[str]:
    """The inner views of which a single delta reads what changes in them, when these relations have ``moved``.

    Nobody looks up their keys, nor has them as products, nor joins them with a relation that ``is_large``.
    """
    changed = frozenset({*moved, *map(old_rows, moved), *(view.name for view in plan.helpers)})
    otherwise = {view.name for view in plan.helpers if view.split is not None}
    readers: dict[str, list[Node]] = {view.name: [] for view in plan.helpers}
    for view in plan.stored:
        terms = prune_terms(view.terms, changed)
        asked = [key_set.node for key_set, _ in key_sets(view)]
        asked += [part.node for product in view.products for part in product.parts]
        otherwise |= {lookup.key_set for lookup in lookups(terms)}
        otherwise |= {product.of.view for product in view.products}
        otherwise |= {name for node in asked for name in _changes_read(node)}
        for term in terms:
            for name in _changes_read(term.node):
                readers.setdefault(name, []).append(term.node)
    found = (view.name for view in plan.helpers if view.name not in otherwise)
    once = (name for name in found if len(readers[name]) == 1 and _is_plain(readers[name][0]))
    return frozenset(name for name in once if not _meets_large(readers[name][0], is_large))


def _changes_read(node: Node) -> list[str]:
    """The relations whose changes are read, each as often as it is."""
    return [scan.relation for scan in scans(node) if scan.side in (Side.DELTA, Side.COUNTED)]


def _reads(node: Node, name: str) -> int:
    """How often the input is read, whatever is of it: beside its change feed nothing else of it may be read at once."""
    return sum(scan.relation in (name, old_rows(name)) for scan in scans(node))


def _meets_large(node: Node, is_large: IsLarge) -> bool:
    whole = {scan.relation for scan in scans(node) if scan.side not in (Side.DELTA, Side.COUNTED)}
    return any(is_large(relation) for relation in sorted(whole))


def _is_plain(node: Node) -> bool:
    return all(isinstance(n, _READS_EACH_ONCE) for n in node.walk())
