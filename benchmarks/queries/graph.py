"""Counting the paths of a skewed random graph, and streams of edges that come and go."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from benchmarks.queries.draft import Draft
from benchmarks.queries.suite import Query, Suite
from fivm_dbt.catalog import Column
from fivm_dbt.testing.workbench import TableSpec

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

    def edge() -> tuple[int, int]:
        source, target = (int(edges * random.random() ** 3) for _ in range(2))
        return nodes[source], target

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
    queries = tuple(path_query(n) for n in lengths)
    return Suite(f"a graph of {edges:,} edges", (EDGES,), {"edges": rows}, queries, tuple(stream))
