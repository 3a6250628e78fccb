"""Categorical variables of a covariance become groups: no category is encoded as a column (Definition 9).

What a call is spelled as is what is maintained and recomputed. Counts and sums by category add up. The list of cells of
a group that has changed is made anew of them. A category whose count is zero has no group, and so no cell.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.ir.places import notes
from fivm_dbt.rings.covariances import cell_type, moments_type
from fivm_dbt.sql.category_call import Categorical, cells_type
from fivm_dbt.sql.category_groups import SeveralAggregates
from fivm_dbt.sql.category_sets import OneAggregate
from fivm_dbt.sql.covariances import Covariance, is_covariance, with_named_variables
from fivm_dbt.sql.named_arguments import with_arguments_in_order
from fivm_dbt.sql.parse import parse


def type_with_cells(found: Covariance, types: Sequence[SparkType]) -> SparkType:
    """The type of a covariance with categorical variables."""
    m = len(found.variables)
    weight = types[m] if found.weight is not None else None
    plain, value = moments_type(types[:m], weight), cell_type(types[:m], weight)
    return SparkType.of(f"{plain.text[:-1]},cells:{cells_type(value)}>")


def spelled_by_groups(sql: str, found: Categorical) -> str:
    """The text with the call as a join of groups. FIVM105 where its SELECT does more than group."""
    query = with_named_variables(with_arguments_in_order(parse(sql)))
    call = next(
        c for c in query.find_all(exp.Anonymous) if is_covariance(c) and notes(c).get("start") == found.place
    )
    select = call.find_ancestor(exp.Select)
    assert select is not None, "a call stands in a SELECT"
    together = OneAggregate(call, select, found)
    new = together.select() if together.is_few else SeveralAggregates(call, select, found).select()
    if select is query:
        return new.sql(dialect="spark")
    select.replace(new)
    return query.sql(dialect="spark")
