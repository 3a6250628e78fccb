"""A file with CREATE TABLE statements and one query is a model with all that it reads, for ``fivm explain``.

In a file that has CREATE STREAM too, as those of the papers' compilers have, streams change and tables are static.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from fivm_dbt.catalog import Catalog, Column, EventTime, ForeignKey, Relation, Retention
from fivm_dbt.errors import FivmError, Span, expected_one_of
from fivm_dbt.ir.dialect import SparkText
from fivm_dbt.naming import canonical, relation_name
from fivm_dbt.parts.length import Length, duration

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
    streams: set[str] = set()
    queries: list[str] = []
    for tokens in _split(text):
        statement = text[tokens[0].start : tokens[-1].end + 1]
        if _begins_query(tokens):
            queries.append(statement)
            continue
        if tokens[0].text.lower() != "create":
            raise FivmError(
                "FIVM101",
                f"{_shown(statement)}: a statement that is neither CREATE TABLE nor a query",
                sql=text,
                span=Span(tokens[0].start, tokens[-1].end + 1),
                remedy=_REMEDY,
            )
        relation = _relation(_parse(_create(tokens, text)))
        relations.append(relation)
        if _is_word(tokens[1:2], "stream"):
            streams.add(relation.name)
    if len(queries) != 1:
        listed = f": {'; '.join(map(_shown, queries))}" if queries else ""
        raise FivmError("FIVM101", f"expected one query, found {len(queries)}{listed}", remedy=_REMEDY)
    if streams:
        relations = [replace(r, is_static=r.name not in streams) for r in relations]
    return Script(Catalog.of(relations), queries[0])


_QUERY_WORDS = frozenset("select with from values table ( map reduce".split())


def _begins_query(tokens: list[Token]) -> bool:
    return tokens[0].text.lower() in _QUERY_WORDS


def _shown(statement: str) -> str:
    """The beginning of a statement, on one line.

    >>> _shown("insert into r\\nvalues (1, 2), (3, 4), (5, 6), (7, 8), (9, 10)")
    'insert into r values (1, 2), (3, 4), (5, 6)...'
    """
    words = " ".join(statement.split())
    return words if len(words) <= _LONGEST else f"{words[: _LONGEST - 3].rstrip(', ')}..."


_LONGEST = 48


def _is_word(tokens: list[Token], word: str) -> bool:
    return bool(tokens) and tokens[0].text.lower() == word


def _create(tokens: list[Token], text: str) -> str:
    """A CREATE statement as Spark would write it: a stream is a table, and where its rows are read from is left out."""
    if _is_word(tokens[1:2], "type"):
        what = text[tokens[0].start : tokens[-1].end + 1]
        raise FivmError(
            "FIVM105",
            f"{what.splitlines()[0]}: rings in C++ are not read",
            remedy="use SQL's aggregates; their rings are chosen by the planner",
        )
    end = next((i for i in range(1, len(tokens) - 1) if _is_from_file(tokens[i : i + 2])), len(tokens))
    words = text[tokens[0].start : tokens[end - 1].end + 1]
    if _is_word(tokens[1:2], "stream"):
        first = tokens[0].start
        words = words[: tokens[1].start - first] + "TABLE" + words[tokens[1].end + 1 - first :]
    return words


def _is_from_file(tokens: list[Token]) -> bool:
    return _is_word(tokens, "from") and _is_word(tokens[1:], "file")


def _split(text: str) -> list[list[Token]]:
    """The tokens of each statement."""
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
    return [s for s in statements if s]


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
    foreign = [_foreign_key([d.name], r) for d in definitions for r in d.find_all(exp.Reference)]
    foreign += [
        _foreign_key([c.name for c in key.expressions], key.args["reference"])
        for key in schema.find_all(exp.ForeignKey)
    ]
    name = relation_name(*(part.name for part in schema.this.parts))
    event_time = _event_time(create, columns)
    return Relation(
        name,
        columns,
        keys=tuple(sorted(keys)),
        foreign_keys=tuple(foreign),
        event_time=event_time,
        retention=_retention(create, event_time),
    )


def _event_time(create: exp.Create, columns: tuple[Column, ...]) -> EventTime | None:
    """What ``TBLPROPERTIES ('fivm.event_time' = 'ts', ...)`` declares. FIVM101 for a column that is not there."""
    given = _properties(create)
    column = given.get("fivm.event_time")
    if column is None:
        return None
    if column.lower() not in {c.name.lower() for c in columns}:
        known = expected_one_of([c.name for c in columns])
        raise FivmError(
            "FIVM101", f"fivm.event_time: there is no column {column} ({known})", remedy="correct the name"
        )
    return EventTime(column, given.get("fivm.part"), given.get("fivm.lateness"))


def _retention(create: exp.Create, event_time: EventTime | None) -> Retention | None:
    """What ``'fivm.retention' = '90 days'`` declares beside an event time: parts are days unless it says otherwise."""
    age = _properties(create).get("fivm.retention")
    if age is None or event_time is None:
        return None
    return Retention(event_time.column, Length.of(event_time.part or "day"), duration(age))


def _properties(create: exp.Create) -> dict[str, str]:
    properties = create.args["properties"].expressions if create.args.get("properties") else []
    return {p.name.lower(): p.args["value"].name for p in properties if type(p) is exp.Property}


def _foreign_key(columns: list[str], reference: exp.Reference) -> ForeignKey:
    target = reference.this
    if not isinstance(target, exp.Schema):
        raise FivmError("FIVM101", f"{reference.sql(dialect='spark')} names no columns", remedy=_REMEDY)
    name = canonical(relation_name(*(part.name for part in target.this.parts)))
    return ForeignKey(
        tuple(c.lower() for c in columns), name, tuple(c.name.lower() for c in target.expressions)
    )
