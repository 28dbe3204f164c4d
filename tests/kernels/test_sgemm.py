"""Every row of the SGEMM table, by name, against the float64 oracle. Exact cases: test_exact.py."""

from __future__ import annotations

import functools
from itertools import product

import numpy as np
import pytest

import fastlinalg as fl
from support.accuracy import assert_product, assert_same_bits, assert_within, oracle
from support.hard_products import SETS, data
from support.layouts import BROADCAST_LAYOUTS, MATRIX_LAYOUTS, contiguous_like_blas, matrix_input, result
from support.rows import attempt, rows
from support.shapes import SCALARS, SGEMM, SGEMM_FEW

every_row = pytest.mark.parametrize("row", rows("sgemm"))


@functools.cache
def operands(m, n, k):
    rng = np.random.default_rng([m, n, k])
    draw = functools.partial(rng.standard_normal, dtype=np.float32)
    return draw((m, k)), draw((k, n)), draw((m, n))


@functools.cache
def plain_answer(m, n, k):
    a, b, _ = operands(m, n, k)
    return oracle(a, b)


@every_row
def test_shapes(row):
    for shape in SGEMM:
        a, b, _ = operands(*shape)
        assert_within(fl.sgemm(a, b, kernel=row.name), *plain_answer(*shape), f"{shape}")


@every_row
def test_data_as_people_have_them(row):
    for kind in SETS:
        a, b = data(kind, 40, 33, 70)
        assert_product(fl.sgemm(a, b, kernel=row.name), a, b, context=kind)


@every_row
def test_transposes_and_scalars(row):
    for shape in SGEMM_FEW:
        a, b, c = operands(*shape)
        for alpha, beta in SCALARS:
            want = oracle(a, b, c, alpha, beta)
            for trans_a, trans_b in product((False, True), repeat=2):
                left = np.ascontiguousarray(a.T) if trans_a else a
                right = np.ascontiguousarray(b.T) if trans_b else b
                before, added = c.copy(), c if beta else None
                got = fl.sgemm(
                    left, right, added, alpha=alpha, beta=beta, trans_a=trans_a, trans_b=trans_b, kernel=row.name
                )
                assert_within(got, *want, f"{shape} trans {trans_a}, {trans_b} alpha {alpha} beta {beta}")
                assert_same_bits(c, before, "c was changed")


@every_row
@pytest.mark.parametrize("poison", [np.nan, np.inf])
def test_beta_zero_never_reads_c(row, poison):
    for shape in SGEMM_FEW:
        a, b, c = operands(*shape)
        for alpha in (1.0, -1.5, 0.0):
            c = np.full_like(c, poison)
            got = fl.sgemm(a, b, alpha=alpha, beta=0.0, out=c, kernel=row.name)
            assert_product(got, a, b, alpha=alpha, context=f"{shape} alpha {alpha}")


@every_row
@pytest.mark.parametrize("poison", [np.nan, np.inf])
def test_alpha_zero_reads_neither_operand(row, poison):
    for shape in SGEMM_FEW:
        a, b, c = operands(*shape)
        a, b = np.full_like(a, poison), np.full_like(b, poison)
        for beta in (0.0, 1.0, 2.0, -0.5):  # powers of two: beta * c is exact
            got = fl.sgemm(a, b, c if beta else None, alpha=0.0, beta=beta, kernel=row.name)
            want = c if beta == 1.0 else np.float32(beta) * c
            assert_within(got, want.astype(np.float64), np.zeros(c.shape), f"{shape} beta {beta}")
        stay = np.full_like(c, np.nan)
        assert_same_bits(fl.sgemm(a, b, stay, alpha=0.0, beta=1.0, out=stay, kernel=row.name), np.full_like(c, np.nan))


@every_row
def test_empty_sum_is_beta_times_c(row):
    for m, n in ((1, 1), (3, 5), (33, 65), (130, 129)):
        a, b, c = operands(m, n, 0)
        c[-1, -1] = 0.0  # and -2 times it is -0
        c[0, -1] = -0.0
        for alpha in (1.0, np.nan, np.inf):
            for beta in (-2.0, 2.0):
                assert_same_bits(fl.sgemm(a, b, c, alpha=alpha, beta=beta, kernel=row.name), beta * c, f"{(m, n)}")
            got = fl.sgemm(a, b, out=np.full_like(c, np.nan), alpha=alpha, kernel=row.name)
            assert_same_bits(got, np.zeros_like(c), f"{(m, n)}")


LAYOUT_SHAPES = ((13, 17, 9), (33, 65, 20), (1, 7, 5), (7, 1, 5), (5, 6, 1), (1, 1, 1))


@every_row
@pytest.mark.parametrize("shape", LAYOUT_SHAPES, ids=lambda shape: "x".join(map(str, shape)))
def test_layouts(row, shape):
    m, n, _ = shape
    values = operands(*shape)
    inputs = (*MATRIX_LAYOUTS, *BROADCAST_LAYOUTS)
    left, right = ({name: matrix_input(x, name) for name in inputs} for x in values[:2])
    outputs = tuple(MATRIX_LAYOUTS)
    pairs = [*product(inputs, inputs), *[("C", "C")] * len(outputs), *[("F", "F")] * len(outputs)]
    ran = 0
    for turn, (a_layout, b_layout) in enumerate(pairs):
        out_layout = outputs[turn % len(outputs)]
        a, b = left[a_layout], right[b_layout]
        out = result((m, n), out_layout, values[2])
        context = f"{shape} a {a_layout}, b {b_layout}, out {out_layout}"
        alpha, beta = ((1.0, 0.0), (-1.5, 0.5))[turn % 2]
        c = values[2] if beta else None
        must = all(map(contiguous_like_blas, (a_layout, b_layout, out_layout)))
        call = functools.partial(fl.sgemm, a, b, c, alpha=alpha, beta=beta, out=out.array, kernel=row.name)
        got = attempt(row, call, must)
        out.assert_intact(context)
        if got is not None:
            assert got is out.array
            assert_product(got, np.array(a), np.array(b), c, alpha, beta, context)
            ran += 1
    assert ran > 20


@every_row
def test_every_result_layout(row):
    for shape in ((13, 17, 9), (130, 67, 33), (64, 64, 16), (1, 9, 4), (9, 1, 4)):
        a, b, c = operands(*shape)
        for layout in MATRIX_LAYOUTS:
            out = result(c.shape, layout)
            call = functools.partial(fl.sgemm, a, b, out=out.array, kernel=row.name)
            got = attempt(row, call, contiguous_like_blas(layout))
            out.assert_intact(f"{shape} {layout}")
            if got is not None:
                assert_within(got, *plain_answer(*shape), f"{shape} out {layout}")


@every_row
def test_nothing_beside_the_operands_is_used(row):
    """Views inside parents full of NaN, at every size up to 40 of each dimension."""
    for size in range(1, 41):
        for shape in ((size, 7, 9), (7, size, 9), (9, 7, size), (size, size, size)):
            a, b, _ = operands(*shape)
            for layout in ("padded_rows", "padded_columns"):
                got = fl.sgemm(matrix_input(a, layout), matrix_input(b, layout), kernel=row.name)
                assert_within(got, *plain_answer(*shape), f"{shape} {layout}")


@every_row
def test_blocks_of_a_cache(row):
    """Sizes around the blocks that packed kernels cut their operands into, with beta and without."""
    for m, n, k in (
        (97, 40, 511),
        (95, 33, 512),
        (40, 97, 513),
        (169, 31, 1025),
        (13, 1025, 30),
        (7, 2049, 514),
        (337, 50, 9),
        (20, 1021, 1100),
    ):
        a, b, c = operands(m, n, k)
        for left, right in ((a, b), (np.asfortranarray(a), np.asfortranarray(b))):
            assert_within(fl.sgemm(left, right, kernel=row.name), *plain_answer(m, n, k), f"{(m, n, k)}")
            got = fl.sgemm(left, right, c, alpha=-0.5, beta=1.5, kernel=row.name)
            assert_product(got, a, b, c, -0.5, 1.5, f"{(m, n, k)} with beta")


BATCHES = (
    ((3,), (3,)), ((), (4,)), ((4,), ()), ((2, 3), (3,)), ((2, 1), (1, 3)), ((1,), (5,)), ((0,), (0,)), ((0,), (1,)),
    ((2, 0), (1, 1)), ((1, 1, 1), (2,)),
)  # fmt: skip


@every_row
def test_batches(row, rng):
    for lead_a, lead_b in BATCHES:
        for m, n, k in ((5, 7, 6), (33, 34, 12), (1, 1, 1), (4, 4, 0)):
            a = rng.standard_normal((*lead_a, m, k), np.float32)
            b = rng.standard_normal((*lead_b, k, n), np.float32)
            lead = np.broadcast_shapes(lead_a, lead_b)
            c = rng.standard_normal((*lead, m, n), np.float32)
            got = fl.sgemm(a, b, c, alpha=0.5, beta=-1.0, kernel=row.name)
            assert_product(got, a, b, c, 0.5, -1.0, f"batches {lead_a}, {lead_b} of {(m, n, k)}")


@every_row
def test_batch_layouts(row, rng):
    a, b = rng.standard_normal((2, 3, 9, 8), np.float32), rng.standard_normal((2, 3, 8, 10), np.float32)
    ways = {
        "swapped": lambda x: np.ascontiguousarray(x.swapaxes(0, 1)).swapaxes(0, 1),
        "F": np.asfortranarray,
        "reversed": lambda x: np.ascontiguousarray(x[::-1])[::-1],
        "innermost": lambda x: np.ascontiguousarray(np.moveaxis(x, 0, -1)).transpose(3, 0, 1, 2),
        "broadcast": lambda x: np.broadcast_to(x[:1], x.shape),
    }
    for name, way in ways.items():
        left, right = way(a), way(b)
        for out in (None, way(np.full((2, 3, 9, 10), np.nan, np.float32)).copy("K")):
            call = functools.partial(fl.sgemm, left, right, out=out, kernel=row.name)
            got = attempt(row, call, name in ("swapped", "reversed", "broadcast"))
            if got is not None:
                assert_product(got, left, right, context=name)


@every_row
def test_more_batches_than_a_grid_axis_has_blocks(row, rng):
    a = rng.standard_normal((70001, 2, 3), np.float32)
    b = rng.standard_normal((70001, 3, 2), np.float32)
    assert_product(fl.sgemm(a, b, kernel=row.name), a, b)
    assert_product(fl.sgemm(a, b[0], kernel=row.name), a, b[0])


DEEP = (1, 7, 511, 512, 513, 1023, 1025, 4097, 100003)


@every_row
@pytest.mark.parametrize("kind", ["normal", "uniform", "wide", "cancelling"])
def test_long_sums(row, kind):
    for k in DEEP:
        a, b = long_operands(kind, k)
        assert_product(fl.sgemm(a, b, kernel=row.name), a, b, context=f"{kind} k {k}")


@functools.cache
def long_operands(kind, k):
    rng = np.random.default_rng(k)
    a, b = rng.standard_normal((5, k)), rng.standard_normal((k, 6))
    if kind == "uniform":
        a, b = rng.random((5, k)), rng.random((k, 6))
    elif kind == "wide":
        a, b = (x * 2.0 ** rng.integers(-30, 30, x.shape) for x in (a, b))
    elif kind == "cancelling":
        half = k // 2
        a, b = np.hstack([a[:, :half], -a[:, :half]]), np.vstack([b[:half], b[:half]])
    return a.astype(np.float32), b.astype(np.float32)


@every_row
def test_taller_and_wider_than_a_grid_axis(row, rng):
    size = 65535 * 2 + 3
    a, b = rng.standard_normal((size, 3), np.float32), rng.standard_normal((3, 4), np.float32)
    assert_product(fl.sgemm(a, b, kernel=row.name), a, b, context="tall")
    assert_product(fl.sgemm(b.T, a.T, kernel=row.name), b.T, a.T, context="wide")
