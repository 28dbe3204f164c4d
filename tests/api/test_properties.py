"""Properties on shapes, strides and values that nobody listed. Derandomised: a run on the same code finds the same, but
with ``--hypothesis-profile=long``. Far more calls in the same time: tools/fuzz."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastlinalg as fl
from support.accuracy import assert_equal_values, assert_same_bits, assert_within, oracle
from support.fuzz import random_calls
from support.fuzz.random_calls import check, numbers

sizes = st.integers(0, 70)
seeds = st.integers(0, 2**32 - 1)
DEVICES = [pytest.param("cpu"), pytest.param("cuda", marks=pytest.mark.gpu)]
on_each_device = pytest.mark.parametrize("device", DEVICES)


def draw(rng, kind, *shape):
    return numbers(rng, kind, shape)


class Drawn:
    """What `random_calls` draws, by hypothesis, which finds the smallest call that fails."""

    def __init__(self, data) -> None:
        self.data, self.rng = data, np.random.default_rng(data.draw(seeds))

    def one_of(self, choices):
        return self.data.draw(st.sampled_from(choices))

    def between(self, least: int, most: int) -> int:
        return self.data.draw(st.integers(least, most))


@on_each_device
@given(st.data())
def test_random_calls(device, data):
    check(Drawn(data), device)


@pytest.mark.parametrize("fault", ["in an element", "in an operand", "in the second run"])
def test_a_fault_is_noticed(fault, monkeypatch):
    right, runs = random_calls.call, itertools.count()

    def wrong(case, arrays, out):
        got = right(case, arrays, out)
        target = arrays["a"] if fault == "in an operand" else got
        if target.ndim and target.size and (fault != "in the second run" or next(runs) % 2):
            at = (0,) * target.ndim
            target[at] = np.nextafter(target[at], 9) if fault == "in the second run" else not target[at]
        return got

    monkeypatch.setattr(random_calls, "call", wrong)
    with pytest.raises(AssertionError):
        for number in range(20):
            check(random_calls.Draws(0, number))


# ---------------------------------------------------------------- what calls have to do with each other
@on_each_device
@given(sizes, sizes, sizes, seeds)
def test_transpose_of_a_product(device, m, n, k, seed):
    rng = np.random.default_rng(seed)
    a, b = draw(rng, "normal", m, k), draw(rng, "normal", k, n)
    left, right = fl.matmul(a, b, device=device).T, fl.matmul(b.T, a.T, device=device)
    _, bound = oracle(b.T, a.T)
    assert_within(right, left.astype(np.float64), 2 * bound)


@on_each_device
@given(sizes, sizes, sizes, seeds)
def test_rows_and_columns_scaled_by_powers_of_two(device, m, n, k, seed):
    rng = np.random.default_rng(seed)
    a, b = draw(rng, "normal", m, k), draw(rng, "normal", k, n)
    rows, columns = rng.integers(-30, 30, (m, 1)), rng.integers(-30, 30, n)
    once = fl.matmul(a, b, device=device, precision="strict")
    scaled = fl.matmul(np.ldexp(a, rows), np.ldexp(b, columns), device=device, precision="strict")
    assert_same_bits(scaled, np.ldexp(once, rows + columns))


@on_each_device
@given(sizes, sizes, sizes, sizes, seeds)
def test_blocks(device, m1, m2, n, k, seed):
    """A stack of row blocks has the products of the blocks, a batch those of its members, a sum over k those of its
    parts; where a row or a column stands makes no difference."""
    rng = np.random.default_rng(seed)
    for kind, precision in (("integers", "accurate"), ("normal", "reproducible")):
        options = {"precision": precision, "device": device}
        a, b = draw(rng, kind, m1 + m2, k), draw(rng, kind, k, n)
        whole = fl.matmul(a, b, **options)
        blocks = [fl.matmul(part, b, **options) for part in (a[:m1], a[m1:])]
        assert_equal_values(np.vstack(blocks), whole)
        for member in fl.matmul(np.stack([a, a]), b, **options):
            assert_equal_values(member, whole)
        rows, columns = rng.permutation(m1 + m2), rng.permutation(n)
        assert_equal_values(fl.matmul(a[rows], b[:, columns], **options), whole[rows][:, columns])
        if kind == "integers":
            part = fl.matmul(a[:, : k // 3], b[: k // 3], **options)
            assert_equal_values(fl.sgemm(a[:, k // 3 :], b[k // 3 :], part, beta=1.0, out=part, **options), whole)


@given(st.lists(st.integers(0, 4), max_size=4), st.lists(st.integers(0, 4), max_size=4))
def test_shape_rules_are_numpys(shape_a, shape_b):
    a, b = np.ones(shape_a, np.float32), np.ones(shape_b, np.float32)
    try:
        want = np.matmul(a, b)
    except ValueError:
        with pytest.raises(ValueError):
            fl.matmul(a, b)
        return
    got = fl.matmul(a, b)
    assert type(got) is type(want)
    assert_equal_values(got, want)
