"""Scenario files are read from JSON, JSON lines or YAML; all problems of all scenarios are reported at once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from fivm_dbt.errors import FivmError
from fivm_dbt.testing.check import problems
from fivm_dbt.testing.scenario import Scenario


@dataclass(frozen=True)
class Located:
    """A scenario with the file and the line at which it begins."""

    scenario: Scenario
    path: Path
    line: int


def load_scenarios(paths: Sequence[Path | str]) -> tuple[Located, ...]:
    """All scenarios of the files, in order. Raises FIVM601 with every problem: file, line, field."""
    found: list[Located] = []
    wrong: list[str] = []
    for path in map(Path, paths):
        try:
            raw = _read(path)
        except (OSError, ValueError, yaml.YAMLError) as error:
            wrong.append(f"{path}: {error}")
            continue
        for line, data in raw:
            scenario = _scenario(data, f"{path}:{line}", wrong)
            if scenario is not None:
                found.append(Located(scenario, path, line))
    counts = Counter(located.scenario.id for located in found)
    wrong += [
        f"{f.path}:{f.line}: id: {f.scenario.id!r} is used twice" for f in found if counts[f.scenario.id] > 1
    ]
    if wrong:
        raise FivmError("FIVM601", "\n".join(wrong), remedy="correct the file; docs/replay.md has the format")
    return tuple(found)


def _scenario(data: object, place: str, wrong: list[str]) -> Scenario | None:
    try:
        scenario = Scenario.model_validate(data)
    except ValidationError as error:
        wrong += [f"{place}: {_field(e['loc'])}: {_message(dict(e))}" for e in error.errors()]
        return None
    wrong += [f"{place}: {field}: {what}" for field, what in problems(scenario)]
    return scenario


def _field(location: tuple[int | str, ...]) -> str:
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text.lstrip(".") or "scenario"


def _message(detail: dict[str, Any]) -> str:
    if detail["type"] == "extra_forbidden":
        return "unknown field"
    return str(detail["msg"]).removeprefix("Value error, ").lower()


def _read(path: Path) -> list[tuple[int, object]]:
    """The raw scenarios of a file with their first lines."""
    text = path.read_text(encoding="utf-8")
    if path.suffix in (".yaml", ".yml"):
        return _read_yaml(text)
    if path.suffix == ".jsonl":
        lines = enumerate(text.splitlines(), start=1)
        return [(number, _json(line, number)) for number, line in lines if line.strip()]
    return _read_json(text)


def _json(text: str, line: int) -> object:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"line {line + error.lineno - 1}, column {error.colno}: {error.msg}") from None


def _read_json(text: str) -> list[tuple[int, object]]:
    """One scenario, a list of them, or one after the other."""
    decoder = json.JSONDecoder()
    found: list[tuple[int, object]] = []
    position = _skip(text, 0, " \t\r\n[,")
    if position == len(text):
        _json(text, 1)
    while position < len(text):
        line = text.count("\n", 0, position) + 1
        try:
            value, position = decoder.raw_decode(text, position)
        except json.JSONDecodeError as error:
            raise ValueError(f"line {error.lineno}, column {error.colno}: {error.msg}") from None
        found.append((line, value))
        position = _skip(text, position, " \t\r\n,]")
    return found


def _skip(text: str, position: int, characters: str) -> int:
    while position < len(text) and text[position] in characters:
        position += 1
    return position


def _read_yaml(text: str) -> list[tuple[int, object]]:
    found: list[tuple[int, object]] = []
    for node in yaml.compose_all(text, Loader=yaml.SafeLoader):
        if node is None:
            continue
        parts = node.value if isinstance(node, yaml.SequenceNode) else [node]
        for part in parts:
            found.append((part.start_mark.line + 1, _construct(part)))
    return found


def _construct(node: yaml.Node) -> object:
    loader = yaml.SafeLoader("")
    try:
        return loader.construct_document(node)
    finally:
        loader.dispose()
