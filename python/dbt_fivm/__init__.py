"""dbt finds this package by its name, and the package adds fivm's methods to the adapter of the profile.

It imports nothing but dbt: an exception here would stop every dbt command of everyone who has it installed.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from dbt.plugins import dbtPlugin


class FivmPlugin(dbtPlugin):  # type: ignore[misc]
    """Swaps the adapter's class for a subclass with fivm's methods, before dbt creates the adapter."""

    def initialize(self) -> None:
        from dbt.adapters.factory import FACTORY

        for plugin in list(FACTORY.plugins.values()):
            if is_spark(plugin.adapter) and "fivm_refresh" not in plugin.adapter._available_:
                plugin.adapter = with_fivm(plugin.adapter)


def is_spark(adapter: type) -> bool:
    """Whether an adapter is dbt-spark's or derived from it, as dbt-databricks' is."""
    return any(base.__name__ == "SparkAdapter" for base in adapter.__mro__)


def with_fivm(adapter: Any) -> Any:
    """A subclass of an adapter class that Jinja can ask to refresh, explain and check fivm models.

    It keeps the name and module of the original: dbt derives the adapter's package from them.
    """
    from dbt.adapters.base import available

    methods: dict[str, Any] = {"__module__": adapter.__module__, "__qualname__": adapter.__qualname__}
    for name, while_parsing in _METHODS.items():
        methods[name] = available.parse(_always(while_parsing))(_bridged(name))
    # A reference that is wrong is wrong while parsing too.
    methods["fivm_check_reference"] = available.parse(_check_reference)(_bridged("fivm_check_reference"))

    def execute(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return adapter.execute(self, *args, **kwargs)
        except Exception as error:
            from fivm_dbt.bridge.told import explained

            known = explained(error)
            if known is None:
                raise
            raise known from error

    def set_macro_resolver(self: Any, macro_resolver: Any) -> None:
        adapter.set_macro_resolver(self, macro_resolver)
        nodes = getattr(macro_resolver, "nodes", {}).values()
        if any(getattr(node.config, "materialized", None) in ("fivm", "viewdf") for node in nodes):
            from fivm_dbt.bridge.methods.add_nodes import fivm_add_nodes

            fivm_add_nodes(self, macro_resolver)

    methods["execute"] = execute
    methods["set_macro_resolver"] = set_macro_resolver
    return type(adapter)(adapter.__name__, (adapter,), methods)


# What each method answers while dbt only parses.
_METHODS: dict[str, Any] = {
    "fivm_validate": {},
    "fivm_refresh": {},
    "fivm_runnable_sql": "",
    "fivm_is_partial": False,
    "fivm_is_maintained": False,
    "fivm_document": None,
    "fivm_explain": "",
    "fivm_plan": [],
    "fivm_exact_sql": "",
    "fivm_check": [],
    "fivm_history": [],
    "fivm_models_query": "",
    "fivm_refreshes_query": "",
    "fivm_clean": [],
    "fivm_drop_parts": [],
    "fivm_part_catalogs": [],
    "fivm_learn": {},
}


def _bridged(name: str) -> Any:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        module = import_module(f"fivm_dbt.bridge.methods.{name.removeprefix('fivm_')}")
        return getattr(module, name)(self, *args, **kwargs)

    method.__name__ = name
    return method


def _check_reference(model: str, relation: str, low: Any, high: Any, is_own: bool) -> None:
    from fivm_dbt.features.viewdf.bridge.checks import check_reference

    check_reference(model, relation, low, high, is_own)


def _always(value: Any) -> Any:
    def answer(*args: Any, **kwargs: Any) -> Any:
        return value

    return answer


plugins = [FivmPlugin]
