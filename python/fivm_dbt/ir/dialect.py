"""How Spark SQL text is read. It is written with sqlglot's own ``spark`` dialect."""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark


class SparkText(Spark):
    """What Spark 4 reads in another way than sqlglot's dialect, or is not written again as it was read.

    A doubled quote inside a string is one quote, not two strings side by side. PERCENTILE_CONT and PERCENTILE_DISC are
    functions like others: sqlglot knows them and writes PERCENTILE_APPROX in their place, which has other results.

    >>> import sqlglot
    >>> sqlglot.parse_one("select 'it''s'", dialect=SparkText).sql("spark")
    "SELECT 'it\\\\'s'"
    >>> text = "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x DESC)"
    >>> sqlglot.parse_one(text, dialect=SparkText).sql("spark") == text
    True
    """

    class Tokenizer(Spark.Tokenizer):
        STRING_ESCAPES: ClassVar[list[str]] = ["\\", "'", '"']

    def parse(self, sql: str, **opts: Any) -> list[exp.Expr | None]:
        statements = super().parse(sql, **opts)
        if "percentile_" not in sql.lower():
            return statements
        return [s.transform(_as_written, copy=False) if s is not None else s for s in statements]


def _as_written(node: exp.Expr) -> exp.Expr:
    """PERCENTILE_CONT and PERCENTILE_DISC as functions that sqlglot does not know."""
    if not isinstance(node, exp.PERCENTILES):
        return node
    return exp.Anonymous(this=node.sql_name(), expressions=list(node.iter_expressions()))
