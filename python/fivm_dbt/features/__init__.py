"""What is optional: each feature registers with the core what it adds, and nothing of it runs for models without it.

In a feature the packages are called like the layers of the core, and import what these may. ``viewdf`` is not listed:
its models have a plan of their own, and are planned by who knows the feature.
"""

from fivm_dbt.features import match, sessions

__all__ = ["match", "sessions"]
