"""Properties on shapes, strides and values that nobody listed. Derandomised: a run on the same code finds the same."""

from __future__ import annotations

import numpy as np
import pytest

import fastlinalg as fl
from support.accuracy import assert_equal_values, assert_product, assert_same_bits, assert_within, oracle
from support.layouts import BROADCAST_LAYOUTS, MATRIX_LAYOUTS, VECTOR_LAYOUTS, matrix_input, result

hypothesis = pytest.importorskip("hypothesis")
from hypothesis import assume, given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

quick = settings(max_examples=150, deadline=None, derandomize=True, database=None)
sizes = st.integers(0, 70)
inputs = st.sampled_from((*MATRIX_LAYOUTS, *BROADCAST_LAYOUTS))
outputs = st.sampled_from(tuple(MATRIX_LAYOUTS))
vectors = st.sampled_from(tuple(VECTOR_LAYOUTS))
seeds = st.integers(0, 2**32 - 1)
kinds = st.sampled_from(("normal", "wide", "integers", "zeros"))
scalars = st.sampled_from((0.0, 1.0, -1.0, 0.5, -2.25, 1e-3))
DEVICES = [pytest.param("cpu"), pytest.param("cuda", marks=pytest.mark.gpu)]
on_each_device = pytest.mark.parametrize("device", DEVICES)


def draw(rng, kind, *shape):
    values = rng.standard_normal(shape)
    if kind == "wide":
        values = np.ldexp(values, rng.integers(-60, 60, shape))
    elif kind == "integers":
        values = rng.integers(-9, 10, shape)
    elif kind == "zeros":
        values = values * rng.integers(0, 2, shape)
    return np.asarray(values, np.float32)


@on_each_device
@quick
@given(sizes, sizes, sizes, inputs, inputs, outputs, scalars, scalars, kinds, seeds)
def test_sgemm(device, m, n, k, a_layout, b_layout, out_layout, alpha, beta, kind, seed):
    rng = np.random.default_rng(seed)
    a, b = matrix_input(draw(rng, kind, m, k), a_layout), matrix_input(draw(rng, kind, k, n), b_layout)
    c = draw(rng, kind, m, n)
    out = result((m, n), out_layout)
    added = c if np.float32(beta) else None
    assert fl.sgemm(a, b, added, alpha=alpha, beta=beta, out=out.array, device=device) is out.array
    assert_product(out.array, np.array(a), np.array(b), c, alpha, beta)
    out.assert_intact()


@on_each_device
@quick
@given(sizes, sizes, st.booleans(), inputs, vectors, vectors, scalars, scalars, kinds, seeds)
def test_sgemv(device, m, n, trans, a_layout, x_layout, out_layout, alpha, beta, kind, seed):
    rng = np.random.default_rng(seed)
    a = matrix_input(draw(rng, kind, *((n, m) if trans else (m, n))), a_layout)
    x, y = matrix_input(draw(rng, kind, n), x_layout), draw(rng, kind, m)
    out = result((m,), out_layout)
    added = y if np.float32(beta) else None
    fl.sgemv(a, x, added, alpha=alpha, beta=beta, trans=trans, out=out.array, device=device)
    assert_within(out.array, *oracle(np.array(a).T if trans else np.array(a), np.array(x), y, alpha, beta))
    out.assert_intact()


@on_each_device
@quick
@given(st.lists(st.integers(0, 3), max_size=2), sizes, sizes, inputs, outputs, seeds)
def test_transpose(device, lead, m, n, a_layout, out_layout, seed):
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 2**32, (*lead, m, n), np.uint32).view(np.float32)
    a, out = matrix_input(values, a_layout), result((*lead, n, m), out_layout)
    assert fl.transpose(a, out=out.array, device=device) is out.array
    assert_same_bits(out.array, np.array(a).swapaxes(-1, -2))
    out.assert_intact()


@on_each_device
@quick
@given(sizes, sizes, sizes, seeds)
def test_transpose_of_a_product(device, m, n, k, seed):
    rng = np.random.default_rng(seed)
    a, b = draw(rng, "normal", m, k), draw(rng, "normal", k, n)
    left, right = fl.matmul(a, b, device=device).T, fl.matmul(b.T, a.T, device=device)
    _, bound = oracle(b.T, a.T)
    assert_within(right, left.astype(np.float64), 2 * bound)


@on_each_device
@quick
@given(sizes, sizes, sizes, seeds)
def test_doubling_is_exact(device, m, n, k, seed):
    rng = np.random.default_rng(seed)
    a, b = draw(rng, "normal", m, k), draw(rng, "normal", k, n)
    once = fl.matmul(a, b, device=device, precision="strict")
    assert_same_bits(fl.matmul(a, b + b, device=device, precision="strict"), once + once)


@on_each_device
@quick
@given(sizes, sizes, sizes, sizes, seeds)
def test_blocks(device, m1, m2, n, k, seed):
    """A stack of row blocks has the products of the blocks, and a batch the products of its members."""
    rng = np.random.default_rng(seed)
    a, b = draw(rng, "integers", m1 + m2, k), draw(rng, "integers", k, n)
    whole = fl.matmul(a, b, device=device)
    assert_equal_values(np.vstack([fl.matmul(a[:m1], b, device=device), fl.matmul(a[m1:], b, device=device)]), whole)
    batch = fl.matmul(np.stack([a, a]), b, device=device)
    assert_equal_values(batch[0], whole)
    assert_equal_values(batch[1], whole)


@on_each_device
@quick
@given(st.integers(1, 70), st.integers(1, 70), st.integers(1, 70), st.data())
def test_one_special_value_reaches_its_row_and_no_other(device, m, n, k, data):
    rng = np.random.default_rng(data.draw(seeds))
    a, b = draw(rng, "normal", m, k), draw(rng, "normal", k, n)
    i, l = data.draw(st.integers(0, m - 1)), data.draw(st.integers(0, k - 1))
    special = data.draw(st.sampled_from((np.nan, np.inf, -np.inf)))
    assume((b[l] != 0).all())
    a[i, l] = special
    got = fl.matmul(a, b, device=device)
    assert np.isfinite(np.delete(got, i, 0)).all()
    assert_equal_values(got[i], np.float32(special) * b[l])


@quick
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
