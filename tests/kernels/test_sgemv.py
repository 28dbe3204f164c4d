"""Every row of the SGEMV table, by name, against the float64 oracle."""

from __future__ import annotations

import functools
from itertools import product

import numpy as np
import pytest

import fastlinalg as fl
from support.accuracy import assert_same_bits, assert_within, oracle
from support.layouts import (
    BROADCAST_LAYOUTS,
    BROADCAST_VECTOR_LAYOUTS,
    MATRIX_LAYOUTS,
    VECTOR_LAYOUTS,
    contiguous_like_blas,
    matrix_input,
    result,
)
from support.rows import attempt, rows
from support.shapes import SCALARS, SGEMV, SGEMV_FEW

every_row = pytest.mark.parametrize("row", rows("sgemv"))


@functools.cache
def operands(m, n):
    """A[m,n], x[n], y[m], and A in column-major order."""
    rng = np.random.default_rng([m, n])
    draw = functools.partial(rng.standard_normal, dtype=np.float32)
    a = draw((m, n))
    return a, draw(n), draw(m), np.ascontiguousarray(a.T)


@functools.cache
def plain_answer(m, n):
    a, x, _, _ = operands(m, n)
    return oracle(a, x)


@every_row
@pytest.mark.parametrize("trans", [False, True])
def test_shapes(row, trans):
    for shape in SGEMV:
        a, x, _, a_transposed = operands(*shape)
        got = fl.sgemv(a_transposed if trans else a, x, trans=trans, kernel=row.name)
        assert_within(got, *plain_answer(*shape), f"{shape} trans {trans}")


@every_row
def test_transposes_and_scalars(row):
    for shape in SGEMV_FEW:
        a, x, y, a_transposed = operands(*shape)
        for (alpha, beta), trans in product(SCALARS, (False, True)):
            matrix, before = a_transposed if trans else a, y.copy()
            got = fl.sgemv(matrix, x, y if beta else None, alpha=alpha, beta=beta, trans=trans, kernel=row.name)
            assert_within(got, *oracle(a, x, y, alpha, beta), f"{shape} trans {trans} alpha {alpha} beta {beta}")
            assert_same_bits(y, before, "y was changed")


@every_row
@pytest.mark.parametrize("poison", [np.nan, np.inf])
def test_what_is_multiplied_by_zero_is_not_read(row, poison):
    for shape in SGEMV_FEW:
        a, x, y, _ = operands(*shape)
        out = np.full_like(y, poison)
        assert fl.sgemv(a, x, out=out, kernel=row.name) is out
        assert_within(out, *plain_answer(*shape), f"{shape} beta 0")
        bad_a, bad_x = np.full_like(a, poison), np.full_like(x, poison)
        for beta in (0.0, 1.0, -2.0):
            got = fl.sgemv(bad_a, bad_x, y if beta else None, alpha=0.0, beta=beta, kernel=row.name)
            assert_within(got, y.astype(np.float64) * beta, np.zeros(y.shape), f"{shape} alpha 0 beta {beta}")


@every_row
def test_empty_sum_is_beta_times_y(row):
    for m, trans in product((1, 5, 33, 130), (False, True)):
        a, x, y, a_transposed = operands(m, 0)
        matrix = a_transposed if trans else a
        y[-1] = 0.0  # and -2 times it is -0
        assert_same_bits(fl.sgemv(matrix, x, y, beta=-2.0, trans=trans, kernel=row.name), -2 * y)
        out = np.full_like(y, np.nan)
        assert_same_bits(fl.sgemv(matrix, x, out=out, trans=trans, kernel=row.name), np.zeros_like(y))


@every_row
@pytest.mark.parametrize(
    "shape", [(13, 17), (33, 64), (1, 7), (7, 1), (1, 1)], ids=lambda shape: "x".join(map(str, shape))
)
def test_layouts(row, shape):
    values, x_values, y_values, _ = operands(*shape)
    outputs = tuple(VECTOR_LAYOUTS)
    cases = product((*MATRIX_LAYOUTS, *BROADCAST_LAYOUTS), (*VECTOR_LAYOUTS, *BROADCAST_VECTOR_LAYOUTS), (False, True))
    ran = 0
    for turn, (a_layout, x_layout, trans) in enumerate(cases):
        out_layout = outputs[turn % len(outputs)]
        a, x = matrix_input(values.T if trans else values, a_layout), matrix_input(x_values, x_layout)
        out = result(y_values.shape, out_layout, y_values)
        context = f"{shape} trans {trans} a {a_layout}, x {x_layout}, out {out_layout}"
        alpha, beta = ((1.0, 0.0), (-1.5, 0.5))[turn % 2]
        y = y_values if beta else None
        must = all(map(contiguous_like_blas, (a_layout, x_layout, out_layout)))
        call = functools.partial(fl.sgemv, a, x, y, alpha=alpha, beta=beta, trans=trans, out=out.array, kernel=row.name)
        got = attempt(row, call, must)
        out.assert_intact(context)
        if got is not None:
            assert got is out.array
            matrix = np.array(a).T if trans else np.array(a)
            assert_within(got, *oracle(matrix, np.array(x), y, alpha, beta), context)
            ran += 1
    assert ran > 20


@every_row
def test_nothing_beside_the_operands_is_used(row):
    for size in range(1, 70):
        for shape, layout, trans in product(((size, 9), (9, size)), ("padded_rows", "padded_columns"), (False, True)):
            a, x, _, a_transposed = operands(*shape)
            matrix = matrix_input(a_transposed if trans else a, layout)
            got = fl.sgemv(matrix, matrix_input(x, "shifted"), trans=trans, kernel=row.name)
            assert_within(got, *plain_answer(*shape), f"{shape} {layout} trans {trans}")


@every_row
def test_batches(row, rng):
    leads = (((3,), (3,)), ((), (4,)), ((4,), ()), ((2, 3), (3,)), ((2, 1), (1, 3)), ((0,), (0,)), ((0,), (1,)))
    for (lead_a, lead_x), (m, n) in product(leads, ((5, 7), (33, 34), (1, 1), (4, 0), (16, 32))):
        a = rng.standard_normal((*lead_a, m, n), np.float32)
        x = rng.standard_normal((*lead_x, n), np.float32)
        y = rng.standard_normal((*np.broadcast_shapes(lead_a, lead_x), m), np.float32)
        want, bound = oracle(a, x[..., None], y[..., None], 0.5, -1.0)
        got = fl.sgemv(a, x, y, alpha=0.5, beta=-1.0, kernel=row.name)
        assert_within(got, want[..., 0], bound[..., 0], f"batches {lead_a}, {lead_x} of {(m, n)}")


@every_row
def test_more_batches_than_a_grid_axis_has_blocks(row, rng):
    a, x = rng.standard_normal((70001, 2, 3), np.float32), rng.standard_normal((70001, 3), np.float32)
    want, bound = oracle(a, x[..., None])
    assert_within(fl.sgemv(a, x, kernel=row.name), want[..., 0], bound[..., 0])


@every_row
@pytest.mark.parametrize("kind", ["normal", "wide", "cancelling"])
def test_long_sums(row, kind):
    for n in (511, 512, 513, 1023, 4097, 100003):
        rng = np.random.default_rng(n)
        a, x = rng.standard_normal((6, n), np.float32), rng.standard_normal(n, np.float32)
        if kind == "wide":
            a, x = (np.ldexp(v, rng.integers(-30, 30, v.shape)).astype(np.float32) for v in (a, x))
        elif kind == "cancelling":
            a[:, n // 2 : n // 2 * 2], x[n // 2 : n // 2 * 2] = -a[:, : n // 2], x[: n // 2]
        for trans in (False, True):
            got = fl.sgemv(np.ascontiguousarray(a.T) if trans else a, x, trans=trans, kernel=row.name)
            assert_within(got, *oracle(a, x), f"{kind} n {n} trans {trans}")


@every_row
def test_more_rows_than_a_grid_axis_has_blocks(row, rng):
    a, x = rng.standard_normal((65535 * 33 + 1, 2), np.float32), rng.standard_normal(2, np.float32)
    assert_within(fl.sgemv(a, x, kernel=row.name), *oracle(a, x), "tall")
    assert_within(
        fl.sgemv(np.ascontiguousarray(a.T), x, trans=True, kernel=row.name), *oracle(a, x), "tall, transposed"
    )
