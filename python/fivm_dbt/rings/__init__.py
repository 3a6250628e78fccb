"""A state keeps payloads of rings per key: one ring per file, and the registry SQL aggregate → ring."""

from fivm_dbt.rings.registry import Component, components, finish

__all__ = ["Component", "components", "finish"]
