"""All models of a schema share the catalog of parts, and several of them may create it at once."""

from __future__ import annotations

import re
import threading
import time

from fivm_dbt.naming import part_catalog
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.refresh.recorder import Recorder
from fivm_dbt.spark.part_catalog import create_catalog

_CREATING = threading.Lock()
_PATIENCE = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Seconds between looks at whether another process has finished creating it."""
_AT_IT = re.compile(
    "NON_EMPTY_LOCATION|ALREADY_EXISTS|CONCURRENT|Concurrent|METADATA_CHANGED|PROTOCOL_CHANGED"
)


def create_once(plan: Plan, engine: Recorder) -> None:
    """Create the catalog of parts of the model's schema, unless it is there."""
    name, definition = part_catalog(plan.relation), create_catalog(plan)
    with _CREATING:
        for patience in (*_PATIENCE, None):
            if engine.exists(name):
                return
            try:
                engine.run(definition)
                return
            except Exception as error:
                if patience is None or not _AT_IT.search(str(error)):
                    raise
                # Another process is creating it: it will be there in a moment.
                time.sleep(patience)
