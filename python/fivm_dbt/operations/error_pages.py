"""What ``docs/errors.md`` says of an error is in the wheel too, where messages point to it."""

from __future__ import annotations

import re
from importlib.resources import files

from fivm_dbt.errors import CODES

_COMMENT = re.compile(r"<!--.*?-->\n?", re.DOTALL)
_LINK = re.compile(r"\[([^\]]+)\]\(#?[^)]*\)")


def about(code: str) -> str | None:
    """The section of an error in Markdown, without links, which lead to other pages; None of an unknown one.

    >>> print(about("fivm110").splitlines()[0])
    ## FIVM110: column neither grouped nor aggregated
    """
    known = CODES.get(code.upper())
    if known is None:
        return None
    page = files("fivm_dbt").joinpath("errors.md").read_text(encoding="utf-8")
    section = page.split(f"\n## {known.number}\n", 1)[1].split("\n## ", 1)[0]
    section = _LINK.sub(r"\1", _COMMENT.sub("", section))
    return f"## {known.number}: {known.title}\n{section.replace(f'**{known.title}** (', '(', 1)}"
