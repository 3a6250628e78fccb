"""Each kind of operator has a delta rule in a file of :mod:`fivm_dbt.delta.rules`, with its equation."""

from fivm_dbt.delta.derive import derive
from fivm_dbt.delta.term import Term

__all__ = ["Term", "derive"]
