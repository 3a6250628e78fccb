"""Delta rules: one file per operator, the equation in its docstring. See :mod:`fivm_dbt.delta.derive`."""

from fivm_dbt.delta.derive import derive
from fivm_dbt.delta.term import Term

__all__ = ["Term", "derive"]
