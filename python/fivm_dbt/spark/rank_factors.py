"""Statements read some rows and some columns of a matrix, and write the factors that these tell of.

Each row of a matrix is a sum of few basis rows, with whole coefficients, and its entries in few columns tell which.
Each basis row is a sum of some of the matrix's rows. So both factors are the entries of some columns, or some rows,
times a small matrix of fractions (:mod:`fivm_dbt.refresh.lattice`):

    ``C[i, t] = Σ_s M[i, columns_s] · left[s, t]``        ``V[t, j] = Σ_s M[rows_s, j] · right[s, t]``

How large C and V are is known before. Their numbers are whole, so that they are computed modulo two primes, in which a
fraction is a whole number too: nothing is divided or rounded, and no number on the way leaves BIGINT.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from typing import Protocol

from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import BIGINT
from fivm_dbt.ir.scalar import as_type, column_ast, grouped, identifier
from fivm_dbt.naming import PREFIX
from fivm_dbt.spark.factors import Matrix, same_keys
from fivm_dbt.spark.pieces import table, union_all
from fivm_dbt.spark.rows import query_of_rows

PRIMES = (2**31 - 1, 2**31 - 19)
"""Products of two numbers below them, and so their own, are below 2⁶²; a half of that is more than 10¹⁸."""

DIGITS = 18
"""Decimals are read and written as whole numbers of so many digits at most."""

_NUMBER, _SIZE = f"{PREFIX}number", f"{PREFIX}size"
_STEP = 48271
"""Numbers that are counted up become numbers that look like thrown ones (Park and Miller's generator)."""


class Fractions(Protocol):
    """A small matrix over one denominator."""

    @property
    def numerators(self) -> Sequence[Sequence[int]]: ...

    @property
    def denominator(self) -> int: ...


@dataclass(frozen=True)
class Combination:
    """A factor's payload column: for each term the sum of what was ``read``, each times ``weights[pick, term]``."""

    name: str
    read: SparkType
    written: SparkType
    weights: Fractions

    def residues(self, prime: int) -> list[list[int]]:
        """The weights as whole numbers modulo a prime that does not divide the denominator."""
        inverse = pow(self.weights.denominator, -1, prime)
        return [[value * inverse % prime for value in row] for row in self.weights.numerators]


def numbered_query(
    source: exp.Query, keys: Sequence[str], most: int | None = None, after: int = 0
) -> exp.Select:
    """The different keys of rows with numbers, as if thrown like dice and always the same; so many of them."""
    columns = [column_ast("", name) for name in keys]
    distinct = exp.select(*columns).distinct().from_(source.copy().subquery("delta")).subquery("keys")
    hashed = exp.Anonymous(this="XXHASH64", expressions=[c.copy() for c in columns])
    order = [exp.Ordered(this=by, nulls_first=True) for by in (hashed, *(c.copy() for c in columns))]
    window = exp.Window(this=exp.RowNumber(), order=exp.Order(expressions=order))
    number = exp.Add(this=_literal(after), expression=window)
    query = exp.select(*(c.copy() for c in columns), exp.alias_(as_type(number, BIGINT.text), _NUMBER)).from_(
        distinct
    )
    if most is None:
        return query
    first = exp.LTE(this=exp.column(_NUMBER), expression=_literal(after + most))
    return exp.select("*").from_(query.subquery("numbered")).where(first)


def more_rows_query(
    sample: str,
    picked: str,
    keys: Sequence[str],
    strangers: Sequence[Sequence[int]],
    *,
    most: int,
    after: int,
) -> exp.Query:
    """A sample, and rows that have some ``checks`` of a component: what earlier ones do not add up to."""
    among = [
        exp.In(this=exp.column(_check(component)), expressions=[_literal(n) for n in checks])
        for component, checks in enumerate(strangers)
        if checks
    ]
    more = numbered_query(exp.select("*").from_(table(picked)).where(exp.or_(*among)), keys, most, after)
    names = [*keys, _NUMBER]
    one, other = (
        exp.select(*(column_ast("", name) for name in names)).from_(source)
        for source in (table(sample), more.subquery("strangers"))
    )
    return union_all([one, other])


def sample_query(matrix: Matrix, rows: str, columns: str, most: int) -> exp.Select:
    """The entries of the rows that have numbers, each with the number of its row and of its column, so many at most."""
    sides = ((rows, "of_row", matrix.left), (columns, "of_column", matrix.right))
    numbers = [exp.alias_(exp.column(_NUMBER, table=alias), f"number_{alias}") for _, alias, _ in sides]
    values = [column_ast("delta", name) for name, _ in matrix.payload]
    query = exp.select(*numbers, *values).from_(matrix.rows("delta"))
    for name, alias, keys in sides:
        query = query.join(table(name).as_(alias), on=same_keys("delta", alias, keys), join_type="inner")
    return query.limit(most)


def picked_query(
    matrix: Matrix, keys: Sequence[str], others: Sequence[str], numbers: str, picks: Sequence[Sequence[int]]
) -> exp.Select:
    """By key the entries, per component, where the ``others`` have some of their ``numbers``; 0 where there is none."""
    among = sorted({number for picked in picks for number in picked})
    is_picked = exp.In(this=_other_number(), expressions=[_literal(n) for n in among])
    return _by_key(matrix, keys, others, numbers, _entries(matrix, picks)).where(is_picked)


def checked_query(
    matrix: Matrix, keys: Sequence[str], others: Sequence[str], numbers: str, picks: Sequence[Sequence[int]]
) -> exp.Select:
    """The same of all keys, with a check of all entries per component: ``Σ_j M[i, j] · multiplier(j) mod p``.

    What other rows add up to has the sum of their checks; another row has it with a chance of one to two billions
    (Freivalds, Probabilistic machines can use less running time, 1977).
    """
    prime = PRIMES[0]
    product = _rest(exp.Mul(this=_other_number(), expression=_literal(_STEP)), prime)
    multiplier = _rest(exp.Mul(this=grouped(product), expression=grouped(product.copy())), prime)
    checks = []
    for component, (name, type_) in enumerate(matrix.payload):
        value = _rest(_read(column_ast("delta", name), type_), prime)
        checked = _rest(exp.Mul(this=grouped(value), expression=grouped(multiplier.copy())), prime)
        checks.append(exp.alias_(exp.Sum(this=checked), _check(component)))
    return _by_key(matrix, keys, others, numbers, [*_entries(matrix, picks), *checks])


def multiplier(number: int) -> int:
    """What the entries with a number are multiplied by in a check."""
    return pow(number * _STEP, 2, PRIMES[0])


def _by_key(
    matrix: Matrix, keys: Sequence[str], others: Sequence[str], numbers: str, values: Sequence[exp.Expr]
) -> exp.Select:
    own = [column_ast("delta", name) for name in keys]
    query = exp.select(*own, *values).from_(matrix.rows("delta"))
    query = query.join(
        table(numbers).as_("others"), on=same_keys("delta", "others", others), join_type="inner"
    )
    return query.group_by(*(c.copy() for c in own))


def _entries(matrix: Matrix, picks: Sequence[Sequence[int]]) -> list[exp.Expr]:
    found = []
    for component, ((name, type_), picked) in enumerate(zip(matrix.payload, picks, strict=True)):
        for place, number in enumerate(picked):
            is_there = exp.EQ(this=_other_number(), expression=_literal(number))
            entry = exp.Case(
                ifs=[exp.If(this=is_there, true=column_ast("delta", name))],
                default=as_type(_literal(0), type_.text),
            )
            found.append(exp.alias_(exp.Sum(this=entry), _pick(component, place)))
    return found


def vectors_query(picked: str, picks: Sequence[Sequence[int]], most: int) -> exp.Select:
    """What was picked of keys, their checks, and how many keys have it; so many different rows at most."""
    columns = []
    for component, of in enumerate(picks):
        columns += [exp.column(_pick(component, place)) for place in range(len(of))]
        columns.append(exp.column(_check(component)))
    count = exp.alias_(exp.Count(this=exp.Star()), _SIZE)
    query = exp.select(*columns, count).from_(table(picked)).group_by(*(c.copy() for c in columns))
    return query.limit(most)


def combined_query(
    picked: str, keys: Sequence[str], term: str, terms: int, columns: Sequence[Combination]
) -> exp.Select:
    """A factor: by term and key the sums of what was picked, times the weights of the term."""
    values = []
    for component, column in enumerate(columns):
        values += [
            exp.alias_(_weighted(component, column, prime, which), _residue(component, which))
            for which, prime in enumerate(PRIMES)
        ]
    own = [column_ast("picked", name) for name in keys]
    weights = _weights(term, terms, columns).subquery("weights")
    inner = exp.select(exp.column(term, table="weights"), *own, *values)
    inner = inner.from_(table(picked).as_("picked")).join(weights, join_type="cross")
    whole = exp.select(
        exp.column(term),
        *(column_ast("", name) for name in keys),
        *(exp.alias_(_whole(n), identifier(column.name)) for n, column in enumerate(columns)),
    ).from_(inner.subquery("residues"))
    shown = [exp.alias_(_written(column), identifier(column.name)) for column in columns]
    moved = [
        exp.NEQ(this=column_ast("", column.name), expression=exp.Literal.number(0)) for column in columns
    ]
    query = exp.select(exp.column(term), *(column_ast("", name) for name in keys), *shown)
    return query.from_(whole.subquery("terms_of_keys")).where(exp.or_(*moved))


def _weights(term: str, terms: int, columns: Sequence[Combination]) -> exp.Select:
    """The weights modulo each prime, a row for each term."""
    names = [term]
    rows: list[list[object]] = [[n + 1] for n in range(terms)]
    for component, column in enumerate(columns):
        for which, prime in enumerate(PRIMES):
            for place, weights in enumerate(column.residues(prime)):
                names.append(_weight(component, place, which))
                for row, weight in zip(rows, (*weights, *[0] * (terms - len(weights))), strict=True):
                    row.append(weight)
    return query_of_rows(dict.fromkeys(names, BIGINT.text), [tuple(row) for row in rows])


def _weighted(component: int, column: Combination, prime: int, which: int) -> exp.Expr:
    """``Σ_s pick_s · weight_s`` modulo a prime, each product by itself: eight of them are below 2³⁴."""
    products = [
        _rest(
            exp.Mul(
                this=grouped(
                    _rest(_read(exp.column(_pick(component, place), table="picked"), column.read), prime)
                ),
                expression=exp.column(_weight(component, place, which), table="weights"),
            ),
            prime,
        )
        for place in range(len(column.weights.numerators))
    ]
    if not products:
        return as_type(_literal(0), BIGINT.text)
    return _centred(reduce(lambda left, right: exp.Add(this=left, expression=right), products), prime)


def _read(value: exp.Expr, type_: SparkType) -> exp.Expr:
    """A payload in units of its last digit, as a whole number; NULL for a decimal of too many digits."""
    if not type_.is_decimal:
        return value
    # One digit more than are read: DuckDB has all digits of a product if one factor may have more than 18.
    narrow = _tried(value, f"decimal({DIGITS + 1},{type_.scale})")
    shift = as_type(exp.Literal.number(10**type_.scale), f"decimal({type_.scale + 1},0)")
    return _tried(exp.Mul(this=narrow, expression=shift), BIGINT.text)


def _tried(value: exp.Expr, type_: str) -> exp.Expr:
    return exp.TryCast(this=value, to=exp.DataType.build(type_, dialect="spark"))


def _whole(component: int) -> exp.Expr:
    """The number of least size that has these residues modulo p and q: ``x + p · ((y − x) / p mod q)``."""
    p, q = PRIMES
    x, y = (exp.column(_residue(component, which)) for which in range(2))
    share = exp.Mul(this=grouped(_rest(exp.Sub(this=y, expression=x), q)), expression=_literal(pow(p, -1, q)))
    return exp.Add(
        this=x.copy(), expression=exp.Mul(this=_literal(p), expression=grouped(_centred(share, q)))
    )


def _written(column: Combination) -> exp.Expr:
    """A whole number as a value of the column."""
    value: exp.Expr = column_ast("", column.name)
    scale = column.written.scale if column.written.is_decimal else 0
    if scale:
        unit = Decimal(1).scaleb(-scale)
        last = as_type(exp.Literal.string(f"{unit:f}"), f"decimal({scale + 1},{scale})")
        value = exp.Mul(this=as_type(value, f"decimal({DIGITS + 1},0)"), expression=last)
    return as_type(value, column.written.text)


def _centred(value: exp.Expr, prime: int) -> exp.Expr:
    """``value mod prime``, from minus a half of it to a half.

    >>> _centred(exp.column("x"), 7).sql()
    '((x % 7) + 10) % 7 - 3'
    """
    half = prime // 2
    positive = exp.Add(this=grouped(_rest(value, prime)), expression=_literal(prime + half))
    return exp.Sub(this=_rest(positive, prime), expression=_literal(half))


def _rest(value: exp.Expr, prime: int) -> exp.Expr:
    return exp.Mod(this=grouped(value), expression=_literal(prime))


def _literal(number: int) -> exp.Expr:
    return exp.Literal.number(number)


def _pick(component: int, place: int) -> str:
    return f"{PREFIX}pick_{component + 1}_{place + 1}"


def _check(component: int) -> str:
    return f"{PREFIX}check_{component + 1}"


def _other_number() -> exp.Expr:
    return exp.column(_NUMBER, table="others")


def _weight(component: int, place: int, which: int) -> str:
    return f"{PREFIX}weight_{component + 1}_{place + 1}_{which + 1}"


def _residue(component: int, which: int) -> str:
    return f"{PREFIX}residue_{component + 1}_{which + 1}"
