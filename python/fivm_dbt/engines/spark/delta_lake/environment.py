"""A Spark that is not set up for Delta gives errors; here they become errors that say what to do."""

from __future__ import annotations

import re

from fivm_dbt.engines.spark.delta_lake.jars import JAVA_REMEDY, delta_artifact, installed_spark
from fivm_dbt.engines.spark.delta_lake.names import SESSION_CONFIG
from fivm_dbt.errors import FivmError

_NO_JAVA = re.compile(r"JAVA_GATEWAY_EXITED|Java gateway process exited|UnsupportedClassVersionError")
_NO_DELTA = re.compile(
    r"(ClassNotFoundException|Cannot find catalog plugin class|CANNOT_LOAD|DATA_SOURCE_NOT_FOUND|"
    r"Failed to find the data source|CATALOG_NOT_FOUND)[^\n]*delta",
    re.IGNORECASE,
)
_NOT_CONFIGURED = re.compile(r"DELTA_CONFIGURE_SPARK_SESSION_WITH_EXTENSION_AND_CATALOG")
_MISFIT = re.compile(
    r"NoSuchMethodError|NoSuchFieldError|NoClassDefFoundError|AbstractMethodError|IncompatibleClassChange"
)


def environment_error(text: str) -> FivmError | None:
    """What is wrong with Java, Spark or Delta, judging by an error's text; None where nothing is.

    >>> environment_error("[JAVA_GATEWAY_EXITED] Java gateway process exited").code.number
    'FIVM501'
    >>> environment_error("[DATA_SOURCE_NOT_FOUND] Failed to find the data source: delta.").code.number
    'FIVM502'
    >>> environment_error("java.lang.NoSuchMethodError: org.apache.spark.sql...").code.number
    'FIVM503'
    """
    if _NO_JAVA.search(text):
        return FivmError("FIVM501", "Spark could not start a JVM", remedy=JAVA_REMEDY)
    if _NO_DELTA.search(text):
        return FivmError("FIVM502", "Spark does not find its classes", remedy=profile_remedy())
    if _NOT_CONFIGURED.search(text):
        return FivmError("FIVM502", "the session lacks Delta's extension or catalog", remedy=profile_remedy())
    if _MISFIT.search(text):
        return FivmError(
            "FIVM503",
            "a class of Spark is not as Delta was built against",
            remedy=f"use the Delta that fits your Spark; {profile_remedy()}",
        )
    return None


def profile_remedy() -> str:
    """The lines of a dbt profile that bring Delta to a local session."""
    try:
        artifact = delta_artifact(installed_spark())
    except FivmError as error:
        return error.remedy
    settings = {"spark.jars.packages": artifact, **SESSION_CONFIG}
    lines = "".join(f"\n        {key}: {value}" for key, value in settings.items())
    return f"in profiles.yml (or the cluster's configuration)\n      server_side_parameters:{lines}"
