"""The eight tables of TPC-H: their columns, and their rows as ``tpchgen-cli`` generates them."""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
import tempfile
from pathlib import Path

import duckdb

from fivm_dbt.catalog import Column
from fivm_dbt.refresh.engine import Row
from fivm_dbt.testing.workbench import TableSpec

CACHE = Path(__file__).resolve().parents[2] / ".cache" / "tpch"
"""Generated data is kept here, one directory per scale factor."""

_COLUMNS = {
    "region": "r_regionkey bigint, r_name string, r_comment string",
    "nation": "n_nationkey bigint, n_name string, n_regionkey bigint, n_comment string",
    "supplier": "s_suppkey bigint, s_name string, s_address string, s_nationkey bigint, s_phone string, "
    "s_acctbal decimal(15;2), s_comment string",
    "customer": "c_custkey bigint, c_name string, c_address string, c_nationkey bigint, c_phone string, "
    "c_acctbal decimal(15;2), c_mktsegment string, c_comment string",
    "part": "p_partkey bigint, p_name string, p_mfgr string, p_brand string, p_type string, p_size int, "
    "p_container string, p_retailprice decimal(15;2), p_comment string",
    "partsupp": "ps_partkey bigint, ps_suppkey bigint, ps_availqty int, ps_supplycost decimal(15;2), "
    "ps_comment string",
    "orders": "o_orderkey bigint, o_custkey bigint, o_orderstatus string, o_totalprice decimal(15;2), "
    "o_orderdate date, o_orderpriority string, o_clerk string, o_shippriority int, o_comment string",
    "lineitem": "l_orderkey bigint, l_partkey bigint, l_suppkey bigint, l_linenumber int, "
    "l_quantity decimal(15;2), l_extendedprice decimal(15;2), l_discount decimal(15;2), l_tax decimal(15;2), "
    "l_returnflag string, l_linestatus string, l_shipdate date, l_commitdate date, l_receiptdate date, "
    "l_shipinstruct string, l_shipmode string, l_comment string",
}


def _columns(text: str) -> tuple[Column, ...]:
    pairs = (part.split(" ", 1) for part in text.split(", "))
    return tuple(Column.of(name, type_.replace(";", ",")) for name, type_ in pairs)


TABLES = tuple(TableSpec(name, _columns(text)) for name, text in _COLUMNS.items())


def tpch_files(scale: float, cache: Path = CACHE) -> dict[str, Path]:
    """One Parquet file per table at this scale factor (1 is six million lineitems), generated once.

    Raises FileNotFoundError without ``tpchgen-cli``, CalledProcessError where that fails.
    """
    directory = cache / f"sf{scale:g}"
    if not directory.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as made:
            _generate(scale, Path(made) / "data")
            # Another process may have been faster: its data are the same.
            if not directory.exists():
                (Path(made) / "data").rename(directory)
    return {table.name: directory / f"{table.name}.parquet" for table in TABLES}


def _generate(scale: float, directory: Path) -> None:
    places = [sysconfig.get_path("scripts"), None]
    found = next((p for p in (shutil.which("tpchgen-cli", path=place) for place in places) if p), None)
    if found is None:
        raise FileNotFoundError("there is no tpchgen-cli: run `make setup`, or `pip install tpchgen-cli`")
    options = ["--scale-factor", str(scale), "--output-dir", str(directory), "--num-threads", "1", "--quiet"]
    subprocess.run([found, "parquet", *options], check=True)


def tpch_rows(files: dict[str, Path]) -> dict[str, list[Row]]:
    """The rows of the files in an order that does not depend on how they were written."""
    rows: dict[str, list[Row]] = {}
    with duckdb.connect(":memory:") as connection:
        for name, file in files.items():
            relation = connection.execute("SELECT * FROM read_parquet(?) ORDER BY ALL", [str(file)])
            rows[name] = relation.fetchall()
    return rows
