"""A file with CREATE TABLE statements and one query: a model with all that it reads, for ``fivm explain``."""

from __future__ import annotations

from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from fivm_dbt.catalog import Catalog, Column, ForeignKey, Relation
from fivm_dbt.errors import FivmError
from fivm_dbt.ir.dialect import SparkText
from fivm_dbt.naming import relation_name

_REMEDY = "write CREATE TABLE name (column type, ...) for each input, and one SELECT"


@dataclass(frozen=True)
class Script:
    """The relations that a file creates, and the text of its query."""

    catalog: Catalog
    sql: str


def read_script(text: str) -> Script:
    """The parts of a file. Raises FIVM101 unless there is exactly one query beside the CREATE TABLEs.

    >>> script = read_script("create table raw.f (k int primary key, v decimal(9,2)); select k from raw.f;")
    >>> script.sql, script.catalog.relations[0].keys, script.catalog.relations[0].column("v").type.text
    ('select k from raw.f', (('k',),), 'decimal(9,2)')
    """
    relations: list[Relation] = []
    queries: list[str] = []
    for first_word, part in _split(text):
        if first_word == "create":
            relations.append(_relation(_parse(part)))
        else:
            queries.append(part)
    if len(queries) != 1:
        raise FivmError("FIVM101", f"expected one query, found {len(queries)}", remedy=_REMEDY)
    return Script(Catalog.of(relations), queries[0])


def _split(text: str) -> list[tuple[str, str]]:
    """Each statement's first word, and its text as the user wrote it."""
    try:
        tokens = sqlglot.tokenize(text, dialect=SparkText)
    except SqlglotError as error:
        raise FivmError("FIVM101", str(error).split("\n")[0], remedy="correct the SQL") from None
    statements: list[list[Token]] = [[]]
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            statements.append([])
        else:
            statements[-1].append(token)
    return [(s[0].text.lower(), text[s[0].start : s[-1].end + 1]) for s in statements if s]


def _parse(part: str) -> exp.Create:
    try:
        statement = sqlglot.parse_one(part, dialect=SparkText)
    except SqlglotError as error:
        raise FivmError("FIVM101", str(error).split("\n")[0], remedy=_REMEDY) from None
    if not isinstance(statement, exp.Create):
        raise FivmError("FIVM101", f"cannot read {part.splitlines()[0]!r}", remedy=_REMEDY)
    return statement


def _relation(create: exp.Create) -> Relation:
    schema = create.this
    if create.kind != "TABLE" or not isinstance(schema, exp.Schema):
        raise FivmError("FIVM101", f"CREATE {create.kind} has no columns to read", remedy=_REMEDY)
    definitions = [d for d in schema.expressions if isinstance(d, exp.ColumnDef)]
    columns = tuple(Column.of(d.name, d.kind.sql(dialect="spark")) for d in definitions if d.kind is not None)
    keys = [(d.name.lower(),) for d in definitions if d.find(exp.PrimaryKeyColumnConstraint)]
    keys += [tuple(c.name.lower() for c in key.expressions) for key in schema.find_all(exp.PrimaryKey)]
    foreign = tuple(_foreign_key(key) for key in schema.find_all(exp.ForeignKey))
    name = relation_name(*(part.name for part in schema.this.parts))
    return Relation(name, columns, keys=tuple(sorted(keys)), foreign_keys=foreign)


def _foreign_key(key: exp.ForeignKey) -> ForeignKey:
    target = key.args["reference"].this
    name = relation_name(*(part.name for part in target.this.parts))
    columns = tuple(c.name.lower() for c in key.expressions)
    return ForeignKey(columns, name, tuple(c.name.lower() for c in target.expressions))
