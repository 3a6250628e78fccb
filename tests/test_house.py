"""The shape of the code: how long modules and functions are, how they are called, and where operators are known."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PRODUCT, GENERATOR = "python", "tests/generator"
"""Whose shape is held."""

LINES, FUNCTION_LINES, POSITIONAL, PLACES = 400, 60, 5, 4

KNOWN_IN = {
    "Aggregate": 22,
    "Filter": 16,
    "Join": 20,
    "Map": 22,
    "Scan": 33,
    "UnionAll": 11,
}
"""In how many modules the operators of the algebra are looked for, in which the rules of the planner are written.

A rule for joins has to look for joins. No figure may grow, and no other operator is looked for in more than four.
"""


@cache
def _modules() -> dict[str, ast.Module]:
    paths = (p for directory in (PRODUCT, GENERATOR) for p in sorted((ROOT / directory).rglob("*.py")))
    return {str(p.relative_to(ROOT)): ast.parse(p.read_text(encoding="utf-8")) for p in paths}


def test_no_module_is_long() -> None:
    lengths = {name: (ROOT / name).read_text(encoding="utf-8").count("\n") for name in _modules()}
    assert {name: n for name, n in lengths.items() if n > LINES} == {}


def test_no_function_is_long() -> None:
    functions = (
        (f"{name}: {node.name}", (node.end_lineno or 0) - node.lineno + 1)
        for name, tree in _modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
    )
    assert {name: n for name, n in functions if n > FUNCTION_LINES} == {}


def test_what_is_made_of_many_arguments_names_them() -> None:
    calls = (
        f"{name}:{node.lineno} {node.func.id}"
        for name, tree in _modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id[0].isupper()
        if len(node.args) > POSITIONAL and not any(isinstance(a, ast.Starred) for a in node.args)
    )
    assert list(calls) == []


def test_notes_beside_nodes_go_by_their_functions() -> None:
    """Copies share them (ir/places.py): who writes into sqlglot's own changes those of other nodes too."""
    found = {
        name
        for name, tree in _modules().items()
        if name.startswith(PRODUCT)
        and any(isinstance(n, ast.ImportFrom) and n.module == "sqlglot" for n in tree.body)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in ("meta", "_meta")
    }
    oracle = (
        "python/fivm_dbt/testing/interpreter/errors.py"  # shares nothing with what it checks, and only reads
    )
    assert found == {"python/fivm_dbt/ir/places.py", oracle}


def test_an_operator_is_known_in_few_places() -> None:
    """Whoever adds one writes its class, its delta, how it is read and how it is written."""
    places: defaultdict[str, set[str]] = defaultdict(set)
    for name, tree in _modules().items():
        for operator in set(_looked_for(tree)) & _operators():
            places[operator].add(name)
    found = {operator: len(names) for operator, names in places.items() if len(names) > PLACES}
    assert {o: n for o, n in found.items() if n > KNOWN_IN.get(o, PLACES)} == {}
    assert {o: n for o, n in KNOWN_IN.items() if found.get(o, 0) < n} == {}, "fewer: the figure can go down"


@cache
def _operators() -> frozenset[str]:
    """The names of Node's subclasses, but for those that only say what others have in common."""
    bases = {
        node.name: {base.id for base in node.bases if isinstance(base, ast.Name)}
        for name, tree in _modules().items()
        if name.startswith("python/fivm_dbt/ir/")
        for node in tree.body
        if isinstance(node, ast.ClassDef)
    }
    found = {"Node"}
    while more := {name for name, of in bases.items() if of & found} - found:
        found |= more
    assert {"Filter", "Sessions", "HigherOrder"} <= found
    return frozenset(name for name in found - {"Node"} if "ABC" not in bases[name])


def _looked_for(tree: ast.Module) -> Iterator[str]:
    """The classes that are asked for, matched, or keys of a table."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
            yield from _names(node.args[1])
        elif isinstance(node, ast.MatchClass):
            yield from _names(node.cls)
        elif isinstance(node, ast.Dict):
            yield from (key.id for key in node.keys if isinstance(key, ast.Name))
        elif isinstance(node, (ast.Assign, ast.AnnAssign)) and isinstance(node.value, ast.Tuple):
            yield from (item.id for item in node.value.elts if isinstance(item, ast.Name))


def _names(node: ast.expr) -> Iterator[str]:
    yield from (inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name))
