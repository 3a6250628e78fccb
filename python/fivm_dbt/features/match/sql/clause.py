"""``r MATCH_RECOGNIZE (...)`` in FROM is read clause by clause, to a Match over r."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from fivm_dbt.catalog.types import INT
from fivm_dbt.errors import FivmError
from fivm_dbt.features.match.ir.automaton import ACCEPT, Automaton
from fivm_dbt.features.match.ir.match import (
    FINAL,
    FOUND,
    NUMBER,
    POSITION,
    ROW,
    TESTED,
    Match,
    Ordering,
    Recognizer,
    Skip,
)
from fivm_dbt.features.match.ir.separators import separator
from fivm_dbt.features.match.ir.tokens import MatchTokensClause
from fivm_dbt.features.match.sql.expressions import Reader, Registers, Rows
from fivm_dbt.features.match.sql.output import MatchOutput
from fivm_dbt.features.match.sql.pattern import WrittenPattern
from fivm_dbt.features.match.sql.text import place_matches, refuse_in_matches
from fivm_dbt.ir.clauses import CLAUSES
from fivm_dbt.ir.node import Field, Item
from fivm_dbt.ir.part_columns import part_of
from fivm_dbt.ir.places import notes
from fivm_dbt.ir.reads import Scan
from fivm_dbt.ir.scalar import ColumnId, Scalar
from fivm_dbt.ir.written import INPUT, WrittenClause
from fivm_dbt.sql.clause_reader import ClauseReader
from fivm_dbt.sql.expressions import unparenthesized
from fivm_dbt.sql.parse import span_of, unsupported
from fivm_dbt.sql.part import Part
from fivm_dbt.sql.scope import Source

if TYPE_CHECKING:
    from fivm_dbt.sql.lower import Lowering

_SKIPS = re.compile(
    r"AFTER MATCH SKIP (PAST LAST ROW|TO NEXT ROW|TO FIRST|TO LAST)(?: (\S+))?", re.IGNORECASE
)


def matched(lowering: Lowering, part: Part, node: exp.MatchRecognize) -> Part:
    """The matches of a pattern in the rows of ``part``: its columns are PARTITION BY and MEASURES, with ALL ROWS PER
    MATCH also ORDER BY, before the measures, and the other columns of the input, behind them.

    Raises FIVM101, 102, 105, 106 and 111 with positions.
    """
    match = _Clause(lowering, part, node).match()
    columns = tuple((f.name, f) for f in match.fields)
    if "relation_start" in notes(node):
        input_ = Scan(INPUT, lowering.alias("match_input"), tuple((n, f.type) for n, f in part.outputs))
        meaning = {f.id: g.scalar for (_, f), g in zip(part.outputs, input_.fields, strict=True)}
        meta = notes(node)
        lowering.matches[meta["relation_start"]] = WrittenClause(
            meta["relation_start"], meta["relation_end"], meta["end"] + 1, _over(match, input_, meaning)
        )
    return Part((Source(match.alias, columns),), columns, (match,))


def _over(match: Match, input_: Scan, meaning: dict[ColumnId, Scalar]) -> Match:
    """The same operator over another input, where each column is what ``meaning`` says."""

    def moved(items: tuple[Item, ...]) -> tuple[Item, ...]:
        return tuple(Item(i.name, i.value.substitute(meaning.get), i.type) for i in items)

    return Match(
        input_,
        match.alias,
        partition=moved(match.partition),
        columns=moved(match.columns),
        order=match.order,
        shifts=match.shifts,
        recognizer=match.recognizer,
        items=match.items,
        part=match.part,
        separates=match.separates and match.separates.substitute(meaning.get),
    )


@dataclass
class _Clause:
    lowering: Lowering
    part: Part
    node: exp.MatchRecognize

    def match(self) -> Match:
        node, outputs = self.node, self.part.outputs
        names = [name.lower() for name, _ in outputs]
        double = next((n for n in names if names.count(n) > 1), None)
        if double is not None:
            what = f"MATCH_RECOGNIZE over two columns that are called {double}"
            raise unsupported(node, what, "name them differently in a subquery", code="FIVM104")
        rows = Rows(outputs)
        written_pattern = WrittenPattern(node)
        found = written_pattern.automaton()
        names_of = {v.lower(): v for v in written_pattern.variables}
        partition = self._partition()
        order = self._order(rows)
        part = self._part(order, rows, written_pattern) if written_pattern.is_per_part else None
        tested, held = Registers(), Registers()
        conditions = self._conditions(rows, names_of, tested)
        reader = Reader(rows, names_of, self.lowering.typer, held, FINAL)
        if part is None:
            held.add("last", None, Scalar.column(ROW, POSITION), INT, name=POSITION)
        skip = self._skip(reader, found, names_of)
        output = MatchOutput(self.lowering, self.part, node, rows, held)
        all_rows = output.is_of_all_rows()
        measures = output.measures(reader, all_rows)
        if not (partition or measures or all_rows):
            raise unsupported(node, "MATCH_RECOGNIZE has no column to show", "add MEASURES", code="FIVM112")
        times = output.times(order) if part is not None else ()
        items = output.items(partition, order, measures, all_rows, times)
        self._check_orderable(rows)
        taken = {o.column for o in order}
        total = (*order, *(Ordering(c, False, True) for c in rows.columns if c not in taken))
        recognizer = Recognizer(
            written_pattern.text,
            found,
            conditions=conditions,
            tested=tested.all,
            held=held.all,
            skip=skip,
            all_rows=all_rows,
            per_part=part is not None,
            regular=written_pattern.regular(conditions, tested.all, skip),
        )
        alias = self.lowering.alias("matched")
        columns = tuple(rows.columns.values())
        shifts = tuple(rows.shifts)
        own = {item.name: item.value for item in columns}
        is_numbered = any((FOUND, NUMBER) in item.value.columns for item in items)
        separates = None if is_numbered else separator(recognizer, frozenset(own))
        return Match(
            self.part.node,
            alias,
            partition=partition,
            columns=columns,
            order=total,
            shifts=shifts,
            recognizer=recognizer,
            items=items,
            part=part,
            separates=separates and separates.substitute(lambda c: own[c[1]] if c[0] == ROW else None),
        )

    # PARTITION BY, ORDER BY

    def _partition(self) -> tuple[Item, ...]:
        items = []
        for by in self.node.args.get("partition_by") or []:
            name, field = self._column(by, "PARTITION BY")
            items.append(Item(name, field.scalar, field.type))
        return tuple(items)

    def _order(self, rows: Rows) -> tuple[Ordering, ...]:
        order = self.node.args.get("order")
        if order is None:
            what = "MATCH_RECOGNIZE without ORDER BY depends on the order in which rows are read"
            raise unsupported(self.node, what, "add ORDER BY", code="FIVM106")
        result = []
        for by in order.expressions:
            name, _ = self._column(by.this, "ORDER BY")
            column = rows.names[name.lower()]
            rows.use(column)
            result.append(Ordering(column, bool(by.args.get("desc")), bool(by.args.get("nulls_first"))))
        return tuple(result)

    def _part(self, order: tuple[Ordering, ...], rows: Rows, pattern: WrittenPattern) -> Scalar:
        """The time part of a row, for ONE ROW PER PART."""
        pattern.check_chain()
        first = order[0]
        type_ = rows.columns[first.column].type
        if not type_.is_temporal or first.desc:
            what = "ONE ROW PER PART, and ORDER BY does not begin with a time, ascending"
            raise unsupported(self.node, what, "order by the time of the rows")
        return part_of(Scalar.column(ROW, first.column), type_, self.lowering.part_length)

    def _column(self, node: exp.Expr, clause: str) -> tuple[str, Field]:
        inner = unparenthesized(node)
        if not isinstance(inner, exp.Column) or isinstance(inner.this, exp.Star):
            what = f"{clause} of MATCH_RECOGNIZE names columns, not {inner.sql('spark')}"
            raise unsupported(node, what, "compute it in a subquery in FROM")
        meaning = self.part.scope.resolve(inner)
        if meaning is None:
            raise self.part.scope.unknown(inner)
        found = next(
            ((n, f) for n, f in self.part.outputs if Scalar(meaning.copy()) == f.scalar),
            None,
        )
        if found is None:
            what = f"{clause} of MATCH_RECOGNIZE names columns, not {inner.sql('spark')}"
            raise unsupported(node, what, "compute it in a subquery in FROM")
        return found

    def _check_orderable(self, rows: Rows) -> None:
        for item in rows.columns.values():
            if not item.type.is_groupable:
                what = f"{item.name} has type {item.type}, by which rows that are equal in ORDER BY cannot be ordered"
                raise unsupported(
                    self.node, what, "leave the column out in a subquery in FROM", code="FIVM111"
                )

    # DEFINE

    def _conditions(
        self, rows: Rows, names: dict[str, str], tested: Registers
    ) -> tuple[tuple[str, Scalar], ...]:
        result: dict[str, Scalar] = {}
        for definition in self.node.args.get("define") or []:
            name = definition.alias
            variable = names.get(name.lower())
            if variable is None or variable in result:
                why = "is defined twice" if variable is not None else "does not stand in the pattern"
                raise FivmError(
                    "FIVM102",
                    f"{name} {why}; there are {', '.join(names.values())}",
                    span=span_of(definition),
                    remedy="correct DEFINE",
                )
            reader = Reader(
                rows, names, typer=self.lowering.typer, registers=tested, relation=TESTED, tried=variable
            )
            result[variable] = reader.condition(definition.this)
        return tuple(result.items())

    # AFTER MATCH SKIP

    def _skip(self, reader: Reader, found: Automaton, names: dict[str, str]) -> Skip:
        after = self.node.args.get("after")
        if after is None:
            return Skip("past last row")
        if notes(self.node).get("per_part"):
            what = "AFTER MATCH in ONE ROW PER PART, where a key goes on from part to part"
            raise unsupported(self.node, what, "leave it out")
        parts = _SKIPS.fullmatch(after.name.strip())
        if parts is None:
            raise unsupported(self.node, f"{after.name} is not SQL", "write AFTER MATCH SKIP PAST LAST ROW")
        mode, name = parts.group(1).lower(), parts.group(2)
        if mode == "past last row":
            return Skip("past last row")
        if mode == "to next row":
            return Skip("to next row")
        variable = names.get((name or "").strip("`").lower())
        if variable is None:
            raise FivmError(
                "FIVM102",
                f"{after.name}: {name} is no variable of the pattern",
                span=span_of(self.node),
                remedy="correct the name",
            )
        is_first = mode == "to first"
        if _begins_with(found, variable, only=not is_first):
            what = f"{after.name} leads to the first row of the match, which would be found for ever"
            raise unsupported(self.node, what, "skip to another row")
        position = Scalar.column(ROW, POSITION)
        register = (reader.first if is_first else reader.last)(variable, position, INT)
        return Skip("to first" if is_first else "to last", register.name, variable)


def _begins_with(found: Automaton, variable: str, *, only: bool) -> bool:
    """Whether each match begins with a row for a variable; ``only``: and has no other row for it."""
    if any(found.symbols[state - 1] != variable for state in found.first):
        return False
    entered = {state for moves in found.follow for state in moves if state != ACCEPT}
    return not only or not entered & set(found.states_of(variable))


class MatchReader(MatchTokensClause, ClauseReader):
    """Reads MATCH_RECOGNIZE."""

    argument = "match"

    def check(self, sql: str) -> None:
        refuse_in_matches(sql)

    def place(self, query: exp.Query, sql: str) -> None:
        place_matches(query, sql)

    def lower(self, lowering: Lowering, part: Part, node: exp.MatchRecognize) -> Part:
        if part.carried:
            what = "MATCH_RECOGNIZE over a query that depends on the query around the subquery"
            raise unsupported(node, what, "match in a model of its own")
        return matched(lowering, part, node)


CLAUSES.append(MatchReader())
