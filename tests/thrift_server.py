"""A Spark server that speaks Thrift on loopback: ``python thrift_server.py DIRECTORY PORT``, until its input ends."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from fivm_dbt.engines.spark.delta_lake.jars import delta_jars
from fivm_dbt.engines.spark.java import java_class
from fivm_dbt.engines.spark.session import local_session

SERVER = "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"


def main(directory: str, port: str) -> None:
    hive = "spark.hadoop.hive.server2"
    settings: dict[str, str | None] = {
        f"{hive}.thrift.port": port,
        f"{hive}.thrift.bind.host": "127.0.0.1",
        f"{hive}.logging.operation.enabled": "false",
        # The server's threads do not see what spark.jars adds.
        "spark.jars": None,
        "spark.driver.extraClassPath": os.pathsep.join(str(jar) for jar in delta_jars()),
    }
    session = local_session(Path(directory), settings=settings)
    java_class(session, SERVER).startWithContext(session._jsparkSession.sqlContext())
    print("ready", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
