"""These rows describe functions of dates, times and intervals."""

from __future__ import annotations

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import BIGINT, DATE, DOUBLE, INT, STRING, TIMESTAMP
from fivm_dbt.functions.function import Function, Kind, Other
from fivm_dbt.functions.type_rules import date_part, difference, moved_time

_NTZ = SparkType("timestamp_ntz")
_NO_TIME = "the type TIME is not maintained yet"
_INTS = "year quarter month dayofyear weekofyear weekday dayofweek hour minute second unix_date"
_OF_TIME = (
    "make_time time_bucket time_diff time_from_micros time_from_millis time_from_seconds time_to_micros "
    "time_to_millis time_to_seconds time_trunc to_time try_to_time"
)

TIMES: tuple[Function, ...] = (
    # Parts of times.
    *(Function(name, INT) for name in _INTS.split()),
    Function("day", INT, ("dayofmonth",)),
    Function("dayname", STRING),
    Function("monthname", STRING),
    Function("date_part", date_part, ("datepart",)),
    Function("extract", date_part),
    # Dates.
    Function("to_date", DATE),
    Function("try_to_date", DATE),
    Function("make_date", DATE),
    Function("date_from_unix_date", DATE),
    Function("last_day", DATE),
    Function("next_day", DATE),
    Function("add_months", DATE),
    Function("trunc", DATE),
    Function("date_add", moved_time, ("dateadd", "date_sub", "timestampadd")),
    Function("date_diff", difference, ("datediff",)),
    Function("timestampdiff", BIGINT),
    Function("months_between", DOUBLE),
    # Instants.
    Function("date_trunc", TIMESTAMP),
    Function("to_timestamp", TIMESTAMP),
    Function("try_to_timestamp", TIMESTAMP),
    Function("to_timestamp_ltz", TIMESTAMP),
    Function("to_timestamp_ntz", _NTZ),
    Function("make_timestamp", TIMESTAMP),
    Function("try_make_timestamp", TIMESTAMP),
    Function("make_timestamp_ltz", TIMESTAMP),
    Function("try_make_timestamp_ltz", TIMESTAMP),
    Function("make_timestamp_ntz", _NTZ),
    Function("try_make_timestamp_ntz", _NTZ),
    Function("from_utc_timestamp", TIMESTAMP),
    Function("to_utc_timestamp", TIMESTAMP),
    Function("convert_timezone", _NTZ),
    Function("timestamp_micros", TIMESTAMP),
    Function("timestamp_millis", TIMESTAMP),
    Function("timestamp_seconds", TIMESTAMP),
    Function("unix_micros", BIGINT),
    Function("unix_millis", BIGINT),
    Function("unix_seconds", BIGINT),
    Function("unix_timestamp", BIGINT),
    Function("to_unix_timestamp", BIGINT),
    Function("from_unixtime", STRING),
    Function("date_format", STRING),
    # Intervals.
    Function("make_interval", SparkType("interval")),
    Function("try_make_interval", SparkType("interval")),
    Function("make_dt_interval", SparkType("interval day to second")),
    Function("make_ym_interval", SparkType("interval year to month")),
    # The clock.
    Function("current_date", DATE, ("curdate",), other=Other.CLOCK),
    Function("current_timestamp", TIMESTAMP, ("now", "getdate"), other=Other.CLOCK),
    Function("localtimestamp", _NTZ, other=Other.CLOCK),
    Function("current_timezone", STRING),  # changing it rebuilds
    # Windows of time.
    Function("window", kind=Kind.TIME_WINDOW),
    Function("session_window", kind=Kind.TIME_WINDOW),
    Function("window_time", kind=Kind.TIME_WINDOW),
    Function("current_time", other=Other.CLOCK),
    *(Function(name, refused=_NO_TIME) for name in _OF_TIME.split()),
)  # fmt: skip
