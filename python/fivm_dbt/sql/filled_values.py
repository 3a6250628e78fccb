"""``last_value(x) IGNORE NULLS`` in a frame by RANGE gets a text with one answer where rows tie.

Of the rows that are equal in ORDER BY the frame holds all or none. So the order cannot be completed: that would give
each of them a frame of its own. But with ``y`` the order, the last ``x`` of a frame that is not NULL is the ``x`` of
its greatest ``y``: ``max_by(x, y)`` over the same frame. Of several the greatest is taken: ``max_by(x, (y, x))``.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp


def filled(value: str, by: Sequence[str], order: Sequence[exp.Expr], *, last: bool) -> str | None:
    """The text in the place of the call; None for an order that goes up and down.

    ``by`` are the texts of the items of ``order``. A field of its own says where a NULL stands among them, so that
    nothing depends on how structs with NULLs compare.

    >>> from fivm_dbt.sql.parse import parse
    >>> order = parse("select * from r order by ts desc").args["order"].expressions
    >>> filled("x", ["ts"], order, last=True)
    "min_by(x, if((x) is null, null, named_struct('known_1', (ts) is not null, 'by_1', ts, 'value', x)))"
    """
    directions = {bool(item.args.get("desc")) for item in order}
    if len(directions) != 1 or len(by) != len(order):
        return None
    is_descending = directions.pop()
    fields = []
    for number, (text, item) in enumerate(zip(by, order, strict=True), start=1):
        is_least = bool(item.args.get("nulls_first")) != is_descending
        presence = "is not null" if is_least else "is null"
        fields.append(f"'known_{number}', ({text}) {presence}, 'by_{number}', {text}")
    extreme = "max_by" if last != is_descending else "min_by"
    struct = f"named_struct({', '.join(fields)}, 'value', {value})"
    return f"{extreme}({value}, if(({value}) is null, null, {struct}))"
