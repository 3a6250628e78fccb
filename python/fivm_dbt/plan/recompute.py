"""A model that is not maintained has a Plan too: its own text runs anew whenever an input moved (``fivm_policy``).

The state has the user's columns and no multiplicity: rows are kept as the text gives them, also such that cannot be
grouped. Everything else is as for other plans: pinned versions, the head, the view, models over this one.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from fivm_dbt.catalog import Catalog, Column, check_records_changes
from fivm_dbt.catalog.types import INT
from fivm_dbt.config import Config
from fivm_dbt.errors import FivmError
from fivm_dbt.ir.moments import is_utc
from fivm_dbt.ir.node import Item
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.naming import split_name
from fivm_dbt.plan.layout.partitioning import by_period, choose_partitioning
from fivm_dbt.plan.layout.written import stored_columns, written_view
from fivm_dbt.plan.model.inputs import PlanInput
from fivm_dbt.plan.model.plan import RecomputedPlan
from fivm_dbt.plan.model.recompute import Recompute, RecomputedParts
from fivm_dbt.plan.model.state import Partitioning
from fivm_dbt.plan.recomputed_parts import recomputed_parts
from fivm_dbt.plan.retention import not_kept, retained
from fivm_dbt.rewrite.pipeline import rewrite
from fivm_dbt.sql.lower import lower
from fivm_dbt.sql.parse import is_beyond_spark, parse
from fivm_dbt.sql.relations import relations_read
from fivm_dbt.sql.repeatable import clock_read, reads_a_past, why_not_repeatable, why_other_each_time
from fivm_dbt.sql.splice import over_no_rows
from fivm_dbt.sql.typing import Describe, Typer

if TYPE_CHECKING:
    from fivm_dbt.plan.request import ModelRequest


logger = logging.getLogger(__name__)


def recompute_plan(
    relation: str, request: ModelRequest, columns_of: Describe, reason: FivmError | None
) -> RecomputedPlan:
    """The plan that runs the text as it stands; ``reason`` is why it cannot be maintained, None where nobody tried.

    ``columns_of`` tells the columns of a query without running it. Raises ``reason`` itself where a recompute has no
    answer either: the text is wrong, reads a version of its own, or its columns are no columns of a table. A text with
    MATCH_RECOGNIZE, which Spark does not know, is read as if it were maintained: so its patterns can be written out.
    """
    sql, catalog, config = request.text, request.catalog, request.config
    query = parse(sql)
    past = reads_a_past(query)
    if past is not None and reason is None:
        reason = FivmError(
            "FIVM105", f"{past.sql('spark')} reads a version of its own", remedy="read the plain table"
        )
    if past is not None and reason is not None:
        raise reason
    inputs = _inputs(sql, catalog, reason)
    for name in retained(catalog, config):
        raise not_kept(split_name(relation)[-1], name, "is recomputed as a whole")
    lowered = lower(sql, catalog, part_length=config.part_length) if is_beyond_spark(sql) else None
    output = (
        lowered.columns
        if lowered is not None
        else _output(over_no_rows(sql, catalog.relations), columns_of, reason)
    )
    keys, shown = stored_columns(output, "recomputed")
    parts = _parts(request, output, keys) if reason is None else None
    by = _partitioning(keys, shown, config, parts)
    written = written_view(request.kept_under, output, keys, shown, by, how="written as a whole")
    names = frozenset(c.name.lower() for i in inputs for c in i.columns)
    return RecomputedPlan(
        relation=relation,
        sql=request.sql,
        database_views=request.unfolded.views,
        config=config,
        session=tuple(sorted(request.session)),
        inputs=inputs,
        query=written.core,
        views=(written,),
        output=output,
        completions=lowered.completions if lowered is not None else (),
        matches=lowered.matches if lowered is not None else (),
        recompute=Recompute(
            in_words(reason) if reason is not None else _as_configured(config),
            why_other_each_time(query, names) is not None,
            tuple(sorted(clock_read(query, names))),
            # What could be lowered has one answer, once it is completed.
            None if lowered is not None else why_not_repeatable(query, names),
            parts,
        ),
    )


def _parts(
    request: ModelRequest, output: tuple[Column, ...], keys: tuple[Item, ...]
) -> RecomputedParts | None:
    """How parts of the result are recomputed, where the strategy asks for a recompute and no more.

    None where the text cannot be read, or has several right answers: two of them must not be mixed.
    """
    if request.config.fivm_policy == "full" or "time_ranges" in request.config.fivm_without:
        return None
    try:
        lowered = lower(request.text, request.catalog)
    except FivmError as error:
        logger.debug("no parts of the result are known: %s", error)
        return None
    if lowered.completions or len(lowered.names) != len(keys):
        return None
    stored = {c.name: k for c, k in zip(output, keys, strict=True)}
    if set(stored) != set(lowered.names):
        return None
    return recomputed_parts(rewrite(lowered.node), stored, lowered.names, is_utc=is_utc(request.session))


def _as_configured(config: Config) -> str:
    return "fivm_policy: full" if config.fivm_policy == "full" else "fivm_strategy: reevaluate"


def in_words(error: FivmError) -> str:
    """An error in one line, as the reason of a recompute."""
    return f"{error.code.number} {error.code.title}: {error.message}"


def _inputs(sql: str, catalog: Catalog, reason: FivmError | None) -> tuple[PlanInput, ...]:
    """Every relation that the text names, with all its columns: nothing is known of which it reads."""
    found = []
    for named in relations_read(sql):
        relation = catalog.find(named.name)
        if relation is None:
            raise reason or FivmError(
                "FIVM103",
                f"{named.name} is not a relation of this model",
                span=named.span,
                remedy="use ref()",
            )
        check_records_changes(relation)
        found.append(PlanInput(relation, relation.columns, False))
    return tuple(found)


def _output(question: str, columns_of: Describe, reason: FivmError | None) -> tuple[Column, ...]:
    """The columns of the text. Whatever is wrong with it, the error that it had at first says it best."""
    try:
        columns = columns_of(question)
    except Exception as error:
        why = str(error).strip().split("\n")[0]
        raise reason or FivmError(
            "FIVM101", f"Spark does not accept it: {why}", remedy="correct the SQL"
        ) from error
    names = [c.name.lower() for c in columns]
    double = sorted({n for n in names if names.count(n) > 1})
    if double:
        raise reason or FivmError(
            "FIVM112", f"several columns are called {', '.join(double)}", remedy="give each its own alias"
        )
    for column in columns:
        if "interval" in column.type.text or column.type.text == "void":
            raise reason or FivmError(
                "FIVM111", f"{column.name} has type {column.type}, which no table can store", remedy="CAST it"
            )
    return columns


def _partitioning(
    keys: tuple[Item, ...],
    shown: tuple[tuple[str, Scalar], ...],
    config: Config,
    parts: RecomputedParts | None,
) -> Partitioning:
    """As configured: a table that is written as a whole gains nothing by partitions of its own."""
    if config.fivm_partition_by is None:
        time = next((k for k in keys if parts is not None and k.name == parts.column), None)
        if time is not None:
            return by_period(time, config.batch_size or "month")
        return Partitioning("bucket", None, INT, "written as a whole", 1)
    names = {name.lower(): key.name for (name, _), key in zip(shown, keys, strict=True)}
    return choose_partitioning(keys, dict(names), config, Typer(), False)
