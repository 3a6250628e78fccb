"""The catalog of a model's parts is a view over the heads of its state: each says what its refresh has recorded.

So a part is recorded in the commit that writes it, and to look costs whoever looks. The rows of own parts are counted
then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot import exp

from fivm_dbt.catalog.types import BIGINT, STRING
from fivm_dbt.features.viewdf.plan.model import PART, ViewdfPlan
from fivm_dbt.features.viewdf.spark.queries import period_at
from fivm_dbt.features.viewdf.spark.statements import part_rows
from fivm_dbt.ir.scalar import as_type, column_ast
from fivm_dbt.naming import COVERAGE, OF, parts_of
from fivm_dbt.parts.length import Length
from fivm_dbt.plan.model.head import RECORDING
from fivm_dbt.spark.heads import COVERED, is_in_tail
from fivm_dbt.spark.part_catalog import COLUMNS
from fivm_dbt.spark.part_time import start_of
from fivm_dbt.spark.pieces import table
from fivm_dbt.spark.properties import owner_properties
from fivm_dbt.spark.state import create_view

_ENTRY, _RANGE, _WHAT, _RELATION, _REFRESH = "entry", "range", "what", "relation", "refresh"
_AT, _VERSIONS = "recorded_at", "versions"
_COMES, _GOES = ("computed", "seen"), ("dropped", "lost")
"""What makes a part one that is there, and what ends that: of the model itself, and of an input."""


def parts_view(plan: ViewdfPlan) -> exp.Create:
    """The catalog: a row for each part of the model, and of each input as the model has seen it."""
    own = part_rows(plan, None).subquery("own", copy=False)
    is_same = exp.and_(
        exp.EQ(this=column_ast("found", _RELATION), expression=exp.Literal.string(plan.relation)),
        exp.EQ(this=column_ast("found", PART), expression=column_ast("own", PART)),
    )
    found = exp.select("found.*", "own.rows").from_(_parts(plan).subquery("found", copy=False), copy=False)
    found = found.join(own, on=is_same, join_type="left", copy=False)
    values = _columns(plan)
    columns = [exp.alias_(as_type(values[name], type_.lower()), name) for name, type_ in COLUMNS.items()]
    query = exp.select(*columns).from_(found.subquery("parts", copy=False), copy=False)
    return create_view(parts_of(plan.relation), query, owner_properties(plan))


def _columns(plan: ViewdfPlan) -> dict[str, exp.Expr]:
    """The columns of the catalog, over what has been recorded of a part."""
    is_own = exp.EQ(this=exp.column(_RELATION), expression=exp.Literal.string(plan.relation))
    begins = _by_relation(plan, {name: start_of(exp.column(PART), of) for name, of in _lengths(plan).items()})
    lengths = {name: exp.Literal.string(str(of)) for name, of in _lengths(plan).items()}
    is_gone = exp.GTE(this=exp.column("gone"), expression=exp.column("came"))
    is_merged = exp.column("merged").is_(exp.null()).not_()
    status = exp.Case(
        ifs=[
            exp.If(this=is_gone, true=exp.Literal.string("dropped")),
            exp.If(this=exp.not_(is_own), true=exp.Literal.string("there")),
            exp.If(this=is_merged, true=exp.Literal.string("merged")),
        ],
        default=exp.Literal.string("computed"),
    )
    counted = exp.Coalesce(this=exp.column("rows"), expressions=[exp.Literal.number(0)])
    return {
        "model": exp.Literal.string(plan.relation),
        "relation": exp.column(_RELATION),
        "part": exp.column(PART),
        "part_timestamp": begins,
        "length": _by_relation(plan, lengths),
        "status": status,
        "row_count": exp.Case(ifs=[exp.If(this=is_own.copy(), true=counted)]),
        "last_updated": exp.column("updated"),
        "input_versions": exp.column(_VERSIONS),
        "refresh": exp.column(_REFRESH),
        "merged_into": exp.Case(
            ifs=[exp.If(this=is_merged.copy(), true=period_at(begins.copy(), plan.parts.length))]
        ),
    }


def _parts(plan: ViewdfPlan) -> exp.Select:
    """By relation and part what has been recorded of it."""
    refresh, what = exp.column(_REFRESH), exp.column(_WHAT)

    def last(names: tuple[str, ...], value: exp.Expr) -> exp.Expr:
        is_one = exp.In(this=what.copy(), expressions=[exp.Literal.string(name) for name in names])
        return exp.Case(ifs=[exp.If(this=is_one, true=value)])

    came = last(_COMES, refresh.copy())
    versions = exp.ArgMax(this=exp.column(_VERSIONS), expression=came.copy())
    columns: dict[str, exp.Expr] = {
        "came": exp.Max(this=came),
        "gone": exp.Max(this=last(_GOES, refresh.copy())),
        "merged": exp.Max(this=last(("merged",), refresh.copy())),
        "updated": exp.Max(this=last(("changed", "seen"), exp.column(_AT))),
        _VERSIONS: versions,
        _REFRESH: exp.Max(this=refresh),
    }
    keys = [exp.column(_RELATION), exp.column(PART)]
    query = exp.select(*keys, *(exp.alias_(value, name) for name, value in columns.items()))
    query = query.from_(_numbered(plan).subquery("recorded", copy=False), copy=False)
    return query.group_by(*(key.copy() for key in keys), copy=False)


def _numbered(plan: ViewdfPlan) -> exp.Select:
    """A row for each part of each range of each entry of a recording."""
    # "1..3" has both of its ends, "6" is both.
    low, high = (
        as_type(exp.Anonymous(this="ELEMENT_AT", expressions=[_ends(), exp.Literal.number(n)]), BIGINT.text)
        for n in (1, -1)
    )
    each = exp.Explode(this=exp.GenerateSeries(start=low, end=high))
    own = [exp.column(name) for name in (_REFRESH, _AT, _VERSIONS, _RELATION, _WHAT)]
    return exp.select(*own, exp.alias_(each, PART)).from_(_ranges(plan).subquery("ranges", copy=False))


def _ends() -> exp.Expr:
    return exp.Split(this=exp.column(_RANGE), expression=exp.Literal.string(".."))


def _ranges(plan: ViewdfPlan) -> exp.Select:
    entry = [exp.Dot(this=exp.column(_ENTRY), expression=exp.to_identifier(n)) for n in (_RELATION, _WHAT)]
    ranges = exp.Dot(this=exp.column(_ENTRY), expression=exp.to_identifier("ranges"))
    each = exp.Explode(this=exp.Split(this=ranges, expression=exp.Literal.string(", ")))
    own = [exp.column(name) for name in (_REFRESH, _AT, _VERSIONS)]
    query = exp.select(*own, *entry, exp.alias_(each, _RANGE))
    query = query.from_(_entries(plan).subquery("entries", copy=False), copy=False)
    return query.where(exp.NEQ(this=ranges.copy(), expression=exp.Literal.string("none")), copy=False)


def _entries(plan: ViewdfPlan) -> exp.Select:
    """A row for each entry of the recording of each finished refresh."""
    entries = [
        exp.Struct(
            expressions=[
                exp.PropertyEQ(this=exp.to_identifier(_RELATION), expression=exp.Literal.string(relation)),
                exp.PropertyEQ(this=exp.to_identifier(_WHAT), expression=exp.Literal.string(what)),
                exp.PropertyEQ(this=exp.to_identifier("ranges"), expression=_told(path)),
            ]
        )
        for relation, what, path in _paths(plan)
    ]
    columns = {
        _REFRESH: as_type(_told("refresh"), BIGINT.text),
        _AT: as_type(_told("recorded_at"), "timestamp"),
        _VERSIONS: _told(f"detail.{RECORDING}.versions"),
        _ENTRY: exp.Explode(this=exp.Array(expressions=entries)),
    }
    query = exp.select(*(exp.alias_(value, name) for name, value in columns.items()))
    is_head = exp.EQ(this=exp.column(OF), expression=exp.Literal.string(COVERED))
    # The head of a refresh that is open repeats what the last finished one has recorded.
    is_finished = _told("open").is_(exp.null())
    query = query.from_(table(plan.layout.relation), copy=False)
    return query.where(is_in_tail(), is_head, is_finished, copy=False)


def _told(path: str) -> exp.Expr:
    """What the coverage of a head has at a path."""
    return as_type(
        exp.Anonymous(
            this="GET_JSON_OBJECT", expressions=[exp.column(COVERAGE), exp.Literal.string(f"$.{path}")]
        ),
        STRING.text,
    )


def _paths(plan: ViewdfPlan) -> Iterator[tuple[str, str, str]]:
    """Relation, what is recorded of its parts, and where a head has these parts."""
    for what in ("computed", "changed", "dropped", "merged"):
        yield plan.relation, what, f"detail.{RECORDING}.{what}"
    for at, item in enumerate(plan.parts.recorded_inputs):
        yield item.relation, "seen", f"detail.{RECORDING}.inputs[{at}]"
        yield item.relation, "lost", f"detail.{RECORDING}.lost[{at}]"


def _lengths(plan: ViewdfPlan) -> dict[str, Length]:
    return {plan.relation: plan.parts.length, **{i.relation: i.own for i in plan.parts.recorded_inputs}}


def _by_relation(plan: ViewdfPlan, values: Mapping[str, exp.Expr]) -> exp.Expr:
    """What differs from relation to relation."""
    *others, last = values.items()
    ifs = [
        exp.If(this=exp.EQ(this=exp.column(_RELATION), expression=exp.Literal.string(name)), true=value)
        for name, value in others
    ]
    return exp.Case(ifs=ifs, default=last[1]) if ifs else last[1]
