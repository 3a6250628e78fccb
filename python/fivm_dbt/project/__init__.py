"""A dbt project describes a model and what the model reads."""
