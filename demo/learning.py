"""A regression over a five-way join follows its changes; `python -m demo.learning` after `python -m demo.environment`.

After each batch the models are trained from the moments that fivm has maintained: a regression, what tells of late
arrivals, and a Chow-Liu tree. The same rows are joined anew, and scikit-learn learns the same from them. What both
predict and what both tell is compared, and all that each has to do is timed. Spark ML does the regression alone.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeVar

import click
import numpy as np
import pandas as pd
from pyspark.ml.feature import OneHotEncoder, StringIndexer, VectorAssembler
from pyspark.ml.regression import LinearRegression as SparkRegression
from pyspark.sql import SparkSession
from rich.table import Table
from scipy.sparse.csgraph import minimum_spanning_tree
from sklearn.linear_model import LinearRegression
from sklearn.metrics import mutual_info_score

from demo.batches import CORRECTIONS, LATE_WEATHER, NEW_DAYS, NEW_NAMES, Batch, apply
from demo.dbt_runs import DbtProject
from demo.load import load_raw
from demo.paths import HOME, LOGS, METASTORE, ROOT, WAREHOUSE
from demo.progress import Progress
from demo.session import open_session

PROJECT = DbtProject(ROOT / "demo" / "learning_project", LOGS, {"FIVM_DEMO_HOME": str(HOME)})
BATCHES = (NEW_DAYS, LATE_WEATHER, CORRECTIONS, NEW_NAMES)
NUMBERS = ("distance", "hour", "temp", "wind_speed", "precip", "visib", "seats", "built")
CATEGORIES = ("carrier", "origin")
LABEL, LATE = "arr_delay", "arrival"
JOINED = """
select f.arr_delay, f.distance, f.hour, w.temp, w.wind_speed, w.precip, w.visib, p.seats, p.year as built,
    f.carrier, f.origin
from raw.flights f
join raw.weather w on f.origin = w.origin and f.time_hour = w.time_hour
join raw.planes p on f.tailnum = p.tailnum
join raw.airlines l on f.carrier = l.carrier
join raw.airports a on f.dest = a.faa
"""
T, M = TypeVar("T"), TypeVar("M")
SAME = 1e-6
"""Of the largest delay: by how much predictions may differ."""
MOST = 1 / 3
"""The largest share of joining and fitting anew that a refresh should take."""


@dataclass(frozen=True)
class Fitted:
    """What one batch has cost, and by how much predictions differ from scikit-learn's, in minutes of delay."""

    title: str
    refresh: float
    scikit_learn: float
    spark_ml: float | None
    rows: int
    r2: float
    differs: float
    told_differs: float
    """In nats."""


@dataclass(frozen=True)
class Learned:
    """Learned anew from joined rows: a regression, what pairs of categories tell of each other, and the tree's sum."""

    model: LinearRegression
    told: Mapping[tuple[str, str], float]
    tree: float


@click.command()
@click.option(
    "--years", default=15, show_default=True, type=click.IntRange(1, 50), help="Years of flights to load."
)
def main(years: int) -> None:
    """Arrival delays of New York flights, learned over five tables that change."""
    progress = Progress()
    _forget_last_time()
    with progress.doing("starting Spark"):
        spark = open_session(PROJECT)
    try:
        fitted = _play(spark, years, progress)
    finally:
        spark.stop()
    _forget_last_time()
    progress.console.print(_costs(fitted))
    wrong = [f.title for f in fitted if f.differs > SAME or f.told_differs > SAME]
    slow = sum(f.refresh for f in fitted) / sum(f.scikit_learn for f in fitted)
    progress.line(f"all refreshes together: {slow:.2f} of joining and fitting anew with scikit-learn")
    if wrong:
        raise SystemExit(f"what is learned differs from scikit-learn's after: {'; '.join(wrong)}")
    if slow > MOST:
        progress.line(f"[yellow]more than {MOST:.2f}[/]")
    progress.line("after every batch the models predict and tell what scikit-learn's do")


def _play(spark: SparkSession, years: int, progress: Progress) -> list[Fitted]:
    progress.heading(f"Loading {years} years of flights, up to the end of November 2013")
    with progress.doing("loading"):
        load_raw(spark, years, progress.line)
    _refreshed(spark, Batch("the first run", frozenset(), ()), progress)
    _show(spark, progress)
    fitted = []
    for batch in BATCHES:
        refresh = _refreshed(spark, batch, progress)
        fitted.append(_compared(spark, batch, refresh, progress, is_last=batch is BATCHES[-1]))
    _show(spark, progress)
    return fitted


def _refreshed(spark: SparkSession, batch: Batch, progress: Progress) -> float:
    """Seconds from the begin of the first model to the end of the last one."""
    progress.heading(batch.title)
    apply(spark, batch)
    with progress.doing("dbt run"):
        runs = PROJECT.run(
            lambda run: progress.line(f"{run.model:<24}{run.action:<32}{run.seconds:6.1f} s"),
            "--threads",
            "3",
        )
    return max(run.started + run.seconds for run in runs) - min(run.started for run in runs)


def _compared(
    spark: SparkSession, batch: Batch, refresh: float, progress: Progress, *, is_last: bool
) -> Fitted:
    """The same learned anew. Spark ML takes a while too, and does it for the last batch."""
    with progress.doing("joining and fitting anew"):
        rows, scikit_learn, learned = _timed(lambda: _scikit_learn(spark))
        spark_ml = _timed(lambda: (None, _spark_ml(spark)))[1] if is_last else None
    expected = learned.model.predict(_matrix(rows))
    differs = float(np.abs(_predicted(spark, rows) - expected).max() / np.abs(rows[LABEL]).max())
    told_differs = _told_differs(spark, learned)
    ((r2,),) = spark.sql("select max(r2) from analytics.arrival_delay").collect()
    by_spark = "" if spark_ml is None else f", Spark ML {spark_ml:.1f} s"
    progress.line(
        f"refresh {refresh:.1f} s, scikit-learn {scikit_learn:.1f} s{by_spark}; {len(rows):,} joined rows, "
        f"R² {r2:.4f}, predictions differ by {differs:.1e}, information by {told_differs:.1e}"
    )
    return Fitted(
        batch.title, refresh, scikit_learn, spark_ml, len(rows), float(r2), differs, told_differs=told_differs
    )


def _timed(work: Callable[[], tuple[T, M]]) -> tuple[T, float, M]:
    started = time.perf_counter()
    rows, model = work()
    return rows, time.perf_counter() - started, model


def _scikit_learn(spark: SparkSession) -> tuple[pd.DataFrame, Learned]:
    """Join, bring the rows here, fit, rank, and span the tree."""
    doubles = ", ".join(f"cast({name} as double) as {name}" for name in (LABEL, *NUMBERS))
    rows = spark.sql(f"select {doubles}, {', '.join(CATEGORIES)} from ({JOINED})").dropna().toPandas()
    model = LinearRegression().fit(_matrix(rows), rows[LABEL])
    codes = {name: pd.factorize(rows[name])[0] for name in CATEGORIES} | {
        LATE: (rows[LABEL] > 15).to_numpy(int)
    }
    told = {(a, b): float(mutual_info_score(codes[a], codes[b])) for a, b in combinations(sorted(codes), 2)}
    places = {name: place for place, name in enumerate(sorted(codes))}
    weights = np.zeros((len(codes), len(codes)))
    for (one, other), nats in told.items():
        weights[places[one], places[other]] = -nats
    return rows, Learned(model, told, tree=-float(minimum_spanning_tree(weights).sum()))


def _matrix(rows: pd.DataFrame) -> np.ndarray:
    """The numbers, and a column for each category but the first."""
    dummies = [pd.get_dummies(rows[name], dtype=float).sort_index(axis=1).iloc[:, 1:] for name in CATEGORIES]
    return np.column_stack([rows[list(NUMBERS)].to_numpy(float), *(d.to_numpy() for d in dummies)])


def _spark_ml(spark: SparkSession) -> object:
    """Join, and fit without bringing rows here."""
    rows = spark.sql(JOINED).dropna()
    indexed = [f"{name}_at" for name in CATEGORIES]
    coded = [f"{name}_of" for name in CATEGORIES]
    rows = StringIndexer(inputCols=list(CATEGORIES), outputCols=indexed).fit(rows).transform(rows)
    rows = OneHotEncoder(inputCols=indexed, outputCols=coded).fit(rows).transform(rows)
    rows = VectorAssembler(inputCols=[*NUMBERS, *coded], outputCol="features").transform(rows)
    return SparkRegression(labelCol=LABEL, solver="normal").fit(rows)


def _predicted(spark: SparkSession, rows: pd.DataFrame) -> np.ndarray:
    """What the trained table predicts of rows."""
    trained = spark.sql(
        "select variable, category, coalesce(coefficient, 0) from analytics.arrival_delay"
    ).collect()
    total = np.zeros(len(rows))
    for variable, category, coefficient in trained:
        if variable == "":
            total += coefficient
        elif category is None:
            total += coefficient * rows[variable].to_numpy(float)
        else:
            total += coefficient * (rows[variable] == category).to_numpy(float)
    return total


def _told_differs(spark: SparkSession, learned: Learned) -> float:
    """By how much the information of a pair, or of the tree, differs at most."""
    kept = spark.sql("select variable, other, information from analytics.what_tells_of_delays").collect()
    found = {tuple(sorted((one, other))): nats for one, other, nats in kept if one != other}
    if found.keys() != learned.told.keys():
        raise SystemExit(f"information of {sorted(found)}, and of {sorted(learned.told)} by scikit-learn")
    ((tree,),) = spark.sql("select sum(information) from analytics.tree_of_delays").collect()
    return max(abs(tree - learned.tree), *(abs(found[pair] - nats) for pair, nats in learned.told.items()))


def _show(spark: SparkSession, progress: Progress) -> None:
    """The coefficients, what tells of delays, and the tree."""
    table = Table("variable", "category", "minutes", "± error", title="arrival_delay")
    for variable, category, value, error in spark.sql(
        "select variable, category, coefficient, standard_error from analytics.arrival_delay order by all"
    ).collect():
        texts = ("" if v is None else f"{v:.4f}" for v in (value, error))
        table.add_row(variable or "(intercept)", category or "", *texts)
    progress.console.print(table)
    told = spark.sql(
        "select if(variable = 'arrival', other, variable), information from analytics.what_tells_of_delays "
        "where rank is not null order by rank"
    ).collect()
    progress.line("what tells of late arrivals: " + ", ".join(f"{n} ({nats:.5f} nats)" for n, nats in told))
    edges = spark.sql("select parent, child, information from analytics.tree_of_delays").collect()
    progress.line("tree: " + ", ".join(f"{parent} — {child} ({nats:.5f})" for parent, child, nats in edges))


def _costs(fitted: Sequence[Fitted]) -> Table:
    table = Table("batch", "joined rows", "R²", "refresh s", "scikit-learn s", "Spark ML s", title="Seconds")
    for f in fitted:
        seconds = ("" if s is None else f"{s:.1f}" for s in (f.refresh, f.scikit_learn, f.spark_ml))
        table.add_row(f.title, f"{f.rows:,}", f"{f.r2:.4f}", *seconds)
    return table


def _forget_last_time() -> None:
    for path in (WAREHOUSE, METASTORE):
        shutil.rmtree(path, ignore_errors=True)
    LOGS.mkdir(parents=True, exist_ok=True)
    (HOME / "derby.log").unlink(missing_ok=True)


if __name__ == "__main__":
    main()
