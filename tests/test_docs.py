"""The documentation is run: its examples, its lists of codes and keys, its links.

A fenced block is tested when an HTML comment stands above it:

=============================  ===============================================================================
``<!-- test: file NAME -->``    the block is written to NAME, for the examples below it on the page
``<!-- test: console -->``      every line ``$ fivm ...`` is run; its output is the lines below it
``<!-- test: tables -->``       CREATE TABLE statements that the queries below read
``<!-- test: accepted -->``     a query that is planned without an error
``<!-- test: FIVM105 -->``      a query (sql), meta keys (yaml) or a scenario (json) that is refused with this code
``<!-- test: message -->``      the text of the last refusal, letter by letter
``<!-- test: refusals -->``     a table: each row's query is refused with the code in the row
``<!-- test: explain F W -->``  of ``fivm explain F`` the part whose title has all words W; F may also be a model
                               of the last scenario
``<!-- test: columns F -->``    of the same what the state has, without the SELECT that shows it
``<!-- test: tree F ... -->``   of ``fivm explain F ...`` the view tree
``<!-- test: operators F ... -->``  of ``fivm explain F ...`` the operators
``<!-- test: products F ... -->``  of ``fivm explain F ...`` what is made of changes that are products
``<!-- test: scenario -->``     a scenario that is replayed: no refusal, no rebuild, an expectation in each step; with a
                               NAME it is written to that file
``<!-- test: deltas -->``       what the last scenario staged in each step
``<!-- test: model NAME -->``   a viewdf model, as it stands in its file
``<!-- test: stream -->``       tables and steps that such models are run over, and compared with all parts from scratch
``<!-- test: runs -->``         the lines that the last stream's runs printed
``<!-- test: python -->``       code that is run, after the blocks of this kind above it on the page
``<!-- test: as FILE -->``      a part of a file, letter by letter
``<!-- test: ring F -->``       a scenario of a function that has the ring of tests/fixtures/covariances.py
``<!-- test: row NAME -->``     the row of a function in functions/aggregates.py, the only module that names it
``<!-- test: without NAME -->`` a query that is refused where the functions have no such row, and planned else
=============================  ===============================================================================

A file of SQL gives its CREATE TABLE statements to the queries below it too.
``FIVM_UPDATE=1 pytest tests/test_docs.py`` writes console, message, explain and deltas anew; review the difference.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args

import pytest
import yaml
from click.testing import CliRunner

from fivm_dbt.cli import main
from fivm_dbt.config import Config, load_config
from fivm_dbt.errors import CODES, FivmError
from fivm_dbt.explain.text import explain
from fivm_dbt.functions import lookup
from fivm_dbt.plan.planner import plan_model
from fivm_dbt.plan.request import ModelRequest
from fivm_dbt.refresh.report import InputChange, Report
from fivm_dbt.rings.ring import RINGS
from fivm_dbt.rings.totals import TOTAL
from fivm_dbt.sql.script import read_script
from fivm_dbt.testing.load import load_scenarios
from fivm_dbt.testing.scenario_plans import plan_models
from fivm_dbt.testing.workbench import DuckDbWorkbench
from fixtures.covariances import Covariances
from staged_deltas import staged_deltas
from viewdf_docs import played

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PRODUCT = ROOT / "python" / "fivm_dbt"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
_MARK = re.compile(r"<!-- test: (.+?) -->")
_SECONDS = re.compile(r"\d+\.\d+ s\b")
_CREATE = re.compile(r"^create table .*?;\n", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Example:
    """A marked part of a page: a fenced block, or a table."""

    page: Path
    line: int
    instruction: str
    language: str
    text: str

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def examples(page: Path) -> Iterator[Example]:
    """The marked parts of a page, in order."""
    lines = page.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines):
        mark = _MARK.fullmatch(line.strip())
        if mark is None:
            continue
        start = next(i for i in range(number + 1, len(lines)) if lines[i].strip())
        if lines[start].startswith("```"):
            end = lines.index("```", start + 1)
            language, body = lines[start][3:], lines[start + 1 : end]
        else:
            end = next((i for i in range(start, len(lines)) if not lines[i].startswith("|")), len(lines))
            language, body = "table", lines[start:end]
        yield Example(page, start + 2, mark.group(1), language, "\n".join(body) + "\n")


@dataclass
class Reader:
    """Follows one page: the files and tables so far, the last refusal, and the last scenario."""

    directory: Path
    tables: str = ""
    refusal: str = ""
    deltas: str = ""
    runs: str = ""
    models: dict[str, str] = field(default_factory=dict)
    explained: dict[str, str] = field(default_factory=dict)
    namespace: dict[str, object] = field(default_factory=dict)
    """What blocks of code have defined."""
    outputs: dict[int, str] = field(default_factory=dict)
    """What each block with an output should hold, by its line."""

    def follow(self, example: Example) -> None:
        verb, _, rest = example.instruction.partition(" ")
        if verb == "file":
            (self.directory / rest).write_text(example.text, encoding="utf-8")
            self.tables = "".join(_CREATE.findall(example.text)) or self.tables
        elif verb == "console":
            self.outputs[example.line] = "".join(self._ran(line) for line in _commands(example))
        elif verb == "tables":
            self.tables = example.text
        elif verb == "accepted":
            self._plan(example.text)
        elif verb == "message":
            self.outputs[example.line] = f"{self.refusal}\n"
        elif verb == "refusals":
            for query, code in _rows(example):
                assert self._refused(query, example.place) == code, f"{example.place}: {query}"
        elif verb == "explain":
            name, _, words = rest.partition(" ")
            self.outputs[example.line] = _part(self._explained(name), words.split(), example.place)
        elif verb == "columns":
            state = _part(self._explained(rest), ["==", "state"], example.place)
            self.outputs[example.line] = state.partition("shown by view")[0]
        elif verb in _PARTS:
            explained = self._ran(f"fivm explain {rest}").partition("\n")[2]
            self.outputs[example.line] = _part(explained, _PARTS[verb], example.place)
        elif verb == "scenario":
            self.deltas = self._replayed(example, rest or "scenario.yml")
        elif verb == "python":
            exec(compile(example.text, example.place, "exec", dont_inherit=True), self.namespace)
        elif verb == "as":
            assert example.text in (ROOT / rest).read_text(encoding="utf-8"), example.place
        elif verb == "ring":
            with pytest.MonkeyPatch.context() as patch:
                patch.setitem(RINGS, rest, Covariances)
                self._replayed(example, f"{rest}.yml")
            assert "5 components are added to the state" in self.explained["fit"]
        elif verb == "row":
            assert example.text.strip() in (PRODUCT / "functions" / "aggregates.py").read_text(
                encoding="utf-8"
            )
        elif verb == "without":
            self._plan(example.text)
            with pytest.MonkeyPatch.context() as patch:
                patch.delitem(lookup._BY_NAME, rest)
                self._refused(example.text, example.place)
        elif verb == "model":
            self.models[rest] = example.text
        elif verb == "stream":
            self.runs, plans = played(self.models, example.text, example.place)
            self.explained |= {name: explain(plan) for name, plan in plans.items()}
        elif verb == "runs":
            self.outputs[example.line] = self.runs
        elif verb == "deltas":
            self.outputs[example.line] = self.deltas
        elif verb in CODES:
            found = self._refused(example.text, example.place, example.language)
            assert found == verb, f"{example.place}: {found}: {self.refusal}"
        else:
            raise AssertionError(f"{example.place}: unknown instruction {example.instruction}")

    def _refused(self, text: str, place: str, language: str = "sql") -> str:
        try:
            if language == "yaml":
                load_config(yaml.safe_load(text), model="daily")
            elif language == "json":
                file = self.directory / "scenario.json"
                file.write_text(text, encoding="utf-8")
                for located in load_scenarios([file]):
                    plan_models(located.scenario, DuckDbWorkbench(tiny=True))
            else:
                self._plan(text)
        except FivmError as error:
            self.refusal = str(error).replace(f"{self.directory}{os.sep}", "")
            return error.code.number
        raise AssertionError(f"{place}: was not refused: {text}")

    def _plan(self, text: str) -> None:
        meta, text = _meta(text)
        script = read_script(self.tables + text)
        plan_model(
            ModelRequest("analytics.daily", script.sql, script.catalog, load_config(meta, model="daily"))
        )

    def _explained(self, name: str) -> str:
        if name not in self.explained:
            self.explained[name] = self._ran(f"fivm explain {name} --statements").partition("\n")[2]
        return self.explained[name]

    def _replayed(self, example: Example, name: str) -> str:
        file = self.directory / name
        file.write_text(example.text, encoding="utf-8")
        (located,) = load_scenarios([file])
        plans, deltas = staged_deltas(located.scenario, example.place)
        self.explained |= {plan.model: explain(plan) for plan in plans}
        return deltas

    def _ran(self, command: str) -> str:
        with _inside(self.directory):
            result = CliRunner().invoke(main, command.split()[1:])
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return f"$ {command}\n{result.output}"


def _meta(text: str) -> tuple[dict[str, object], str]:
    """The keys of a first line ``-- meta: {...}``."""
    match = re.match(r"-- meta: (.*)\n", text)
    return (yaml.safe_load(match.group(1)), text[match.end() :]) if match else ({}, text)


def _commands(example: Example) -> list[str]:
    commands = [line[2:] for line in example.text.splitlines() if line.startswith("$ ")]
    assert commands and all(c.startswith("fivm ") for c in commands), example.place
    return commands


_PARTS = {
    "tree": ["view", "tree"],
    "products": ["changes", "products"],
    "operators": ["==", "operators"],
}
"""Parts of what ``fivm explain`` says with options, by the words of their titles."""


def _part(explained: str, words: list[str], place: str) -> str:
    """The part of an explained plan, up to the next title, whose title has all these words."""
    parts = re.split(r"^(?=== |-- )", explained, flags=re.MULTILINE)
    titled = [(p.partition("\n")[0], p) for p in parts]
    exact = [p for title, p in titled if set(words) <= set(title.split())]
    found = exact or [p for title, p in titled if all(w in title for w in words)]
    titles = "".join(f"\n  {p.partition(chr(10))[0]}" for p in parts)
    assert len(found) == 1, f"{place}: {len(found)} parts have {' '.join(words)} in their title, of{titles}"
    return found[0].rstrip("\n") + "\n"


def _rows(example: Example) -> list[tuple[str, str]]:
    """Query and code of each row of a table."""
    found = []
    for row in example.text.splitlines()[2:]:
        query = re.search(r"`((?:select|with) [^`]*)`", row)
        code = re.search(r"FIVM\d+", row)
        assert query and code, f"{example.place}: {row}"
        found.append((query.group(1).replace("\\|", "|"), code.group()))
    return found


@contextmanager
def _inside(directory: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(directory)
    try:
        yield
    finally:
        os.chdir(before)


def timeless(text: str) -> str:
    return _SECONDS.sub("0.0 s", text)


MARKED = [page for page in PAGES if any(True for _ in examples(page))]


@pytest.mark.parametrize("page", MARKED, ids=lambda p: str(p.relative_to(ROOT)))
def test_examples(page: Path, tmp_path: Path) -> None:
    reader, found = Reader(tmp_path), list(examples(page))
    for example in found:
        reader.follow(example)
    drifted = [e for e in found if timeless(reader.outputs.get(e.line, e.text)) != timeless(e.text)]
    if os.environ.get("FIVM_UPDATE"):
        _rewrite(page, drifted, reader.outputs)
    else:
        for example in drifted:
            assert example.text == reader.outputs[example.line], example.place


def _rewrite(page: Path, drifted: list[Example], outputs: dict[int, str]) -> None:
    lines = page.read_text(encoding="utf-8").splitlines()
    for example in reversed(drifted):
        start = example.line - 1
        lines[start : start + len(example.text.splitlines())] = outputs[example.line].splitlines()
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_examples_are_found() -> None:
    counts = {page.relative_to(ROOT).as_posix(): len(list(examples(page))) for page in MARKED}
    assert counts.get("docs/tutorial.md", 0) >= 10
    assert counts.get("docs/worked-example.md", 0) >= 2
    assert counts.get("docs/replay.md", 0) >= 2
    assert counts.get("docs/errors.md", 0) >= 30
    assert counts.get("docs/limitations.md", 0) >= 3


OPERATORS = sorted(p for p in (DOCS / "operators").glob("*.md") if p.name != "README.md")


def test_operators_are_indexed() -> None:
    index = (DOCS / "operators" / "README.md").read_text(encoding="utf-8")
    linked = set(re.findall(r"^\| .*\]\(([\w-]+\.md)\) \|$", index, flags=re.MULTILINE))
    assert linked == {page.name for page in OPERATORS} and len(linked) >= 16


@pytest.mark.parametrize("page", OPERATORS, ids=lambda p: p.stem)
def test_operator_is_shown_whole(page: Path) -> None:
    verbs = [e.instruction.partition(" ")[0] for e in examples(page)]
    shown = [e.instruction for e in examples(page) if e.instruction.startswith("explain ")]
    assert any(i.endswith("how each operator") for i in shown) and any("staged" in i for i in shown)
    assert {"scenario", "deltas", "refusals"} <= set(verbs)
    text = _without_code(page.read_text(encoding="utf-8"))
    assert {"## Rule", "## In numbers", "## Refused", "## Source"} <= set(text.splitlines())


RING_PAGES = sorted(p for p in (DOCS / "rings").glob("*.md") if p.name != "README.md")


def test_rings_are_indexed() -> None:
    """Each page has a row, and each function of a ring."""
    index = (DOCS / "rings" / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| .*\]\(([\w-]+\.md)\) \|$", index, flags=re.MULTILINE)
    assert set(rows) == {page.name for page in RING_PAGES} and len(rows) >= 11
    functions = "".join(re.findall(r"^\| ([^|]*) \|", index, flags=re.MULTILINE)).lower()
    # A covariance of another degree has a name of its own in plans alone.
    assert {name for name in RINGS if name.partition(" ")[0] not in functions} == {TOTAL}


@pytest.mark.parametrize("page", RING_PAGES, ids=lambda p: p.stem)
def test_ring_is_shown_whole(page: Path) -> None:
    text = _without_code(page.read_text(encoding="utf-8"))
    assert {"## Equations", "## Source"} <= set(text.splitlines())
    # Of what has no inverse another page has the examples.
    if page.stem != "extremes":
        assert "## Limits" in text.splitlines()
        assert {e.instruction.partition(" ")[0] for e in examples(page)} & {"scenario", "python"}


def test_errors_has_exactly_the_codes() -> None:
    text = (DOCS / "errors.md").read_text(encoding="utf-8")
    sections = re.split(r"^## (?=FIVM)", text, flags=re.MULTILINE)[1:]
    assert [s.split("\n", 1)[0] for s in sections] == list(CODES)
    for section in sections:
        code = CODES[section[:7]]
        assert f"**{code.title}**" in section and f"fault: {code.fault}" in section, code.number
        assert f"```text\n{code.number} " in section and "What to do:" in section, code.number


def test_configuration_has_exactly_the_keys() -> None:
    text = (DOCS / "configuration.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", text, flags=re.MULTILINE))
    assert sorted(rows) == sorted(Config.model_fields)
    for key, row in rows.items():
        now, later = (re.findall(r"`([^`]+)`", cell) for cell in row.split("|")[:2])
        documented = [*now, *later]
        assert set(_choices(key)) <= set(documented), key
        if now:
            default = Config.model_fields[key].get_default()
            assert now[0] == ("none" if default in (None, ()) else str(default).lower()), key
        for value in documented:
            assert _is_available(key, value) is (value in now), f"{key}: {value}"


def _choices(key: str) -> list[str]:
    """The fixed values of a key, as written in YAML."""
    annotation = Config.model_fields[key].annotation
    if annotation is bool:
        return ["false", "true"]
    parts = [*get_args(annotation), *(a for p in get_args(annotation) for a in get_args(p))]
    return [p for p in parts if isinstance(p, str)]


def _is_available(key: str, value: str) -> bool:
    """Whether this version takes a value; one that it does not know at all fails here."""
    try:
        load_config({} if value == "none" else {key: yaml.safe_load(value)})
    except FivmError as error:
        assert error.code.number == "FIVM203", f"{key}: {value}: {error}"
        return False
    return True


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_resolve(page: Path) -> None:
    text = _without_code(page.read_text(encoding="utf-8"))
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{page.name}: {target}"
        if anchor and file.suffix == ".md":
            assert anchor in _anchors(file), f"{page.name}: {target}"


def _without_code(text: str) -> str:
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def _anchors(page: Path) -> set[str]:
    """The anchors that a forge makes of a page's headings."""
    headings = re.findall(r"^#+ (.+)$", _without_code(page.read_text(encoding="utf-8")), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.strip().lower()).replace(" ", "-") for h in headings}


REPORTS = (
    Report(
        "big_orders",
        "refreshed",
        7,
        inputs=(InputChange("raw.orders", "change feed", 3, 1, 11, 12),),
        partitions=1,
        rows_merged=1,
        statements=("",) * 5,
        rows_read=4,
        bytes_read=11427,
        state_bytes=3106,
    ),
    Report("revenue_by_day", "no change", 7, rows_read=0, bytes_read=0, state_bytes=3751),
)
"""What ``dbt run`` said of the project in tests/dbt, for the pages that show such lines."""


@pytest.mark.parametrize("page", ["README.md", "docs/dbt.md"])
def test_lines_of_dbt_run(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    for report in REPORTS:
        assert f"fivm: {_SECONDS.sub('... s', report.line())}" in text, report.model


def test_picture_is_readable_in_dark() -> None:
    for picture in (DOCS / "images").glob("*.svg"):
        assert "prefers-color-scheme: dark" in picture.read_text(encoding="utf-8"), picture.name
