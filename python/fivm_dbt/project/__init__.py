"""What a dbt project says of a model and of what it reads."""
