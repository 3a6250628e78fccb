"""A struct with a NULL among its fields comes first in Spark and last in DuckDB.

A struct that is written where it is compared, as completed texts have it, is compared by another one, which says of
each field first whether it is there. So is what is cast to the type of a struct. Of another struct in a column the
fields are not known: :mod:`duckdb_meaning` refuses it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sqlglot import exp

from fivm_dbt.functions.lookup import arguments
from fivm_dbt.ir.calls import function_name
from fivm_dbt.ir.scalar import grouped

MACROS = (
    "CREATE MACRO spark_first_fields(l) AS list_transform(l, lambda e: "
    "regexp_extract(CAST(e AS VARCHAR), '^.[^:]*: ([^,}]*)', 1))",
    "CREATE MACRO spark_told_apart(l) AS list_unique(l) = len(l) AND NOT list_contains(l, 'NULL')",
    "CREATE MACRO spark_sorted(l, direction, nulls) AS CASE WHEN typeof(l) LIKE 'STRUCT(%' "
    "AND regexp_matches(CAST(l AS VARCHAR), ': NULL[,}]') AND NOT spark_told_apart(spark_first_fields(l)) "
    "THEN error('NULL in a struct that is sorted') ELSE list_sort(l, direction, nulls) END",
)
"""What is in a list that is sorted is seen when it is: a NULL in a struct stops the statement, unless the first
fields alone tell the order."""

_WRITTEN = (exp.Struct, exp.Tuple)


def order_key(value: exp.Expr) -> exp.Expr | None:
    """What DuckDB orders as Spark orders ``value``; None where no struct is written.

    >>> import sqlglot
    >>> written = sqlglot.parse_one("if(a is null, null, struct(a, b))", dialect="spark")
    >>> print(order_key(written).sql("duckdb"))
    CASE WHEN a IS NULL THEN NULL ELSE {'f1': NOT a IS NULL, 'f2': a, 'f3': NOT b IS NULL, 'f4': b} END
    >>> print(order_key(sqlglot.parse_one("cast(v as struct<a: int>)", dialect="spark")).sql("duckdb"))
    CASE WHEN v IS NULL THEN NULL ELSE {'f1': NOT (v.a) IS NULL, 'f2': v.a} END
    """
    inner = value.unnest()
    if isinstance(inner, exp.Cast) and inner.to.is_type(exp.DType.STRUCT):
        return order_key(
            exp.case()
            .when(exp.Is(this=inner.this.copy(), expression=exp.Null()), exp.Null())
            .else_(_taken_apart(inner))
        )
    if isinstance(inner, _WRITTEN):
        parts = [part for field in _fields(inner) for part in _ordered(field)]
        names = (exp.to_identifier(f"f{number}") for number, _ in enumerate(parts, start=1))
        return exp.Struct(
            expressions=[exp.PropertyEQ(this=n, expression=p) for n, p in zip(names, parts, strict=True)]
        )
    if isinstance(inner, (exp.If, exp.Case)):
        results = _results(inner)
        keys = [r.copy() if isinstance(r, exp.Null) else order_key(r) for r in results]
        if any(key is None for key in keys) or all(isinstance(r, exp.Null) for r in results):
            return None
        copy = inner.copy()
        for result, key in zip(_results(copy), keys, strict=True):
            result.replace(key)
        return copy
    return None


def _taken_apart(value: exp.Cast) -> exp.Struct:
    """The fields of a struct of a known type, as a struct that is written."""
    fields = []
    for field in value.to.expressions:
        taken = exp.Dot(this=value.this.copy(), expression=field.this.copy())
        kind = field.args["kind"]
        part = exp.cast(taken, kind.copy()) if kind.is_type(exp.DType.STRUCT) else taken
        fields.append(exp.PropertyEQ(this=field.this.copy(), expression=part))
    return exp.Struct(expressions=fields)


def ordered_values(value: exp.Expr) -> Iterator[exp.Expr]:
    """The values by which :func:`order_key` orders: ``value`` itself where it has no key."""
    inner = value.unnest()
    if order_key(inner) is None:
        yield value
    else:
        for part in _fields(inner) if isinstance(inner, _WRITTEN) else _results(inner):
            yield from ordered_values(part)


def named_struct_in_order(query: exp.Expr) -> exp.Expr | None:
    """What a text orders by that may be a struct under a name, whose fields are not known where it is compared.

    >>> import sqlglot
    >>> text = "select max(v) as m, max(k) as k from (select struct(a, b) as v, k from r) q"
    >>> print(named_struct_in_order(sqlglot.parse_one(text, dialect="spark")))
    v
    >>> text = "select max(n) as m from (select struct(a, b), k from r) as q(w, n)"
    >>> print(named_struct_in_order(sqlglot.parse_one(text, dialect="spark")))
    None
    """
    names = _names_of_structs(query)
    for value in _compared(query) if names else ():
        for part in ordered_values(value):
            column = part.unnest()
            if isinstance(column, exp.Column) and column.name.lower() in names:
                return column
    return None


def _names_of_structs(query: exp.Expr) -> set[str]:
    """Names that a text gives to structs, and to columns that have these."""
    if query.find(*_WRITTEN) is None:
        return set()
    given = [
        (alias.alias.lower(), alias.this)
        for alias in query.find_all(exp.Alias)
        if not isinstance(alias.parent, _WRITTEN)
    ]
    given += [pair for alias in query.find_all(exp.TableAlias) for pair in _renamed(alias)]
    found: set[str] = set()
    while True:
        more = {name for name, value in given if _may_be_struct(value, found)} - found
        if not more:
            return found
        found |= more


def _renamed(alias: exp.TableAlias) -> Iterator[tuple[str, exp.Expr]]:
    """The names in ``AS t(a, b)``, each with what it is given to: all of the source where the place does not tell."""
    names = [column.name.lower() for column in alias.args.get("columns") or []]
    source = alias.parent
    if not names or source is None:
        return
    for row in _rows(source):
        if len(row) == len(names) and not any(value.is_star for value in row):
            yield from zip(names, row, strict=True)
        else:
            yield from ((name, value) for name in names for value in row)


def _rows(source: exp.Expr) -> Iterator[list[exp.Expr]]:
    """What stands in the columns of a source: the lists of a query's branches, the rows of VALUES, arguments."""
    inner = source.this.unnest() if isinstance(source, (exp.Subquery, exp.CTE)) else source
    if isinstance(inner, exp.SetOperation):
        for side in (inner.left, inner.right):
            yield from _rows(side)
    elif isinstance(inner, exp.Select):
        yield [shown.unalias() for shown in inner.expressions]
    elif isinstance(inner, exp.Values):
        yield from (
            list(row.expressions) if isinstance(row, exp.Tuple) else [row] for row in inner.expressions
        )
    else:
        yield [inner]


def _may_be_struct(value: exp.Expr, names: set[str]) -> bool:
    while isinstance(value, (exp.Filter, exp.Window, exp.Paren, exp.Subquery)):
        value = value.this
    if isinstance(value, exp.Select):
        return any(_may_be_struct(shown.unalias(), names) for shown in value.expressions)
    if function_name(value) in ("max_by", "min_by"):
        return _may_be_struct(arguments(value)[0], names)
    if isinstance(value, exp.Column):
        return value.name.lower() in names
    is_truth = isinstance(value, (exp.Predicate, exp.Connector, exp.Not, exp.Dot))
    return not is_truth and value.find(*_WRITTEN) is not None


def _compared(query: exp.Expr) -> Iterator[exp.Expr]:
    for node in query.walk():
        if isinstance(node, exp.Ordered):
            clause = node.parent
            rows = clause.parent if clause is not None else None
            if not isinstance(rows, exp.Query) or rows.args.get("limit"):
                yield node.this
        elif isinstance(node, (exp.Max, exp.Min)):
            yield from node.this.expressions if isinstance(node.this, exp.Distinct) else [node.this]
        elif isinstance(node, LESS):
            yield from (node.left, node.right)
        elif function_name(node) in ("max_by", "min_by"):
            yield arguments(node)[1]
        elif isinstance(node, (exp.Between, exp.Greatest, exp.Least)):
            yield from node.iter_expressions()


def _fields(struct: exp.Expr) -> list[exp.Expr]:
    return [f.expression if isinstance(f, exp.PropertyEQ) else f.unalias() for f in struct.expressions]


def _results(node: exp.Expr) -> list[exp.Expr]:
    """What an expression with conditions may be; ``ELSE NULL`` need not be written."""
    if isinstance(node, exp.Case):
        found = [branch.args["true"] for branch in node.args["ifs"]] + [node.args.get("default")]
    else:
        found = [node.args["true"], node.args.get("false")]
    return [part for part in found if part is not None]


def _ordered(field: exp.Expr) -> list[exp.Expr]:
    key = order_key(field)
    is_there = exp.Not(this=exp.Is(this=grouped(field.copy()), expression=exp.Null()))
    return [is_there, field.copy() if key is None else key]


def by_key(node: exp.Expr) -> exp.Expr:
    """ORDER BY a struct, and the less of two structs."""
    if isinstance(node, exp.Ordered):
        key = order_key(node.this)
        if key is not None:
            node.set("this", key)
        return node
    keys = [order_key(side) for side in (node.this, node.expression)]
    if all(key is not None for key in keys):
        node.set("this", keys[0])
        node.set("expression", keys[1])
    return node


def extreme(call: exp.Expr, around: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """MIN and MAX of structs: the one with the least key, or the greatest."""
    value = call.this.expressions[0] if isinstance(call.this, exp.Distinct) else call.this
    key = order_key(value)
    if key is None:
        return around(call.copy())
    name = "ARG_MAX" if isinstance(call, exp.Max) else "ARG_MIN"
    return around(exp.Anonymous(this=name, expressions=[value.copy(), key]))


LESS = (exp.GT, exp.GTE, exp.LT, exp.LTE)

RULES: dict[type[exp.Expr], Callable[[exp.Expr], exp.Expr]] = dict.fromkeys((exp.Ordered, *LESS), by_key)
