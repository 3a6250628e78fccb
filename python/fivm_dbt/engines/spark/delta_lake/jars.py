"""A local Spark needs Java and Delta: this module knows which versions fit, and fetches the jars once."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fivm_dbt.errors import FivmError, expected_one_of

SUPPORTED: Mapping[str, str] = {
    "4.0": "io.delta:delta-spark_4.0_2.13:4.4.0",
    "4.1": "io.delta:delta-spark_4.1_2.13:4.4.0",
    "4.2": "io.delta:delta-spark_4.2_2.13:4.4.0",
}
"""The Delta artifact that was built for each Spark minor version. Delta 4.4 does not run on Spark 4.3."""

MINIMAL_JAVA = 17

JAVA_REMEDY = (
    "install it (Debian: apt-get install openjdk-17-jre-headless; macOS: brew install openjdk@17) "
    "and set JAVA_HOME to it"
)


@dataclass(frozen=True)
class Java:
    """A Java runtime: the executable and its feature version."""

    executable: str
    version: int


def find_java() -> Java:
    """The Java that Spark would start: below JAVA_HOME, else on the PATH. Raises FIVM501."""
    home = os.environ.get("JAVA_HOME")
    executable = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if executable is None or not os.access(executable, os.X_OK):
        where = (
            f"JAVA_HOME is {home}, which has no bin/java"
            if home
            else "neither JAVA_HOME nor java on the PATH"
        )
        raise FivmError("FIVM501", where, remedy=JAVA_REMEDY)
    said = subprocess.run([executable, "-version"], capture_output=True, text=True, check=False)
    version = java_version(said.stderr + said.stdout)
    if version is None or version < MINIMAL_JAVA:
        found = "an unknown version" if version is None else f"version {version}"
        raise FivmError(
            "FIVM501", f"{executable} is {found}; Spark 4 needs {MINIMAL_JAVA} or newer", remedy=JAVA_REMEDY
        )
    return Java(executable, version)


def java_version(text: str) -> int | None:
    """The feature version in the answer of ``java -version``.

    >>> java_version('openjdk version "17.0.15" 2025-04-15'), java_version('java version "1.8.0_392"')
    (17, 8)
    """
    match = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(match.group(1)) if match else None


def delta_artifact(spark_version: str) -> str:
    """Maven coordinates of the Delta that fits a Spark version. Raises FIVM503.

    >>> delta_artifact("4.2.1")
    'io.delta:delta-spark_4.2_2.13:4.4.0'
    """
    minor = ".".join(spark_version.split(".")[:2])
    if minor not in SUPPORTED:
        what = f"no Delta release is known to run on Spark {spark_version}"
        raise FivmError(
            "FIVM503",
            f"{what} ({expected_one_of(tuple(SUPPORTED))})",
            remedy=f'pip install "pyspark=={max(SUPPORTED)}.*"',
        )
    return SUPPORTED[minor]


def installed_spark() -> str:
    """The version of the installed pyspark. Raises FIVM505."""
    try:
        import pyspark
    except ImportError:
        artifact_remedy = f'pip install "pyspark=={max(SUPPORTED)}.*"'
        raise FivmError("FIVM505", "pyspark is not installed", remedy=artifact_remedy) from None
    return str(pyspark.__version__)


def cache_directory() -> Path:
    """Where fetched jars are kept between runs."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "fivm"


def delta_jars(cache: Path | None = None) -> tuple[Path, ...]:
    """The Delta jars for the installed pyspark, fetched from Maven on first use."""
    artifact = delta_artifact(installed_spark())
    root = cache or cache_directory()
    wanted = root / "jars" / artifact.replace(":", "_")
    if not wanted.is_dir():
        _fetch(artifact, wanted, root)
    return tuple(sorted(wanted.glob("*.jar")))


def bundled_delta() -> list[str]:
    """Names of the Delta jars that were put among pyspark's own."""
    import pyspark

    return sorted(jar.name for jar in Path(pyspark.__file__).parent.glob("jars/delta-spark_*.jar"))


def _fetch(artifact: str, wanted: Path, root: Path) -> None:
    """Resolve with the Ivy that pyspark brings; the directory appears only when it is complete."""
    wanted.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=wanted.parent) as work:
        settings, module = Path(work, "ivysettings.xml"), Path(work, "ivy.xml")
        settings.write_text(_settings(os.environ.get("DEFAULT_ARTIFACT_REPOSITORY")))
        module.write_text(_module(artifact))
        pattern = f"{work}/jars/[artifact]-[revision](-[classifier]).[ext]"
        command = [find_java().executable, "-cp", str(_ivy_jar()), "org.apache.ivy.Main", "-warn"]
        command += ["-settings", str(settings), "-ivy", str(module), "-cache", str(root / "ivy")]
        command += ["-retrieve", pattern, "-types", "jar", "bundle"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode or not any(Path(work, "jars").glob("delta-spark_*.jar")):
            raise FivmError(
                "FIVM502",
                f"{artifact} could not be fetched: {_last_lines(done.stdout + done.stderr)}",
                remedy="check the network, or set DEFAULT_ARTIFACT_REPOSITORY to a mirror of Maven Central",
            )
        if not wanted.exists():
            os.replace(Path(work, "jars"), wanted)


def _ivy_jar() -> Path:
    import pyspark

    return next(Path(pyspark.__file__).parent.glob("jars/ivy-*.jar"))


def _settings(repository: str | None) -> str:
    """Ivy's settings; without a repository of the user's own its resolver uses Maven Central."""
    root = f' root="{repository}"' if repository else ""
    return f"""<ivysettings>
  <settings defaultResolver="maven"/>
  <resolvers><ibiblio name="maven" m2compatible="true"{root}/></resolvers>
</ivysettings>
"""


def _module(artifact: str) -> str:
    # Everything else that Delta depends on is already among Spark's own jars.
    organisation, name, revision = artifact.split(":")
    return f"""<ivy-module version="2.0">
  <info organisation="fivm" module="jars"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
    <dependency org="{organisation}" name="{name}" rev="{revision}" conf="default->default"/>
    <exclude org="^(?!io\\.delta$|io\\.unitycatalog$).*" matcher="regexp"/>
  </dependencies>
</ivy-module>
"""


def _last_lines(text: str) -> str:
    return " / ".join(line.strip() for line in text.splitlines() if line.strip())[-400:]
