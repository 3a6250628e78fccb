"""dbt's HTTP connection, as to Databricks, to a server of Spark's own on loopback, by HTTPS and with a token."""

from __future__ import annotations

import base64
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from thrift.transport import THttpClient

from dbt_project import Project
from fivm_dbt.engines.spark.delta_lake.jars import find_java
from over_network import Connection, goes_through_a_day, started_server

pytestmark = [pytest.mark.spark, pytest.mark.long]

ORGANIZATION, CLUSTER, TOKEN = "0", "shop", "dapi"
PATH = f"sql/protocolv1/o/{ORGANIZATION}/{CLUSTER}"
"""Where dbt-spark asks."""
PROFILE = """
shop:
  target: test
  outputs:
    test:
      {{type: spark, method: http, host: localhost, port: {port}, token: {token}, organization: "{organization}",
       cluster: {cluster}, user: dbt, threads: 1, schema: "{{{{ env_var('SHOP_SCHEMA') }}}}"}}
"""


@pytest.fixture
def port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A server whose certificate clients of this process trust."""
    keys, certificate = tmp_path / "keys.p12", tmp_path / "certificate.pem"
    own = ["-alias", "server", "-keystore", str(keys), "-storetype", "PKCS12", "-storepass", "secret"]
    keytool = str(Path(find_java().executable).resolve().with_name("keytool"))
    named = ["-dname", "CN=localhost", "-ext", "san=dns:localhost,ip:127.0.0.1", "-ext", "bc=ca:true"]
    subprocess.run([keytool, "-genkeypair", "-keyalg", "RSA", *named, *own], check=True, capture_output=True)
    subprocess.run(
        [keytool, "-exportcert", "-rfc", "-file", str(certificate), *own], check=True, capture_output=True
    )
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    directory = tmp_path / "server"
    directory.mkdir()
    with started_server(directory, PATH, str(keys), "secret") as number:
        yield number


def test_a_project(tmp_path: Path, port: int) -> None:
    transport = THttpClient.THttpClient(f"https://localhost:{port}/{PATH}")
    token = base64.standard_b64encode(f"token:{TOKEN}".encode()).decode()
    transport.setCustomHeaders({"Authorization": f"Basic {token}"})
    connection: Any = Connection(thrift_transport=transport)
    shop = Project.create(connection, tmp_path / "shop", "over_http")
    known = {"token": TOKEN, "organization": ORGANIZATION, "cluster": CLUSTER}
    shop.write("profiles.yml", PROFILE.format(port=port, **known))
    goes_through_a_day(shop)
