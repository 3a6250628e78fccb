"""The modules of this package alone import dbt: methods for its adapter, and dbt commands to run."""
