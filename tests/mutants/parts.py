"""Breaks of models by time parts."""

from __future__ import annotations

from mutants.mutant import Mutant

PARTS = (
    Mutant(
        "late-part-stays",
        "late rows do not have the parts computed again that read theirs",
        "features/viewdf/parts/schedule.py",
        "Recurrence.affected",
        old="changed.get(reference.relation, Intervals())) - start",
        new="changed.get(reference.relation, Intervals())) & start",
        tests="tests/test_scenarios.py -k viewdf/",
    ),
    Mutant(
        "part-does-not-wait",
        "a part is computed though a part that it reads is not there yet",
        "features/viewdf/parts/schedule.py",
        "Recurrence._missing",
        old="return needed - there[reference.relation]",
        new="return Intervals()",
        tests="tests/test_parts.py",
    ),
    Mutant(
        "following-part-stays",
        "of a model that reads itself the part after a changed one stays as it was",
        "features/viewdf/refresh/order.py",
        "PartOrder._following",
        old="& computed) - run",
        new="& run) - computed",
        tests="tests/test_scenarios.py -k viewdf/",
    ),
    Mutant(
        "interrupted-part-stays",
        "parts that an interrupted refresh has written are not computed again",
        "features/viewdf/refresh/wanted.py",
        "PartsWanted._written_before",
        old="wanted = written\n",
        new="wanted = written - written\n",
        tests="tests/test_viewdf.py -k interrupted",
    ),
    Mutant(
        "late-part-appended",
        "a part that an interrupted refresh has written is written beside it",
        "features/viewdf/refresh/writer.py",
        "PartWriter.write",
        old="append_parts if is_new else replace_parts",
        new="append_parts",
        tests="tests/test_viewdf.py -k new_part_is_there_once",
    ),
    Mutant(
        "records-replaced",
        "a part that is written again takes along what heads of before have recorded",
        "features/viewdf/spark/statements.py",
        "is_new",
        old="exp.and_(is_in_tail(), is_later, copy=False)",
        new="is_in_tail()",
        tests="tests/test_part_catalog.py -k from_which_versions",
    ),
    Mutant(
        "periods-without-what-they-had",
        "a period that is written anew has what has changed in it alone",
        "features/viewdf/spark/compared.py",
        "Anew._after",
        old="exp.union(was, moved, distinct=False, copy=False)",
        new="moved",
        tests="tests/test_viewdf_random.py -k test_random_models",
    ),
    Mutant(
        "compared-with-nothing",
        "a part that is computed again is taken for changed whatever it had",
        "features/viewdf/spark/compared.py",
        "compared_query",
        old="side(stored(plan, plan.top, before, reading_these(plan, compared)), 0, -1)",
        new="side(stored(plan, plan.top, before, reading_these(plan, compared)), 0, 0)",
        tests="tests/test_viewdf.py -k comes_to_what_it_was",
    ),
)
"""A part is computed when all that it reads is there, and again when that has changed."""
