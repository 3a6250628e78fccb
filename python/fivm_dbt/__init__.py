"""fivm_dbt keeps dbt models on Spark equal to a full recompute, from the changes of their inputs."""

__version__ = "0.1.0"
