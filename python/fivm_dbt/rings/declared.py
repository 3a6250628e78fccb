"""A ring that a project declares gives it an aggregate function, written as SQL over +, - and *.

A payload has components. That of a row is the product of what its arguments are lifted to, and that of a group is the
sum over its rows. A view tree multiplies and adds in any order. So the components have to be a commutative ring (F-IVM
article, section 3.1), and the laws are proved when the ring is loaded: both sides of each are polynomials in the
components, which are compared.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from importlib import import_module
from pathlib import Path
from typing import Any

import sqlglot
from pydantic import BaseModel, ConfigDict, ValidationError
from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import BIGINT
from fivm_dbt.errors import FivmError
from fivm_dbt.functions.lookup import named
from fivm_dbt.ir.dialect import SPARK_TEXT
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.rings.polynomial import Polynomial

_LEFT, _RIGHT, _ARGUMENT = "l", "r", "argument"
_MOST_DIGITS = 38
_DIGITS = {"bigint": 20, "int": 10}
"""Those of the decimals that Spark takes integers for. The indicator that an argument is known is an int."""

Value = Mapping[str, Polynomial]
"""A payload, by component."""


class DeclaredRing(BaseModel):
    """An aggregate ``function`` of some ``arguments``, each cast to its type, maintained in a ring.

    ``multiply`` has each component of a product, over those of its sides: ``"l.n * r.n"``. ``one`` is the payload that
    changes nothing in a product. ``lift`` is the payload of a row of which one argument is known. In both, components
    that are left out are zero. A row counts where all arguments are known. ``result`` is the value of the function, as
    any Spark SQL over the components of the sum.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    function: str
    arguments: dict[str, str]
    one: dict[str, str]
    lift: dict[str, dict[str, str]]
    multiply: dict[str, str]
    result: str

    def times(self, left: Value, right: Value) -> dict[str, Polynomial]:
        """The product of two payloads."""
        known = {(_LEFT, name): value for name, value in left.items()}
        known |= {(_RIGHT, name): value for name, value in right.items()}
        return {name: self._value(text, known, f"multiply.{name}") for name, text in self.multiply.items()}

    def payload(self) -> dict[str, Polynomial]:
        """The payload of a row: sums of products of arguments, which are columns of a table ``argument``."""
        lifts = [self._lifted(argument) for argument in self.arguments]
        return reduce(self.times, lifts, self._neutral)

    def check(self) -> None:
        """Raises FIVM209 with the law that does not hold, and where."""
        self._check_names()
        a, b, c = ({name: _variable(side, name) for name in self.multiply} for side in "abc")
        for name, product in self.times(a, b).items():
            for part in product.products:
                sides = sorted(table for value, _ in part.factors for table in value.tables)
                if sides != ["a", "b"]:
                    raise self._broken("(a + b) × c = a × c + b × c", name, part.sql)
        laws: dict[str, tuple[Value, Value]] = {
            "1 × a = a": (self.times(self._neutral, a), a),
            "a × b = b × a": (self.times(a, b), self.times(b, a)),
            "(a × b) × c = a × (b × c)": (self.times(self.times(a, b), c), self.times(a, self.times(b, c))),
        }
        for law, (left, right) in laws.items():
            for name in self.multiply:
                if not _same(left[name], right[name]):
                    raise self._broken(law, name, f"{left[name].sql} is not {right[name].sql}")
        self._check_digits()

    def factors(self, component: str) -> Iterator[tuple[int, tuple[str, ...]]]:
        """What a component adds up for each row: a number times some arguments, the others being known."""
        for product in self.payload()[component].products:
            names = tuple(name for value, _ in product.factors for _, name in value.columns)
            yield product.coefficient, names

    def types(self) -> dict[str, SparkType]:
        """Those of the arguments."""
        return {name: SparkType.of(text) for name, text in self.arguments.items()}

    def _check_digits(self) -> None:
        """Spark would round a product of decimals that needs more than 38 digits."""
        types = self.types()
        odd = [n for n, t in types.items() if not (t.is_decimal or t.text in ("bigint", "double"))]
        if odd:
            raise self._wrong(f"arguments.{odd[0]}: {types[odd[0]]} is not bigint, decimal(p,s) or double")
        for name in self.multiply:
            for _, factors in self.factors(name):
                digits = [types[f].precision if types[f].is_decimal else _DIGITS["bigint"] for f in factors]
                digits += [_DIGITS["int"] for other in types if other not in factors]
                is_decimal = any(types[f].is_decimal for f in factors)
                needed = sum(digits) + len(digits) - 1
                if is_decimal and needed > _MOST_DIGITS and not any(types[f].is_floating for f in factors):
                    raise self._wrong(
                        f"{name} adds up products of {needed} digits, and there are {_MOST_DIGITS}"
                    )

    @property
    def _neutral(self) -> dict[str, Polynomial]:
        return {name: self._value(self.one.get(name, "0"), {}, f"one.{name}") for name in self.multiply}

    def _lifted(self, argument: str) -> dict[str, Polynomial]:
        known = {("", argument): _variable(_ARGUMENT, argument)}
        lift = self.lift[argument]
        place = f"lift.{argument}"
        return {name: self._value(lift.get(name, "0"), known, f"{place}.{name}") for name in self.multiply}

    def _check_names(self) -> None:
        components = set(self.multiply)
        unknown = [*(f"one.{n}" for n in self.one if n not in components)]
        unknown += [f"lift.{a}.{n}" for a, lift in self.lift.items() for n in lift if n not in components]
        unknown += [f"result.{n}" for n in self.shown if n not in components]
        if unknown:
            known = ", ".join(self.multiply)
            raise self._wrong(f"{', '.join(unknown)}: no such component (expected one of {known})")
        if not self.arguments or set(self.lift) != set(self.arguments):
            raise self._wrong("lift has to have an entry for each argument, and there has to be one")
        if named(self.function) is not None or not self.function.isidentifier():
            raise self._wrong(f"function: {self.function} is a function of Spark, or no name")

    @property
    def shown(self) -> frozenset[str]:
        """The components that the result is computed of."""
        return frozenset(column.name for column in self._parsed(self.result, "result").find_all(exp.Column))

    def _value(self, text: str, known: Mapping[tuple[str, str], Polynomial], place: str) -> Polynomial:
        return self._evaluated(self._parsed(text, place), known, place)

    def _evaluated(
        self, node: exp.Expr, known: Mapping[tuple[str, str], Polynomial], place: str
    ) -> Polynomial:
        """An expression over + - and *, with polynomials for its columns."""
        if isinstance(node, exp.Paren):
            return self._evaluated(node.this, known, place)
        if isinstance(node, exp.Neg):
            return -self._evaluated(node.this, known, place)
        if isinstance(node, exp.Literal) and not node.is_string and node.this.isdigit():
            return Polynomial.number(int(node.this))
        if isinstance(node, exp.Column) and (node.table, node.name) in known:
            return known[node.table, node.name]
        if isinstance(node, (exp.Add, exp.Sub, exp.Mul)):
            left, right = (self._evaluated(part, known, place) for part in (node.this, node.expression))
            if isinstance(node, exp.Mul):
                return left * right
            return left + (right if isinstance(node, exp.Add) else -right)
        names = ", ".join(".".join(filter(None, name)) for name in known) or "nothing"
        raise self._wrong(
            f"{place}: {node.sql('spark')} is neither a number, nor one of {names}, nor + - * of them"
        )

    def _parsed(self, text: str, place: str) -> exp.Expr:
        try:
            return sqlglot.parse_one(text, dialect=SPARK_TEXT)
        except sqlglot.ParseError as error:
            raise self._wrong(f"{place}: {text!r} is no SQL expression") from error

    def _broken(self, law: str, component: str, why: str) -> FivmError:
        what = f"the ring of {self.function} breaks the law {law} in component {component}: {why}"
        return FivmError("FIVM209", what, remedy="correct multiply, or one, in the declaration of the ring")

    def _wrong(self, what: str) -> FivmError:
        remedy = "correct the declaration (docs/learning.md#rings-of-your-own)"
        return FivmError("FIVM209", f"the ring of {self.function}: {what}", remedy=remedy)


DECLARED: dict[str, DeclaredRing] = {}
"""The rings that have been loaded in this process, by function."""


def load_rings(places: Sequence[str]) -> None:
    """Have the functions of some rings, each ``package.module:NAME``, in queries. Raises FIVM209 for what is none."""
    for place in places:
        ring = _found(place)
        name = ring.function.lower()
        if DECLARED.get(name) == ring:
            continue
        if name in DECLARED:
            remedy = "give one of them another name"
            raise FivmError("FIVM209", f"{place}: there is another ring of {ring.function}", remedy=remedy)
        ring.check()
        DECLARED[name] = ring


def _found(place: str) -> DeclaredRing:
    module, _, name = place.partition(":")
    try:
        found = getattr(_imported(module), name)
    except ValidationError as error:
        told = "; ".join(f"{'.'.join(map(str, d['loc']))}: {d['msg'].lower()}" for d in error.errors())
        raise FivmError(
            "FIVM209", f"{place}: {told}", remedy="correct the declaration of the ring"
        ) from error
    except (ImportError, AttributeError) as error:
        remedy = "write module:NAME; modules are looked up in Python's path and in the project's directory"
        raise FivmError("FIVM209", f"fivm_rings: {place} is not found: {error}", remedy=remedy) from error
    if not isinstance(found, DeclaredRing):
        remedy = "import DeclaredRing from fivm_dbt.rings.declared, and make one"
        raise FivmError("FIVM209", f"fivm_rings: {place} is no DeclaredRing", remedy=remedy)
    return found


def _imported(module: str) -> Any:
    """The module, of Python's path or of a project."""
    sys.path += _PROJECTS
    try:
        return import_module(module)
    finally:
        del sys.path[len(sys.path) - len(_PROJECTS) :]


_PROJECTS: list[str] = [""]
"""Where Python does not look by itself: the directory that somebody works in, and that of a dbt project."""


def look_in(project: Path) -> None:
    """Have the modules of rings looked up in a project's directory too."""
    _PROJECTS[1:] = [str(project)]


def _variable(table: str, name: str) -> Polynomial:
    return Polynomial.of(Scalar.column(table, name), BIGINT)


def _same(left: Polynomial, right: Polynomial) -> bool:
    return not (left + -right).products
