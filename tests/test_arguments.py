"""Every argument of every node of sqlglot's trees is read, or refused: the table, and the parser behind it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from sqlglot import exp

from fivm_dbt.errors import FivmError
from fivm_dbt.ir.dialect import SparkText
from fivm_dbt.sql.arguments import Read
from fivm_dbt.sql.check_syntax import check_syntax
from fivm_dbt.sql.clause_order import check_clause_order
from fivm_dbt.sql.parse import parse
from fivm_dbt.sql.syntax import CALLS, FOREIGN, SYNTAX
from fivm_dbt.sql.written_back import check_written_back

KNOWN = Path(__file__).parent / "fixtures" / "sqlglot_arguments.txt"

_NO_QUERY = (exp.Property, exp.ColumnConstraintKind, exp.DDL, exp.DML)


def _classes() -> list[type[exp.Expr]]:
    found = (getattr(exp, name) for name in dir(exp))
    classes = {c for c in found if isinstance(c, type) and issubclass(c, exp.Expr) and c is not exp.Expr}
    queries = {c for c in classes if c in SYNTAX or not issubclass(c, _NO_QUERY)}
    return sorted(queries, key=lambda c: c.__name__)


def _is_made(kind: type[exp.Expr]) -> bool:
    """Whether there are nodes of a class itself: the common parts of classes cannot be made."""
    try:
        kind()
    except TypeError:
        return False
    return True


def test_the_installed_sqlglot_has_no_argument_that_nobody_has_classified() -> None:
    """``FIVM_UPDATE=1`` writes the list anew: look at the difference, ask Spark, and put it into its table in sql/."""
    text = "".join(
        f"{c.__name__}: {' '.join(getattr(c, 'arg_types', {}))}".rstrip() + "\n" for c in _classes()
    )
    words = "".join(f"{name}: {' '.join(_words(name))}".rstrip() + "\n" for name in PARSERS)
    if os.environ.get("FIVM_UPDATE"):
        KNOWN.write_text(text + words, encoding="utf-8")
    assert text + words == KNOWN.read_text(encoding="utf-8")


PARSERS = (
    "COLUMN_OPERATORS FACTOR FUNCTION_PARSERS JOIN_KINDS JOIN_METHODS NO_PAREN_FUNCTIONS NO_PAREN_FUNCTION_PARSERS "
    "PIPE_SYNTAX_TRANSFORM_PARSERS PRIMARY_PARSERS QUERY_MODIFIER_PARSERS RANGE_PARSERS TERM UNARY_PARSERS "
    "WINDOW_EXCLUDE_OPTIONS"
).split()
"""The tables of sqlglot's parser in which a new version puts new words."""


def _words(table: str) -> list[str]:
    return sorted(str(getattr(key, "name", key)) for key in getattr(SparkText.Parser, table))


def test_the_table_has_every_argument_of_the_nodes_that_are_read() -> None:
    wrong = {
        kind.__name__: sorted(set(kind.arg_types) ^ set(node.arguments))
        for kind, node in SYNTAX.items()
        if set(kind.arg_types) != set(node.arguments)
    }
    assert wrong == {}


def test_operators_have_no_argument_beside_their_operands() -> None:
    """Their entries of the table are made from their classes, so that a new argument would be read by default."""
    plain = {"this", "expression", "safe", "typed", "negate", "padside", "requires_int128"}
    assert [k.__name__ for k in SYNTAX if issubclass(k, exp.Binary) and not set(k.arg_types) <= plain] == []


def test_refused_arguments_of_calls_are_arguments_of_them() -> None:
    assert [k.__name__ for k, rules in CALLS.items() if not set(rules) <= set(k.arg_types)] == []
    assert not set(FOREIGN) & set(SYNTAX)


@pytest.mark.parametrize(
    "kind",
    [c for c in _classes() if not issubclass(c, exp.Func) and c not in SYNTAX and _is_made(c)],
    ids=lambda c: c.__name__,
)
def test_a_node_that_is_in_no_table_is_refused(kind: type[exp.Expr]) -> None:
    query = exp.Select(expressions=[kind()])
    with pytest.raises(FivmError, match=r"FIVM105"):
        check_syntax(query)


@pytest.mark.parametrize(
    ("kind", "key"),
    [
        (k, key)
        for k, node in SYNTAX.items()
        for key, rule in node.arguments.items()
        if not isinstance(rule, Read)
    ],
    ids=lambda v: v if isinstance(v, str) else v.__name__,
)
def test_a_refused_argument_is_refused(kind: type[exp.Expr], key: str) -> None:
    node = kind(**{key: exp.Boolean(this=True)})
    under = SYNTAX[kind].under
    if under is not None:
        first = under[0] if isinstance(under, tuple) else under
        node = first(this=node)
        if isinstance(node, exp.Func):
            node.set("this", node.this)
    with pytest.raises(FivmError, match=r"FIVM10[56]"):
        check_syntax(exp.Select(expressions=[node]))


def _checked(sql: str) -> None:
    query = parse(sql)
    check_syntax(query)
    check_clause_order(sql)
    check_written_back(query, sql)


@pytest.mark.parametrize(
    "sql",
    [
        "select id from o where k <=> 1 and not (k == 2) and k != 3 and ! (k = 4)",
        "select id from o where (k = 1) is unknown or (k = 1) is not true",
        "select 1L a, 1S b, 1Y c, 1.0D d, 1BD e, 1.5F f, .5 g, 5. h, 1e3 i from o",
        "select +k a, - k b, - - k c, -1 d, interval -1 day e from o",
        "select k << 1 a, k >> 2 b, k & 1 c, k | 1 d, ~k e from o",
        "select trim(both 'x' from s) a, trim(trailing from s) b, substring(s from 1 for 2) c from u",
        "select position('a' in s) a, overlay(s placing 'x' from 1 for 2) b, extract(year from d) c from u",
        "select interval '1 day' a, interval 1 day 2 hours b, interval '1-2' year to month c from o",
        "select cast(k as integer) a, cast(k as numeric(5, 1)) b, k::varchar(3) c, cast(k as long) d from o",
        "select struct(k, id as x) a, named_struct('k', k).k b, array(k)[0] c, map('a', k)['a'] d from o",
        "select id from u where s like any ('a%', 'b%') or s not ilike 'A%' or s like 'A/%' escape '/'",
        "select id, sum(k) filter (where k > 1) over (order by id rows 1 preceding) s from o",
        "select id, first_value(k, true) over (order by id) a, lag(k) ignore nulls over (order by id) b from o",
        "select id from o order by id desc nulls last, k asc nulls first limit 1 offset 2",
        "select id from o union distinct select k from o minus select 1 order by id limit 2",
        "select id from o distribute by id sort by k",
        "select id, sum(k) over (distribute by k sort by id) s from o",
        "select id, row_number() over (w) n from o window w as (order by id) order by id limit 2",
        "select id, row_number() over (order by id) n from o where k = 1 qualify n = 1 and id > 0 order by id limit 1",
        "with c as (select id from o) select id from (with d as (select id from c) select id from d) e",
        "select current_date a, current_timestamp() b, current_user() c from o where d > current_date()",
        "select * except (k) from o natural left join s cross join (o as p join s as q using (k))",
        "from o |> where id = 1 |> extend id + 1 as z |> aggregate sum(z) as s group by k |> order by s |> limit 1",
        "select a.limit as l, a.offset from o as a order by a.limit limit 1",
        "select /*+ broadcast(o) */ all id from o; -- it ends here",
        "select g, sum(x) s from r group by rollup (g), h, cube (i) having sum(x) > 1",
        "select * from o pivot (sum(id) as s, max(id) as m for (k, j) in ((1, 2) as a, (3, 4) as b))",
        "select * from o unpivot include nulls (v for n in (id as a, k))",
        "select transform(filter(a, x -> x > 1), (x, i) -> x + i) t, exists(a, x -> x is null) e from u",
        "select o.id, t.y from o lateral view outer posexplode(array(1, 2)) t as p, y where y > 1",
        "select date '2024-01-01' a, timestamp_ntz '2024-01-01 00:00:00' b, x'1F' c, r'a\\b' d, 'it''s' e from o",
        "select * from values 1, 2 as t (id)",
        "select percentile_cont(0.5) within group (order by k desc) filter (where id > 1) p from o",
        "select from_utc_timestamp(ts, 'UTC') a, get_json_object(s, '$.a[0].b') b, date_trunc('month', ts) c from u",
    ],
)
def test_text_that_spark_has_is_read(sql: str) -> None:
    _checked(sql)


def test_a_refusal_shows_the_words_that_would_be_dropped() -> None:
    with pytest.raises(FivmError) as caught:
        _checked("select ts at time zone 'UTC' as t from u")
    assert caught.value.span is not None and caught.value.sql is not None
    assert caught.value.sql[caught.value.span.start : caught.value.span.end] == "at time zone"
