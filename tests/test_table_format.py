"""The interface of a table format, and that nothing but Delta's own modules spells anything of Delta."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlglot import exp

from fivm_dbt.plan.model.head import Note
from fivm_dbt.spark.formats import FORMAT, Commit, Need, TableFormat, Touched

PRODUCT = Path(__file__).resolve().parent.parent / "python"
MACROS = PRODUCT.parent / "macros"

OWN = ("fivm_dbt/spark/formats/", "fivm_dbt/engines/spark/delta_lake/")

SPELLED = re.compile(
    r"(?<![\w.])delta\.[a-zA-Z]|spark\.databricks\.delta|\bio\.delta\b|\bsql\.delta\b|delta-spark"  # names with dots
    r"|^DELTA$|USING DELTA|CONVERT TO DELTA|DELTA_[A-Z]"  # the format and its conditions
    r"|(VERSION|TIMESTAMP)\s+AS\s+OF|(?i:table_changes)|DESCRIBE (HISTORY|DETAIL)"  # statements
    r"|\b(OPTIMIZE|VACUUM|ZORDER)\b|\b(UN)?SET TBLPROPERTIES\b(?! \()"
    r"|_change_type|_commit_(version|timestamp)|update_(pre|post)image"  # the change feed
    r"|_delta_log|\bDelta[A-Z]\w+|\bnum(Target|Output|Added|Removed)\w+"  # the log and its history
)

OF_THE_JVM = re.compile(r"delta[A-Z]|newDelta|CommitInfo|checksumOpt|TransactionForTable|^startTransaction$")
"""Methods of Delta's classes."""

TOLERATED = {
    # What is refused in the text of a model, and what is said to users.
    "fivm_dbt/functions/special.py": {"table_changes"},
    "fivm_dbt/sql/repeatable.py": {"table_changes"},
    "fivm_dbt/spark/validate.py": {"VERSION AS OF"},
    "fivm_dbt/project/inputs.py": {"CONVERT TO DELTA"},
}


def _spelled(tree: ast.Module) -> Iterator[str]:
    """What a module spells of Delta in its texts, but for docstrings, and in the methods that it calls."""
    told = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in told:
            yield from (found.group() for found in SPELLED.finditer(node.value))
        elif isinstance(node, ast.Attribute) and OF_THE_JVM.search(node.attr):
            yield node.attr


def test_delta_is_spelled_in_its_own_modules_alone() -> None:
    found = {}
    for path in sorted(PRODUCT.rglob("*.py")):
        name = path.relative_to(PRODUCT).as_posix()
        spelled = set(_spelled(ast.parse(path.read_text(encoding="utf-8"))))
        if not name.startswith(OWN):
            found[name] = spelled
        elif name.endswith(("/delta_lake.py", "/log.py", "/names.py")):
            assert spelled, "the test does not see what is there"
    assert {name: s for name, s in found.items() if s and s != TOLERATED.get(name)} == {}
    assert {name: found[name] for name in TOLERATED} == TOLERATED, "no longer needed"


def test_macros_spell_nothing_of_delta() -> None:
    texts = {path.name: path.read_text(encoding="utf-8") for path in MACROS.rglob("*.sql")}
    assert texts
    assert {name: found.group() for name, text in texts.items() if (found := SPELLED.search(text))} == {}


def test_what_a_format_has_to_give() -> None:
    asked = [name for name in vars(TableFormat) if not name.startswith("_")]
    methods = [name for name in asked if not isinstance(vars(TableFormat)[name], property)]
    assert len(methods) <= 10
    assert all(vars(TableFormat)[name].__doc__ for name in asked)


@pytest.mark.parametrize("written", [FORMAT.pinned("a.`r s`", 7), FORMAT.changes("a.r", 3, 5)])
def test_what_is_written_is_read_again(written: exp.Expr) -> None:
    found = re.search(FORMAT.reads, written.sql(dialect="spark"), re.IGNORECASE)
    assert found is not None
    read = {name: text for name, text in found.groupdict().items() if text and name != "pin"}
    assert read in ({"version": "7"}, {"table": "a.r", "first": "4", "last": "5"})


def test_every_need_has_a_property() -> None:
    assert len(FORMAT.properties(list(Need))) == len(Need)


def test_of_a_commit_that_is_not_known_anything_may_have_changed() -> None:
    touched = {
        name: FORMAT.touched(Commit(3, "then", name)) for name in ("OPTIMIZE", "MERGE", "something new")
    }
    assert list(touched.values()) == [Touched.FILES, Touched.ROWS, Touched.COLUMNS]


def test_each_table_has_numbers_of_its_own() -> None:
    one, other = (FORMAT.numbered(Note(table, 4, "note")) for table in ("a.r", "a.s"))
    assert {key for key in one if one[key] != other[key]} != set()
    assert sorted(one.values())[:1] == ["4"]
