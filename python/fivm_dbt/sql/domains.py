"""A correlation inside a subquery has a domain: the values of the outer columns for which it is computed.

``D = δ(π_c(L))`` are the values c of the outer columns in the relation L around a subquery Q. Q is lowered to one
relation ``{(r, d) : d ∈ D', r ∈ Q(d)}`` with ``D' ⊇ D`` whose last columns, those that are *carried*, are d. A SELECT
takes d from where it can: from its FROM clause, if something in it is computed per d itself; from its own columns, if
each outer column is tested to equal one of them; else D is joined.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from fivm_dbt.errors import FivmError
from fivm_dbt.ir.node import Field, Item, Node
from fivm_dbt.ir.nodes import Join, Map
from fivm_dbt.ir.rename import renamed
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.naming import unique_name
from fivm_dbt.sql.expressions import unparenthesized
from fivm_dbt.sql.lowered import Lowered
from fivm_dbt.sql.membership import unread_columns
from fivm_dbt.sql.outer_scope import CARRIED, Outer

if TYPE_CHECKING:
    from fivm_dbt.sql.lower import Lowering
    from fivm_dbt.sql.subqueries import Around


@dataclass(frozen=True)
class Domain:
    """An outer scope with the relation of its domain; None where the subquery names nothing outside.

    With ``is_sparse`` a total, which has a row for every value of the domain, may leave out those without any rows
    in its FROM clause: whoever reads it knows what it is over nothing.
    """

    outer: Outer
    node: Node | None
    is_sparse: bool = False

    def again(self, fresh: Callable[[str], str]) -> Domain:
        """The same values under other aliases, for another place that needs them."""
        assert self.node is not None and self.outer.domain is not None
        node, names = renamed(self.node, fresh)
        outer = replace(self.outer, domain=names[self.outer.domain], inside={})
        return Domain(outer, node)


def correlated(around: Around, query: exp.Query, *, is_sparse: bool = False) -> tuple[Lowered, Outer]:
    """A subquery with the domain of its correlation joined in; its fields are its columns, then those of the domain."""
    lowering = around.lowering
    first = Outer(around.scope.resolve_outward, around.scope.types, lowering.alias("domain"))
    for column in (*query.find_all(exp.Column), *unread_columns(query)):
        # Whatever might be meant.
        if not isinstance(column.this, exp.Star):
            with suppress(FivmError):
                first.reference(column)
    first.asked.clear()
    lowered = lowering.query(query, around.ctes, "subquery", _domain(around, first, is_sparse))
    if first.asked.keys() == first.captured.keys():
        return lowered, first
    # A name that means something nearer was taken for an outer one: it is left out in a second pass.
    exact = Outer(first.resolve, first.types, lowering.alias("domain"))
    for used in first.asked:
        exact.captured[used] = f"{CARRIED}{len(exact.captured) + 1}"
    return lowering.query(query, around.ctes, "subquery", _domain(around, exact, is_sparse)), exact


def _domain(around: Around, outer: Outer, is_sparse: bool) -> Domain:
    node = outer.domain_of(around.relation, around.lowering.alias) if outer.captured else None
    return Domain(outer, node, is_sparse)


def equal_columns(ours: tuple[Scalar, ...], theirs: tuple[Field, ...]) -> tuple[Scalar, ...]:
    """That two relations are of the same values of a domain, of which each has the columns."""
    return tuple(
        Scalar(exp.NullSafeEQ(this=mine.ast(), expression=other.scalar.ast()))
        for mine, other in zip(ours, theirs, strict=True)
    )


def same(outer: Outer, carried: tuple[Field, ...]) -> tuple[Scalar, ...]:
    """That the values of the domain are those of the row around the subquery."""
    return equal_columns(tuple(Scalar.column(*c) for c in outer.captured), carried)


def with_domain(
    relation: Node, plain: list[Scalar], domain: Domain, outer: Outer
) -> tuple[Node, list[Scalar]]:
    """What a SELECT reads with the domain of its correlation, and its conditions; ``outer`` is that of its scope.

    Where every column c of the domain is tested to equal an expression e of the subquery, e takes the place of c and
    no domain is joined: the subquery is computed for all values of e, and those that occur outside are found when the
    result is joined back. Rows where e is NULL equal nothing.
    """
    assert domain.node is not None
    if outer.inside:
        return relation, plain  # the FROM clause has its columns
    known = {f.id: f.type for f in relation.fields}
    found: dict[str, tuple[Scalar, Scalar]] = {}
    for predicate in plain:
        for c, e in _sides(predicate):
            here = c.is_column and next(iter(c.columns))[0] == outer.domain
            if here and e.is_column and e.columns <= known.keys():
                (_, name), (inner,) = next(iter(c.columns)), e.columns
                wanted = next(f.type for f in outer.fields if f.name == name)
                # One e for two columns of the domain would lose the values in which these differ.
                free = all(other != e for n, (_, other) in found.items() if n != name)
                if known[inner] == wanted and free:
                    found.setdefault(name, (predicate, e))
    if len(found) < len(outer.fields):
        return Join((relation, domain.node), ()), plain
    outer.inside.update({name: e for name, (_, e) in found.items()})
    equalities = [predicate for predicate, _ in found.values()]
    meaning = {(outer.domain or "", name): e for name, (_, e) in found.items()}
    rest = [p.substitute(meaning.get) for p in plain if p not in equalities]
    present = [Scalar(exp.Not(this=exp.Is(this=e.ast(), expression=exp.Null()))) for _, e in found.values()]
    return relation, rest + present


def _sides(predicate: Scalar) -> list[tuple[Scalar, Scalar]]:
    ast = predicate.ast()
    if not isinstance(ast, exp.EQ):
        return []
    left, right = Scalar(unparenthesized(ast.left)), Scalar(unparenthesized(ast.right))
    return [(left, right), (right, left)]


def per_value(lowering: Lowering, rows: Lowered, domain: Domain | None) -> Lowered:
    """Rows that name nothing outside, once for each value of the domain."""
    if domain is None or domain.node is None:
        return rows
    taken: set[str] = set()
    items = []
    for field in (*rows.node.fields, *domain.outer.fields):
        items.append(Item(unique_name(field.name, taken), field.scalar, field.type))
        taken.add(items[-1].name.lower())
    joined = Join((rows.node, domain.node), ())
    return replace(rows, node=Map(joined, lowering.alias("rows"), tuple(items)))
