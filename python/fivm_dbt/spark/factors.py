"""Statements look for a product in a staged delta, and write its factors (:mod:`fivm_dbt.refresh.factorise`).

A delta is a matrix: its rows by some keys (*left*), its columns by the others (*right*), a payload in each cell. Rows
that are multiples of each other are one product of a column and a row: a term of the sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import BIGINT, DOUBLE
from fivm_dbt.delta.products import FactorisedDelta, joined
from fivm_dbt.ir.factored import Product
from fivm_dbt.ir.reads import Read, Scan
from fivm_dbt.ir.scalar import Scalar, as_type, column_ast, identifier
from fivm_dbt.naming import PREFIX
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.plan.model.view import View
from fivm_dbt.rings.numbers import Numbers
from fivm_dbt.spark.pieces import is_any, table, union_all
from fivm_dbt.spark.reads import shown_columns
from fivm_dbt.spark.select import select_columns
from fivm_dbt.steps.binding import staged_input, staged_state

Query = exp.Query

_ENTRIES, _SIGNATURE, _FIRST = f"{PREFIX}entries", f"{PREFIX}signature", f"{PREFIX}first"
_SUM_OF_HASHES = SparkType.decimal(38, 0)


@dataclass(frozen=True)
class Matrix:
    """The rows of ``source`` as a matrix: ``left`` keys by ``right`` keys, ``payload`` in the cells."""

    source: exp.Query
    left: tuple[str, ...]
    right: tuple[str, ...]
    payload: tuple[tuple[str, SparkType], ...]

    def rows(self, alias: str) -> exp.Expr:
        """Its rows, in FROM."""
        return self.source.copy().subquery(alias, copy=False)


@dataclass(frozen=True)
class MatrixTerm:
    """A term of the sum: the rows with so many ``entries`` and this ``signature``, and what divides their pivots."""

    number: int
    entries: int
    signature: object
    divisors: tuple[object, ...]


def rows_of(name: str) -> exp.Query:
    """What is staged under a name."""
    return exp.select("*").from_(table(name))


def staged_rows(plan: Plan, view: View) -> exp.Query:
    """What is staged for a payload view, by the names under which others read it."""
    return exp.select(*shown_columns(view, [c.name for c in view.columns])).from_(
        table(staged_state(plan, view))
    )


def sizes_query(source: exp.Query, blocks: Sequence[Sequence[str]]) -> exp.Select:
    """How many rows there are, and how many different keys of each block."""
    counts = [exp.Count(this=exp.Distinct(expressions=[_struct(block, "")])) for block in blocks]
    named = [exp.alias_(c, f"keys_{n}") for n, c in enumerate(counts, start=1)]
    return exp.select(exp.alias_(exp.Count(this=exp.Star()), "cells"), *named).from_(source.subquery("delta"))


def profile_query(matrix: Matrix) -> exp.Select:
    """For each row of a matrix how many entries it has, its first one per component (the pivot), and a signature.

    Rows with the same ratios of entry to pivot have the same signature: a sum of hashes, so that two others may have
    it too. What comes of it is compared with the delta in the end.
    """
    pivots = [
        exp.alias_(
            exp.Filter(
                this=exp.ArgMin(this=column_ast("", name), expression=_struct(matrix.right, "")),
                expression=exp.Where(
                    this=exp.NEQ(this=column_ast("", name), expression=exp.Literal.number(0))
                ),
            ),
            _pivot(n),
        )
        for n, (name, _) in enumerate(matrix.payload)
    ]
    left = [column_ast("", name) for name in matrix.left]
    first = exp.select(*left, *pivots).from_(matrix.rows("delta")).group_by(*(c.copy() for c in left))
    ratios = [
        exp.Coalesce(
            this=exp.Div(
                this=_double(column_ast("delta", name)), expression=_double(column_ast("pivots", _pivot(n)))
            ),
            expressions=[_double(exp.Literal.number(0))],
        )
        for n, (name, _) in enumerate(matrix.payload)
    ]
    hashed = exp.Anonymous(
        this="XXHASH64", expressions=[*(column_ast("delta", r) for r in matrix.right), *ratios]
    )
    own = [column_ast("delta", name) for name in matrix.left]
    kept = [exp.Min(this=column_ast("pivots", _pivot(n))) for n in range(len(matrix.payload))]
    query = exp.select(
        *own,
        exp.alias_(exp.Count(this=exp.Star()), _ENTRIES),
        exp.alias_(exp.Sum(this=as_type(hashed, _SUM_OF_HASHES.text)), _SIGNATURE),
        *(exp.alias_(k, _pivot(n)) for n, k in enumerate(kept)),
    )
    query = query.from_(matrix.rows("delta")).join(
        first.subquery("pivots"), on=same_keys("delta", "pivots", matrix.left), join_type="inner"
    )
    return query.group_by(*(c.copy() for c in own))


def groups_query(profile: str, components: int) -> exp.Select:
    """How many rows of a profile have the same entries, signature and pivots."""
    columns = [
        exp.column(_ENTRIES),
        exp.column(_SIGNATURE),
        *(exp.column(_pivot(n)) for n in range(components)),
    ]
    count = exp.alias_(exp.Count(this=exp.Star()), "matrix_rows")
    return exp.select(*columns, count).from_(table(profile)).group_by(*(c.copy() for c in columns))


def left_query(matrix: Matrix, profile: str, terms: Sequence[MatrixTerm], term: str) -> exp.Select:
    """The columns: for each row of the matrix its term, and the number by which the term's row is multiplied."""
    values = [
        exp.alias_(
            _quotient(column_ast("profile", _pivot(n)), column_ast("terms", _divisor(n)), type_, BIGINT),
            identifier(name),
        )
        for n, (name, type_) in enumerate(matrix.payload)
    ]
    own = [column_ast("profile", name) for name in matrix.left]
    same = exp.and_(
        *(
            exp.EQ(this=exp.column(c, table="profile"), expression=exp.column(c, table="terms"))
            for c in (_ENTRIES, _SIGNATURE)
        )
    )
    query = exp.select(exp.column(term, table="terms"), *own, *values).from_(table(profile).as_("profile"))
    return query.join(_terms(matrix, terms, term).subquery("terms"), on=same, join_type="inner")


def right_query(matrix: Matrix, left: str, term: str) -> exp.Select:
    """The rows: of each term that of its first row in the matrix, divided by that one's number."""
    order = [exp.Ordered(this=column_ast("", name), nulls_first=True) for name in matrix.left]
    number = exp.Window(
        this=exp.RowNumber(), partition_by=[exp.column(term)], order=exp.Order(expressions=order)
    )
    ranked = exp.select("*", exp.alias_(number, _FIRST)).from_(table(left)).subquery("ranked")
    first = (
        exp.select("*").from_(ranked).where(exp.EQ(this=exp.column(_FIRST), expression=exp.Literal.number(1)))
    )
    values = [
        exp.alias_(
            _quotient(column_ast("delta", name), column_ast("first_row", name), type_, type_),
            identifier(name),
        )
        for name, type_ in matrix.payload
    ]
    own = [column_ast("delta", name) for name in matrix.right]
    query = exp.select(exp.column(term, table="first_row"), *own, *values).from_(matrix.rows("delta"))
    return query.join(
        first.subquery("first_row"), on=same_keys("delta", "first_row", matrix.left), join_type="inner"
    )


def differences_query(matrix: Matrix, right: str, term: str, terms: Sequence[int]) -> exp.Select:
    """What the rows of these terms are more than that of the first one, entry by entry."""
    keys = [column_ast("", name) for name in (term, *matrix.right)]
    own = exp.select(*keys, *(column_ast("", n) for n, _ in matrix.payload)).from_(table(right))
    own = own.where(_among(exp.column(term), terms))
    others = (
        exp.union(*(exp.select(exp.alias_(_number(n), "other")) for n in terms), distinct=False)
        if len(terms) > 1
        else exp.select(exp.alias_(_number(terms[0]), "other"))
    )
    less = exp.select(
        exp.alias_(exp.column("other", table="others"), term),
        *(column_ast("main", name) for name in matrix.right),
        *(exp.alias_(exp.Neg(this=column_ast("main", n)), identifier(n)) for n, _ in matrix.payload),
    )
    less = less.from_(table(right).as_("main")).join(others.subquery("others"), join_type="cross")
    less = less.where(exp.EQ(this=exp.column(term, table="main"), expression=exp.Literal.number(1)))
    sums = {name: exp.Sum(this=column_ast("", name)) for name, _ in matrix.payload}
    query = exp.select(
        *(k.copy() for k in keys), *(exp.alias_(s.copy(), identifier(n)) for n, s in sums.items())
    )
    query = query.from_(exp.union(own, less, distinct=False).subquery("compared"))
    return query.group_by(*(k.copy() for k in keys)).having(is_any(sums.values()))


def per_term(query: exp.Query, term: str) -> exp.Select:
    """How many rows of a query each term has."""
    count = exp.alias_(exp.Count(this=exp.Star()), "entries_of_term")
    return (
        exp.select(exp.column(term), count).from_(query.subquery("rows_of_terms")).group_by(exp.column(term))
    )


def corrected_left(matrix: Matrix, left: str, term: str, corrected: Sequence[int]) -> exp.Query:
    """The columns where the first term is taken for the rows of the ``corrected`` ones too."""
    names = [*matrix.left, *(n for n, _ in matrix.payload)]
    every = exp.select(exp.column(term), *(column_ast("", n) for n in names)).from_(table(left))
    if not corrected:
        return every
    more = exp.select(exp.alias_(_number(1), term), *(column_ast("", n) for n in names)).from_(table(left))
    return exp.union(every, more.where(_among(exp.column(term), corrected)), distinct=False)


def corrected_right(matrix: Matrix, right: str, term: str, corrected: Sequence[int]) -> exp.Query:
    """The rows where those of the ``corrected`` terms are what they are more than the first one."""
    names = [term, *matrix.right, *(n for n, _ in matrix.payload)]
    every = exp.select(*(column_ast("", n) for n in names)).from_(table(right))
    if not corrected:
        return every
    kept = every.where(exp.Not(this=_among(exp.column(term), corrected)))
    changed = differences_query(matrix, right, term, corrected)
    return exp.union(
        kept, exp.select(*(column_ast("", n) for n in names)).from_(changed.subquery("more")), distinct=False
    )


def rest_query(plan: Plan, view: View, delta: FactorisedDelta) -> exp.Select:
    """A key of which the product of the factors is not what was staged; no row where they are the same."""
    payload = delta.factors[-1].payload
    keys = [name for factor in delta.factors for name, _ in factor.keys]
    staged = staged_rows(plan, view).subquery("staged")
    own = exp.select(*(column_ast("", n) for n in (*keys, *(n for n, _ in payload)))).from_(staged)
    aliases = [f"factor_{n}" for n in range(1, len(delta.factors) + 1)]
    numbers = _numbers(view)
    columns = [
        exp.alias_(column_ast(alias, name), identifier(name))
        for alias, factor in zip(aliases, delta.factors, strict=True)
        for name, _ in factor.keys
    ]
    for name, _ in payload:
        factors = tuple(
            (Scalar.column(alias, name), dict(factor.payload)[name])
            for alias, factor in zip(aliases, delta.factors, strict=True)
        )
        value = numbers[name].sum_of((Product(-1, factors),), Scalar.number(1))
        columns.append(exp.alias_(value.ast(), identifier(name)))

    def staged_factor(scan: Read) -> exp.Expr:
        assert isinstance(scan, Scan)
        return table(staged_input(plan, scan.relation)).as_(scan.alias)

    product = select_columns(columns, joined(delta.factors, aliases), staged_factor)
    sums = {name: exp.Sum(this=column_ast("", name)) for name, _ in payload}
    group = [column_ast("", name) for name in keys]
    query = exp.select(exp.Literal.number(1)).from_(exp.union(own, product, distinct=False).subquery("both"))
    return query.group_by(*group).having(is_any(sums.values())).limit(1)


def _numbers(view: View) -> dict[str, Numbers]:
    """By shown payload column what it is added up in."""
    found = {}
    for name, value in view.rows or ():
        ((_, column),) = value.columns
        found[name] = view.state.numbers(column)
    return found


def _terms(matrix: Matrix, terms: Sequence[MatrixTerm], term: str) -> exp.Query:
    """The terms as rows."""
    rows = []
    for t in terms:
        values = [
            exp.alias_(as_type(exp.Literal.number(t.entries), BIGINT.text), _ENTRIES),
            exp.alias_(
                as_type(exp.Literal.string(str(t.signature)), _SUM_OF_HASHES.text),
                _SIGNATURE,
            ),
            exp.alias_(_number(t.number), term),
        ]
        for n, (divisor, (_, type_)) in enumerate(zip(t.divisors, matrix.payload, strict=True)):
            text = exp.Literal.string(str(divisor))
            values.append(exp.alias_(as_type(text, type_.text), _divisor(n)))
        rows.append(exp.select(*values))
    return union_all(rows)


def _quotient(value: exp.Expr, divisor: exp.Expr, type_: SparkType, to: SparkType) -> exp.Expr:
    """``value / divisor``, which is whole or of the same scale; 0 where there is nothing to divide, or by.

    Spark's quotient of decimals has six digits behind the point at least. Where it has no room it is 0 too, and what
    comes of it is no product of the delta.
    """
    if type_.is_decimal:
        scale = 0 if to == BIGINT else to.scale
        quotient = exp.SafeDivide(this=value, expression=divisor)
        rounded = exp.Round(this=quotient, decimals=exp.Literal.number(scale))
        whole: exp.Expr = exp.TryCast(this=rounded, to=exp.DataType.build(to.text, dialect="spark"))
    else:
        safe = exp.Nullif(this=divisor, expression=exp.Literal.number(0))
        whole = exp.IntDiv(this=value, expression=safe)
    return exp.Coalesce(this=whole, expressions=[as_type(exp.Literal.number(0), to.text)])


def same_keys(one: str, other: str, names: Sequence[str]) -> exp.Expr:
    """Two rows have the same keys, NULLs among them."""
    return exp.and_(
        *(exp.NullSafeEQ(this=column_ast(one, n), expression=column_ast(other, n)) for n in names)
    )


def _struct(names: Sequence[str], alias: str) -> exp.Expr:
    """The columns as one value, which is there also where they are NULL."""
    fields = [
        exp.PropertyEQ(this=exp.to_identifier(f"k{i}"), expression=column_ast(alias, n))
        for i, n in enumerate(names)
    ]
    return exp.Struct(expressions=fields)


def _among(column: exp.Expr, numbers: Sequence[int]) -> exp.Expr:
    return exp.In(this=column, expressions=[exp.Literal.number(n) for n in numbers])


def _number(value: int) -> exp.Expr:
    return as_type(exp.Literal.number(value), BIGINT.text)


def _double(value: exp.Expr) -> exp.Expr:
    return as_type(value, DOUBLE.text)


def _pivot(component: int) -> str:
    return f"{PREFIX}pivot_{component + 1}"


def _divisor(component: int) -> str:
    return f"{PREFIX}divisor_{component + 1}"
