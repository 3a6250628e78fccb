"""``python -m fivm_dbt`` runs the command ``fivm``."""

from fivm_dbt.cli import main

main(prog_name="fivm")
