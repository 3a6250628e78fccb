"""These lines say what a plan does with changes that are products."""

from __future__ import annotations

from collections.abc import Iterator

from fivm_dbt.delta.products import FactorisedDelta, ProductDelta
from fivm_dbt.delta.term import scans
from fivm_dbt.ir.node import Side
from fivm_dbt.naming import split_name
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.plan.model.view import View


def product_lines(plan: Plan) -> Iterator[str]:
    """Which staged changes are looked at, and what views above make of a product; nothing where none are."""
    for view in plan.views:
        if view.split is not None:
            yield f"{view.name}: {plan.config.fivm_product_rows:,} changed rows or more may be"
            yield f"  {_form(view.split)}"
        # Whichever change below made a product of a view's, what it is met with is the same.
        yield from dict.fromkeys(_product(view, product) for product in view.products)


def _form(delta: FactorisedDelta) -> str:
    """``Δ[j, k] = ⊎ factor_1[j] ⊗ factor_2[k]``."""
    keys = ", ".join(name for factor in delta.factors for name, _ in factor.keys)
    factors = " ⊗ ".join(
        f"factor_{n}[{', '.join(name for name, _ in f.keys)}]" for n, f in enumerate(delta.factors, start=1)
    )
    return f"Δ[{keys}] = ⊎ {factors}"


def _product(view: View, product: ProductDelta) -> str:
    """How a view's delta is computed by that product."""
    numbers = {factor.name: n for n, factor in enumerate(product.of.factors, start=1)}
    lines = [f"{view.name}, where the change of {_short(product.of.view)} is a product:"]
    for number, part in enumerate(product.parts, start=1):
        names = [
            f"factor_{numbers[s.relation]}"
            if s.side is Side.DELTA
            else f"{s.side.value} {_short(s.relation)}"
            for s in scans(part.node)
        ]
        keys = ", ".join(name for name, _ in part.factor.keys)
        lines.append(f"part_{number}[{keys}] = γ({' ⋈ '.join(names)})")
    keys = ", ".join(k.name for k in view.state.keys)
    lines.append(f"Δ[{keys}] = ⊎ {' ⊗ '.join(f'part_{n}' for n in range(1, len(product.parts) + 1))}")
    return "\n  ".join(lines)


def _short(relation: str) -> str:
    return split_name(relation)[-1]
