"""A whole dbt project, a brokerage's marts, by fivm models and by tables: ``python -m benchmarks.project``."""
