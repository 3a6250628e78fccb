"""Spark keeps with a view how it was created, and reads it as then: other names, types or settings mean other rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from fivm_dbt.ir.moments import is_utc

SESSION_SETTINGS: Mapping[str, str] = {
    "timezone": "spark.sql.session.timeZone",
    "ansi": "spark.sql.ansi.enabled",
    "case sensitive": "spark.sql.caseSensitive",
    "timestamp type": "spark.sql.timestampType",
}
"""What changes the meaning of SQL, and so belongs to the plan's signature."""

_BY_DEFAULT = {"spark.sql.caseSensitive": "false", "spark.sql.timestampType": "TIMESTAMP_LTZ"}
"""What those are that a view does not keep unless they were set; of the others it keeps what was by default too."""

_OF_MEANING = tuple(
    f"spark.sql.{group}."
    for group in ("ansi", "decimalOperations", "function", "legacy", "parser", "session", "variant")
)
_SINGLE = {
    *SESSION_SETTINGS.values(),
    *(
        f"spark.sql.{key}"
        for key in ("groupByAliases", "groupByOrdinal", "orderByOrdinal", "mapKeyDedupPolicy")
    ),
}


@dataclass(frozen=True)
class StoredView:
    """What the catalog keeps of a view beside its text.

    ``schema`` is the dotted catalog and schema that were current when it was created, and ``query_columns`` are the
    columns of its query then. Spark casts to the types of then where ``keeps_types``, and shows the columns of then
    where ``keeps_names``. ``settings`` are those of the session of then, None where Spark does not tell.
    """

    schema: str = ""
    query_columns: tuple[str, ...] = ()
    keeps_types: bool = True
    keeps_names: bool = True
    settings: tuple[tuple[str, str], ...] | None = None

    @staticmethod
    def of(
        schema: str, query_columns: Iterable[str], mode: str, settings: Mapping[str, str] | None = None
    ) -> StoredView:
        """By the mode of its schema: EVOLUTION follows the tables, TYPE EVOLUTION their types alone."""
        return StoredView(
            schema,
            () if mode == "EVOLUTION" else tuple(query_columns),
            not mode.endswith("EVOLUTION"),
            mode != "EVOLUTION",
            None if settings is None else tuple(sorted(settings.items())),
        )

    def other_settings(self, setting: Callable[[str], str]) -> dict[str, tuple[str, str]]:
        """The settings by which the view may mean something else than its text in a session: then and now.

        >>> view = StoredView(settings=(("spark.sql.ansi.enabled", "true"), ("spark.sql.session.timeZone", "Etc/UTC")))
        >>> view.other_settings({**_BY_DEFAULT, "spark.sql.ansi.enabled": "false",
        ...                      "spark.sql.session.timeZone": "UTC"}.__getitem__)
        {'spark.sql.ansi.enabled': ('true', 'false')}
        """
        if self.settings is None:
            return {}
        then = {**_BY_DEFAULT, **dict(self.settings)}
        found = {key: (text, setting(key)) for key, text in sorted(then.items()) if _has_meaning(key)}
        return {key: both for key, both in found.items() if not _is_same(*both)}


def _has_meaning(key: str) -> bool:
    return key in _SINGLE or key.startswith(_OF_MEANING)


def _is_same(then: str, now: str) -> bool:
    """Whether a setting has not changed; one that the session hides cannot be compared."""
    in_utc = all(is_utc((("timezone", zone),)) for zone in (then, now))
    return then.lower() == now.lower() or in_utc or now == "unknown"
