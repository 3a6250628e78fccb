"""Values that many columns share are computed once below them, and only such as are computed anyway."""

from __future__ import annotations

from sqlglot import exp, parse_one

from fivm_dbt.catalog.types import INT
from fivm_dbt.ir.nodes import Join
from fivm_dbt.ir.reads import Read, Scan
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.spark.shared_values import select_shared

IS_USED = "CASE WHEN a.x IS NULL OR b.y IS NULL THEN 0 ELSE 1 END"


def _written(*columns: str, renamed: int = 0) -> str:
    """The query of columns over ``a JOIN b``, in which so many columns have the same name on both sides."""
    same = tuple((f"c{n}", INT) for n in range(renamed))
    a = Scan("a", "a", (("k", INT), ("x", INT), *same))
    b = Scan("b", "b", (("l", INT), ("y", INT), *same))
    node = Join((a, b), (Scalar.parse("a.k = b.l"),))

    def reader(read: Read) -> exp.Expr:
        return exp.to_table(read.source.relation, alias=read.source.alias)

    values: list[exp.Expr] = [
        exp.alias_(parse_one(c, dialect="spark"), f"v{n}") for n, c in enumerate(columns)
    ]
    return select_shared(values, node, reader).sql(dialect="spark")


def test_the_largest_common_value_is_a_column() -> None:
    found = _written("a.k", *(f"{value} * ({IS_USED})" for value in ("a.x", "b.y", "a.x * b.y")))
    assert found.count("CASE") == 1
    assert found.startswith(
        "SELECT k AS v0, x * (__fivm_shared_1) AS v1, y * (__fivm_shared_1) AS v2, x * y * (__fivm_shared_1) AS v3 "
    )
    assert f"{IS_USED} AS __fivm_shared_1 FROM a AS a INNER JOIN b AS b ON a.k = b.l) AS shared" in found


def test_few_or_small_values_stay() -> None:
    for columns in (
        [f"{v} * ({IS_USED})" for v in ("a.x", "b.y")],
        ["a.x + 1", "a.x + 1 + b.y", "a.x + 1 + a.k"],
    ):
        assert "shared" not in _written(*columns)


def test_what_is_computed_of_some_rows_alone_stays() -> None:
    """A CASE keeps an error from happening: its branches are not computed before it."""
    quotient = "1 / (a.x - b.y) + 1 / (a.k - b.l)"
    guarded = [f"CASE WHEN a.x > {n} THEN {quotient} END" for n in range(4)]
    assert "shared" not in _written(*guarded)
    for function in (
        "COALESCE(a.x, {}, {})",
        "NVL2(a.x, {}, {})",
        "IF(a.x > 0, {}, {})",
        "DECODE(a.x, 1, {}, {})",
    ):
        assert "shared" not in _written(*(function.format(quotient, n) for n in range(4))), function
    assert "shared" not in _written(*(f"TRANSFORM(ARRAY({n}), e -> e + {quotient})" for n in range(4)))
    assert _written(*guarded, *(f"{n} * ({quotient})" for n in range(3))).count(quotient) == 1


def test_of_the_same_name_on_both_sides_few_are_renamed() -> None:
    """Spark infers conditions of each new name, and of all combinations of them."""

    def columns(many: int) -> list[str]:
        sums = " + ".join(f"a.c{n} * b.c{n}" for n in range(many))
        return [f"{n} * ({IS_USED} + {sums})" for n in range(3)]

    few = _written(*columns(1), "a.c0", "b.c0", renamed=1)
    assert "a.c0 AS __fivm_a_c0, b.c0 AS __fivm_b_c0" in few and few.startswith(
        "SELECT 0 * (__fivm_shared_1)"
    )
    assert "shared" not in _written(*columns(2), "a.c0", "b.c0", "a.c1", "b.c1", renamed=2)
