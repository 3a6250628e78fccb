"""What a Spark error amounts to: the conditions that it names, and not those of what was handled before it."""

from __future__ import annotations

import pytest

from fivm_dbt.engines.spark.errors import translated
from fivm_dbt.spark.formats import MissingRelation, VersionUnavailable


def _fail(text: str) -> None:
    raise RuntimeError(text)


def test_an_error_of_before_is_no_cause() -> None:
    """A model is built because files of an input are gone, and on its way asks for a table that is not there."""
    try:
        translated(lambda: _fail("[FAILED_READ_FILE.FILE_NOT_EXIST] a.parquet"))
    except VersionUnavailable:
        with pytest.raises(MissingRelation):
            translated(lambda: _fail("[TABLE_OR_VIEW_NOT_FOUND] daily__fivm_root"))
    else:
        pytest.fail("nothing was raised")


def test_what_a_wrapper_hides_is_found() -> None:
    """Also where it was raised while the first error was handled, without saying so."""

    def wrapped() -> None:
        try:
            _fail("[TABLE_OR_VIEW_NOT_FOUND] a")
        except RuntimeError:
            raise ValueError("dbt tells nothing")  # noqa: B904

    with pytest.raises(MissingRelation):
        translated(wrapped)


def test_other_errors_stay_as_they_are() -> None:
    with pytest.raises(RuntimeError, match="no condition"):
        translated(lambda: _fail("no condition"))
