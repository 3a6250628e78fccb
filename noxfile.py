"""The quickstart and the tests on Spark with each supported set of versions: ``make versions``.

A session needs its Python on the PATH; one that is not there is skipped, and said to be. ``ARGS`` go to nox, as
``make versions ARGS='-p 3.11'`` for one Python.
"""

from __future__ import annotations

import nox

PYTHONS = ("3.10", "3.11", "3.12", "3.13")
SETS = (("1.10", "4.0"), ("1.11", "4.2"))
"""dbt and Spark: the oldest and the newest that work together. Delta follows from Spark (``fivm jars``)."""

nox.options.default_venv_backend = "venv"


@nox.session(python=PYTHONS)
@nox.parametrize(("dbt", "spark"), SETS)
def versions(session: nox.Session, dbt: str, spark: str) -> None:
    """Install a set of versions, type the quickstart, and run the tests on Spark."""
    pinned = (f"dbt-core=={dbt}.*", f"dbt-spark[PyHive,session]=={dbt}.*", f"pyspark=={spark}.*")
    session.install("--editable", ".[test]", *pinned)
    session.env["PYTHONHASHSEED"] = "0"
    session.run("pytest", "-q", "tests/test_quickstart.py", "-k", "the_page")
    session.run("pytest", "-q", "tests", "-m", "spark and not long", "-n", "2", "--dist", "loadfile")
