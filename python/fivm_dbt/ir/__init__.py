"""The relational algebra that everything between SQL in and SQL out works on: frozen nodes over scalar expressions."""
