"""Lowering reads an argument of a node, or refuses it and says what to do instead."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from sqlglot import exp

Kinds = type[exp.Expr] | tuple[type[exp.Expr], ...]


@dataclass(frozen=True)
class Read:
    """An argument that lowering reads, or that is written back to Spark as it is.

    ``kinds`` are the only nodes, ``values`` the only words or flags that it may be.
    """

    kinds: Kinds | None = None
    values: tuple[object, ...] | None = None


@dataclass(frozen=True)
class Refused:
    """An argument that is not read: what is said, and what to do instead."""

    what: str
    remedy: str = "leave it out"
    code: Literal["FIVM105", "FIVM106"] = "FIVM105"


@dataclass(frozen=True)
class Node:
    """The arguments of a node, and the parents under which alone it may stand; none given means any."""

    arguments: Mapping[str, Read | Refused]
    under: Kinds | None = None
    remedy: str = "write it as Spark SQL does"
    called: str = ""


def foreign(what: str, remedy: str = "leave it out") -> Refused:
    return Refused(f"{what} is not Spark SQL", remedy)


def read(*names: str) -> dict[str, Read | Refused]:
    return dict.fromkeys(names, READ)


READ = Read()
UNUSUAL = foreign("this clause")
"""What the grammar of another system has, and Spark's has not."""
