"""A small break of one function of the product, as a change of its text."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

PRODUCT = Path("python") / "fivm_dbt"


class DoesNotApply(Exception):
    """The text of a mutant is not in its function, is there more than once, or means the same."""


@dataclass(frozen=True)
class Mutant:
    """In ``function`` of ``module`` the text ``old`` is ``new``. ``tests`` are likely to notice it, as pytest is told.

    ``says`` is what is wrong then. What only Spark's engine does ``needs_spark`` to be noticed.
    """

    name: str
    says: str
    module: str
    function: str
    old: str
    new: str
    tests: str
    needs_spark: bool = False

    @property
    def place(self) -> str:
        return f"{self.module}: {self.function}"

    def apply(self, root: Path) -> None:
        """Break the product of the tree below ``root``."""
        path = root / PRODUCT / self.module
        path.write_text(self.mutated(path.read_text(encoding="utf-8")), encoding="utf-8")

    def mutated(self, source: str) -> str:
        """The text of the module with the break in it."""
        tree = ast.parse(source)
        found = _function(tree, self.function.split("."))
        if found is None or found.end_lineno is None:
            raise DoesNotApply(f"{self.name}: there is no function {self.place}")
        lines = source.splitlines(keepends=True)
        before, after = lines[: found.lineno - 1], lines[found.end_lineno :]
        text = "".join(lines[found.lineno - 1 : found.end_lineno])
        if text.count(self.old) != 1:
            raise DoesNotApply(f"{self.name}: {self.place} has its text {text.count(self.old)} times")
        result = "".join([*before, text.replace(self.old, self.new), *after])
        if ast.dump(ast.parse(result)) == ast.dump(tree):
            raise DoesNotApply(f"{self.name}: it changes nothing in {self.place}")
        return result


def _function(tree: ast.Module | ast.ClassDef, path: list[str]) -> ast.FunctionDef | None:
    """A function by its name, or a method by those of its class and of itself."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and [node.name] == path:
            return node
        if isinstance(node, ast.ClassDef) and node.name == path[0]:
            return _function(node, path[1:])
    return None
