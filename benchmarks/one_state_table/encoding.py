"""Values of partitions as text that sorts as they do, for any value: also NULL, '' and what a path cannot hold.

A letter comes first: ``n`` is NULL, ``v`` a value. So no text is empty or Hive's name for NULL, which Delta confuses,
and none is ``-``, the partition of the tail. Dates before the year 0 have ``u`` and those after 9999 ``w``.
"""

from __future__ import annotations

DIGITS, COMPLEMENT = "0123456789", "9876543210"
INTEGER_DIGITS = 19


def encoded(value: str, type_: str) -> str:
    """The text of a value as an expression of Spark SQL.

    >>> encoded("p", "STRING")
    "coalesce(concat('v', p), 'n')"
    """
    return f"coalesce({_text(value, type_.upper())}, 'n')"


def _text(value: str, type_: str) -> str:
    if type_ == "STRING":
        return f"concat('v', {value})"
    if type_ == "BOOLEAN":
        return f"concat('v', cast(cast({value} AS INT) AS STRING))"
    if type_ in ("TINYINT", "SMALLINT", "INT", "BIGINT"):
        return f"concat('v', {_signed(f'cast({value} AS STRING)', INTEGER_DIGITS)})"
    if type_.startswith("DECIMAL"):
        precision, scale = (int(n) for n in type_[8:-1].split(","))
        # Casting may write 1E-7.
        digits = f"S{'0' * max(precision - scale, 1)}" + (f"D{'0' * scale}" if scale else "")
        return f"concat('v', {_signed(f'''to_char({value}, '{digits}')''', precision + 2)})"
    if type_ == "DATE":
        return _day(value, value)
    if type_ == "TIMESTAMP_NTZ":
        return _time(value)
    if type_ == "TIMESTAMP":
        # The same in every time zone, and in the hour of a clock change.
        return _time(f"timestampadd(MICROSECOND, unix_micros({value}), TIMESTAMP_NTZ'1970-01-01 00:00:00')")
    raise ValueError(f"no partitions by {type_}")


def _signed(text: str, digits: int) -> str:
    """1 and the digits, or 0 and their complement to nine."""
    absolute = f"lpad(translate({text}, '+-', ''), {digits}, '0')"
    negative = f"concat('0', translate({absolute}, '{DIGITS}', '{COMPLEMENT}'))"
    return f"if(startswith({text}, '-'), {negative}, concat('1', {absolute}))"


def _day(day: str, year_of: str) -> str:
    """As Spark writes it where a year has four digits, else the days since 1970."""
    outside = _signed(f"cast(unix_date({day}) AS STRING)", 10)
    return (
        f"CASE WHEN year({year_of}) < 0 THEN concat('u', {outside}) "
        f"WHEN year({year_of}) > 9999 THEN concat('w', {outside}) ELSE concat('v', cast({day} AS STRING)) END"
    )


def _time(time: str) -> str:
    """Zeros at the end of a fraction are left out, which sorts well: it is a prefix."""
    day = f"cast({time} AS DATE)"
    return f"concat({_day(day, day)}, ' ', substring_index(cast({time} AS STRING), ' ', -1))"
