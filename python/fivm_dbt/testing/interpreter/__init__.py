"""A second oracle has Spark SQL's semantics over Python rows, by the naive definition of each construct.

It shares nothing with the planner, with the engines and with the SQL that they emit: only the parser, types as the
catalog writes them, and errors. What it does not understand it says (:class:`NotUnderstood`), and never guesses.
"""

from fivm_dbt.testing.interpreter.errors import NotUnderstood
from fivm_dbt.testing.interpreter.run import Answer, Table, interpret

__all__ = ["Answer", "NotUnderstood", "Table", "interpret"]
