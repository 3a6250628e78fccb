"""GROUP BY has keys, sets of them, and the aggregates of each group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product

from sqlglot import exp

from fivm_dbt.testing.interpreter.aggregates import Aggregate, compile_aggregate
from fivm_dbt.testing.interpreter.errors import NotUnderstood
from fivm_dbt.testing.interpreter.expressions import compile_expression
from fivm_dbt.testing.interpreter.scope import Context, Env, Expression, column_at, field_of
from fivm_dbt.testing.interpreter.types import BIGINT, TINYINT
from fivm_dbt.testing.interpreter.values import Row, Value, row_key


def signature(node: exp.Expr, context: Context) -> str:
    """The text of an expression with its columns as they were found, by which equal expressions are known."""
    copy = node.unnest().copy()
    for column in list(copy.find_all(exp.Column)):
        if isinstance(column.this, exp.Star):
            continue
        parts = [column.args[p].name for p in ("catalog", "db", "table", "this") if column.args.get(p)]
        found = context.find(parts, column)
        name = f"#{found.index}.{'.'.join(found.fields)}" if found else ".".join(parts).lower()
        replacement = exp.Identifier(this=name, quoted=True)
        if column is copy:
            return name
        column.replace(replacement)
    return copy.sql(dialect="spark", comments=False)


class Groups:
    """The groups of a SELECT: what is grouped by, and the aggregates that its clauses ask for."""

    def __init__(
        self, inner: Context, terms: Sequence[exp.Expr], sets: Sequence[tuple[int, ...]] | None
    ) -> None:
        self.inner = inner
        self._terms: list[exp.Expr] = []
        self._signatures: list[str] = []
        places: list[int] = []
        for term in terms:
            text = signature(term, inner)
            if text not in self._signatures:
                self._signatures.append(text)
                self._terms.append(term)
            places.append(self._signatures.index(text))
        self.keys = [compile_expression(term, inner) for term in self._terms]
        if any(k.type.name == "map" for k in self.keys):
            raise NotUnderstood("groups of maps", terms[0])
        every = tuple(range(len(self._terms)))
        self._has_sets = sets is not None
        self._sets = [every] if sets is None else [tuple(sorted({places[i] for i in s})) for s in sets]
        self._aggregates: list[Aggregate] = []
        sessions = [
            i for i, t in enumerate(self._terms) if isinstance(t, exp.Column) and t.name == "session_window"
        ]
        self._session = sessions[0] if sessions and inner.columns[-1].name == "session_window" else None

    def key_of(self, node: exp.Expr) -> Expression | None:
        """The key that an expression is."""
        if isinstance(node, (exp.Literal, exp.Null, exp.Boolean)) or not self._signatures:
            return None
        text = signature(node, self.inner)
        if text not in self._signatures:
            return None
        index = self._signatures.index(text)
        return column_at(index, self.keys[index].type)

    def named(self, parts: list[str], node: exp.Expr) -> Expression | None:
        """The key that a name means, or a field of it."""
        found = self.inner.find(parts, node)
        if found is None:
            return None
        for count in range(len(found.fields) + 1):
            text = f"#{found.index}.{'.'.join(found.fields[:count])}"
            if text in self._signatures:
                index = self._signatures.index(text)
                key = column_at(index, self.keys[index].type)
                for name in found.fields[count:]:
                    key = field_of(key, name, node)
                return key
        return None

    def aggregate(self, node: exp.Expr) -> Expression:
        """The value of an aggregate for each group."""
        found = compile_aggregate(node, self.inner)
        index = len(self._aggregates)
        self._aggregates.append(found)
        return Expression(found.type, lambda env: env.aggregates[index])

    def grouping(self, arguments: Sequence[exp.Expr]) -> Expression:
        """GROUPING(a): 1 where rows are summed up over a."""
        places = [self._place(a) for a in arguments]
        return Expression(TINYINT, lambda env: env.grouping[places[0]])

    def grouping_id(self, arguments: Sequence[exp.Expr]) -> Expression:
        places = [self._place(a) for a in arguments] if arguments else list(range(len(self.keys)))
        return Expression(
            BIGINT, lambda env: sum(env.grouping[p] << i for i, p in enumerate(reversed(places)))
        )

    def _place(self, node: exp.Expr) -> int:
        text = signature(node, self.inner)
        if text not in self._signatures:
            raise NotUnderstood("GROUPING of what is not grouped by", node)
        return self._signatures.index(text)

    def of(self, rows: Sequence[Env], outer: Env | None) -> list[Env]:
        """One environment per group."""
        found = []
        for used in self._sets:
            groups: dict[Value, tuple[Row, list[Env]]] = {} if self.keys else {(): ((), [])}
            for env in rows:
                values = tuple(k.of(env) if i in used else None for i, k in enumerate(self.keys))
                groups.setdefault(row_key(values), (values, []))[1].append(env)
            if self._session is not None and self._session in used:
                groups = dict(enumerate(_sessions(groups.values(), self._session)))
            marks = tuple(int(i not in used) for i in range(len(self.keys)))
            for values, members in groups.values():
                group = Env(values, outer)
                group.grouping = marks
                group.aggregates = tuple(a.of(members) for a in self._aggregates)
                found.append(group)
        return found


def _sessions(groups: Iterable[tuple[Row, list[Env]]], place: int) -> Iterator[tuple[Row, list[Env]]]:
    """Groups whose sessions overlap or touch, and whose other keys are the same, as one."""
    alike: dict[Row, list[tuple[Row, list[Env]]]] = {}
    for values, members in groups:
        alike.setdefault(row_key((*values[:place], *values[place + 1 :])), []).append((values, members))
    for found in alike.values():
        found.sort(key=lambda group: group[0][place])
        values, rows = found[0][0], list(found[0][1])
        for other, more in found[1:]:
            start, end = values[place]
            if other[place][0] <= end:
                values = (*values[:place], (start, max(end, other[place][1])), *values[place + 1 :])
                rows += more
            else:
                yield values, rows
                values, rows = other, list(more)
        yield values, rows


def sets_of(group: exp.Group, terms: list[exp.Expr]) -> list[tuple[int, ...]] | None:
    """The sets of keys that GROUP BY asks for, by positions in ``terms``, which is filled; None for a plain list."""

    def add(node: exp.Expr) -> int:
        terms.append(node)
        return len(terms) - 1

    def units(nodes: Sequence[exp.Expr]) -> list[tuple[int, ...]]:
        return [tuple(add(e) for e in _listed(n)) for n in nodes]

    factors: list[list[tuple[int, ...]]] = []
    has_sets = False
    for node in [
        *group.expressions,
        *(n for a in ("rollup", "cube", "grouping_sets") for n in group.args.get(a) or []),
    ]:
        if isinstance(node, (exp.Rollup, exp.Cube, exp.GroupingSets)):
            has_sets = True
            nodes = node.expressions
            if not nodes:
                # "group by a with rollup": over everything before it.
                nodes = [terms[i] for f in factors for s in f for i in s]
                factors, terms[:] = [], []
            factors.append(_expanded(node, nodes, units))
        else:
            factors.append([(add(node),)])
    if not has_sets:
        return None
    return [tuple(i for part in parts for i in part) for parts in product(*factors)]


def _expanded(node: exp.Expr, nodes: Sequence[exp.Expr], units: object) -> list[tuple[int, ...]]:
    assert callable(units)
    if isinstance(node, exp.GroupingSets):
        found = []
        for item in nodes:
            if isinstance(item, (exp.Rollup, exp.Cube, exp.GroupingSets)):
                found += _expanded(item, item.expressions, units)
            else:
                found += units([item])
        return found
    each = units(nodes)
    if isinstance(node, exp.Rollup):
        return [tuple(i for u in each[:n] for i in u) for n in range(len(each), -1, -1)]
    return [
        tuple(i for bit, u in enumerate(each) if mask & 1 << bit for i in u) for mask in range(1 << len(each))
    ]


def _listed(node: exp.Expr) -> list[exp.Expr]:
    if isinstance(node, exp.Tuple):
        return list(node.expressions)
    return [node.unnest()]
