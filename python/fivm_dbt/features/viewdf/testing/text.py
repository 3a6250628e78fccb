"""A scenario's viewdf model is compiled as dbt does it: with ``ref``, ``source`` and fivm's macros."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import jinja2

from fivm_dbt.errors import FivmError
from fivm_dbt.features.viewdf.sql.references import INITIALIZE
from fivm_dbt.naming import split_name


def compiled(text: str, model: str, relations: Collection[str]) -> str:
    """The compiled text of ``model``, a file as it stands in a project. Text without braces stays as it is.

    Raises FIVM601 for a template that cannot be rendered, or that refers to none of the ``relations``.

    >>> compiled("select x from {{ fivm.part(ref('m'), 'j-1') }} as m", "v", ["raw.m"])
    "select x from (select /*+ fivm_part('j-1') */ * from raw.m) as m"
    """
    if "{{" not in text and "{%" not in text:
        return text

    def find(*names: str) -> str:
        found = [r for r in relations if split_name(r)[-1] == names[-1].lower()]
        if len(found) != 1:
            raise jinja2.TemplateError(f"there is no {'.'.join(names)} before {model}")
        return found[0]

    functions = {"ref": find, "source": find, "this": model, "fivm": _Macros, "config": lambda **_: ""}
    try:
        return (
            jinja2.Environment(undefined=jinja2.StrictUndefined).from_string(text).render(functions).strip()
        )
    except jinja2.TemplateError as error:
        raise FivmError(
            "FIVM601",
            f"{model}: {error}",
            remedy="write ref, source, this, fivm.part, fivm.span, fivm.initialize",
        ) from None


class _Macros:
    """The macros of the package that viewdf models are written with."""

    @staticmethod
    def part(relation: str, low: str = "j", high: str | None = None) -> str:
        return _reference("fivm_part", relation, low, high)

    @staticmethod
    def span(relation: str, low: str = "j", high: str | None = None) -> str:
        return _reference("fivm_span", relation, low, high)

    @staticmethod
    def initialize(caller: Callable[[], Any]) -> str:
        lines = str(caller()).strip().splitlines()
        return "\n" + "\n".join(f"{INITIALIZE}{line.strip()}" for line in lines) + "\n"


def _reference(hint: str, relation: str, low: str, high: str | None) -> str:
    numbers = ", ".join(f"'{n}'" for n in (low, high) if n is not None)
    return f"(select /*+ {hint}({numbers}) */ * from {relation})"
