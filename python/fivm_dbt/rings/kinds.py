"""Which numbers values of some types are added up in."""

from __future__ import annotations

from collections.abc import Sequence

from fivm_dbt.catalog import SparkType
from fivm_dbt.rings.decimals import Decimals
from fivm_dbt.rings.doubles import DOUBLES
from fivm_dbt.rings.integers import INTEGERS
from fivm_dbt.rings.numbers import Numbers


def numbers_for(types: Sequence[SparkType]) -> Numbers:
    """The numbers for products of factors of these types.

    >>> numbers_for([SparkType.of("decimal(12,2)"), SparkType.of("int"), SparkType.of("decimal(5,4)")]).type.text
    'decimal(38,6)'
    """
    if any(t.is_floating for t in types):
        return DOUBLES
    if any(t.is_decimal for t in types):
        return Decimals(0).over(types)
    return INTEGERS
