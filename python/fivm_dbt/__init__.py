"""fivm_dbt: dbt models on Spark kept equal to a full recompute from the changes of their inputs."""

__version__ = "0.1.0"
