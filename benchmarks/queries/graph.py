"""Counting the paths and cycles of skewed random graphs, and streams of edges that come and go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from random import Random

from benchmarks.queries.draft import Draft
from benchmarks.queries.suite import Query, Suite
from fivm_dbt.catalog import Column
from fivm_dbt.refresh.engine import Row
from fivm_dbt.testing.workbench import TableSpec

Edge = tuple[int, int]
EDGES = TableSpec("edges", (Column.of("source", "int"), Column.of("target", "int")))


def path_query(length: int) -> Query:
    """How many paths of ``length`` edges there are.

    >>> path_query(2).sql
    'select count(*) as paths from edges e1 join edges e2 on e1.target = e2.source'
    """
    joins = (f" join edges e{i} on e{i - 1}.target = e{i}.source" for i in range(2, length + 1))
    return Query(f"path_{length:02}", f"select count(*) as paths from edges e1{''.join(joins)}")


def paths_suite(lengths: Sequence[int], edges: int, changes: int, batches: int, seed: int = 7) -> Suite:
    """Paths of several lengths over a graph of ``edges``; each batch adds and removes ``changes`` in all.

    Some nodes have very many edges, as sources or as targets but not as both: a path goes on with one edge on average,
    so that even long ones can be counted by a full recompute.
    """
    random = Random(seed)
    nodes = list(range(edges))
    random.shuffle(nodes)

    def edge() -> Edge:
        source, target = (int(edges * random.random() ** 3) for _ in range(2))
        return nodes[source], target

    queries = tuple(path_query(n) for n in lengths)
    return _suite(f"a graph of {edges:,} edges", queries, edge, edges, changes, batches, seed)


def cycle_query(length: int) -> Query:
    """How many closed walks of ``length`` edges there are.

    >>> cycle_query(3).sql
    'select count(*) as cycles from edges e1 join edges e2 on e1.target = e2.source \
join edges e3 on e2.target = e3.source and e3.target = e1.source'
    """
    path = path_query(length).sql.replace("as paths", "as cycles")
    return Query(f"cycle_{length}", f"{path} and e{length}.target = e1.source")


def cycles_suite(
    lengths: Sequence[int], edges: int, changes: int, batches: int, skew: float, seed: int = 7
) -> Suite:
    """Cycles over a graph with hubs: the more edges a node has as a source, the more it has as a target.

    Pairs of edges that meet are therefore very many more than there are edges, and most close no cycle: with a
    ``skew`` of 3 some two hundred times as many, with 4 eight hundred times.
    """
    random = Random(seed)
    nodes = max(2, edges // 5)

    def edge() -> Edge:
        source, target = (int(nodes * random.random() ** skew) for _ in range(2))
        return source, target

    queries = tuple(cycle_query(n) for n in lengths)
    return _suite(f"a graph with hubs of {edges:,} edges", queries, edge, edges, changes, batches, seed)


def pairs(rows: Iterable[Row]) -> int:
    """How many pairs of edges meet: the rows of the join of the first two edges of a path.

    >>> pairs([(1, 2), (2, 3), (2, 4), (4, 4)])
    4
    """
    sources = Counter(source for source, _ in rows)
    return sum(sources[target] for _, target in rows)


def _suite(
    name: str,
    queries: tuple[Query, ...],
    edge: Callable[[], Edge],
    edges: int,
    changes: int,
    batches: int,
    seed: int,
) -> Suite:
    rows = tuple(edge() for _ in range(edges))
    draft = Draft({"edges": ["source", "target"]}, {"edges": rows}, seed)
    stream = []
    for number in range(1, batches + 1):
        for row in draft.some("edges", changes // 2):
            draft.delete("edges", row)
        for _ in range(changes - changes // 2):
            source, target = edge()
            draft.insert("edges", source=source, target=target)
        stream.append(draft.finish(f"{changes:,} edges come and go, {number}"))
    return Suite(name, (EDGES,), {"edges": rows}, queries, tuple(stream))
