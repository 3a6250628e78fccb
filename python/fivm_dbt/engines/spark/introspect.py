"""A database describes a relation that a model reads."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fivm_dbt.catalog import Column, Presentation
from fivm_dbt.engines.spark.errors import translated
from fivm_dbt.engines.spark.stored_view import StoredView
from fivm_dbt.naming import (
    EXPOSES_PROPERTY,
    FACTORS_PROPERTY,
    PART_PROPERTY,
    PREFIX,
    ROOT,
    ROOT_PROPERTY,
    TAIL_PROPERTY,
    canonical,
    sibling,
    split_name,
)
from fivm_dbt.parts.length import Length
from fivm_dbt.spark.formats import FORMAT, MissingRelation

if TYPE_CHECKING:
    from fivm_dbt.engines.spark.engine import Execute


@dataclass(frozen=True)
class Described:
    """A relation as DESCRIBE EXTENDED shows it."""

    columns: tuple[Column, ...]
    provider: str
    view_text: str
    properties: tuple[tuple[str, str], ...]
    stored: StoredView | None = None
    """How Spark reads a view that is no model of fivm's; None of other relations."""
    kind: str = ""
    """What the database calls it, where that is no table: VIEW, MATERIALIZED_VIEW and the like."""
    comment: str = ""
    column_comments: tuple[tuple[str, str], ...] = ()
    """Of the columns that have one, by their names in lower case."""

    @property
    def is_view(self) -> bool:
        return self.kind == VIEW

    @property
    def is_versioned(self) -> bool:
        return not self.kind and self.provider == FORMAT.name

    def as_read(self) -> Described:
        """A model of fivm's is not read as Spark reads views."""
        is_ours = self.is_factorized or self.presentation is not None
        return replace(self, stored=None) if is_ours else self

    @property
    def is_factorized(self) -> bool:
        """Whether it is a fivm model whose result is joined when it is read."""
        return self.is_view and FACTORS_PROPERTY in dict(self.properties)

    @property
    def is_exposed(self) -> bool:
        """Whether it is a fivm model that is a table."""
        return self.is_versioned and EXPOSES_PROPERTY in dict(self.properties)

    @property
    def part_length(self) -> Length | None:
        """How long the parts of a viewdf model are, None of other relations."""
        text = dict(self.properties).get(PART_PROPERTY)
        return Length.read(text) if text else None

    @property
    def presentation(self) -> Presentation | None:
        """How the view shows a fivm model's root state, None for other relations."""
        known = dict(self.properties)
        root = known.get(ROOT_PROPERTY)
        if not root or not self.is_view:
            return None
        return Presentation(root, self.view_text.strip(), TAIL_PROPERTY in known)


VIEW = "VIEW"
_TABLES = ("", "MANAGED", "EXTERNAL")
_NOT_IN_JSON = ("PARSE_SYNTAX_ERROR", "UNSUPPORTED_FEATURE", "ParseException")
"""What servers answer that do not describe a view in JSON."""

_QUOTED = re.compile(r"`((?:[^`]|``)*)`")
_PART = r"(?:\w+|`(?:[^`]|``)*`)"
_NAME = re.compile(rf"{_PART}(?:\.{_PART})*")
_STATES = ("state", ROOT)

Describes = Callable[[str], Described | None]
"""Says what a relation is, None where it does not exist."""


def describe_relation(execute: Execute, name: str, *, is_read: bool = True) -> Described | None:
    """A relation as the database describes it, None where it does not exist.

    One that ``is_read`` is told with all that its rows mean, which may be further questions.
    """
    described = _described(execute, name)
    if described is None:
        return None
    described = replace(described, properties=_readable(described.properties, name, described.view_text))
    if not is_read:
        return described
    described = _with_settings(execute, name, described.as_read())
    return _with_whole_types(execute, name, described)


def view_text(execute: Execute, name: str) -> str | None:
    """The query of a view, None where there is no view of this name."""
    described = _described(execute, name)
    return described.view_text if described is not None and described.is_view else None


def _described(execute: Execute, name: str) -> Described | None:
    try:
        answer = translated(lambda: execute(f"DESCRIBE TABLE EXTENDED {name}", fetch=True))
    except MissingRelation:
        return None
    return parse_description([tuple(str(value or "") for value in row) for row in answer.rows])


def parse_description(rows: list[tuple[str, ...]]) -> Described:
    """Columns first, then a blank or a heading, then facts about the relation.

    >>> rows = [("k", "int", ""), ("", "", ""), ("# Detailed Table Information", "", ""), ("Type", "VIEW", ""),
    ...         ("View Text", "select k from a.root", ""), ("Table Properties", "[fivm.root=a.root]", "")]
    >>> parse_description(rows).presentation
    Presentation(root='a.root', sql='select k from a.root', is_summed=False)
    """
    end = next((i for i, row in enumerate(rows) if not row[0] or row[0].startswith("# ")), len(rows))
    facts: dict[str, str] = {}
    for name, value, *_ in rows[end:]:
        facts.setdefault(name, value)
    kind = facts.get("Type", "").upper()
    return Described(
        columns=tuple(Column.of(name, type_) for name, type_, *_ in rows[:end]),
        kind="" if kind in _TABLES else kind,
        stored=_stored(facts) if kind == VIEW else None,
        provider=facts.get("Provider", "").lower(),
        view_text=facts.get("View Text", ""),
        properties=_properties(facts.get("Table Properties", "")),
        comment=facts.get("Comment", ""),
        column_comments=tuple((name.lower(), text) for name, _, *told in rows[:end] for text in told if text),
    )


def _stored(facts: Mapping[str, str]) -> StoredView:
    listed = facts.get("View Query Output Columns", "")
    columns = [name.replace("``", "`") for name in _QUOTED.findall(listed)]
    # Spark 3 does not quote them.
    columns = columns or [name for name in listed.strip("[]").split(", ") if name]
    schema, mode = facts.get("View Catalog and Namespace", ""), facts.get("View Schema Mode", "")
    return StoredView.of(canonical(schema), columns, mode)


def _with_settings(execute: Execute, name: str, described: Described) -> Described:
    """A view with the settings under which it was created, which DESCRIBE tells in JSON alone, and not every Spark."""
    if described.stored is None or described.stored.settings is not None:
        return described
    try:
        told = execute(f"DESCRIBE TABLE EXTENDED {name} AS JSON", fetch=True).rows[0][0]
        settings = json.loads(str(told)).get("view_creation_spark_configuration")
    except Exception as error:
        if not any(code in str(error) for code in _NOT_IN_JSON):
            raise
        settings = None
    if settings is None:
        return described
    stored = replace(described.stored, settings=tuple(sorted(settings.items())))
    return replace(described, stored=stored)


def _properties(text: str) -> tuple[tuple[str, str], ...]:
    found = re.findall(r"([\w.]+)=([^,\]]*)", text)
    return tuple((key, value.strip()) for key, value in found)


def _readable(properties: tuple[tuple[str, str], ...], name: str, view: str) -> tuple[tuple[str, str], ...]:
    """The properties with the root where Spark hides it: it takes every value with "url" in it for a secret, and so
    the state of each model that is called hourly. The view's text names it.

    >>> hidden = (("fivm.root", "*********(redacted)"), ("other", "x"))
    >>> _readable(hidden, "a.hourly", "SELECT n FROM a.hourly__fivm_root")
    (('fivm.root', 'a.hourly__fivm_root'), ('other', 'x'))
    """
    known = [sibling(name, suffix) for suffix in _STATES]
    elsewhere = (canonical(found[0]) for found in _NAME.finditer(view))
    kept = (n for n in elsewhere if split_name(n)[-1].endswith(tuple(f"{PREFIX}{s}" for s in _STATES)))
    named = next((table for table in known if table in view), None) or next(kept, known[0])
    return tuple(
        (k, named if k == ROOT_PROPERTY and "redacted" in value else value) for k, value in properties
    )


def _with_whole_types(execute: Execute, name: str, described: Described) -> Described:
    """Spark abbreviates structs of many fields (``... 5 more fields``) in DESCRIBE, but not in typeof."""
    short = [c.name for c in described.columns if " more fields" in c.type.text]
    if not short:
        return described
    types = ", ".join(f"typeof(any_value(`{column}`))" for column in short)
    row = execute(f"SELECT {types} FROM {name} WHERE false", fetch=True).rows[0]
    whole = dict(zip(short, map(str, row), strict=True))
    columns = tuple(Column.of(c.name, whole[c.name]) if c.name in whole else c for c in described.columns)
    return replace(described, columns=columns)
