"""A Spark server that speaks Thrift on loopback: ``python thrift_server.py DIRECTORY PORT``, until its input ends.

With ``PATH KEYSTORE PASSWORD`` behind it speaks it over HTTPS.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from fivm_dbt.engines.spark.delta_lake.jars import delta_jars
from fivm_dbt.engines.spark.java import java_class
from fivm_dbt.engines.spark.session import local_session

HIVE = "spark.hadoop.hive.server2"
SERVER = "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"


def main(directory: str, port: str, *https: str) -> None:
    settings: dict[str, str | None] = {
        f"{HIVE}.thrift.port": port,
        f"{HIVE}.thrift.bind.host": "127.0.0.1",
        f"{HIVE}.logging.operation.enabled": "false",
        # The server's threads do not see what spark.jars adds.
        "spark.jars": None,
        "spark.driver.extraClassPath": os.pathsep.join(str(jar) for jar in delta_jars()),
        **(_over_https(port, *https) if https else {}),
    }
    session = local_session(Path(directory), settings=settings)
    java_class(session, SERVER).startWithContext(session._jsparkSession.sqlContext())
    print("ready", flush=True)
    sys.stdin.read()


def _over_https(port: str, path: str, keystore: str, password: str) -> dict[str, str | None]:
    return {
        f"{HIVE}.transport.mode": "http",
        f"{HIVE}.thrift.http.port": port,
        f"{HIVE}.thrift.http.path": path,
        f"{HIVE}.use.SSL": "true",
        f"{HIVE}.keystore.path": keystore,
        f"{HIVE}.keystore.password": password,
    }


if __name__ == "__main__":
    main(*sys.argv[1:])
