"""What is called slower, and how sure that is, on samples with a known truth."""

from __future__ import annotations

import math
import random

import pytest

pytest.importorskip("scipy")
from turns import significance
from turns.cases import Case
from turns.rounds import Samples

SLOW = 1.05


def case(name: str, unit: str = "seconds") -> Case:
    return Case(f"cpu.{name}.track_seconds", (), unit, "1", True)


def measured(rng: random.Random, true: float, noise: float, rounds: int, drift: list[float]) -> Samples:
    """Figures of a machine that drifts, is disturbed now and then, and places operands otherwise in each process."""
    values = []
    for number in range(rounds):
        burst = 1 + rng.expovariate(4) if rng.random() < 0.04 else 1.0
        values.append(true * math.exp(rng.gauss(0, noise)) * drift[number] * burst)
    return Samples(values)


def look(seed: int, rounds: int, factors: dict[Case, float], cases: list[Case]) -> tuple[dict, dict]:
    """A table of both builds; `factors` are head's."""
    rng = random.Random(seed)
    drift = [1 + 0.1 * math.sin(number + seed) for number in range(rounds)]
    table: tuple[dict, dict] = ({}, {})
    for i, one in enumerate(cases):
        true, noise = 1e-6 * 10 ** (i % 5), (0.003, 0.006, 0.01)[i % 3]
        for side, factor in zip(table, (1.0, factors.get(one, 1.0)), strict=True):
            side[one] = measured(rng, true * factor, noise, rounds, drift)
    return table


def decide(seed: int, factors: dict[Case, float], cases: list[Case]) -> significance.Outcome:
    first = look(seed, 4, factors, cases)
    return significance.judge(first, look(seed + 10_000, 10, factors, significance.suspects(first)))


CASES = [case(f"Case{i}") for i in range(100)]


@pytest.mark.parametrize("seed", range(10))
def test_a_kernel_that_is_slower_by_a_twentieth_is_caught(seed):
    """It is in a tenth of the cases, as a kernel is. None of the others is blamed, nor called faster."""
    slow = dict.fromkeys(CASES[:10], SLOW)
    found = decide(seed, slow, CASES)
    assert not found.ok and {c.case for c in found.slower} <= set(slow)
    assert not found.faster and not found.gone


@pytest.mark.parametrize("seed", range(20))
def test_nothing_is_found_where_nothing_is(seed):
    assert decide(seed, {}, CASES).ok


@pytest.mark.parametrize("seed", range(3))
def test_a_microsecond_more_for_a_call_is_caught(seed):
    call = CASES[0]  # 1 us
    found = decide(seed, {call: 2.0}, CASES)
    assert [c.case for c in found.slower] == [call]
    assert found.slower[0].low > 1.5


@pytest.mark.parametrize("seed", range(5))
def test_faster_is_no_failure(seed):
    found = decide(seed, dict.fromkeys(CASES[:10], 0.9), CASES)
    assert found.ok and {c.case for c in found.faster} <= set(CASES[:10]) and found.faster


def table_of(base: dict[Case, list], head: dict[Case, list]) -> tuple[dict, dict]:
    return {c: Samples(v) for c, v in base.items()}, {c: Samples(v) for c, v in head.items()}


def alternating(middle: float, part: float, rounds: int) -> list[float]:
    return [middle * (1 + part * (-1) ** number * (1 + number % 3)) for number in range(rounds)]


@pytest.mark.parametrize(("part", "tier"), [(0.001, 0.02), (0.02, 0.04), (0.05, 0.10), (0.8, None)])
def test_the_threshold_is_the_smallest_that_the_scatter_allows(part, tier):
    one = case("One")
    found = significance.changes(*table_of({one: [1e-3] * 12}, {one: alternating(1e-3, part / 2, 12)}))
    assert found[0].threshold == tier


def test_what_is_too_noisy_is_named_and_no_failure():
    one = case("One")
    table = table_of({one: [1e-3] * 6}, {one: [1e-3, 4e-3, 1e-3, 3e-3, 1e-3, 5e-3]})
    assert significance.suspects(table) == [one]
    found = significance.judge(table, table)
    assert found.ok and [c.case for c in found.noisy] == [one]


def test_what_has_no_figure_any_more_is_a_failure_with_its_reason():
    one, two = case("One"), case("Two")
    head = {one: Samples([None, None], "failed: no"), two: Samples([None, None], "no CUDA device")}
    table = {one: Samples([1.0, 1.0]), two: Samples([None, None], "no CUDA device")}, head
    found = significance.judge(table, ({}, {}))
    assert not found.ok and found.gone == [(one, "failed: no")]


def test_figures_without_scatter_are_compared_as_they_are():
    size = case("Size", "bytes")
    for grown, ok in ((1.01, True), (1.05, False), (0.5, True)):
        table = table_of({size: [1e6] * 4}, {size: [1e6 * grown] * 4})
        assert significance.judge(table, table).ok == ok


def test_nanoseconds_that_the_place_of_code_makes_do_not_count():
    call = case("Call")
    table = table_of({call: alternating(100e-9, 0.001, 10)}, {call: alternating(110e-9, 0.001, 10)})
    assert significance.judge(table, table).ok
    table = table_of({call: alternating(1000e-9, 0.001, 10)}, {call: alternating(1100e-9, 0.001, 10)})
    assert not significance.judge(table, table).ok


def test_rounds_without_a_figure_are_left_out():
    one = case("One")
    base, head = [1.0, None, 1.01, 1.0, 1.0], [None, 1.1, 1.1, 1.1, 1.1]
    assert significance.changes(*table_of({one: base}, {one: head}))[0].rounds == 3
    assert not significance.changes(*table_of({one: [1.0, None]}, {one: [None, 1.0]}))


def test_many_cases_have_to_be_surer_than_one():
    """Holm's correction: 0.004 is sure alone, and not as the least of a hundred."""
    assert significance._holm([0.004]) == [True]
    assert not any(significance._holm([0.004] + [0.5] * 99))
    assert significance._holm([1e-9, 0.5, 1e-8, 0.02]) == [True, False, True, False]


def test_scatter_is_half_the_distance_of_the_quartiles():
    assert significance.scatter([1.0, 1.0, 1.0]) == 0.0 == significance.scatter([3.0])
    assert significance.scatter([0.9, 1.0, 1.1]) == pytest.approx(0.05)
