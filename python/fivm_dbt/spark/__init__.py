"""The edge where SQL goes out: plan + binding → Spark SQL. It decides nothing."""
