"""The relational algebra lies between SQL in and SQL out: frozen nodes over scalar expressions."""
