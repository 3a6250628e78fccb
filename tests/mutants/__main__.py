"""``make mutants``: break the product in one place after the other, and see that the tests notice it."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mutants.every import MUTANTS
from mutants.mutant import DoesNotApply, Mutant
from mutants.trial import Broken, Noticed, check_tree, copy_tree, try_mutant

REPOSITORY = Path(__file__).resolve().parent.parent.parent


def main() -> int:
    """Zero where each mutant is noticed."""
    given = _arguments()
    chosen = [m for m in MUTANTS if not given.only or m.name in given.only]
    if unknown := set(given.only) - {m.name for m in chosen}:
        print(f"no mutant is called {', '.join(sorted(unknown))}")
        return 2
    with (
        tempfile.TemporaryDirectory(prefix="fivm-mutants-") as place,
        ThreadPoolExecutor(given.processes) as threads,
    ):
        whole = Path(place) / "whole"
        copy_tree(REPOSITORY, whole)
        tried = threads.map(lambda m: _try(m, whole, only_likely=given.only_likely), chosen)
        noticed = [_tell(mutant, found) for mutant, found in zip(chosen, tried, strict=True)]
    print(f"{sum(noticed)} of {len(chosen)} mutants are noticed")
    return 0 if all(noticed) else 1


def _try(mutant: Mutant, whole: Path, *, only_likely: bool) -> Noticed | str:
    """Who noticed a mutant in a copy of the whole tree, or why it could not be tried."""
    tree = whole.parent / mutant.name
    try:
        shutil.copytree(whole, tree)
        mutant.apply(tree)
        check_tree(tree)
        return try_mutant(mutant, tree, whole=whole, only_likely=only_likely)
    except (Broken, DoesNotApply, subprocess.CalledProcessError) as why:
        return str(why)
    finally:
        shutil.rmtree(tree, ignore_errors=True)


def _tell(mutant: Mutant, found: Noticed | str) -> bool:
    if isinstance(found, str):
        line = f"ERROR    {mutant.name}: {found}"
    elif found.test is None:
        line = f"SURVIVED {mutant.name} ({found.seconds:.0f} s): {mutant.says} ({mutant.place})"
    else:
        where = "" if found.is_likely else ", not by a likely test"
        line = f"noticed  {mutant.name} ({found.seconds:.0f} s{where}): {found.test}"
    print(line, flush=True)
    return not isinstance(found, str) and found.test is not None


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__)
    parser.add_argument("only", nargs="*", help="names of mutants, all if none is given")
    parser.add_argument("--processes", type=int, default=2, help="so many are tried at a time")
    parser.add_argument("--only-likely", action="store_true", help="run no tests but the likely ones")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
