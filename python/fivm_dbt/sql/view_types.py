"""A view keeps the types that its columns had when it was created; those of its tables may be others by now."""

from __future__ import annotations

from collections.abc import Iterable

from fivm_dbt.catalog import DatabaseView
from fivm_dbt.errors import FivmError
from fivm_dbt.naming import quote
from fivm_dbt.sql.typing import Describe
from fivm_dbt.sql.unfold import unfold


def check_types(views: Iterable[DatabaseView], describe: Describe) -> None:
    """Raises FIVM303 where a view would have to cast what its query gives: Spark does so by rules of its own.

    One question to Spark for all views.
    """
    known = tuple(views)
    kept = [view for view in known if view.types]
    if not kept:
        return
    shown = ", ".join(f"{view.name} AS {quote(f'v{i}')}" for i, view in enumerate(kept))
    columns = iter(describe(unfold(f"SELECT * FROM {shown}", known).sql))
    for view in kept:
        for type_ in view.types:
            column = next(columns, None)
            if column is None or column.type != type_:
                now = "is gone" if column is None else f"{column.name} is {column.type} now"
                raise FivmError(
                    "FIVM303",
                    f"{view.name} was created over other tables: {now}, and was {type_}",
                    remedy="create the view anew, with dbt run where it is a model",
                )
    if next(columns, None) is not None:
        what = ", ".join(view.name for view in kept)
        raise FivmError("FIVM303", f"{what}: a view has more columns now", remedy="create the view anew")
