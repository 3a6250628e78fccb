"""SQL comes in here: text → AST → typed nodes. Only ``lower`` and its scope look at query ASTs."""
