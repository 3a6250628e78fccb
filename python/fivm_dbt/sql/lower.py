"""A query's AST becomes relational nodes; no other module looks at the shape of a query.

Whatever is not recognised is refused with its position: nothing falls through.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from fivm_dbt.catalog import Catalog
from fivm_dbt.errors import FivmError
from fivm_dbt.ir.aggregate import Aggregate
from fivm_dbt.ir.node import Item, Node
from fivm_dbt.ir.nodes import Filter, Map
from fivm_dbt.ir.places import notes
from fivm_dbt.ir.scalar import Scalar, conjuncts
from fivm_dbt.ir.written import WrittenClause
from fivm_dbt.naming import unique_name
from fivm_dbt.parts.length import DAY, Length
from fivm_dbt.sql.aggregation import aggregated
from fivm_dbt.sql.categories import spelled_by_groups
from fivm_dbt.sql.check_syntax import check_syntax
from fivm_dbt.sql.clause_order import check_clause_order
from fivm_dbt.sql.completions import Completions
from fivm_dbt.sql.covariances import with_named_variables
from fivm_dbt.sql.declared_rings import in_sums
from fivm_dbt.sql.domains import Domain, per_value, with_domain
from fivm_dbt.sql.edits import Edit, edited, named, one_after_the_other
from fivm_dbt.sql.expressions import to_scalar, unparenthesized
from fivm_dbt.sql.filtered_sessions import check_filtered_sessions
from fivm_dbt.sql.from_clause import Read, from_clause
from fivm_dbt.sql.functions import check_functions
from fivm_dbt.sql.generators import generated_columns
from fivm_dbt.sql.group_keys import Projections, has_windows, is_aggregated
from fivm_dbt.sql.limits import limited_rows, order_items, without_idle_limits
from fivm_dbt.sql.lowered import BoundCte, Ctes, Lowered
from fivm_dbt.sql.membership import UNREAD, has_subquery
from fivm_dbt.sql.named_arguments import with_arguments_in_order
from fivm_dbt.sql.outer_joins import behind_generators
from fivm_dbt.sql.parse import parse, unsupported
from fivm_dbt.sql.part import Part
from fivm_dbt.sql.scope import Scope
from fivm_dbt.sql.set_operations import set_operation
from fivm_dbt.sql.subqueries import Around, check_unread, filtered, with_subqueries
from fivm_dbt.sql.time_windows import with_time_windows
from fivm_dbt.sql.typing import Describe, Fields, Typer, known_type
from fivm_dbt.sql.values import values
from fivm_dbt.sql.windows import windowed
from fivm_dbt.sql.written_back import check_written_back


@dataclass(frozen=True)
class _Given:
    """What a text is lowered over, and how: see :func:`lower`."""

    catalog: Catalog
    describe: Describe | None
    approximate: bool
    part_length: Length
    is_utc: bool


def lower(
    sql: str,
    catalog: Catalog,
    describe: Describe | None = None,
    *,
    approximate: bool = False,
    part_length: Length = DAY,
    is_utc: bool = True,
) -> Lowered:
    """The relational form of a query over the relations of ``catalog``.

    Where the query depends on ties its text is completed (:mod:`completions`), and the completed text is what is
    lowered. ``approximate`` maintains sums of doubles, and what follows from them, by addition (``fivm_float``).
    ``part_length`` is that of the time parts of patterns; ``is_utc`` says that the session's clocks show UTC.
    ``describe`` asks Spark for the columns of a query; without it types follow the rules of :mod:`typing`.
    Raises FIVM101 to FIVM113, with a position in ``sql``.
    """
    return _lowered_with(sql, _Given(catalog, describe, approximate, part_length, is_utc))


def _lowered_with(sql: str, given: _Given) -> Lowered:
    """The same, with the text in other words or completed where it has to be."""
    sums = _in_sums(sql)
    if sums:
        lowered = _elsewhere(sql, edited(sql, sums), given)
        return replace(lowered, completions=one_after_the_other(sql, sums, lowered.completions))
    try:
        lowered = _lowered(sql, given)
        _check_names(lowered)
    except FivmError as error:
        raise error.located(sql=sql) from None
    if lowered.spelled is not None:
        return _spelled(sql, lowered, given)
    if lowered.completions:
        lowered = _completed(sql, lowered, given)
    both = one_after_the_other(sql, lowered.completions, lowered.written_out)
    return replace(lowered, completions=both, written_out=())


def _lowered(sql: str, given: _Given) -> Lowered:
    """A text as it is."""
    describe = given.describe
    lowering = Lowering(
        given.catalog,
        Typer(describe),
        Completions(sql),
        given.approximate,
        given.part_length,
        is_utc=given.is_utc,
    )
    query = parse(sql)
    check_syntax(query)
    check_functions(query, describe)
    check_clause_order(sql)
    check_written_back(query, sql)
    query = without_idle_limits(with_named_variables(with_arguments_in_order(query)))
    lowered = lowering.query(query, {}, "result")
    check_filtered_sessions(lowered.node)
    categorical = lowering.completions.categorical
    if categorical is not None:
        spelled = spelled_by_groups(sql, categorical)
        return replace(lowered, spelled=spelled)
    names = lowered.names
    unusual = not all(name.isidentifier() for name in names)
    if describe is not None and unusual and not lowering.matches and not _names_its_columns(query):
        # Spark has names of its own for columns without an alias.
        names = tuple(column.name for column in describe(edited(sql, lowering.completions.written_out)))
    matches = tuple(found for _, found in sorted(lowering.matches.items()))
    return replace(
        lowered,
        names=names,
        completions=lowering.completions.edits,
        matches=matches,
        written_out=lowering.completions.written_out,
    )


def _in_sums(sql: str) -> tuple[Edit, ...]:
    """The edits that write calls of declared rings as sums."""
    try:
        return in_sums(sql)
    except FivmError as error:
        raise error.located(sql=sql) from None


def _elsewhere(sql: str, text: str, given: _Given) -> Lowered:
    """The lowered form of what ``sql`` is in other words: of these the user does not know any place."""
    try:
        return _lowered_with(text, given)
    except FivmError as error:
        error.span = None
        raise error.located(sql=sql) from None


def _spelled(sql: str, written: Lowered, given: _Given) -> Lowered:
    """The text in other words, lowered."""
    text = str(written.spelled)
    lowered = _elsewhere(sql, text, given)
    edits = one_after_the_other(sql, (Edit(0, len(sql), text),), lowered.completions)
    return replace(lowered, names=written.names, completions=edits)


def _completed(sql: str, written: Lowered, given: _Given) -> Lowered:
    """The completed text, lowered. What can be said against the query was said of the text as written."""
    edits = written.completions
    try:
        lowered = _lowered(edited(sql, edits), given)
        if lowered.names != written.names:
            # A column without an alias is named after its expression, which is another one now.
            edits = named(sql, edits, written.names)
            lowered = _lowered(edited(sql, edits), given)
    except FivmError as error:
        error.span = None
        raise error.located(sql=sql) from None
    if lowered.completions:
        more = edited(edited(sql, edits), lowered.completions)
        raise FivmError("FIVM901", f"the completed text is not complete: {more}", sql=sql)
    return replace(lowered, names=written.names, completions=edits)


def _check_names(lowered: Lowered) -> None:
    names = [name.lower() for name in lowered.names]
    double = sorted({name for name in names if names.count(name) > 1})
    if double:
        raise FivmError(
            "FIVM112", f"several columns are called {', '.join(double)}", remedy="give each its own alias"
        )


def _names_its_columns(query: exp.Expr) -> bool:
    """Whether every output column is a column or has an alias; of a set operation the first branch counts."""
    while isinstance(query, (exp.SetOperation, exp.Subquery)):
        query = query.this
    named = (exp.Alias, exp.Column)
    return all(isinstance(p, named) and not p.is_star for p in getattr(query, "selects", []))


class Lowering:
    """State of one lowering: the aliases given out so far, so that each is unique in the whole query."""

    def __init__(
        self,
        catalog: Catalog,
        typer: Typer,
        completions: Completions,
        approximate: bool = False,
        part_length: Length = DAY,
        *,
        is_utc: bool = True,
    ) -> None:
        self.catalog = catalog
        self.typer = typer
        self.completions = completions
        self.approximate = approximate
        self.part_length = part_length
        self.is_utc = is_utc
        self.taken: set[str] = set()
        self.matches: dict[int, WrittenClause] = {}

    def alias(self, wanted: str) -> str:
        name = unique_name(wanted, self.taken)
        self.taken.add(name.lower())
        return name

    # Queries

    def query(self, node: exp.Expr, ctes: Ctes, wanted: str, domain: Domain | None = None) -> Lowered:
        """A query as one node with its own alias; of a subquery, the fields of its domain come after its columns."""
        with_ = node.args.get("with_")
        if with_ is not None:
            ctes = dict(ctes)
            for cte in with_.expressions:
                captured = domain.outer.captured if domain is not None else None
                ctes[cte.alias.lower()] = BoundCte(cte, dict(ctes), captured)
        if isinstance(node, exp.Select):
            return self._select(node, ctes, wanted, domain)
        if isinstance(node, exp.Subquery):
            lowered = self.query(node.this, ctes, wanted, domain)
        elif isinstance(node, exp.SetOperation):
            lowered = set_operation(self, node, ctes, wanted, domain)
        elif isinstance(node, exp.Values):
            lowered = per_value(self, values(self, node, wanted), domain)
        else:
            raise unsupported(node, f"{node.key.upper()} is not a query", "use SELECT")
        return limited_rows(self, node, lowered, wanted, len(_carried(domain)))

    def from_clause(self, node: exp.Select, ctes: Ctes, domain: Domain | None = None) -> Read:
        """What FROM reads, with the conditions that are left to WHERE."""
        return from_clause(self, node, ctes, domain)

    # SELECT

    def _select(self, node: exp.Select, ctes: Ctes, wanted: str, domain: Domain | None) -> Lowered:
        read = self.from_clause(node, ctes, domain)
        around = Around(self, read.node, read.scope, ctes, domain)
        where = node.args.get("where")
        conditions = [*read.deferred, *(conjuncts(where.this) if where is not None else [])]
        around = self._where(around, conditions)
        if UNREAD in notes(node):
            check_unread(around, notes(node)[UNREAD])
        node, scope, relation = with_time_windows(self, node, around.scope, around.relation)
        around = replace(around, scope=scope, relation=relation)
        projections = self.projections(node, around.scope)
        self.completions.of_select(self, node, around.scope, around.relation, projections)
        scope, relation, projections = generated_columns(self, around.scope, around.relation, projections)
        if (domain is None or domain.node is None) and any(has_subquery(v) for _, v in projections):
            part = behind_generators(self, Part(scope.sources, scope.outputs, (relation,)))
            scope, relation = replace(scope, sources=part.sources, outputs=part.outputs), part.node
        around = replace(around, scope=scope, relation=relation)
        names = tuple(name for name, _ in projections)
        carried = _carried(domain)
        if node.args.get("distinct"):
            rows = self._rows(node, around, projections + carried, wanted)
            return limited_rows(self, node, Lowered(self.distinct(rows, wanted), names), wanted, len(carried))
        order = order_items(node, projections)
        hidden = [(f"order_{i + 1}", v) for i, v in enumerate(order) if isinstance(v, exp.Expr)]
        rows = self._rows(node, around, projections + carried + hidden, wanted)
        return limited_rows(
            self, node, rows=Lowered(rows, names), wanted=wanted, carried=len(carried), items=order
        )

    def _where(self, around: Around, conditions: Sequence[exp.Expr]) -> Around:
        plain = [to_scalar(p, around.scope) for p in conditions if not has_subquery(p)]
        relation, domain, outer = around.relation, around.domain, around.scope.outer
        if domain is not None and domain.node is not None and outer is not None:
            relation, plain = with_domain(relation, plain, domain, outer)
        if plain:
            relation = Filter(relation, tuple(plain))
        around = replace(around, relation=relation)
        for predicate in conditions:
            if has_subquery(predicate):
                around = filtered(around, predicate)
        return around

    def _rows(self, node: exp.Select, around: Around, projections: Projections, wanted: str) -> Node:
        """The rows of a SELECT before DISTINCT and LIMIT."""
        aliases = {name.lower(): value for name, value in reversed(projections)}
        around = replace(around, scope=replace(around.scope, aliases=aliases))
        if has_windows(node, projections):
            return windowed(self, node, around, projections, wanted)
        if is_aggregated(node, projections):
            return aggregated(self, node, around, projections, wanted)
        around, projections = with_subqueries(around, projections)
        scope = around.scope
        scalars = [to_scalar(value, scope) for _, value in projections]
        items = self.items(
            [name for name, _ in projections], scalars, scope.types, [v for _, v in projections]
        )
        return Map(around.relation, self.alias(wanted), items)

    def projections(self, node: exp.Select, scope: Scope) -> Projections:
        """Name and expression of each output column, stars expanded."""
        result: Projections = []
        for expression in node.expressions:
            if isinstance(expression, exp.Star) or (
                isinstance(expression, exp.Column) and isinstance(expression.this, exp.Star)
            ):
                star = expression if isinstance(expression, exp.Star) else expression.this
                table = expression.table if isinstance(expression, exp.Column) else None
                columns = scope.star(table or None, expression)
                result += _without(columns, star.args.get("except_") or [], scope, expression)
                continue
            if isinstance(expression, exp.Aliases):
                result.append(("", expression))
                continue
            value = expression.this if isinstance(expression, exp.Alias) else expression
            unnamed = value.sql(dialect="spark", comments=False).lower()
            name = expression.alias or (value.name if isinstance(value, (exp.Column, exp.Dot)) else unnamed)
            result.append((name, unparenthesized(value)))
        return result

    def items(
        self, names: Sequence[str], scalars: Sequence[Scalar], fields: Fields, shown: Sequence[exp.Expr]
    ) -> tuple[Item, ...]:
        """Typed columns over ``fields``; raises FIVM109 where a type is unknown."""
        types = self.typer.types(scalars, fields)
        taken: set[str] = set()
        result = []
        for name, scalar, type_, where in zip(names, scalars, types, shown, strict=True):
            column = unique_name(name, taken)
            taken.add(column.lower())
            result.append(Item(column, scalar, known_type(type_, where)))
        return tuple(result)

    def distinct(self, node: Node, wanted: str) -> Aggregate:
        """``node`` with each row once: a group per row."""
        items = tuple(Item(f.name, f.scalar, f.type) for f in node.fields)
        return Aggregate(node, self.alias(f"{wanted}_distinct"), items, ())


def _without(columns: Projections, excepted: Sequence[exp.Expr], scope: Scope, star: exp.Expr) -> Projections:
    """The columns of a star without those in EXCEPT, each of which has to be there."""
    for written in excepted:
        column = exp.column(written) if isinstance(written, exp.Identifier) else written
        if not isinstance(column, exp.Column) or column.args.get("db"):
            raise unsupported(written, "a field in EXCEPT is not supported", "list the columns")
        kept = [(n, c) for n, c in columns if not _is_called(n, c, column)]
        if len(kept) == len(columns):
            raise scope.unknown(column)
        columns = kept
    if not columns:
        raise unsupported(star, "* EXCEPT leaves no column", "keep one")
    return columns


def _is_called(name: str, value: exp.Expr, column: exp.Column) -> bool:
    of_relation = isinstance(value, exp.Column) and value.table.lower() == column.table.lower()
    return name.lower() == column.name.lower() and (not column.table or of_relation)


def _carried(domain: Domain | None) -> Projections:
    """The columns of a subquery's domain, which are carried to its result."""
    if domain is None or domain.node is None:
        return []
    return [(f.name, f.scalar.ast()) for f in domain.outer.fields]
