"""``window``, ``session_window`` and ``window_time`` become joins with windows and numbered sessions in DuckDB."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from fivm_dbt.engines.duckdb.unsupported import UnsupportedStatement
from fivm_dbt.functions.function import Kind
from fivm_dbt.functions.lookup import is_kind
from fivm_dbt.ir.calls import function_name
from fivm_dbt.ir.intervals import microseconds
from fivm_dbt.ir.scalar import Scalar

_ALIAS, _START, _SESSION = "fivm_time_window", "fivm_window_start", "fivm_session"


def without_time_windows(ast: exp.Expr) -> exp.Expr:
    """``ast`` with the windows of each SELECT spelled out; changes ``ast``.

    >>> from fivm_dbt.ir.dialect import SparkText
    >>> sql = "select count(*) as n from r group by window(ts, '1 hour')"
    >>> print(without_time_windows(SparkText().parse(sql)[0]).sql("duckdb"))
    SELECT COUNT(*) AS n FROM r CROSS JOIN LATERAL (SELECT UNNEST(GENERATE_SERIES(TIME_BUCKET(\
TO_MICROSECONDS(3600000000), ts, MAKE_TIMESTAMP(0)), ts - TO_MICROSECONDS(3600000000) + TO_MICROSECONDS(1), \
TO_MICROSECONDS(-3600000000)))) AS fivm_time_window(fivm_window_start) \
GROUP BY {'start': fivm_time_window.fivm_window_start, \
'end': fivm_time_window.fivm_window_start + TO_MICROSECONDS(3600000000)}
    """
    for select in reversed(list(ast.find_all(exp.Select))):
        calls = [part for part in _own_parts(select) if is_kind(part, Kind.TIME_WINDOW)]
        windows = [c for c in calls if function_name(c) != "window_time"]
        if windows:
            _spell_out(select, windows[0])
    for call in [c for c in ast.find_all(exp.Anonymous) if c.name.lower() == "window_time"]:
        (window,) = call.expressions
        end = exp.Dot(this=window.copy(), expression=exp.to_identifier("end", quoted=True))
        call.replace(exp.paren(exp.Sub(this=end, expression=_interval(1))))
    return ast


def _own_parts(node: exp.Select) -> Iterator[exp.Expr]:
    clauses = (node.args.get(key) for key in ("group", "having", "qualify", "order"))
    for part in (*node.expressions, *(c for c in clauses if c is not None)):
        yield from part.walk(prune=lambda p: isinstance(p, exp.Query))


def _spell_out(select: exp.Select, call: exp.Expr) -> None:
    name = function_name(call) or ""
    time, *rest = (e.copy() for e in call.expressions)
    lengths = [_micros(part) for part in rest]
    if name == "session_window":
        struct = _session(select, call, time, lengths[0])
    else:
        length = lengths[0]
        slide = lengths[1] if len(lengths) > 1 else length
        offset = lengths[2] if len(lengths) > 2 else 0
        struct = _windows(select, time, length, slide, offset)
    for part in [*_own_parts(select)]:
        is_bare = isinstance(part, exp.Column) and not part.table and part.name.lower() == name
        if function_name(part) == name or (is_bare and not _is_argument(part)):
            _put(select, part, struct.copy(), name)
        elif isinstance(part, exp.Column) and part.table.lower() == name and not _is_argument(part):
            field = exp.Dot(this=struct.copy(), expression=exp.to_identifier(part.name, quoted=True))
            _put(select, part, field, part.name)


def _aggregates(node: exp.Expr) -> bool:
    return any(is_kind(part, Kind.AGGREGATE) for part in node.walk(prune=lambda p: isinstance(p, exp.Query)))


def _is_argument(node: exp.Expr) -> bool:
    """Whether it stands in the call of a window: there it is a column of the relation."""
    parent = node.parent
    while parent is not None and not isinstance(parent, exp.Select):
        if function_name(parent) in ("window", "session_window"):
            return True
        parent = parent.parent
    return False


def _put(select: exp.Select, old: exp.Expr, new: exp.Expr, name: str) -> None:
    if old.parent is select and old.arg_key == "expressions":
        new = exp.alias_(new, exp.to_identifier(name, quoted=True))
    old.replace(new)


def _windows(select: exp.Select, time: exp.Expr, length: int, slide: int, offset: int) -> exp.Expr:
    """A lateral join with the starts of all windows that contain the time."""
    origin = exp.Anonymous(this="MAKE_TIMESTAMP", expressions=[exp.Literal.number(offset)])
    last = exp.Anonymous(this="TIME_BUCKET", expressions=[_interval(slide), time.copy(), origin])
    after = exp.Sub(this=time.copy(), expression=_interval(length))
    first = exp.Add(this=after, expression=_interval(1))
    series = exp.Anonymous(this="GENERATE_SERIES", expressions=[last, first, _interval(-slide)])
    made = exp.Select(expressions=[exp.Anonymous(this="UNNEST", expressions=[series])])
    alias = exp.TableAlias(this=exp.to_identifier(_ALIAS), columns=[exp.to_identifier(_START)])
    lateral = exp.Lateral(this=exp.Subquery(this=made), alias=alias)
    select.append("joins", exp.Join(this=lateral, kind="CROSS"))
    start = exp.column(_START, table=_ALIAS)
    return _struct(start, exp.Add(this=start.copy(), expression=_interval(length)))


def _session(select: exp.Select, call: exp.Expr, time: exp.Expr, gap: int) -> exp.Expr:
    """The session of each row of the one relation of a SELECT; a row is one by itself where they are not grouped by."""
    written = _group_keys(select)
    keys = [k.copy() for k in written if function_name(k) != "session_window"]
    if len(keys) == len(written):
        select.where(exp.Not(this=exp.Is(this=time.copy(), expression=exp.Null())), copy=False)
        return _struct(time, exp.Add(this=time.copy(), expression=_interval(gap)))
    source = select.args["from_"].this
    if select.args.get("joins") or select.args.get("laterals"):
        raise UnsupportedStatement("session_window over a join")
    alias = exp.TableAlias(this=exp.to_identifier(source.alias_or_name))

    def over(function: exp.Expr, partition: list[exp.Expr], order: exp.Expr | None) -> exp.Expr:
        by = exp.Order(expressions=[exp.Ordered(this=order.copy())]) if order is not None else None
        return exp.Window(this=function, partition_by=[p.copy() for p in partition], order=by, over="OVER")

    before = exp.Add(
        this=over(exp.Anonymous(this="LAG", expressions=[time.copy()]), keys, time), expression=_interval(gap)
    )
    is_first = exp.Coalesce(this=exp.GT(this=time.copy(), expression=before), expressions=[exp.true()])
    where: exp.Expr = exp.Not(this=exp.Is(this=time.copy(), expression=exp.Null()))
    given_where = select.args.get("where")
    if given_where is not None:
        where = exp.and_(given_where.this.copy(), where)
        select.set("where", None)
    rows = exp.select("*", exp.alias_(is_first, "fivm_is_first")).from_(source.copy()).where(where)
    flag = exp.Case(
        ifs=[exp.If(this=exp.column("fivm_is_first"), true=exp.Literal.number(1))],
        default=exp.Literal.number(0),
    )
    # With the frame that ends behind the last row of the same time: which of these has the flag is open.
    number = over(exp.Sum(this=flag), keys, time)
    numbered = exp.select("*", exp.alias_(number, "fivm_number")).from_(
        exp.Subquery(this=rows, alias=alias.copy())
    )
    inside = [*keys, exp.column("fivm_number")]
    start = over(exp.Min(this=time.copy()), inside, None)
    end = exp.Add(this=over(exp.Max(this=time.copy()), inside, None), expression=_interval(gap))
    ended = exp.select("*", exp.alias_(_struct(start, end), _SESSION))
    ended = ended.from_(exp.Subquery(this=numbered, alias=alias.copy()))
    source.replace(exp.Subquery(this=ended, alias=alias.copy()))
    return exp.column(_SESSION)


def _group_keys(select: exp.Select) -> list[exp.Expr]:
    """What a SELECT groups by."""
    group = select.args.get("group")
    if group is None:
        return []
    given = {e.alias.lower(): e.this for e in select.expressions if isinstance(e, exp.Alias)}
    is_all = bool(group.args.get("all"))
    listed = [e for e in select.expressions if not _aggregates(e)] if is_all else group.expressions
    return [_meant(key.unalias(), select, given) for key in listed]


def _meant(key: exp.Expr, select: exp.Select, given: dict[str, exp.Expr]) -> exp.Expr:
    if isinstance(key, exp.Literal) and key.is_int:
        ordinal: exp.Expr = select.expressions[int(key.name) - 1]
        return ordinal.unalias()
    if isinstance(key, exp.Column) and not key.table:
        found = given.get(key.name.lower())
        if found is not None and function_name(found) == "session_window":
            return found
    return key


def _struct(start: exp.Expr, end: exp.Expr) -> exp.Expr:
    parts = (("start", start), ("end", end))
    made = [exp.PropertyEQ(this=exp.to_identifier(n), expression=v.copy()) for n, v in parts]
    return exp.Struct(expressions=made)


def _interval(micros: int) -> exp.Expr:
    return exp.Anonymous(this="TO_MICROSECONDS", expressions=[Scalar.number(micros).ast()])


def _micros(node: exp.Expr) -> int:
    if isinstance(node, exp.Literal) and not node.is_string:
        return int(node.name)
    found = microseconds(node.name) if isinstance(node, exp.Literal) else None
    if found is None:
        raise UnsupportedStatement(f"{node.sql('spark')} as a length of time")
    return found
