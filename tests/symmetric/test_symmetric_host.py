"""A matrix times its own transpose in host memory, through the GPU: one operand crosses the link, half is computed."""

from __future__ import annotations

import numpy as np
import pytest

import fastlinalg as fl
from fastlinalg import _core
from support.accuracy import assert_product, assert_same_bits
from support.layouts import MATRIX_LAYOUTS, matrix_input, result
from support.operands import normal
from support.panel_blocks import A, covered, of_problem

F32 = np.float32
gpu = pytest.mark.gpu


SIZES = ((1, 1), (700, 700), (2048, 2048), (2049, 511), (5000, 30), (300, 50_000), (8192, 512))


def mirrored(block):
    problem, problems, row, rows, col, cols = block
    return problem, problems, col, cols, row, rows


@pytest.mark.parametrize("n, k", SIZES)
@pytest.mark.parametrize("batch", [1, 3])
def test_the_plan(n, k, batch):
    """Each element is computed once or mirrored, of rows that are there, and no operand but A is loaded."""
    loads, steps = _core.testing.panel_plan(n, n, k, batch, kernel="fp16x2", symmetric=True)
    for problem in range(batch):
        here = [step for step in steps if step[1][0] <= problem < step[1][0] + step[1][1]]
        blocks = [block for _, block, _ in here] + [mirrored(block) for _, block, image in here if image]
        assert (covered(blocks, n, n) == 1).all()
        assert (covered(of_problem(loads, A, problem), n, k) == 1).all()
    assert {operand for operand, _ in loads} == {A}
    for count, (problem, problems, row, rows, col, cols), image in steps:
        for each in (problem, problem + problems - 1):
            seen = covered(of_problem(loads[:count], A, each), n, k).all(axis=1)
            assert seen[row : row + rows].all() and seen[col : col + cols].all()
        assert col + cols <= row if image else (row, rows) == (col, cols)
    if n == 8192 and batch == 1:
        assert sum(block[3] * block[5] for _, block, _ in steps) < 0.65 * n * n


@gpu
@pytest.mark.parametrize("precision", ["strict", "accurate"])
@pytest.mark.parametrize("shape", [(40, 20), (700, 300), (1500, 400), (2049, 60), (3, 90, 33), (2, 1100, 700)])
def test_the_result(shape, precision, rng):
    a = normal(rng, *shape)
    for x in (a, np.asfortranarray(a)):
        for y in (x, x.swapaxes(-1, -2)):
            options = {"precision": precision, "device": "cuda"}
            got = fl.matmul(y, y.swapaxes(-1, -2), **options)
            assert_product(got, y, y.swapaxes(-1, -2))
            if precision == "strict" or len(got) > 1000:
                assert_same_bits(got, got.swapaxes(-1, -2), f"{shape}")
            general = fl.sgemm(y, y.copy().swapaxes(-1, -2), kernel="smem")
            assert_same_bits(fl.sgemm(y, y.swapaxes(-1, -2), kernel="smem"), general, f"{shape}")


@gpu
def test_layouts_and_scalars(rng):
    values = normal(rng, 1100, 61)
    names = list(MATRIX_LAYOUTS)
    for number, name in enumerate(names):
        a = matrix_input(values, name)
        want = fl.sgemm(a, a.copy().T, alpha=-1.5, kernel="smem")
        for out_layout in (name, names[number - 1]):
            out = result(want.shape, out_layout)
            fl.sgemm(a, a.T, alpha=-1.5, out=out.array, kernel="smem")
            assert_same_bits(out.array, want, f"{name}, out {out_layout}")
            out.assert_intact(f"{name}, out {out_layout}")


@gpu
def test_squares_on_the_diagonal_are_mirrored(rng):
    """Where the triangles of a product by terms have different bits, and its last square is no multiple of a tile."""
    a = rng.integers(-3, 4, (1030, 300)).astype(F32)
    out = result((1030, 1030), "padded_rows")
    fl.sgemm(a, a.T, out=out.array, kernel="fp16x2", device="cuda")
    assert_same_bits(out.array, a @ a.T)
    out.assert_intact()


@gpu
def test_other_types(rng):
    """The same memory is one operand if it holds the same numbers."""
    a = rng.integers(-50, 50, (1200, 100))
    options = {"dtype": F32, "precision": "strict", "device": "cuda"}
    assert_same_bits(fl.matmul(a, a.T, **options), (a @ a.T).astype(F32))
    halves = np.full((1200, 100), 1.5, np.float16)
    want = halves.astype(F32) @ halves.view(np.int16).T.astype(F32)
    assert_same_bits(fl.matmul(halves, halves.view(np.int16).T, **options), want)


@gpu
def test_out_may_be_the_operand(rng):
    values = normal(rng, 1100, 1100)
    a = values.copy()
    fl.sgemm(a, a.T, out=a, precision="strict", device="cuda", kernel="smem")
    assert_same_bits(a, fl.sgemm(values, values.copy().T, kernel="smem"))


@gpu
def test_what_does_not_fit_on_the_device(rng, limit):
    a = normal(rng, 1500, 900)
    want = fl.sgemm(a, a.copy().T, kernel="smem")
    limit(8 << 20)  # room for parts of rows and columns; with less, k is cut too, and the bits are others
    assert_same_bits(fl.sgemm(a, a.T, kernel="smem"), want)


@gpu
def test_plans_follow_their_operands(rng):
    a, b = normal(rng, 1100, 300), normal(rng, 1100, 300)
    own, product = fl.sgemm(a, a.copy().T, kernel="smem"), fl.sgemm(a, b.T, kernel="smem")
    for first, second, wanted in ((a, b, (own, product)), (b, a, (product, own))):
        with fl.Matmul(a, first.T, kernel="smem") as plan:
            assert_same_bits(plan.execute(), wanted[0])
            plan.reset_operands(a, second.T)
            assert_same_bits(plan.execute(), wanted[1])
            plan.reset_operands(a, first.T)
            assert_same_bits(plan.execute(), wanted[0])


@gpu
def test_explain(rng):
    a = normal(rng, 3000, 2000)
    assert "symmetric" in str(fl.explain(a, a.T, device="cuda"))
    assert "symmetric" not in str(fl.explain(a, a.copy().T, device="cuda"))
