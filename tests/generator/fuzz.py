"""Mutated SQL is nearly right, and must end in nothing but a plan or a FivmError.

Tokens are dropped, doubled, swapped and inserted, clauses and parts of trees of other texts are spliced in, names and
literals are changed, and queries are put where queries can stand. All of it follows from a seed.
"""

from __future__ import annotations

import random
import re
import signal
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import FrameType

import sqlglot
from sqlglot import exp

from fivm_dbt.catalog import Catalog, Column, Relation
from fivm_dbt.config import load_config
from fivm_dbt.errors import FivmError
from fivm_dbt.ir.dialect import SparkText
from fivm_dbt.naming import canonical
from fivm_dbt.plan.planner import plan_model
from fivm_dbt.plan.request import ModelRequest
from fivm_dbt.testing.scenario import Scenario

STRATEGIES = (*("auto", "first_order", "factorized", "recursive") * 3, "reevaluate")


_LONGEST = 6000
"""Characters of a text; queries put into each other grow without end."""


@dataclass(frozen=True)
class Source:
    """A text that means something, and what it reads."""

    sql: str
    catalog: Catalog
    settings: tuple[tuple[str, object], ...] = ()


@dataclass(frozen=True)
class Fuzzed:
    """A text that may mean nothing, and the strategy for which it is planned."""

    sql: str
    source: Source
    strategy: str


@dataclass(frozen=True)
class Ended:
    """How planning a text ended: with ``plan``, with the code of an error, or with the crash in ``trace``."""

    how: str
    trace: str = ""

    @property
    def is_crash(self) -> bool:
        return bool(self.trace)

    @property
    def where(self) -> str:
        """What kind of crash it is: the error, and the place that it comes from."""
        return f"{self.how} {self.trace.rpartition(' at ')[2].partition(' < ')[0]}"


def sources(scenarios: Sequence[Scenario]) -> tuple[Source, ...]:
    """The texts of fivm models, each once, with the tables of its scenario, and those of the others behind them."""
    everywhere: dict[str, Relation] = {}
    for scenario in scenarios:
        everywhere = {**_tables(scenario), **everywhere}
    found: dict[str, Source] = {}
    for scenario in scenarios:
        catalog = Catalog.of({**everywhere, **_tables(scenario)}.values())
        for model in scenario.models:
            if model.materialized != "viewdf":
                settings = tuple((k, v) for k, v in model.config.items() if k != "fivm_strategy")
                found.setdefault(model.sql, Source(model.sql, catalog, settings))
    return tuple(found.values())


def _tables(scenario: Scenario) -> dict[str, Relation]:
    return {
        name: Relation(canonical(name), tuple(Column.of(column, type_) for column, type_ in columns))
        for name, columns in scenario.tables.items()
    }


def fuzzed(seed: int, given: Sequence[Source]) -> Iterator[Fuzzed]:
    """Texts without end, no two of which are equal."""
    rng = random.Random(seed)
    seen: set[str] = {source.sql for source in given}
    while True:
        source = rng.choice(given)
        text = source.sql
        for _ in range(rng.choice((1, 1, 1, 1, 2, 2, 3))):
            text = rng.choice(_MUTATIONS)(rng, text, given)
        if text not in seen and len(text) <= _LONGEST:
            seen.add(text)
            yield Fuzzed(text, source, rng.choice(STRATEGIES))


def deep(n: int) -> tuple[Fuzzed, ...]:
    """Texts that are right, and longer or nested deeper than anybody writes them: ``n`` times."""
    catalog = Catalog.of([Relation("main.r", (Column.of("a", "int"), Column.of("b", "int")))])
    source = Source("select a from r", catalog)
    texts = (
        f"select {'(' * n}a{')' * n} as a from r",
        f"select {'abs(' * n}a{')' * n} as a from r",
        f"select a from {'(select a from ' * n}r{')' * n}",
        f"select {' + '.join('a' * n)} as a from r",
        f"select a from r where {' and '.join(f'a <> {i}' for i in range(n))}",
        f"select a from r where {' or '.join(f'a = {i}' for i in range(n))}",
        f"select a from r where a in ({', '.join(map(str, range(n)))})",
        f"select {', '.join(f'a + {i} as a{i}' for i in range(n))} from r",
        " union all ".join(["select a from r"] * n),
        f"select case {' '.join(f'when a = {i} then {i}' for i in range(n))} end as c from r",
        f"select {'not ' * n}(a = 1) as a from r",
        f"select {'- ' * n}a as a from r",
    )
    return tuple(Fuzzed(text, source, "auto") for text in texts)


def planned(text: Fuzzed, seconds: float = 10.0) -> Ended:
    """How planning a text ends. A text that takes longer than ``seconds`` is a crash too."""
    settings = {**dict(text.source.settings), "fivm_strategy": text.strategy}
    try:
        with _limit(seconds):
            request = ModelRequest("main.fuzzed", text.sql, text.source.catalog, load_config(settings))
            plan_model(request)
    except FivmError as error:
        str(error)
        if error.code.fault == "fivm":
            return Ended(error.code.number, _trace(error))
        return Ended(error.code.number)
    except Exception as error:
        return Ended(type(error).__name__, _trace(error))
    return Ended("plan")


def _trace(error: Exception) -> str:
    """The end of a traceback: where it comes from, and what it says."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if "fivm_dbt" in f.filename][-4:]
    places = " < ".join(f"{f.filename.split('fivm_dbt/')[-1]}:{f.lineno} {f.name}" for f in reversed(own))
    return f"{type(error).__name__}: {str(error)[:200]} at {places}"


class _limit:
    """A time limit by the alarm of the process; tests run in its main thread."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __enter__(self) -> None:
        def stop(number: int, frame: FrameType | None) -> None:
            raise TimeoutError(f"no plan after {self.seconds} seconds")

        self._before = signal.signal(signal.SIGALRM, stop)
        signal.setitimer(signal.ITIMER_REAL, self.seconds)

    def __exit__(self, *error: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self._before)


# Mutations

_TOKEN = re.compile(
    r"\s+|--[^\n]*|/\*.*?\*/|'(?:[^'\\]|\\.|'')*'|`[^`]*`|\"[^\"]*\"|\w+|<=>|<=|>=|<>|!=|->|\|\||.", re.S
)

_KEYWORDS = (
    "select from where group by having order by limit offset qualify union all union except intersect minus distinct "
    "join left join full join cross join left semi join left anti join natural join lateral on using as with and or "
    "not in exists is null between like case when then else end over partition by rows between unbounded preceding and "
    "current row filter within group ignore nulls cast interval date timestamp desc nulls last grouping sets rollup "
    "cube pivot unpivot lateral view outer explode window match_recognize recursive values any some tablesample "
    "count sum max min avg first last row_number array struct map true false * , ( ) . [ ] = <> < :: => -> || - + ' ; ?"
)
_WORDS = (
    *_KEYWORDS.split(),
    "group by", "order by", "partition by", "left join", "union all", "is null", "is not null", "not in",
    "within group (order by x)", "filter (where x > 1)", "over ()", "over (order by x)", "count(*)", "count()", "()",
    "(select 1)", "(select max(x) from r)", "exists (select 1 from s)", "limit 1", "having count(*) > 1", "as (a, b)",
    "interval 1 day", "date '2024-01-31'", "lateral (select 1 as one)", "rows 1 preceding", "grouping sets (())",
    "with c as (select 1)", "values (1)", "[0]", "cast(x as int)", "distinct on (x)", "current_date()", "x.y.z",
)  # fmt: skip
_LITERALS = (
    "0", "1", "-1", "NULL", "1.5", "1e3", "9223372036854775808", "''", "'a'", "'2024-02-30'", "true", "0.1D", "1L",
    "interval 1 day", "interval '1-1' year to month", "array()", "99999999999999999999999999999999999999999", "'%'",
)  # fmt: skip
_CLAUSE = re.compile(
    r"\b(select|from|where|group\s+by|having|qualify|order\s+by|limit|offset|left\s+join|join|union|except|intersect|"
    r"lateral\s+view|window|with|pivot|match_recognize)\b",
    re.I,
)
_AROUND = (
    "select * from ({0}) q",
    "select * from ({0}) q, lateral (select q.*) l",
    "with c as ({0}) select * from c union all select * from c",
    "select 1 as one from ({0}) q where exists ({0})",
    "select ({0}) as v",
    "select * from ({0}) a natural join ({0}) b",
    "({0}) union ({0})",
    "select 1 in ({0}) as v",
    "select count(*) as n, max(({0})) as m from ({0}) q",
    "{0} order by 1 limit 2",
    "select * from ({0}) q where 1 not in ({0})",
)

Mutation = Callable[[random.Random, str, Sequence[Source]], str]


def _tokens(text: str) -> list[str]:
    return _TOKEN.findall(text)


def _at(rng: random.Random, tokens: list[str], wanted: Callable[[str], object] = str.strip) -> int | None:
    places = [n for n, token in enumerate(tokens) if wanted(token)]
    return rng.choice(places) if places else None


def _edited(change: Callable[[random.Random, list[str], int, Sequence[Source]], None]) -> Mutation:
    """A mutation of the tokens at one place."""

    def mutate(rng: random.Random, text: str, given: Sequence[Source]) -> str:
        tokens = _tokens(text)
        place = _at(rng, tokens)
        if place is not None:
            change(rng, tokens, place, given)
        return "".join(tokens)

    return mutate


def _drop(rng: random.Random, tokens: list[str], place: int, given: Sequence[Source]) -> None:
    del tokens[place : place + rng.choice((1, 1, 1, 3, 6))]


def _double(rng: random.Random, tokens: list[str], place: int, given: Sequence[Source]) -> None:
    tokens[place:place] = [*tokens[place : place + rng.choice((1, 1, 3, 8))], " "]


def _swap(rng: random.Random, tokens: list[str], place: int, given: Sequence[Source]) -> None:
    other = _at(rng, tokens)
    if other is not None:
        tokens[place], tokens[other] = tokens[other], tokens[place]


def _insert(rng: random.Random, tokens: list[str], place: int, given: Sequence[Source]) -> None:
    tokens[place:place] = [" ", rng.choice(_WORDS), " "]


def _replace(rng: random.Random, tokens: list[str], place: int, given: Sequence[Source]) -> None:
    tokens[place] = f" {rng.choice(_WORDS)} "


def _borrow(rng: random.Random, tokens: list[str], place: int, given: Sequence[Source]) -> None:
    """Tokens of another text in the place of one."""
    theirs = _tokens(rng.choice(given).sql)
    start = rng.randrange(len(theirs))
    tokens[place : place + 1] = [" ", *theirs[start : start + rng.choice((1, 3, 6, 12))], " "]


def _rename(rng: random.Random, text: str, given: Sequence[Source]) -> str:
    """A name in the place of another one."""
    tokens = _tokens(text)
    is_name = re.compile(r"[A-Za-z_]\w*\Z").match
    place, other = _at(rng, tokens, is_name), _at(rng, tokens, is_name)
    if place is not None and other is not None:
        tokens[place] = tokens[other]
    return "".join(tokens)


def _other_literal(rng: random.Random, text: str, given: Sequence[Source]) -> str:
    tokens = _tokens(text)
    place = _at(rng, tokens, re.compile(r"\d|'").match)
    if place is not None:
        tokens[place] = f" {rng.choice(_LITERALS)} "
    return "".join(tokens)


def _parenthesis(rng: random.Random, text: str, given: Sequence[Source]) -> str:
    tokens = _tokens(text)
    place = _at(rng, tokens, lambda t: t in "()")
    if place is not None and rng.random() < 0.5:
        del tokens[place]
    else:
        tokens.insert(_at(rng, tokens) or 0, rng.choice("()"))
    return "".join(tokens)


def _clauses(text: str) -> list[str]:
    places = [m.start() for m in _CLAUSE.finditer(text)]
    return [text[a:b] for a, b in pairwise([*places, len(text)])]


def _splice(rng: random.Random, text: str, given: Sequence[Source]) -> str:
    """A clause of another text behind or in the place of one of this."""
    ours, theirs = _clauses(text), _clauses(rng.choice(given).sql)
    if not ours or not theirs:
        return text
    place, new = rng.randrange(len(ours)), rng.choice(theirs)
    ours[place] = f"{new} " if rng.random() < 0.5 else f"{ours[place]} {new} "
    return text[: text.index(_clauses(text)[0])] + "".join(ours)


def _around(rng: random.Random, text: str, given: Sequence[Source]) -> str:
    """The query where a query can stand."""
    return rng.choice(_AROUND).format(text.rstrip().rstrip(";"))


def _inside(rng: random.Random, text: str, given: Sequence[Source]) -> str:
    """Another query where this one has a value or a relation."""
    tokens = _tokens(text)
    place = _at(rng, tokens, re.compile(r"\w").match)
    if place is not None:
        tokens[place] = f"({rng.choice(given).sql.rstrip().rstrip(';')})"
    return "".join(tokens)


def _cut(rng: random.Random, text: str, given: Sequence[Source]) -> str:
    return (
        text[: rng.randrange(len(text) + 1)] if rng.random() < 0.7 else text[rng.randrange(len(text) + 1) :]
    )


def _retree(rng: random.Random, text: str, given: Sequence[Source]) -> str:
    """A part of another query's tree in the place of one of the same kind in this one: most of it is SQL."""
    ours, theirs = _tree(text), _tree(rng.choice(given).sql)
    if ours is None or theirs is None:
        return text
    nodes = [n for n in ours.walk() if n.parent is not None and not isinstance(n, exp.Identifier)]
    place = rng.choice(nodes) if nodes else None
    if place is None:
        return text
    kind = _kind(place)
    alike = [n for n in theirs.walk() if _kind(n) is kind]
    if alike:
        place.replace(rng.choice(alike).copy())
    return _written(ours, text)


def _tree(text: str) -> exp.Expr | None:
    try:
        return sqlglot.parse_one(text, dialect=SparkText)
    except Exception:  # what sqlglot makes of it is asked where the text is planned
        return None


def _written(tree: exp.Expr, otherwise: str) -> str:
    try:
        return tree.sql(dialect="spark", comments=False)
    except Exception:  # of MATCH_RECOGNIZE sqlglot cannot write all that it reads
        return otherwise


def _kind(node: exp.Expr) -> type[exp.Expr]:
    """What can stand in the place of a node: a query, a relation, a value, or a clause of its own kind."""
    for kind in (exp.Query, exp.Table, exp.Condition):
        if isinstance(node, kind):
            return kind
    return type(node)


_MUTATIONS: tuple[Mutation, ...] = (
    *(_edited(change) for change in (_drop, _double, _swap, _insert, _replace, _borrow)),
    *(_rename, _rename, _rename, _other_literal, _other_literal, _parenthesis, _cut),
    *(_splice, _splice, _around, _around, _around, _inside, _inside),
    *(_retree,) * 20,
)
