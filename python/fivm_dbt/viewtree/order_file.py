"""F-IVM's compiler reads variable orders as text: variables with their parents, then relations.

The first line has the number of variables and of relations. A variable is a line ``id name type parent {ids} hint``:
parent -1 is a root, the set are the ancestors that it depends on, hint 1 asks for its view to be kept. A relation is a
line ``NAME id attributes`` with the id of its lowest variable (thesis, section 4.2, listing 4.2). What follows ``#``,
``--`` or ``//`` is a comment.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from fivm_dbt.errors import FivmError
from fivm_dbt.viewtree.hypergraph import Edge, Hypergraph
from fivm_dbt.viewtree.variable_order import OrderNode, VariableOrder

_VARIABLE = re.compile(r"(\d+)\s+(\S+)\s+(\S+)\s+(-1|\d+)\s+\{([\d,\s]*)\}\s+([01])")
_RELATION = re.compile(r"(\S+)\s+(\d+)\s+(\S.*)")
_COMMENT = re.compile(r"(^|\s)(#|--|//).*")
_REMEDY = "correct it; a variable is a line `id name type parent {ids} hint`, a relation a line `NAME id attributes`"


@dataclass(frozen=True)
class OrderFile:
    """An order with the relations that the file declares for it, types of variables, and the views it asks to keep.

    The latter are hints: what is kept follows from what changes.
    """

    order: VariableOrder
    edges: tuple[Edge, ...]
    types: tuple[tuple[str, str], ...]
    kept: frozenset[str]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Variable:
    line: int
    number: int
    name: str
    type: str
    parent: int
    depends_on: frozenset[int]
    is_kept: bool


def read_order(text: str, source: str = "variable order") -> OrderFile:
    """The order that ``text`` describes. FIVM204 names the line at fault.

    ``notes`` say where the sets of ids differ from what the relations tell: those are computed and not believed.
    """
    written = [(number, _COMMENT.sub("", line).strip()) for number, line in enumerate(text.splitlines(), 1)]
    lines = [(number, line) for number, line in written if line]
    if not lines:
        raise FivmError("FIVM204", f"{source} is empty", remedy=_REMEDY)
    number, head = lines[0]
    counts = head.split()
    if len(counts) != 2 or not all(c.isdigit() for c in counts):
        raise _refused(source, number, f"expected the number of variables and of relations, not {head!r}")
    # The lines tell what they are: published files announce other numbers than they have.
    variables = _variables([(number, line) for number, line in lines[1:] if line[0].isdigit()], source)
    relations = [(number, line) for number, line in lines[1:] if not line[0].isdigit()]
    edges, lowest = _relations(relations, variables, source)
    order = _forest(variables, source)
    for edge in edges:
        found = order.lowest(edge)
        if found != lowest[edge.name]:
            raise FivmError(
                "FIVM204",
                f"{source}: {edge.name} is said to hang at {lowest[edge.name]}, but {found} is its lowest variable",
                remedy=_REMEDY,
            )
    return OrderFile(
        order,
        tuple(edges),
        tuple((v.name, v.type) for v in variables.values()),
        frozenset(v.name for v in variables.values() if v.is_kept),
        _notes(order, edges, variables),
    )


def _variables(lines: list[tuple[int, str]], source: str) -> dict[int, _Variable]:
    """The variables by their ids, each referring to others that are there."""
    variables: dict[int, _Variable] = {}
    for number, line in lines:
        match = _VARIABLE.fullmatch(line)
        if match is None:
            raise _refused(source, number, f"expected `id name type parent {{ids}} 0|1`, not {line!r}")
        key, name, type_, parent, ids, hint = match.groups()
        variable = _Variable(
            number,
            int(key),
            name=name,
            type=type_,
            parent=int(parent),
            depends_on=frozenset(int(i) for i in re.split(r"[,\s]+", ids) if i),
            is_kept=hint == "1",
        )
        same = [v for v in variables.values() if v.number == variable.number or v.name == name]
        if same:
            raise _refused(source, number, f"{key} {name} is declared in line {same[0].line} already")
        variables[variable.number] = variable
    for variable in variables.values():
        for other in sorted({variable.parent, *variable.depends_on} - {-1}):
            if other not in variables:
                what = f"{variable.name} refers to variable {other}, which is not declared"
                raise _refused(source, variable.line, what)
    return variables


def _relations(
    lines: list[tuple[int, str]], variables: dict[int, _Variable], source: str
) -> tuple[list[Edge], dict[str, str]]:
    """The relations, and by their names the variables at which they are said to hang."""
    edges: list[Edge] = []
    names = {v.name for v in variables.values()}
    lowest: dict[str, str] = {}
    for number, line in lines:
        match = _RELATION.fullmatch(line)
        if match is None:
            raise _refused(source, number, f"expected `NAME id attribute,attribute...`, not {line!r}")
        name, at, attributes = match.groups()
        schema = tuple(a.strip() for a in attributes.split(","))
        unknown = [a for a in schema if a not in names]
        if unknown:
            raise _refused(source, number, f"{', '.join(unknown)} of {name} is no variable of the order")
        if int(at) not in variables:
            raise _refused(source, number, f"{name} hangs at variable {at}, which is not declared")
        if any(e.name == name for e in edges):
            raise _refused(source, number, f"{name} is declared twice")
        edges.append(Edge(name, schema))
        lowest[name] = variables[int(at)].name
    return edges, lowest


def _refused(source: str, line: int, what: str) -> FivmError:
    return FivmError("FIVM204", f"{source}, line {line}: {what}", remedy=_REMEDY)


def write_order(order: VariableOrder, graph: Hypergraph, types: dict[str, str] | None = None) -> str:
    """``order`` in the text format; types that are not known are ``int``."""
    number = {v: i for i, v in enumerate(order.variables)}
    dependencies = order.dependencies(graph)
    lines = [f"{len(number)} {len(graph.edges)}"]
    for variable, i in number.items():
        above = order.paths[variable][:-1]
        parent = number[above[-1]] if above else -1
        ids = ",".join(str(number[v]) for v in dependencies[variable])
        lines.append(f"{i} {variable} {(types or {}).get(variable, 'int')} {parent} {{{ids}}} 0")
    for edge in graph.edges:
        lowest = order.lowest(edge)
        if lowest is not None:
            lines.append(f"{edge.name} {number[lowest]} {','.join(edge.variables)}")
    return "\n".join(lines) + "\n"


def _forest(variables: dict[int, _Variable], source: str) -> VariableOrder:
    below: dict[int, list[int]] = {}
    for variable in variables.values():
        below.setdefault(variable.parent, []).append(variable.number)
    reached: set[int] = set()

    def node(number: int) -> OrderNode:
        reached.add(number)
        return OrderNode(variables[number].name, tuple(node(child) for child in below.get(number, [])))

    order = VariableOrder(tuple(node(root) for root in below.get(-1, [])))
    circular = next((v for v in variables.values() if v.number not in reached), None)
    if circular is not None:
        raise _refused(source, circular.line, f"{circular.name} is its own ancestor")
    return order


def _notes(order: VariableOrder, edges: list[Edge], variables: dict[int, _Variable]) -> tuple[str, ...]:
    computed = order.dependencies(Hypergraph(tuple(edges)))
    notes = []
    for variable in variables.values():
        written = {variables[n].name for n in variable.depends_on}
        if variable.name in computed and written != set(computed[variable.name]):
            told = ", ".join(computed[variable.name]) or "nothing"
            said = ", ".join(sorted(written)) or "nothing"
            notes.append(
                f"{variable.name} is said to depend on {said}; by the relations it depends on {told}"
            )
    return tuple(notes)
