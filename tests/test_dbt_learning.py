"""Models that learn, under dbt: trained from maintained moments, trained anew, left alone, and read by predictions."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import SparkSession
from sklearn.linear_model import LinearRegression

from dbt_project import Project

pytestmark = pytest.mark.spark

MOMENTS = """
{{ config(materialized='fivm') }}
select b.segment, fivm_covariance(a.amount, a.customer_id, fivm_categorical(month(a.ordered_on) as month),
    fivm_categorical(b.segment as of_segment)) as m
from {{ source('raw', 'orders') }} a join {{ source('raw', 'customers') }} b on a.customer_id = b.customer_id
group by b.segment
"""
REGRESSION = """
{{ config(materialized='fivm_regression', meta={'fivm_label': 'amount', 'fivm_features': ['customer_id', 'month'],
    'fivm_group_by': []}) }}
select segment, m from {{ ref('moments') }}
"""
KEYED = REGRESSION.replace(", 'month'],\n    'fivm_group_by': []", "], 'fivm_every': 2")
TREE = """
{{ config(materialized='fivm_chow_liu', meta={'fivm_group_by': []}) }}
select m from {{ ref('moments') }}
"""
INFORMATION = TREE.replace("fivm_chow_liu", "fivm_information").replace(
    "meta={", "meta={'fivm_label': 'month', "
)
PREDICTED = """
{{ config(materialized='view') }}
select order_id, {{ fivm.predict(ref('amounts'), {'month': 'month(ordered_on)'}) }} as predicted
from {{ source('raw', 'orders') }}
"""
EDGES = """
{{ config(materialized='incremental', file_format='delta') }}
{{ fivm.bin_edges(source('raw', 'orders'), {'amount': 4}) }}
"""
BINS = """
{{ config(materialized='fivm') }}
select fivm_covariance(fivm_categorical({{ fivm.bin('a.amount', 'e.amount', 4) }} as amount_bin),
    fivm_categorical(a.customer_id)) as m
from {{ source('raw', 'orders') }} a cross join {{ ref('edges') }} e
"""
TOLD_OF_BINS = """
{{ config(materialized='fivm_information') }}
select m from {{ ref('bins') }}
"""

RATIOS = """
{{ config(materialized='fivm', meta={'fivm_rings': ['our_rings:ratio']}) }}
select b.segment, weighted_ratio(a.amount, a.order_id) as ratio
from {{ source('raw', 'orders') }} a join {{ source('raw', 'customers') }} b on a.customer_id = b.customer_id
group by b.segment
"""
RATIOS_BY_HAND = """
select b.segment, sum(a.amount * a.order_id) / sum(if(a.amount is null, null, a.order_id)) as ratio
from raw.orders a join raw.customers b on a.customer_id = b.customer_id group by b.segment
"""


def _check(shop: Project) -> None:
    """The regression is scikit-learn's over the joined rows, and the view tells what it predicts."""
    joined = shop.sql(
        "select a.order_id, double(a.amount), a.customer_id, month(a.ordered_on) from raw.orders a "
        "join raw.customers b on a.customer_id = b.customer_id where a.amount is not null and a.ordered_on is not null "
        "and b.segment is not null"
    )
    months = sorted({row[3] for row in joined})[1:]
    matrix = np.array(
        [[row[2], *(float(row[3] == month) for month in months)] for row in joined], dtype=float
    )
    theirs = LinearRegression().fit(matrix, [row[1] for row in joined])
    expected = dict(zip((row[0] for row in joined), theirs.predict(matrix), strict=True))
    found = {number: value for number, value in shop.sql("select * from learning.predicted")}
    ratios, by_hand = (dict(shop.sql(sql)) for sql in ("select * from learning.ratios", RATIOS_BY_HAND))
    assert ratios.keys() == by_hand.keys()
    assert [float(ratios[s] or 0) for s in by_hand] == pytest.approx(
        [float(v or 0) for v in by_hand.values()]
    )
    assert {number: found[number] for number in expected} == pytest.approx(expected, rel=1e-6, abs=1e-6)


def _check_bins(shop: Project, edges: list[tuple[object, ...]]) -> None:
    """The edges are those of the build, and each amount counts in its bin."""
    assert shop.sql("select * from learning.edges") == edges
    cells = shop.sql(
        "select int(cell.category), int(cell.value) from learning.bins lateral view explode(m.cells) as cell "
        "where cell.variable = 'amount_bin' and cell.other = 'amount_bin'"
    )
    expected: Counter[int] = Counter()
    for (amount,) in shop.sql(
        "select amount from raw.orders where amount is not null and customer_id is not null"
    ):
        expected[1 + sum(amount >= edge for edge in edges[0])] += 1
    assert dict(cells) == expected
    told = {(a, b) for a, b in shop.sql("select variable, other from learning.told_of_bins")}
    assert ("amount_bin", "customer_id") in told


def test_models_that_learn(spark: SparkSession, tmp_path: Path) -> None:
    shop = Project.create(spark, tmp_path / "shop", "learning", "big_orders")
    (shop.root / "models" / "big_orders.sql").unlink()
    more = [(100 + n, 1 + n % 3, f"2024-0{1 + n % 4}-05", f"{n * n % 37}.50") for n in range(30)]
    shop.insert("orders", *more)
    models = {
        "moments": MOMENTS,
        "amounts": REGRESSION,
        "by_segment": KEYED,
        "tree": TREE,
        "told": INFORMATION,
        "edges": EDGES,
        "bins": BINS,
        "told_of_bins": TOLD_OF_BINS,
    }
    rings = (Path(__file__).parent / "fixtures" / "our_rings.py").read_text(encoding="utf-8")
    shop.write("our_rings.py", rings)
    shop.write("broken_rings.py", rings.replace("l.both * r.rows + ", "").replace("weighted_ratio", "broken"))
    for name, text in {**models, "predicted": PREDICTED, "ratios": RATIOS}.items():
        shop.write(f"models/{name}.sql", text)
    trained = shop.dbt("run")
    assert "amounts: trained from 1 group" in trained.text
    _check(shop)
    edges = shop.sql("select * from learning.edges")
    assert len(edges) == 1 and len(edges[0]) == 3
    _check_bins(shop, edges)
    ((parent, child, nats),) = shop.sql("select parent, child, information from learning.tree")
    assert (parent, child) == ("month", "of_segment")
    told = {(a, b): (value, rank) for a, b, value, rank, _ in shop.sql("select * from learning.told")}
    assert told["month", "of_segment"] == (pytest.approx(nats), 1) and told["month", "month"][1] is None
    segments = {
        row[0]
        for row in shop.sql("select distinct segment from learning.by_segment where coefficient is not null")
    }
    assert segments == {row[0] for row in shop.sql("select segment from learning.moments where m.count > 0")}

    # Nothing has changed; of two runs one is for the model of every second.
    again = shop.dbt("run", "--select", "amounts", "by_segment", "tree")
    assert "amounts: no change" in again.text and "by_segment: waiting, fivm_every is 2" in again.text

    shop.sql("DELETE FROM raw.orders WHERE order_id > 125")
    shop.insert("orders", (200, 2, "2024-02-28", "99.00"), (201, 1, None, "1.00"))
    later = shop.dbt("run")
    assert "by_segment: trained" in later.text
    _check(shop)
    _check_bins(shop, edges)
    assert shop.sql("select distinct refresh from learning.amounts") == [(2,)]
    # The rows and what they were learned from are one commit, in the place of those before.
    newest = shop.sql("describe history learning.amounts limit 1")[0]
    assert "WRITE" in newest and {"mode": "Overwrite", "predicate": "TRUE"} in newest
    again = shop.dbt("run", "--select", "amounts")
    assert "amounts: no change" in again.text

    wrong = {
        "broken_ring": RATIOS.replace("our_rings", "broken_rings"),
        "predicts": PREDICTED.replace("'view'", "'fivm'"),
        "features": REGRESSION.replace("['customer_id', 'month']", "['customer', 'amount']"),
    }
    for name, text in wrong.items():
        shop.write(f"models/{name}.sql", text)
    failed = shop.dbt("run", "--select", *wrong, expect=False)
    told = failed.text.replace("\n", " ")
    assert "the ring of broken breaks the law a × b = b × a in component both" in told
    assert "FIVM208" in told
    assert "fivm_features: there is no customer among customer_id, month, of_segment" in told
