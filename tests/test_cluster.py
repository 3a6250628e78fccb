"""A standalone cluster of real processes on loopback: a master, two workers, and the driver in dbt's process."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pyspark
import pytest

from dbt_project import HERE
from fivm_dbt.engines.spark.delta_lake.jars import find_java
from over_network import free_port

pytestmark = [pytest.mark.spark, pytest.mark.long]

WORKERS = 2
DEPLOY = "org.apache.spark.deploy"


def _listens(port: int) -> bool:
    with closing(socket.socket()) as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    """The address of a master with two workers of one core each."""
    home = Path(pyspark.__file__).parent
    java, port = find_java().executable, free_port()
    address = f"spark://127.0.0.1:{port}"
    base = [java, "-Xmx256m", "-cp", f"{home}/jars/*"]
    # What Spark's own scripts set before they start a worker.
    own = {"SPARK_HOME": str(home), "SPARK_SCALA_VERSION": "2.13", "SPARK_LOCAL_IP": "127.0.0.1"}
    environment = {**os.environ, **own}
    where = ["--host", "127.0.0.1", "--webui-port", "0"]
    commands = [[*base, f"{DEPLOY}.master.Master", *where, "--port", str(port)]]
    commands += [
        [*base, f"{DEPLOY}.worker.Worker", *where, "--cores", "1", "--memory", "1g", "--work-dir", *to]
        for to in ((str(tmp_path / f"worker_{number}"), address) for number in range(WORKERS))
    ]
    with ExitStack() as running:
        for command in commands:
            log = running.enter_context((tmp_path / "cluster.log").open("a"))
            process = subprocess.Popen(command, stdout=log, stderr=log, env=environment, cwd=tmp_path)
            running.callback(process.wait)
            running.callback(process.terminate)
            until = time.monotonic() + 60
            while not _listens(port):
                assert process.poll() is None and time.monotonic() < until, (
                    tmp_path / "cluster.log"
                ).read_text()
                time.sleep(0.2)
        yield address


def test_a_project(master: str, tmp_path: Path) -> None:
    """Build, all kinds of changes, nothing: exact, also by the project's own tests, and what was read is known."""
    command = [sys.executable, str(HERE / "project_on_cluster.py"), str(tmp_path / "project"), master]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1800)
    assert done.returncode == 0, done.stdout + done.stderr
    seen = json.loads(done.stdout.splitlines()[-1])
    assert seen["executors"] == WORKERS
    built, changed, nothing = seen["steps"]
    assert set(built["actions"].values()) == {"built"}
    assert set(changed["actions"].values()) == {"refreshed"}
    for step in (built, changed, nothing):
        assert step["exact"] and all(step["told"].values()), step
    assert seen["inner_views"]
