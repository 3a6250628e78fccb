"""What ``adapter.fivm_*`` does when Jinja calls it: a file per method. Each gets the adapter first."""
