"""Plans on Spark and Delta: the engine, what it asks the JVM, and what it needs to run."""
