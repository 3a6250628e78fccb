"""MATCH_RECOGNIZE: row patterns, and views that advance them part by part (ViewDF, sections 4.3 and 5.1)."""

from fivm_dbt.features.match.delta import marks as _marks_delta
from fivm_dbt.features.match.delta import separators as _separators_delta
from fivm_dbt.features.match.plan import marks as _kept
from fivm_dbt.features.match.spark import matches as _matches
from fivm_dbt.features.match.spark import runs as _runs
from fivm_dbt.features.match.sql import clause as _clause

__all__ = ["_clause", "_kept", "_marks_delta", "_matches", "_runs", "_separators_delta"]
