"""Moments are read for a model that learns, and what it has learned is written as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp, parse_one

from fivm_dbt.catalog import Column
from fivm_dbt.ir.scalar import as_type, column_ast, identifier
from fivm_dbt.spark.pieces import table
from fivm_dbt.spark.properties import table_properties
from fivm_dbt.spark.reads import written
from fivm_dbt.spark.state import create_table

Value = str | float | int | None

LEARNED_FROM = "fivm.learned_from"
"""Property of a trained table: a digest of the moments and the configuration that it was trained from."""

TRAINED = "fivm.trained"
"""Property of a trained table: how often it has been trained, as its rows say too."""

SKIPPED = "fivm.skipped"
"""Property of a trained table: how many runs since then have left it as it is."""


def moments_query(sql: str, keys: Sequence[Column], holdout: str | None, moments: str) -> exp.Select:
    """Keys as text, whether rows are held out, and moments as JSON, whose numbers have all of their digits."""
    names = [*(c.name for c in keys), *([] if holdout is None else [holdout])]
    shown = [
        exp.alias_(as_type(column_ast("given", name), "string"), f"k{at}") for at, name in enumerate(names)
    ]
    as_json = exp.Anonymous(this="TO_JSON", expressions=[column_ast("given", moments)])
    given = exp.Subquery(this=parse_one(sql, dialect="spark"), alias=exp.TableAlias(this=identifier("given")))
    return exp.select(*shown, exp.alias_(as_json, "moments")).from_(given, copy=False)


def coefficients_query(relation: str, keys: Sequence[Column]) -> exp.Select:
    """What a regression has learned before: keys as text, variable, category, coefficient and its number."""
    shown = [exp.alias_(as_type(column_ast("", c.name), "string"), f"k{at}") for at, c in enumerate(keys)]
    learned = [exp.column(name) for name in ("variable", "category", "coefficient")]
    return exp.select(*shown, *learned).from_(table(relation))


def skipping(relation: str, runs: int) -> exp.Alter:
    """Write down how many runs have left the table as it is."""
    return exp.Alter(
        this=table(relation),
        kind="TABLE",
        actions=[
            exp.AlterSet(expressions=[exp.Properties(expressions=table_properties({SKIPPED: str(runs)}))])
        ],
    )


def trained_rows(
    keys: Sequence[Column],
    columns: Mapping[str, str],
    rows: Sequence[tuple[tuple[str | None, ...], tuple[Value, ...]]],
) -> exp.Select:
    """The rows of a trained table: keys and learned values, with their types."""
    names = [*(c.name for c in keys), *columns]
    types = [*(c.type.text for c in keys), *columns.values()]
    texts = dict.fromkeys(names, "string")
    every = rows or [(tuple(None for _ in keys), tuple(None for _ in columns))]
    values = [[_literal(value) for value in (*key, *learned)] for key, learned in every]
    source = written(values, texts, "learned").subquery("learned", copy=False)
    shown = [
        exp.alias_(as_type(column_ast("learned", name), type_), identifier(name))
        for name, type_ in zip(names, types, strict=True)
    ]
    query = exp.select(*shown).from_(source, copy=False)
    return query if rows else query.where(exp.false(), copy=False)


def trained_table(relation: str, rows: exp.Query, properties: Mapping[str, str]) -> exp.Create:
    """The table with rows of keys and learned values, in the place of one that is there."""
    return create_table(relation, rows.copy(), dict(properties))


def _literal(value: Value) -> exp.Expr:
    """A value as text, as Spark casts it back: doubles with all of their digits."""
    return exp.Null() if value is None else exp.Literal.string(str(value))
