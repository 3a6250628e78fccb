"""``adapter.set_macro_resolver`` adds nodes for inner views, and checks the whole project."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from fivm_dbt.bridge.key_warnings import warn_of_unused_keys
from fivm_dbt.bridge.name_checks import check_names
from fivm_dbt.bridge.nodes import Compiled, add_helper_nodes
from fivm_dbt.project.manifest import Nodes
from fivm_dbt.rings.declared import look_in

logger = logging.getLogger(__name__)


def fivm_add_nodes(adapter: Any, manifest: Any) -> None:
    """Add nodes for the inner views of fivm models to a finished manifest. What goes wrong costs these nodes alone.

    Refused here, in every command that reads the project: relations with names of fivm's own, and viewdf models whose
    parts do not fit together.
    """
    if not getattr(manifest, "flat_graph", None):
        return  # dbt is still reading macros
    look_in(Path(adapter.config.project_root))
    check_names(Nodes(manifest))
    if Nodes(manifest).viewdf_models():
        # Loaded only where there is one.
        from fivm_dbt.features.viewdf.bridge.checks import check_viewdf_models

        check_viewdf_models(Nodes(manifest), Compiled(manifest, adapter.config).compile)
    warn_of_unused_keys(adapter, Nodes(manifest))
    try:
        add_helper_nodes(manifest, adapter.config)
    except Exception as error:
        logger.warning("inner views of fivm models are not shown: %s", error)
        logger.debug("no nodes", exc_info=True)
