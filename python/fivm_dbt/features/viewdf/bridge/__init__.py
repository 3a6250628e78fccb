"""While dbt parses a project, its viewdf models are checked."""
