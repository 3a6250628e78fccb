"""Scalar expressions are immutable values around a sqlglot expression whose columns are all qualified."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property, lru_cache

import sqlglot
from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.ir.dialect import SPARK, SPARK_TEXT
from fivm_dbt.ir.places import share_notes

ColumnId = tuple[str, str]
"""(alias of the relation, column name)"""

_TOGETHER = "__fivm_part_"
"""How the fields of a struct are called that is no value but several."""


class Scalar:
    """A scalar expression; equal to another one when their canonical Spark text is equal.

    >>> Scalar.parse("f.a + 1") == Scalar.parse("f.a+1")
    True
    >>> sorted(Scalar.parse("f.a + g.b").columns)
    [('f', 'a'), ('g', 'b')]
    """

    __slots__ = ("__dict__", "_ast")

    def __init__(self, ast: exp.Expr) -> None:
        self._ast = ast

    @staticmethod
    def parse(sql: str) -> Scalar:
        """The scalar written as Spark SQL, with every column as ``alias.column``."""
        return Scalar(sqlglot.parse_one(sql, dialect=SPARK_TEXT))

    @staticmethod
    @lru_cache(maxsize=10_000)
    def column(table: str, name: str) -> Scalar:
        return Scalar(column_ast(table, name))

    @staticmethod
    def together(parts: Sequence[Scalar]) -> Scalar:
        """Several values as one, of which :attr:`parts` are they again.

        >>> together = Scalar.together([Scalar.parse("a.x"), Scalar.parse("b.y + 1")])
        >>> [part.sql for part in together.parts]
        ['a.x', 'b.y + 1']
        """
        named = [
            exp.PropertyEQ(this=exp.to_identifier(f"{_TOGETHER}{n}"), expression=part.ast())
            for n, part in enumerate(parts, start=1)
        ]
        return Scalar(exp.Struct(expressions=named))

    @staticmethod
    def number(value: int) -> Scalar:
        return Scalar(exp.Literal.number(value) if value >= 0 else exp.Neg(this=exp.Literal.number(-value)))

    @staticmethod
    def equal(left: ColumnId, right: ColumnId) -> Scalar:
        """``left = right``.

        >>> Scalar.equal(("a", "k"), ("b", "k")).sql
        'a.k = b.k'
        """
        return Scalar(exp.EQ(this=column_ast(*left), expression=column_ast(*right)))

    @staticmethod
    def is_not_null(column: ColumnId) -> Scalar:
        return Scalar(exp.Not(this=exp.Is(this=column_ast(*column), expression=exp.Null())))

    def ast(self) -> exp.Expr:
        """A fresh copy of the expression, for building SQL."""
        return self._ast.copy()

    @cached_property
    def sql(self) -> str:
        """Canonical Spark SQL."""
        return _column_text(self._ast) or self._ast.sql(dialect=SPARK, comments=False)

    @cached_property
    def columns(self) -> frozenset[ColumnId]:
        return frozenset((c.table, c.name) for c in self._ast.find_all(exp.Column))

    @property
    def tables(self) -> frozenset[str]:
        return frozenset(table for table, _ in self.columns)

    @cached_property
    def may_raise(self) -> bool:
        """Whether it stops the statement for some values, by :func:`raise_error`."""
        return any(call.name.upper() == _RAISE for call in self._ast.find_all(exp.Anonymous))

    @property
    def is_column(self) -> bool:
        return isinstance(self._ast, exp.Column)

    @property
    def parts(self) -> tuple[Scalar, ...]:
        """What it was put :meth:`together` of; itself where it was not."""
        fields = self._ast.expressions if isinstance(self._ast, exp.Struct) else []
        if not fields or not fields[0].name.startswith(_TOGETHER):
            return (self,)
        return tuple(Scalar(field.expression.copy()) for field in fields)

    @property
    def is_null(self) -> bool:
        """Whether it is NULL as a literal, cast to a type or not."""
        node = self._ast
        while isinstance(node, (exp.Cast, exp.TryCast, exp.Paren)):
            node = node.this
        return isinstance(node, exp.Null)

    @property
    def or_null(self) -> Scalar | None:
        """The value of a CASE with one branch and without ELSE, which is this value or NULL.

        >>> Scalar.parse("CASE WHEN s.n IN (0, 1) THEN r.k + 1 END").or_null.sql
        'r.k + 1'
        """
        node = self._ast
        if not isinstance(node, exp.Case) or node.this is not None or node.args.get("default") is not None:
            return None
        branches = node.args["ifs"]
        return Scalar(branches[0].args["true"].copy()) if len(branches) == 1 else None

    @property
    def as_number(self) -> int | None:
        """Its value if it is an integer literal."""
        node = self._ast
        sign = 1
        if isinstance(node, exp.Neg):
            node, sign = node.this, -1
        if isinstance(node, exp.Literal) and not node.is_string and node.this.isdigit():
            return sign * int(node.this)
        return None

    @property
    def equality(self) -> tuple[ColumnId, ColumnId] | None:
        """The two columns that it compares, null-safe or not, if it is such a comparison and nothing else.

        >>> Scalar.parse("f.a = g.b").equality
        (('f', 'a'), ('g', 'b'))
        """
        if not isinstance(self._ast, (exp.EQ, exp.NullSafeEQ)):
            return None
        left, right = self._ast.this.unnest(), self._ast.expression.unnest()
        if not isinstance(left, exp.Column) or not isinstance(right, exp.Column):
            return None
        return (left.table, left.name), (right.table, right.name)

    @property
    def is_null_safe(self) -> bool:
        """Whether it is a comparison in which NULL is equal to NULL."""
        return isinstance(self._ast, exp.NullSafeEQ)

    def field(self, name: str) -> Scalar:
        """A field of this struct.

        >>> Scalar.column("a", "s").field("x").sql
        'a.s.x'
        """
        return Scalar(exp.Dot(this=self.ast(), expression=identifier(name)))

    def cast(self, type_: str) -> Scalar:
        """``CAST(self AS type_)``."""
        return Scalar(as_type(self.ast(), type_))

    def in_ranges_of(self, width: int) -> Scalar:
        """The number of the range of so many whole numbers that this one is in.

        >>> Scalar.column("", "id").in_ranges_of(1024).sql
        'id DIV 1024'
        """
        return Scalar(exp.IntDiv(this=self.ast(), expression=exp.Literal.number(width)))

    def times(self, other: Scalar) -> Scalar:
        """``self * other``.

        >>> Scalar.parse("-a.n").times(Scalar.parse("b.n")).times(Scalar.parse("c.n")).sql
        '(-a.n) * b.n * c.n'
        """
        own = self.ast()
        left = own if isinstance(own, exp.Mul) else grouped(own)
        return Scalar(exp.Mul(this=left, expression=grouped(other.ast())))

    def negated(self) -> Scalar:
        """``-self``.

        >>> Scalar.parse("a.n * b.n").negated().sql
        '-(a.n * b.n)'
        """
        return Scalar(exp.Neg(this=grouped(self.ast())))

    def unless_null(self, column: ColumnId, instead: Scalar) -> Scalar:
        """The expression, but ``instead`` in rows in which a column is NULL.

        >>> Scalar.column("a", "n").unless_null(("a", "k"), Scalar.number(0)).sql
        'CASE WHEN a.k IS NULL THEN 0 ELSE a.n END'
        """
        is_null = column_ast(*column).is_(exp.null())
        return Scalar(exp.Case(ifs=[exp.If(this=is_null, true=instead.ast())], default=self.ast()))

    def substitute(self, replacement: Callable[[ColumnId], Scalar | None]) -> Scalar:
        """The expression with each column replaced where ``replacement`` gives something."""

        def visit(node: exp.Expr) -> exp.Expr:
            if isinstance(node, exp.Column):
                new = replacement((node.table, node.name))
                if new is not None:
                    return grouped(new.ast())
            return node

        return Scalar(_ungrouped(self.ast().transform(visit, copy=False)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scalar) and self.sql == other.sql

    def __hash__(self) -> int:
        return hash(self.sql)

    def __repr__(self) -> str:
        return f"Scalar({self.sql})"


def _column_text(node: exp.Expr) -> str | None:
    """The text of a column, None for anything else: most scalars are columns, and sqlglot's generator takes its time.

    >>> _column_text(column_ast("f", "per cent")), column_ast("f", "per cent").sql(SPARK)
    ('f.`per cent`', 'f.`per cent`')
    """
    if type(node) is not exp.Column:
        return None
    parts = [part for part in node.args.values() if part is not None]
    if not all(type(part) is exp.Identifier for part in parts):
        return None
    table, name = node.args.get("table"), node.args["this"]
    if len(parts) != (1 if table is None else 2):
        return None
    return ".".join(_identifier_text(part) for part in (table, name) if part is not None)


def _identifier_text(part: exp.Identifier) -> str:
    name = part.name
    return "`" + name.replace("`", "``") + "`" if part.args.get("quoted") else name


def column_ast(table: str, name: str) -> exp.Column:
    """The AST of ``table.name``; an empty ``table`` gives a bare column."""
    # Not by sqlglot's builder, which copies both.
    return exp.Column(this=identifier(name), table=identifier(table) if table else None)


def cast_ast(value: exp.Expr, type_: SparkType) -> exp.Expr:
    """``value`` as ``type_``; what is of type void, NULL alone, stays as it is: no CAST is written to that type.

    >>> cast_ast(exp.Null(), SparkType.of("int")).sql(), cast_ast(exp.Null(), SparkType.of("void")).sql()
    ('CAST(NULL AS INT)', 'NULL')
    """
    return value if type_.text == "void" else as_type(value, type_.text)


def as_type(value: exp.Expr, type_: str) -> exp.Expr:
    """``CAST(value AS type)``; a value that is cast to the type already stays as it is.

    The type is parsed once: a refresh writes hundreds of casts to the same few types.

    >>> as_type(as_type(exp.column("x"), "decimal(10,2)"), "decimal(10,2)").sql()
    'CAST(x AS DECIMAL(10, 2))'
    """
    to = _type_ast(type_)
    if isinstance(value, exp.Cast) and value.to == to:
        return value
    return exp.Cast(this=value if value.parent is None else value.copy(), to=to.copy())


@cache
def _type_ast(text: str) -> exp.DataType:
    type_ = exp.DataType.build(text, dialect=SPARK)
    for node in type_.walk():
        share_notes(node)
    return type_


def identifier(name: str) -> exp.Identifier:
    """An identifier AST, quoted only where Spark needs it."""
    from fivm_dbt.naming import quote

    return exp.Identifier(this=name, quoted=quote(name).startswith("`"))


def conjuncts(predicate: exp.Expr) -> list[exp.Expr]:
    """The factors of a conjunction, in their order."""
    node = predicate.unnest()
    if isinstance(node, exp.And):
        return [*conjuncts(node.left), *conjuncts(node.right)]
    return [node]


def replaced(scalar: Scalar, known: Mapping[Scalar, Scalar]) -> Scalar:
    """``scalar`` with each part that ``known`` has, the largest ones first, replaced."""

    def visit(node: exp.Expr) -> exp.Expr:
        new = known.get(Scalar(node.unnest()))
        if new is not None:
            return grouped(new.ast())
        for key, value in list(node.args.items()):
            if isinstance(value, exp.Expr):
                node.set(key, visit(value))
            elif isinstance(value, list):
                node.set(key, [visit(v) if isinstance(v, exp.Expr) else v for v in value])
        return node

    return Scalar(_ungrouped(visit(scalar.ast())))


_RAISE = "RAISE_ERROR"


def raise_error(message: str, type_: str) -> exp.Expr:
    """An expression of a type that stops the statement with ``message`` when it is evaluated."""
    call = exp.Anonymous(this=_RAISE, expressions=[exp.Literal.string(message)])
    # The call by itself has the type of NULL, which cannot be written down.
    return call if type_ == "void" else as_type(call, type_)


def never_null(value: exp.Expr, message: str, type_: str) -> exp.Expr:
    """``value``, but an error with ``message`` where it is NULL."""
    return exp.Coalesce(this=value, expressions=[raise_error(message, type_)])


def grouped(ast: exp.Expr) -> exp.Expr:
    """``ast`` in parentheses where it would otherwise bind to its neighbours."""
    if isinstance(ast, (exp.Binary, exp.Unary, exp.Between, exp.In, exp.Is)) and not isinstance(
        ast, exp.Paren
    ):
        return exp.Paren(this=ast)
    return ast


def _ungrouped(ast: exp.Expr) -> exp.Expr:
    return ast.this if isinstance(ast, exp.Paren) else ast
