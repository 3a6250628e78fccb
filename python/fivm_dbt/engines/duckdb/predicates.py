"""Truth values differ in DuckDB for IN over a query inside an expression, and for conditions on arrays."""

from __future__ import annotations

from sqlglot import exp

MACROS = (
    "CREATE MACRO spark_exists(truths) AS CASE WHEN list_contains(truths, TRUE) THEN TRUE "
    "WHEN len(truths) = list_count(truths) THEN FALSE END",
    "CREATE MACRO spark_forall(truths) AS CASE WHEN list_contains(truths, FALSE) THEN FALSE "
    "WHEN len(truths) = list_count(truths) THEN TRUE END",
)
"""Over the truth values of an array's elements: NULL where unknown ones decide."""


def with_known_membership(ast: exp.Expr) -> exp.Expr:
    """``ast`` with every IN over a query that is a value as Spark has it; changes ``ast``.

    Spark moves NOT inwards and then makes an existence join of ``x IN (q)``, and another one of ``x NOT IN (q)``:
    whichever it is, it is false where SQL says unknown. In a condition there is no difference.

    >>> import sqlglot
    >>> def shown(sql): return with_known_membership(sqlglot.parse_one(sql, dialect="spark")).sql("duckdb")
    >>> shown("select a in (select b from q) as i from r")
    'SELECT COALESCE(a IN (SELECT b FROM q), FALSE) AS i FROM r'
    >>> shown("select not (a in (select b from q) and c) as i from r")
    'SELECT NOT (COALESCE(a IN (SELECT b FROM q), TRUE) AND c) AS i FROM r'
    >>> shown("select 1 from r where not (a in (select b from q) and c)")
    'SELECT 1 FROM r WHERE NOT (a IN (SELECT b FROM q) AND c)'
    """
    for node in list(ast.find_all(exp.In)):
        if node.args.get("query") is None:
            continue
        where, is_negated = _context(node)
        if isinstance(where, (exp.Where, exp.Having, exp.Qualify, exp.If, exp.Join)):
            continue
        known = exp.Coalesce(expressions=[exp.Boolean(this=is_negated)])
        node.replace(known)
        known.set("this", node)
        ast = known if node is ast else ast
    return ast


def _context(node: exp.Expr) -> tuple[exp.Expr | None, bool]:
    """What stands around the AND, OR and NOT above ``node``, and whether these negate it."""
    is_negated = False
    while (parent := node.parent) is not None:
        if isinstance(parent, exp.Not):
            is_negated = not is_negated
        elif isinstance(parent, exp.EQ) and any(
            isinstance(e, exp.Boolean) for e in (parent.left, parent.right)
        ):
            is_negated ^= exp.false() in (parent.left, parent.right)
        elif not isinstance(parent, (exp.And, exp.Or, exp.Paren)):
            return (None if isinstance(parent, exp.If) and parent.this is not node else parent), is_negated
        node = parent
    return None, is_negated


def to_array_condition(node: exp.Expr) -> exp.Expr:
    """``EXISTS(array, x -> ...)``, ``FORALL(array, x -> ...)``."""
    if isinstance(node, exp.Exists):
        name, array, condition = "spark_exists", node.this, node.args.get("expression")
    else:
        name, (array, condition) = "spark_forall", node.expressions
    if not isinstance(condition, exp.Lambda):
        return node
    truths = exp.Transform(this=array.copy(), expression=condition.copy())
    return exp.Anonymous(this=name, expressions=[truths])
