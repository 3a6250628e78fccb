"""An error about a name that does not exist suggests the name that was probably meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_ALIKE = 0.6
"""Share of letters in common from which two names are alike; below it difflib finds chance likenesses."""


def near_name(name: str, candidates: Iterable[str], alike: float = _ALIKE) -> str | None:
    """The candidate most like ``name``, whatever the case of its letters; None where none is.

    >>> near_name("Amuont", ["id", "amount"]), near_name("x", ["amount"])
    ('amount', None)
    """
    spelled: dict[str, str] = {}
    for candidate in candidates:
        spelled.setdefault(candidate.lower(), candidate)
    # Sorted, so that two candidates equally near give the same answer in every process.
    found = get_close_matches(name.lower(), sorted(spelled), n=1, cutoff=alike)
    return spelled[found[0]] if found else None


def did_you_mean(name: str, candidates: Iterable[str], alike: float = _ALIKE) -> str:
    """``did you mean X?`` for the candidate most like ``name``; empty where none is.

    >>> did_you_mean("fivm_stratgy", ("fivm_strategy", "fivm_policy"))
    'did you mean fivm_strategy?'
    >>> did_you_mean("zzz", ("fivm_strategy",))
    ''
    """
    found = near_name(name, candidates, alike)
    return f"did you mean {found}?" if found is not None else ""
