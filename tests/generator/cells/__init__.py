"""Every kind of query in every position where Spark allows one."""
