"""The only modules that import dbt: what its adapter calls (adapter), and dbt commands to run (commands)."""
