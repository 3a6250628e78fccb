"""SESSION_WINDOW: rows of a key between which no more than a gap goes by, made anew from their own rows."""

from fivm_dbt.features.sessions.delta import sessions as _delta
from fivm_dbt.features.sessions.plan import sessions as _plan
from fivm_dbt.features.sessions.spark import sessions as _spark

__all__ = ["_delta", "_plan", "_spark"]
