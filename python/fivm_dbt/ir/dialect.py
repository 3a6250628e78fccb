"""How Spark SQL text is read. It is written with sqlglot's own ``spark`` dialect."""

from __future__ import annotations

from typing import ClassVar

from sqlglot.dialects.spark import Spark


class SparkText(Spark):
    """Spark 4 reads a doubled quote inside a string as one quote; sqlglot's dialect reads two strings side by side.

    >>> import sqlglot
    >>> sqlglot.parse_one("select 'it''s'", dialect=SparkText).sql("spark")
    "SELECT 'it\\\\'s'"
    """

    class Tokenizer(Spark.Tokenizer):
        STRING_ESCAPES: ClassVar[list[str]] = ["\\", "'", '"']
