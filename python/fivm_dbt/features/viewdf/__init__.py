"""Viewdf models are computed part by part of a time, from parts (ViewDF, section 4).

They have a plan of their own. So the core meets the first one after this package has been loaded, by who makes plans:
nothing of it is loaded for other models.
"""

from fivm_dbt.features.viewdf.explain import text as _text
from fivm_dbt.features.viewdf.refresh import compare as _compare
from fivm_dbt.features.viewdf.refresh import run as _run

__all__ = ["_compare", "_run", "_text"]
