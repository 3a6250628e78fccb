"""Spark and Delta run plans: this package has the engine, its questions to the JVM, and its needs."""
