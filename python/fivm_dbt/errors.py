"""Every error that a user can meet has a code, a fault, a place, and a next thing to do.

``docs/errors.md`` lists the same codes; a test compares the two and another triggers every code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Fault = Literal["query", "config", "input", "state", "environment", "fivm"]


@dataclass(frozen=True)
class Code:
    """An error code: its number, whose fault it is, and a title that never changes."""

    number: str
    fault: Fault
    title: str


CODES: dict[str, Code] = {
    code.number: code
    for code in (
        Code("FIVM101", "query", "SQL does not parse"),
        Code("FIVM102", "query", "unknown column"),
        Code("FIVM103", "query", "unknown relation"),
        Code("FIVM104", "query", "ambiguous column"),
        Code("FIVM105", "query", "construct not supported incrementally"),
        Code("FIVM106", "query", "non-deterministic expression"),
        Code("FIVM107", "query", "LIMIT without a total order"),
        Code("FIVM108", "query", "SUM or AVG over a floating-point value"),
        Code("FIVM109", "query", "type of an expression cannot be determined"),
        Code("FIVM110", "query", "column neither grouped nor aggregated"),
        Code("FIVM111", "query", "type cannot be grouped or compared"),
        Code("FIVM112", "query", "output columns without a usable name"),
        Code("FIVM113", "query", "branches of UNION ALL do not match"),
        Code("FIVM201", "config", "invalid configuration"),
        Code("FIVM202", "config", "partition column not in the output"),
        Code("FIVM203", "config", "configuration not available yet"),
        Code("FIVM204", "config", "variable order does not fit the query"),
        Code("FIVM205", "config", "parts of a model do not fit together"),
        Code("FIVM206", "config", "a part that was dropped is needed"),
        Code("FIVM207", "config", "name of a relation that fivm writes"),
        Code("FIVM208", "config", "a model cannot learn from this query"),
        Code("FIVM209", "config", "a ring that is declared is none"),
        Code("FIVM301", "input", "input is not a Delta table"),
        Code("FIVM302", "input", "input does not exist"),
        Code("FIVM303", "input", "input is a view"),
        Code("FIVM304", "input", "model, configuration or input types changed"),
        Code("FIVM305", "input", "static input has changed"),
        Code("FIVM306", "input", "recorded version of an input can no longer be read"),
        Code("FIVM307", "input", "rows of an input came later than promised"),
        Code("FIVM401", "state", "a multiplicity would become negative"),
        Code("FIVM402", "state", "a decimal sum overflowed"),
        Code("FIVM403", "state", "model is being refreshed by another process"),
        Code("FIVM404", "state", "state of the model is missing or damaged"),
        Code("FIVM405", "state", "a key that is promised is there twice"),
        Code("FIVM501", "environment", "no Java 17 or newer"),
        Code("FIVM502", "environment", "Delta is not on Spark's classpath"),
        Code("FIVM503", "environment", "Spark and Delta versions do not fit"),
        Code("FIVM504", "environment", "the fivm-dbt wheel is missing from dbt's environment"),
        Code("FIVM505", "environment", "a required package is missing or too old"),
        Code("FIVM601", "config", "scenario file is not valid"),
        Code("FIVM602", "config", "DuckDB does not evaluate this as Spark does"),
        Code("FIVM901", "fivm", "an emitted statement failed validation"),
    )
}


@dataclass(frozen=True)
class Span:
    """A stretch of the user's SQL: offsets of its first character and one past its last."""

    start: int
    end: int


def underline(text: str, span: Span) -> str:
    """The line of ``text`` on which ``span`` begins, with the span underlined.

    >>> print(underline("select a\\nfrom t limit 3", Span(16, 23)))
    line 2, column 8
        from t limit 3
               ^^^^^^^
    """
    line_start = text.rfind("\n", 0, span.start) + 1
    line_end = text.find("\n", span.start)
    line_end = len(text) if line_end < 0 else line_end
    number = text.count("\n", 0, span.start) + 1
    column = span.start - line_start
    width = max(1, min(span.end, line_end) - span.start)
    line = text[line_start:line_end].replace("\t", " ")
    return f"line {number}, column {column + 1}\n    {line}\n    {' ' * column}{'^' * width}"


class FivmError(Exception):
    """An error with a code of :data:`CODES`, an optional position in the model's SQL, and a remedy."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        remedy: str = "",
        sql: str | None = None,
        span: Span | None = None,
        model: str | None = None,
    ) -> None:
        self.code = CODES[code]
        self.message = message
        self.remedy = remedy
        self.sql = sql
        self.span = span
        self.model = model
        super().__init__(message)

    def located(self, *, sql: str | None = None, model: str | None = None) -> FivmError:
        """The same error with the text and the model that it belongs to, where not yet known."""
        self.sql = self.sql if self.sql is not None else sql
        self.model = self.model or model
        return self

    def __str__(self) -> str:
        where = f" in model {self.model}" if self.model else ""
        lines = [f"{self.code.number} {self.code.title}{where}: {self.message}"]
        if self.sql is not None and self.span is not None:
            lines.append(underline(self.sql, self.span))
        if self.remedy:
            lines.append(f"what to do: {self.remedy}")
        lines.append(f"more about it: fivm error {self.code.number}")
        return "\n".join(lines)


def expected_one_of(names: list[str] | tuple[str, ...]) -> str:
    """``expected one of a, b, c`` for an error message."""
    return "expected one of " + ", ".join(names)
