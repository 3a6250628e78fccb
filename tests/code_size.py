"""``make size ARGS='REV ...'``: lines of the product's Python at commits, by what they are."""

from __future__ import annotations

import argparse
import ast
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
PRODUCT = "python/fivm_dbt"
KINDS = ("code", "imports", "docstrings", "comments", "blank")
_IMPORTS = (ast.Import, ast.ImportFrom)
_TEXTS = (ast.Constant, ast.JoinedStr)
_WITH_DOCSTRING = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def main() -> int:
    """Print a row per commit, and what the last one has more than the first one."""
    given = _arguments()
    counts = [size_at(revision, given.folder, without=given.without) for revision in given.revisions]
    heads = ("commit", "files", "lines", *KINDS)
    print("".join(f"{head:>12}" for head in heads))
    for revision, count in zip(given.revisions, counts, strict=True):
        print(f"{revision:>12}" + "".join(f"{count[head]:>12,}" for head in heads[1:]))
    if len(counts) > 1:
        ratios = (f"{counts[-1][head] / max(counts[0][head], 1):>12.3f}" for head in heads[1:])
        print(f"{'last / first':>12}" + "".join(ratios))
    return 0


def size_at(revision: str, folder: str = PRODUCT, *, without: tuple[str, ...] = ()) -> Counter[str]:
    """Files and lines of the Python files in ``folder`` at a commit.

    Args:
        revision: What git calls the commit.
        folder: A path of the repository.
        without: Files with one of these words in their path are not counted.

    Returns:
        A count of ``files``, of all ``lines``, and of the lines of each kind in ``KINDS``. Each line is of one kind.

    Raises:
        subprocess.CalledProcessError: git knows no such commit.
    """
    found: Counter[str] = Counter()
    for path in _git("ls-tree", "-r", "--name-only", revision, folder).splitlines():
        if path.endswith(".py") and not any(word in path for word in without):
            found["files"] += 1
            found.update(kinds_of_lines(_git("show", f"{revision}:{path}")))
    found["lines"] = sum(found[kind] for kind in KINDS)
    return found


def kinds_of_lines(source: str) -> Iterator[str]:
    """What each line of a module is: one of ``KINDS``."""
    lines = source.splitlines()
    spans = {number: kind for kind, node in _spans(ast.parse(source)) for number in _lines(node)}
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if number in spans:
            yield spans[number]
        else:
            yield "blank" if not text else "comments" if text.startswith("#") else "code"


def _spans(tree: ast.Module) -> Iterator[tuple[str, ast.stmt | ast.expr]]:
    """Statements and texts whose lines are of one kind, a text before the docstring that it may be."""
    nodes = list(ast.walk(tree))
    yield from (("code", node) for node in nodes if isinstance(node, _TEXTS))
    for node in nodes:
        if isinstance(node, _IMPORTS):
            yield "imports", node
        elif isinstance(node, _WITH_DOCSTRING) and ast.get_docstring(node, clean=False) is not None:
            yield "docstrings", node.body[0]


def _lines(node: ast.stmt | ast.expr) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=REPOSITORY, check=True, capture_output=True, text=True)
    return done.stdout


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="code_size", description=__doc__)
    parser.add_argument(
        "revisions", nargs="*", default=["HEAD"], metavar="REV", help="commits; HEAD without any"
    )
    parser.add_argument("--folder", default=PRODUCT, help="what is counted (default: %(default)s)")
    parser.add_argument(
        "--without", action="append", default=[], metavar="WORD", help="leave out paths with WORD"
    )
    given = parser.parse_args()
    given.without = tuple(given.without)
    return given


if __name__ == "__main__":
    raise SystemExit(main())
