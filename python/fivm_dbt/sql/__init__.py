"""The edge where SQL comes in: text → AST → typed relational nodes. Only ``lower`` and its scope look at query ASTs."""
