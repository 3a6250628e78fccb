"""Delta rules: a file per kind of operator in :mod:`fivm_dbt.delta.rules`, the equation in its docstring."""

from fivm_dbt.delta.derive import derive
from fivm_dbt.delta.term import Term

__all__ = ["Term", "derive"]
