"""SQL goes out here: plan and binding become Spark SQL, and nothing is decided."""
