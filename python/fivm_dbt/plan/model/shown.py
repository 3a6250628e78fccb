"""A plan shows its choices to people: all that matters to a refresh is in its views."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TreeView:
    """A view of a view tree: how deep it stands, what it is of, and its relation where it is kept."""

    depth: int
    variable: str
    keys: tuple[str, ...]
    relations: tuple[str, ...]
    payload: tuple[str, ...]
    kept: str | None
    reason: str


@dataclass(frozen=True)
class ViewTree:
    """The views of a block of the query, for people: everything in it is in the views of the plan.

    ``order`` is its variable order, None where it has recursive maps instead. ``implied`` is what the class of the
    query says about costs, ``costs`` what a changed row of each relation meets in this tree.
    """

    block: str
    variables: tuple[tuple[str, tuple[str, ...]], ...]
    order: str | None
    chosen: str
    query_class: str
    views: tuple[TreeView, ...]
    implied: str = ""
    costs: tuple[str, ...] = ()
    branches: tuple[tuple[str, int], ...] = ()
    """The order's variables, parents first, each with how deep it stands."""
    static: tuple[str, ...] = ()
    """The relations of the block that never change."""


@dataclass(frozen=True)
class InequalityHelper:
    """What is kept of an aggregate that is correlated by an inequality, for people: all of it is in the views.

    ``way`` is one of ``fivm_inequality``, ``views`` are the relations kept for it; ``costs`` are rows per refresh by
    way, as they were estimated, and ``without_ranges`` says why ranges were none of them.
    """

    comparison: str
    way: str
    reason: str
    views: tuple[str, ...]
    costs: tuple[tuple[str, int], ...]
    without_ranges: str | None = None
