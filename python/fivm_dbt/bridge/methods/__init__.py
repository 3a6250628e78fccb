"""Jinja calls ``adapter.fivm_*``: each file has one method, which gets the adapter first."""
