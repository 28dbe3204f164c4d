"""Accurate products of few tiles and a long k, by split-K, and few long lines, split in segments."""

from __future__ import annotations

import numpy as np
import pytest

import fastlinalg as fl
from support.accuracy import assert_product, assert_same_bits
from support.device import on_device, place
from support.hard_products import data
from support.rows import ACCURATE_SPLIT_K, rows

pytestmark = pytest.mark.gpu
F32 = np.float32
SHAPES = ((200, 136, 20001), (131, 257, 16390), (384, 250, 13000))
cut_row = pytest.mark.parametrize("row", rows("sgemm", names=ACCURATE_SPLIT_K))
# The guessed scales hold; those of all lines or of one are wrong; two terms are rejected; three are; zeros.
KINDS = ("normal", "uniform", "late_start", "late_start_of_b", "one_late_line", "one_late_line_of_b", "late_and_huge",
         "late_and_tiny", "growing", "graded", "twelve_decades", "many_octaves", "zero_lines",
         "huge_and_tiny_rows")  # fmt: skip


def workspace(name, m, n, k):
    with fl.Matmul(*on_device(np.empty((m, k), F32), np.empty((k, n), F32)), kernel=name) as plan:
        plan.plan()
        return plan.workspace_bytes


@pytest.mark.parametrize("shape", [*SHAPES, (256, 256, 65536), (700, 600, 40000)], ids=str)
def test_sums_of_ranges_are_bounded_and_reported(shape):
    """What is more than the terms are sums, of two tiles to a multiprocessor at most."""
    sums = workspace("bf16x6", *shape) - workspace("bf16x6_mma", *shape)
    assert 2**20 < sums <= 2 * 132 * 128 * 128 * 4


@pytest.mark.parametrize("row", rows("sgemm", "cuda", strict=False))
@pytest.mark.parametrize("kind", KINDS)
def test_the_bound_holds_on_any_finite_data(row, kind):
    for shape in SHAPES[:2]:
        a, b = data(kind, *shape)
        operands = on_device(a, b)
        got = fl.sgemm(*operands, kernel=row.name).numpy()
        assert_product(got, a, b, context=f"{kind} {shape}")
        for turn in range(3):
            assert_same_bits(fl.sgemm(*operands, kernel=row.name).numpy(), got, f"{kind} {shape}, turn {turn}")


@pytest.mark.parametrize("kind", KINDS)
def test_strips_of_lines_leave_the_bits_alone(kind):
    """More lines than a hundred blocks take are split whole. Both products have tiles that cut k alike in this row."""
    m, n, k = 40, 70, 7003
    a, b = data(kind, m, n, k)
    more = np.vstack([a, np.tile(a[:1], (1700, 1))])
    few, many = (fl.sgemm(*on_device(left, b), kernel="bf16x6_mma").numpy() for left in (a, more))
    assert_same_bits(many[:m], few, kind)


@cut_row
def test_half_the_error_of_a_chain_of_float32(row):
    for kind in ("normal", "uniform", "twelve_decades"):
        a, b = data(kind, *SHAPES[0])
        exact = a.astype(np.float64) @ b.astype(np.float64)
        accurate, chain = (
            np.linalg.norm(fl.sgemm(*on_device(a, b), kernel=kernel, precision=precision).numpy() - exact)
            for kernel, precision in ((row.name, "accurate"), ("naive", "strict"))
        )
        assert accurate <= 0.5 * chain, kind


@cut_row
@pytest.mark.parametrize("kind", ["normal", "graded", "many_octaves"])
@pytest.mark.parametrize("trans", ["", "a", "b", "ab"])
def test_transposes_and_scalars(row, kind, trans, rng):
    m, n, k = SHAPES[1]
    a, b = data(kind, m, n, k)
    c = rng.standard_normal((m, n), dtype=F32)
    left, right = (np.ascontiguousarray(x.T) if side in trans else x for side, x in (("a", a), ("b", b)))
    operands, addend = on_device(left, right), on_device(c)
    for alpha, beta in ((1.0, 0.0), (-0.5, 0.0), (2.0, 1.0), (1.0, -0.25)):
        flags = {"trans_a": "a" in trans, "trans_b": "b" in trans, "alpha": alpha, "beta": beta}
        got = fl.sgemm(*operands, *(addend if beta else ()), kernel=row.name, **flags).numpy()
        assert_product(got, a, b, c, alpha, beta, f"{kind} {flags}")


@cut_row
@pytest.mark.parametrize("kind", ["normal", "many_octaves"])
def test_odd_rows_of_c_and_nothing_beside_it(row, kind):
    m, n, k = SHAPES[1]
    a, b = data(kind, m, n, k)
    for placement in ("odd", "shifted", "aligned_padded"):
        at = [place(x[None], placement) for x in (a, b, np.full((m, n), np.nan, F32))]
        fl.sgemm(*at[:2], out=at[2], kernel=row.name)
        assert_product(at[2].download(placement)[0], a, b, context=f"{kind} {placement}")


@cut_row
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_special_values(row, value, rng):
    m, n, k = SHAPES[2]
    a, b = rng.standard_normal((m, k), dtype=F32), rng.standard_normal((k, n), dtype=F32)
    a[m // 2, k - 1], b[k // 3, n - 1], b[k // 3, 0] = value, value, 0.0
    want = fl.sgemm(*on_device(a, b), precision="strict").numpy()
    got = fl.sgemm(*on_device(a, b), kernel=row.name).numpy()
    np.testing.assert_array_equal(np.isfinite(got), np.isfinite(want))
    np.testing.assert_array_equal(got[~np.isfinite(want)], want[~np.isfinite(want)])
    assert_product(np.delete(got[:, :-1], m // 2, 0), np.delete(a, m // 2, 0), b[:, :-1])


@cut_row
def test_batches_of_which_one_problem_is_refused(row, rng):
    m, n, k = SHAPES[0]
    a, b = rng.standard_normal((3, m, k), dtype=F32), rng.standard_normal((3, k, n), dtype=F32)
    a[1], b[1] = data("many_octaves", m, n, k)
    with fl.Matmul(*on_device(a, b), kernel=row.name) as plan:
        for _ in range(3):
            got = plan.execute().numpy()
    for i in range(3):
        assert_product(got[i], a[i], b[i], context=f"problem {i}")
        assert_same_bits(fl.sgemm(*on_device(a[i], b[i]), kernel=row.name).numpy(), got[i], f"problem {i}")


@cut_row
@pytest.mark.parametrize("kind", ["normal", "one_late_line", "graded"])
def test_plans_with_a_constant_operand(row, kind):
    """Fewer lines are split in more strips."""
    a, b = on_device(*data(kind, *SHAPES[0]))
    want = fl.sgemm(a, b, kernel=row.name).numpy()
    for constant in ("a", "b"):
        with fl.Matmul(a, b, kernel=row.name, constant=constant) as plan:
            for turn in range(4):
                assert_same_bits(plan.execute().numpy(), want, f"constant {constant}, turn {turn}")


@cut_row
def test_in_a_graph(row, torch, rng):
    m, n, k = SHAPES[0]
    a, b = torch.zeros((m, k), device="cuda"), torch.zeros((k, n), device="cuda")
    out = torch.empty((m, n), device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        fl.sgemm(a, b, out=out, kernel=row.name)
    for kind in ("normal", "one_late_line", "many_octaves", "uniform"):
        host = data(kind, m, n, k)
        a.copy_(torch.from_numpy(host[0])), b.copy_(torch.from_numpy(host[1]))
        graph.replay()
        assert_product(out.cpu().numpy(), *host, context=kind)


def test_dispatch_takes_two_terms_where_they_are_faster():
    for m, n, k in ((512, 512, 65536), (384, 384, 32768), (640, 640, 20000)):
        with fl.Matmul(*on_device(np.empty((m, k), F32), np.empty((k, n), F32))) as plan:
            plan.plan()
            assert plan.kernel == "fp16x2", (m, n, k)
