"""The quickstart and the tests on Spark with each supported set of versions: ``make versions``.

A session needs its Python on the PATH; one that is not there is skipped, and said to be. ``ARGS`` go to nox, as
``make versions ARGS='-p 3.11'`` for one Python.
"""

from __future__ import annotations

import nox

OLDEST, NEWEST = ("1.10", "4.0"), ("1.11", "4.2")
"""dbt and Spark that work together. Delta follows from Spark (``fivm jars``)."""
SETS = (("3.10", *OLDEST), ("3.11", *NEWEST), ("3.12", *OLDEST), ("3.13", *NEWEST))
"""Each Python once, and each dbt and Spark with an old one and with a new one."""

nox.options.default_venv_backend = "venv"


@nox.session
@nox.parametrize(("python", "dbt", "spark"), SETS)
def versions(session: nox.Session, dbt: str, spark: str) -> None:
    """Install a set of versions, type the quickstart, and run the tests on Spark."""
    pinned = (f"dbt-core=={dbt}.*", f"dbt-spark[PyHive,session]=={dbt}.*", f"pyspark=={spark}.*")
    session.install("--editable", ".[test]", *pinned)
    session.env["PYTHONHASHSEED"] = "0"
    session.run("pytest", "-q", "tests/test_quickstart.py", "-k", "the_page")
    session.run("pytest", "-q", "tests", "-m", "spark and not long", "-n", "2", "--dist", "loadfile")
