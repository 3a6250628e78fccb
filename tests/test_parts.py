"""Parts of models: sets of them, references, readiness in any order of arrival, late data; against brute force."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from fivm_dbt.errors import FivmError
from fivm_dbt.features.viewdf.parts.schedule import Recurrence, in_order
from fivm_dbt.parts.intervals import Intervals
from fivm_dbt.parts.reference import Bound, PartReference

AROUND = range(-40, 41)


def some(rng: random.Random, share: float = 0.5) -> set[int]:
    return {p for p in AROUND if rng.random() < share}


class TestIntervals:
    def test_as_sets(self) -> None:
        rng = random.Random(1)
        for _ in range(300):
            a, b = some(rng, rng.random()), some(rng, rng.random())
            one, other = Intervals.numbers(a), Intervals.numbers(b)
            assert (set(one | other), set(one & other), set(one - other)) == (a | b, a & b, a - b)
            assert (len(one), list(one)) == (len(a), sorted(a))
            assert {p for p in AROUND if p in one} == a
            if a:
                assert (one.first, one.last) == (min(a), max(a))
                assert set(one.gaps) == {p for p in range(min(a), max(a)) if p not in a}

    def test_one_range_for_years(self) -> None:
        years = Intervals.of((0, 10**9))
        assert str(years - Intervals.of((500, 500))) == "0..499, 501..1000000000"

    def test_nothing(self) -> None:
        nothing = Intervals.of((3, 2))
        assert (str(nothing), len(nothing), bool(nothing), nothing.gaps) == ("none", 0, False, nothing)
        with pytest.raises(ValueError, match="no first"):
            _ = nothing.first
        with pytest.raises(ValueError, match="no last"):
            _ = nothing.last


class TestBound:
    @pytest.mark.parametrize(
        ("text", "meaning"),
        [
            ("j", lambda j: j),
            ("i - 1", lambda j: j - 1),
            ("J*60 + 59", lambda j: 60 * j + 59),
            ("60 * (j + 1) - 1", lambda j: 60 * (j + 1) - 1),
            ("j / 24", lambda j: j // 24),
            ("(j - 5) / 24 + 1", lambda j: (j - 5) // 24 + 1),
            ("2 + j / 7", lambda j: 2 + j // 7),
            ("j * 2 - j", lambda j: j),
            ("-3 + j div 2", lambda j: -3 + j // 2),
            ("(2*j + 1) / 3 / 2", lambda j: (2 * j + 1) // 6),
        ],
    )
    def test_is_what_it_says(self, text: str, meaning: Callable[[int], int]) -> None:
        bound = Bound.of(text)
        assert [bound.at(j) for j in AROUND] == [meaning(j) for j in AROUND]
        assert Bound.of(str(bound)) == bound
        for part in AROUND:
            fitting = [j for j in range(-4000, 4001) if bound.at(j) >= part]
            assert bound.least_reaching(part) == min(fitting)
            assert bound.greatest_within(part) == max(j for j in range(-4000, 4001) if bound.at(j) <= part)

    @pytest.mark.parametrize(
        "text",
        ["k", "j*j", "j + ", "j * 1.5", "60 / j", "j / 0", "5", "-j", "5 - j", "j % 2", "m.j", "(j / 2) * 3"],
    )
    def test_what_is_no_bound(self, text: str) -> None:
        with pytest.raises(FivmError, match="FIVM205"):
            Bound.of(text)


REFERENCES = (
    PartReference.of("m", "j"),
    PartReference.of("m", "j-3", "j-1"),
    PartReference.of("m", "j*6", "j*6+5"),
    PartReference.of("m", "j*6", "j*6+17"),
    PartReference.of("m", "j/4"),
    PartReference.of("m", "j/4-1", "(j+2)/4"),
    PartReference.of("m", "j*5"),
)


class TestReference:
    @pytest.mark.parametrize("reference", REFERENCES, ids=str)
    def test_dependents_are_those_that_read_a_changed_part(self, reference: PartReference) -> None:
        rng = random.Random(2)
        for _ in range(50):
            changed = some(rng, 0.1)
            expected = {j for j in range(-300, 300) if set(reference.parts(j)) & changed}
            assert set(reference.dependents(Intervals.numbers(changed))) == expected

    @pytest.mark.parametrize(("low", "high"), [("j", "j-1"), ("j", "j*2"), ("j/2", "j")])
    def test_ends_that_do_not_go_together(self, low: str, high: str) -> None:
        with pytest.raises(FivmError, match="FIVM205"):
            PartReference.of("m", low, high)


class Naive:
    """What parts of a model are, looked at one by one."""

    def __init__(self, model: Recurrence, first: int) -> None:
        self.model, self.first = model, first

    def needs(self, part: int) -> set[tuple[str, int]]:
        references = self.model.initial if part == self.first else self.model.references
        needed = {(r.relation, p) for r in references for p in r.parts(part)}
        return {(name, p) for name, p in needed if name != self.model.relation or p >= self.first}

    def ready(self, computed: set[int], there: dict[str, set[int]]) -> set[int]:
        known = {(name, p) for name, parts in there.items() for p in parts}
        found: set[int] = set()
        for part in range(self.first, 400):
            own = {(self.model.relation, p) for p in computed | found}
            if part not in computed and self.needs(part) <= known | own:
                found.add(part)
        return found


HELPER = Recurrence(
    "h", (PartReference.of("m", "j"), PartReference.of("h", "j-1")), (PartReference.of("m", "i"),)
)
MODELS = (
    Recurrence("v", (PartReference.of("m", "j"),), (PartReference.of("m", "i"),)),
    HELPER,
    Recurrence("hourly", (PartReference.of("m", "j*6", "j*6+5"),), (PartReference.of("m", "i*6", "i*6+5"),)),
    Recurrence(
        "banded",
        (PartReference.of("m", "j-2", "j"), PartReference.of("n", "j")),
        (PartReference.of("n", "i"),),
    ),
    Recurrence(
        "weekly",
        (PartReference.of("m", "j"), PartReference.of("weekly", "j-7"), PartReference.of("weekly", "j-1")),
        (PartReference.of("m", "i"),),
    ),
    Recurrence(
        "finer", (PartReference.of("m", "j/3"), PartReference.of("n", "j")), (PartReference.of("n", "i"),)
    ),
)


class TestSchedule:
    @pytest.mark.parametrize("model", MODELS, ids=lambda m: m.relation)
    def test_ready_parts(self, model: Recurrence) -> None:
        rng = random.Random(3)
        for _ in range(150):
            there = {"m": some(rng, rng.choice([0.0, 0.5, 0.9, 1.0])), "n": some(rng, rng.choice([0.7, 1.0]))}
            first = rng.randrange(-8, 3)
            computed = {p for p in some(rng, 0.3) if p >= first} if rng.random() < 0.7 else set[int]()
            known = {name: Intervals.numbers(parts) for name, parts in there.items()}
            ready = model.ready(first, Intervals.numbers(computed), known)
            assert set(ready) == Naive(model, first).ready(computed, there), (first, computed, there)

    def test_any_order_of_arrival_ends_with_all_parts(self) -> None:
        rng = random.Random(4)
        for model in MODELS:
            arrivals = [(name, p) for name in ("m", "n") for p in range(60)]
            rng.shuffle(arrivals)
            there: dict[str, set[int]] = {"m": set(), "n": set()}
            computed = Intervals()
            for name, part in arrivals:
                there[name].add(part)
                known = {n: Intervals.numbers(parts) for n, parts in there.items()}
                computed |= model.ready(2, computed, known)
            known = {n: Intervals.of((0, 59)) for n in there}
            assert computed == model.ready(2, Intervals(), known) and len(computed) > 5

    def test_a_range_of_event_time(self) -> None:
        known = {"m": Intervals.of((0, 100))}
        ready = MODELS[0].ready(0, Intervals(), known, within=Intervals.of((10, 12)))
        assert str(ready) == "10..12"

    def test_where_to_begin(self) -> None:
        """The paper's footnote: S has parts up to 394464, T up to 394462, and the first part is 394462."""
        joined = Recurrence("v", (), (PartReference.of("s", "i"), PartReference.of("t", "i")))
        known = {"s": Intervals.of((394000, 394464)), "t": Intervals.of((394100, 394462))}
        assert joined.first_part("newest", known) == 394462
        assert joined.first_part("oldest", known) == 394100
        assert joined.first_part(7, known) == 7
        assert joined.first_part("newest", {"s": known["s"]}) is None
        hours = Recurrence("v3", (), (PartReference.of("m", "i*60", "i*60+59"),))
        assert hours.first_part("newest", {"m": Intervals.of((100, 300))}) == 4
        assert hours.first_part("oldest", {"m": Intervals.of((100, 300))}) == 2

    def test_late_data_of_figure_3(self) -> None:
        """M[9] comes, late rows into M[5]: Helper[9] is computed, Helper[5] again, and what changes with it."""
        computed = Intervals.of((1, 8))
        known = {"m": Intervals.of((1, 9))}
        assert str(HELPER.ready(1, computed, known)) == "9"
        affected = HELPER.affected(1, {"m": Intervals.of((5, 5), (9, 9))}, computed)
        assert str(affected) == "5"
        again: list[int] = []

        def has_changed(part: int) -> bool:
            again.append(part)
            return part < 7

        assert str(HELPER.recompute(affected, computed, has_changed)) == "5..6"
        assert again == [5, 6, 7], "the seventh is the same as before, and the eighth is not looked at"

    def test_recomputing_equals_computing_from_scratch(self) -> None:
        rng = random.Random(5)
        for model in (HELPER, MODELS[4]):
            values = {p: rng.randrange(3) for p in range(60)}

            def content(
                part: int, parts: dict[int, int], values: dict[int, int] = values, model: Recurrence = model
            ) -> int:
                before = sum(parts.get(p, 0) for r in model.own for p in r.parts(part))
                return (values[part] + before) // 2

            parts: dict[int, int] = {}
            for p in range(60):
                parts[p] = content(p, parts)
            for _ in range(40):
                changed = rng.sample(range(60), rng.randint(1, 3))
                for p in changed:
                    values[p] = rng.randrange(3)
                done: list[int] = []

                def has_changed(part: int, parts: dict[int, int] = parts, done: list[int] = done) -> bool:
                    done.append(part)
                    new = content(part, parts)
                    return parts.pop(part) != parts.setdefault(part, new)

                computed = Intervals.of((0, 59))
                affected = model.affected(0, {"m": Intervals.numbers(changed)}, computed)
                model.recompute(affected, computed, has_changed)
                again: dict[int, int] = {}
                for p in range(60):
                    again[p] = content(p, again)
                assert parts == again
                assert done == sorted(done), "each part once, after those that it is computed from"

    def test_models_after_those_that_they_read(self) -> None:
        view = Recurrence("v", (PartReference.of("h", "j"),), (PartReference.of("h", "i"),))
        assert [m.relation for m in in_order((view, HELPER))] == ["h", "v"]
        one = Recurrence("a", (PartReference.of("b", "j"),), ())
        other = Recurrence("b", (PartReference.of("a", "j-1"),), ())
        with pytest.raises(FivmError, match=r"FIVM205 .*a → b → a"):
            in_order((one, other))

    @pytest.mark.parametrize("high", ["j", "j+1", "j*2", "j/2"])
    def test_a_model_reads_its_earlier_parts_alone(self, high: str) -> None:
        with pytest.raises(FivmError, match=r"FIVM205 .*not before the one computed"):
            Recurrence("v", (PartReference.of("v", high),), ())

    def test_the_first_part_has_none_before_it(self) -> None:
        with pytest.raises(FivmError, match=r"FIVM205 .*of which there is no part yet"):
            Recurrence("v", (), (PartReference.of("v", "i-1"),))
