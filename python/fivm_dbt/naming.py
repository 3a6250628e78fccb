"""Everything that fivm creates gets its name here, quoted for SQL; no other module invents a name."""

from __future__ import annotations

import hashlib
import re

COUNT = "__fivm_count"
"""Column with the multiplicity of a row or the number of rows of a group."""

SIGN = "__fivm_sign"
"""Column that tells the rows after a refresh, 1, from those before it, -1."""

STAGED = "__fivm_staged"
"""Column that tells the rows of a staged delta from those of its state."""

BEFORE = "__fivm_before_"
"""Begins the names of columns with the sums of a key before a refresh."""

KINDS = "__fivm_kinds"
"""Column that has the change types of the rows that are written of a key."""

FILE, ROW = "__fivm_file", "__fivm_row"
"""Columns of a row of a state: the file that it lies in, and its place there."""

TIMES = "__fivm_times"
"""Column that carries the multiplicities of old rows through a projection, beside that of a change."""

PARTITION = "__fivm_partition"
"""Hidden partition column of a state table: a period's start or a hash bucket, as text."""

ROOT = "root"
"""What the state that a model shows is called."""

VIEW = "__fivm_view"
"""Partition column of a state table: the view that a row belongs to."""

OF, TO = "__fivm_of", "__fivm_to"
"""Columns of a row of the tail: what it is of, and the partition that its data goes to."""

HEAD, COMMIT, COVERAGE = "__fivm_number", "__fivm_commit", "__fivm_coverage"
"""Columns of a head: its number, an id that no other commit has, and what the states cover."""

TAIL_PROPERTY = "fivm.tail"
"""Table property of a model's view that adds up what has been appended to its state."""

TAIL = "tail"
"""The value of ``__fivm_view`` that no view has."""

STEP = "__fivm_step"
"""Column of a staged delta: which of the relations of a join has made the change, where that matters."""

CLOCK = "__fivm_clock"
"""The clock: alias of its columns, and its name among what changed."""

NUMBER = "__fivm_number_"
"""Begins the names of columns that number equal rows in a completed text."""

ROOT_PROPERTY, FACTORS_PROPERTY = "fivm.root", "fivm.factors"
"""Properties of a model's view: the state table that it shows, or that it joins several when it is read."""

EXPOSES_PROPERTY = "fivm.exposes"
"""Table property of a model that is exposed as a table: the states that it is a copy of."""

PART_PROPERTY = "fivm.part_length"
"""Property of a viewdf model's view: how long its parts are."""

PREFIX = "__fivm_"
PARTS = f"{PREFIX}parts"
MAX_IDENTIFIER = 120


def quote(identifier: str) -> str:
    """A Spark identifier, quoted only where it has to be.

    >>> quote("dep_delay"), quote("per cent"), quote("a`b")
    ('dep_delay', '`per cent`', '`a``b`')
    """
    if re.fullmatch(r"[a-z_][a-z0-9_]*", identifier) and identifier not in RESERVED:
        return identifier
    return "`" + identifier.replace("`", "``") + "`"


def split_name(name: str) -> tuple[str, ...]:
    """The parts of a dotted, possibly quoted relation name, lower-cased as Spark compares them.

    >>> split_name("Raw.`My Flights`"), split_name("flights")
    (('raw', 'my flights'), ('flights',))
    """
    parts = re.findall(r"`((?:[^`]|``)*)`|([^.`]+)", name)
    return tuple((quoted.replace("``", "`") if quoted else plain.strip()).lower() for quoted, plain in parts)


def relation_name(*parts: str | None) -> str:
    """The canonical dotted name of a relation: lower case, each part quoted where needed.

    >>> relation_name(None, "Analytics", "daily")
    'analytics.daily'
    """
    return ".".join(quote(part.lower()) for part in parts if part)


def canonical(name: str) -> str:
    """``name`` in the form of :func:`relation_name`.

    >>> canonical("`RAW`.flights")
    'raw.flights'
    """
    return relation_name(*split_name(name))


def old_rows(relation: str) -> str:
    """What the part of a relation's change is called that takes rows away, deleted ones and updated ones as they were.

    >>> old_rows("raw.orders")
    'raw.orders (old rows)'
    """
    return f"{relation} (old rows)"


def is_kept(relation: str) -> bool:
    """Whether a relation is what fivm keeps of a model, by its name.

    >>> is_kept("analytics.daily__fivm_view_1_orders"), is_kept("analytics.daily")
    (True, False)
    """
    return PREFIX in split_name(relation)[-1]


def sibling(relation: str, suffix: str) -> str:
    """A relation beside ``relation`` whose last part carries ``suffix``, shortened with a hash if too long.

    >>> sibling("analytics.daily", "root")
    'analytics.daily__fivm_root'
    """
    *schema, last = split_name(relation)
    return relation_name(*schema, _fit(f"{last}{PREFIX}{suffix}"))


def kept_under(relation: str, schema: str | None = None) -> str:
    """The relation that what fivm keeps of a model is beside: the model, or one that is called after it in a schema.

    >>> kept_under("analytics.daily"), kept_under("analytics.daily", "helpers"), kept_under("lake.a.daily", "helpers")
    ('analytics.daily', 'helpers.analytics__daily', 'lake.helpers.a__daily')
    """
    *places, last = split_name(relation)
    if schema is None:
        return relation_name(*places, last)
    return relation_name(*places[:-1], schema, "__".join([*places[-1:], last]))


def state_of(relation: str, schema: str | None = None) -> str:
    """The table with all states of a model.

    >>> state_of("analytics.daily"), state_of("analytics.daily", "helpers")
    ('analytics.daily__fivm_state', 'helpers.analytics__daily__fivm_state')
    """
    return sibling(kept_under(relation, schema), "state")


def owner_of(name: str, relation: str) -> bool:
    """Whether ``name`` is, or may become, that of a :func:`sibling` of ``relation``.

    >>> owner_of("analytics.daily__fivm_root", "analytics.daily"), owner_of("analytics.daily_2", "analytics.daily")
    (True, False)
    """
    *schema, last = split_name(name)
    *own, model = split_name(relation)
    return schema == own and last.startswith(f"{model}{PREFIX}"[: MAX_IDENTIFIER - 7])


def parts_of(relation: str) -> str:
    """The catalog of a model's time parts. Its name always ends so, by which it is found.

    >>> parts_of("analytics.daily")
    'analytics.daily__fivm_parts'
    """
    *schema, last = split_name(relation)
    return relation_name(*schema, _fit(last, MAX_IDENTIFIER - len(PARTS)) + PARTS)


def staged_name(model: str, what: str) -> str:
    """Session-wide name of a staged delta. All dbt threads share one session, so the model is part of it.

    The digest keeps ``a.b_c`` and ``a_b.c`` apart.

    >>> staged_name("analytics.daily", "raw.flights")
    'fivm_daily__delta_flights_c053b4'
    """
    words = [split_name(model)[-1], "delta_" + split_name(what)[-1]]
    readable = re.sub(r"[^a-z0-9_]+", "_", "__".join(words))
    return f"fivm_{readable[:MAX_IDENTIFIER]}_{digest(canonical(model), canonical(what))}"


def unfolded_name(view: str) -> str:
    """The CTE that a view of the database becomes, without quotes.

    >>> unfolded_name("staging.stg_orders"), unfolded_name("raw.`my view`")
    ('__fivm_stg_orders', '__fivm_my view')
    """
    return _fit(f"{PREFIX}{split_name(view)[-1]}")


def unique_name(wanted: str, taken: set[str]) -> str:
    """``wanted``, or ``wanted_2``, ``wanted_3``...: the first that is not in ``taken`` (compared without case).

    >>> unique_name("f", {"f", "f_2"})
    'f_3'
    """
    name, number = wanted, 1
    while name.lower() in taken:
        number += 1
        name = f"{wanted}_{number}"
    return name


def storable(name: str) -> str:
    """``name`` as a column that a Delta table takes without column mapping.

    >>> storable("Per cent")
    'per_cent'
    """
    cleaned = "".join(c if c.isalnum() or c == "_" else "_" for c in name).lower()
    return cleaned or "value"


def digest(*parts: str) -> str:
    """Six hexadecimal digits that tell apart what would otherwise be called the same."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:6]


def _fit(name: str, most: int = MAX_IDENTIFIER) -> str:
    if len(name) <= most:
        return name
    return f"{name[: most - 7]}_{digest(name)}"


RESERVED = frozenset(
    "all and anti any array as at authorization between both by case cast check collate column constraint create "
    "cross current_date current_time current_timestamp current_user delete describe distinct drop else end escape "
    "except exists false fetch filter for foreign from full function grant group grouping having in inner insert "
    "intersect interval into is join lateral leading left like limit map minus natural not null of offset on only "
    "or order outer overlaps primary qualify references right rows select semi session_user set some struct sum "
    "table then time to trailing true union unique unknown update user using values when where window with".split()
)
