"""Views of the database become CTEs of the text that reads them, before anything else looks at it.

With ``V`` a view whose query is ``Q_V``, ``Q[V] = WITH v AS (Q_V) Q[v]``: what is planned, maintained and recomputed is
a text over tables, as where dbt writes an ephemeral model into it. The CTEs stand before those of the text, each after
those that it reads, so that no name in a view's query can mean a CTE of another text.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from fivm_dbt.catalog import DatabaseView
from fivm_dbt.errors import FivmError, Span
from fivm_dbt.naming import quote, relation_name, split_name, unfolded_name, unique_name
from fivm_dbt.sql.edits import Edit, Text, without_comments
from fivm_dbt.sql.functions import own_functions
from fivm_dbt.sql.parse import parse, span_of, unsupported
from fivm_dbt.sql.relations import Named, names_a_cte, relations_read


@dataclass(frozen=True)
class _Piece:
    """A stretch of a text. It stands for ``length`` characters of the model (``view`` is None) or of a view, or none.

    These are at ``start``; they are None where it was made here.
    """

    text: str
    view: DatabaseView | None = None
    start: int | None = None
    length: int = 0


@dataclass(frozen=True)
class Unfolded:
    """A text over tables alone, and the views that were read in it, each after those that it reads."""

    written: str
    views: tuple[DatabaseView, ...] = ()
    pieces: tuple[_Piece, ...] = ()

    @cached_property
    def sql(self) -> str:
        return "".join(piece.text for piece in self.pieces) if self.pieces else self.written

    def place(self, span: Span) -> tuple[DatabaseView | None, Span]:
        """Where a stretch of the text was written: in the model's own text (None), or in that of a view."""
        begin, found, behind = 0, _Piece(self.written, None, 0, len(self.written)), 0
        for piece in self.pieces:
            if piece.start is not None and begin <= span.start:
                found, behind = piece, begin
            begin += len(piece.text)
        # Behind the last character something may be put in.
        most = found.length if len(found.text) == found.length else max(0, found.length - 1)
        ends = (span.start - behind, span.end - 1 - behind)
        start, last = ((found.start or 0) + min(end, most) for end in ends)
        return found.view, Span(start, last + 1)

    def placed(self, error: FivmError) -> FivmError:
        """An error about this text as one about the text that somebody wrote: the model's, or that of a view."""
        if error.span is None or not self.pieces or error.sql not in (None, self.sql):
            return error
        view, error.span = self.place(error.span)
        error.sql = self.written if view is None else view.sql
        if view is not None:
            error.message = f"{error.message} (in view {view.name})"
        return error

    @cached_property
    def through(self) -> dict[str, tuple[str, ...]]:
        """The relations that are read through views, and what the model's own text calls on the way to each.

        That are views, and a relation itself where the text names it too.
        """
        known = {view.name: view for view in self.views}
        found: dict[str, list[str]] = {}
        for named in relations_read(self.written) if known else ():
            open_, seen = [relation_name(*split_name(named.name))], set[str]()
            while open_:
                name = open_.pop()
                if name in known and name not in seen:
                    seen.add(name)
                    open_ += [inner.name for inner in relations_of(known[name])]
                elif name not in known and name not in seen:
                    seen.add(name)
                    found.setdefault(name, []).append(relation_name(*split_name(named.name)))
        return {name: tuple(ways) for name, ways in found.items() if ways != [name]}


def unfold(sql: str, views: Iterable[DatabaseView]) -> Unfolded:
    """``sql`` with the queries of those views in it that it reads, directly or through others.

    >>> views = [DatabaseView("stg.v", "select k as id from r", "raw"), DatabaseView("stg.w", "select * from v", "stg")]
    >>> print(unfold("select w.id from stg.w", views).sql)
    WITH __fivm_v AS (
    select k as id from raw.r
    ),
    __fivm_w AS (
    select * from __fivm_v AS v
    )
    select w.id from __fivm_w AS w

    Raises FIVM101 where the text of a view cannot be read, FIVM303 where a view has no query that means the same here.
    """
    known = {view.name: view for view in views}
    if not known or not any(n.name in known for n in relations_read(sql)):
        return Unfolded(sql)
    reading = _Reading(known)
    own = reading.pieces(sql, None)
    ctes: list[_Piece] = []
    for view in reading.read:
        ctes += [_Piece(f"{reading.names[view.name]}{_renamed(view)} AS (\n"), *reading.bodies[view.name]]
        ctes.append(_Piece("\n),\n"))
    return Unfolded(sql, tuple(reading.read), tuple(_before(sql, ctes, own)))


def relations_of(view: DatabaseView) -> tuple[Named, ...]:
    """The relations that a view's query reads. Raises FIVM101 where it cannot be read."""
    try:
        named = relations_read(view.sql)
    except FivmError as error:
        raise _in_view(error, view) from None
    return tuple(Named(view.relation(split_name(n.name)), n.span) for n in named)


def definition(view: DatabaseView) -> str:
    """What a view means, as far as its own text says it: the columns that it shows, and its query without comments."""
    text = without_comments("".join(piece.text for piece in _Reading({}).pieces(view.sql, view)))
    if view.selected and _has_star(parse(view.sql)):
        return f"{', '.join(_as(*names) for names in _shown(view))} of {text}"
    return f"{_renamed(view)} {text}".lstrip()


class _Reading:
    """The views that are read from one text on, and their names as CTEs."""

    def __init__(self, known: Mapping[str, DatabaseView]) -> None:
        self._known = known
        self.read: list[DatabaseView] = []
        self.names: dict[str, str] = {}
        self.bodies: dict[str, list[_Piece]] = {}
        self._open: list[str] = []

    def pieces(self, sql: str, view: DatabaseView | None) -> list[_Piece]:
        """A text with the names of views that are read, and of what they read, in the places of those written."""
        query, edits = parse(sql), list[Edit]()
        for table in query.find_all(exp.Table):
            parts = [p for p in (table.args.get("catalog"), table.args.get("db"), table.this) if p]
            if not isinstance(table.this, exp.Identifier) or names_a_cte(table):
                continue
            written = [p.name for p in parts]
            name = relation_name(*written) if view is None else view.relation(written)
            span = _span(parts)
            if name in self._known:
                alias = "" if table.alias or table.args.get("version") else f" AS {quote(written[-1])}"
                edits.append(Edit(span.start, span.end - span.start, self._cte(self._known[name]) + alias))
            elif name != relation_name(*written):
                edits.append(Edit(span.start, span.end - span.start, name))
        edits += _unqualified(query, self._known, view)
        return list(_cut(sql, edits, view))

    def _cte(self, view: DatabaseView) -> str:
        """The name of the CTE that a view is."""
        if view.name in self._open:
            way = " reads ".join([*self._open[self._open.index(view.name) :], view.name])
            raise FivmError("FIVM303", f"a view reads itself: {way}", remedy="create the view anew")
        if view.name not in self.names:
            self._open.append(view.name)
            body = self._body(view)
            self._open.pop()
            taken = {name.strip("`") for name in self.names.values()}
            self.names[view.name] = quote(unique_name(unfolded_name(view.name), taken))
            self.bodies[view.name] = body
            self.read.append(view)
        return self.names[view.name]

    def _body(self, view: DatabaseView) -> list[_Piece]:
        """What stands in the brackets of a view's CTE."""
        try:
            query = parse(view.sql)
            for call in own_functions(query):
                what = f"{call.name} is a function of your own, and may be another one where the view was created"
                raise unsupported(call, what, "call it in the model")
            body = self.pieces(view.sql, view)
            if not view.selected or not _has_star(query):
                return body
            shown = ", ".join(_as(*names) for names in _shown(view))
        except FivmError as error:
            raise _in_view(error, view) from None
        alias = quote(split_name(view.name)[-1])
        return [_Piece(f"SELECT {shown} FROM (\n"), *body, _Piece(f"\n) AS {alias}")]


def _in_view(error: FivmError, view: DatabaseView) -> FivmError:
    if error.sql is None or error.sql == view.sql:
        error.message = f"{error.message} (in view {view.name})"
    return error.located(sql=view.sql)


def _before(sql: str, ctes: list[_Piece], own: list[_Piece]) -> Iterator[_Piece]:
    """The CTEs, before those of the text itself."""
    tokens = Text(sql).tokens
    if tokens[0].token_type == TokenType.WITH:
        is_recursive = len(tokens) > 1 and tokens[1].token_type == TokenType.RECURSIVE
        after = tokens[int(is_recursive)].end + 1
        yield from _first(own, after)
        yield _Piece(" ")
        yield from ctes
    else:
        after = tokens[0].start
        yield from _first(own, after)
        yield _Piece("WITH ")
        yield from ctes[:-1]
        yield _Piece("\n)\n")
    yield from _rest(own, after)


def _first(own: list[_Piece], length: int) -> Iterator[_Piece]:
    """The first characters of a text: names of relations come later, so they are all as written."""
    yield _Piece(own[0].text[:length], None, 0, length)


def _rest(own: list[_Piece], length: int) -> Iterator[_Piece]:
    yield _Piece(own[0].text[length:], None, length, len(own[0].text) - length)
    yield from own[1:]


def _cut(sql: str, edits: Collection[Edit], view: DatabaseView | None) -> Iterator[_Piece]:
    """The text with the edits, in pieces that know where they are from."""
    done = 0
    for edit in sorted(edits, key=lambda e: e.position):
        yield _Piece(sql[done : edit.position], view, done, edit.position - done)
        yield _Piece(edit.text, view, edit.position, edit.length)
        done = edit.position + edit.length
    # A semicolon ends a statement, and not a CTE.
    end = len(sql)
    tokens = Text(sql).tokens
    while view is not None and tokens and tokens[-1].token_type == TokenType.SEMICOLON:
        end = tokens.pop().start
    yield _Piece(sql[done:end], view, done, end - done)


def _unqualified(
    query: exp.Query, known: Mapping[str, DatabaseView], view: DatabaseView | None
) -> Iterator[Edit]:
    """``stg.orders.id`` is ``orders.id`` where ``stg.orders`` is a CTE."""
    for column in query.find_all(exp.Column):
        parts = [
            p for p in (column.args.get("catalog"), column.args.get("db"), column.args.get("table")) if p
        ]
        if len(parts) < 2:
            continue
        written = [p.name for p in parts]
        if (relation_name(*written) if view is None else view.relation(written)) in known:
            start = _span(parts[:-1]).start
            yield Edit(start, _span(parts[-1:]).start - start, "")


def _span(parts: list[exp.Expr]) -> Span:
    first, last = span_of(parts[0]), span_of(parts[-1])
    if first is None or last is None:
        raise ValueError(f"no place of {'.'.join(p.name for p in parts)}")
    return Span(first.start, last.end)


def _has_star(query: exp.Expr) -> bool:
    """Whether the columns of a query depend on those that its tables have."""
    if isinstance(query, exp.SetOperation):
        return _has_star(query.this) or _has_star(query.expression)
    if isinstance(query, exp.Subquery):
        return _has_star(query.this)
    return any(p.is_star for p in getattr(query, "selects", []))


def _shown(view: DatabaseView) -> Iterator[tuple[str, str]]:
    """The columns of a view whose query has a star: as the query calls them, and as the view does."""
    lower = [name.lower() for name in view.selected]
    if len(lower) != len(set(lower)):
        what = "several columns of * have one name, so that * does not tell which of them it shows"
        raise FivmError("FIVM303", what, remedy="list the columns in the view's query")
    return zip(view.selected, view.names or view.selected, strict=True)


def _as(name: str, shown: str) -> str:
    return quote(name) if name == shown else f"{quote(name)} AS {quote(shown)}"


def _renamed(view: DatabaseView) -> str:
    """The list of a view's own names, behind that of its CTE."""
    if not view.names or view.names == view.selected or (view.selected and _has_star(parse(view.sql))):
        return ""
    return f"({', '.join(map(quote, view.names))})"
