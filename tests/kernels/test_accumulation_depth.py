"""How long the sums of a row are, and how rows shorten those of accurate products (cpp/plan/accumulation_depth.h)."""

from __future__ import annotations

import numpy as np
import pytest

import fastlinalg as fl
from fastlinalg import _core
from support.accuracy import assert_same_bits, assert_within, oracle
from support.device import on_device, place, product
from support.rows import CLUSTER_SPLIT_K, FULL_TILES, WITHOUT_GROUPS, accumulation_depth, rows, split_k

every_row = pytest.mark.parametrize("row", rows("sgemm", "cuda", strict=True))
slice_row = pytest.mark.parametrize("row", rows("sgemm", names=CLUSTER_SPLIT_K))
SHAPES = [
    (m, n, k)
    for m, n in ((256, 256), (17, 4000), (33, 31), (640, 78), (2000, 45), (300, 400))
    for k in (4096, 5000, 8156, 65536, 10**6)
]
every_shape = pytest.mark.parametrize("m, n, k", SHAPES)


@every_shape
def test_accurate_products_have_rows_whose_chains_are_short_enough(m, n, k):
    """Rows that cut k over the grid and groups keep to the limit by themselves: none above it has to be taken."""
    limit, table = _core.testing.sgemm_rules(m, n, k)
    assert 64 < limit < k / 8
    assert table["naive"][1] == k
    short = [name for name, (_, chain, _) in table.items() if chain is not None and chain <= limit]
    assert split_k() & set(short), short
    if k > 4096:
        assert split_k() - WITHOUT_GROUPS <= set(short), short


def test_the_fastest_row_has_longer_chains_somewhere():
    limit, table = _core.testing.sgemm_rules(256, 256, 8192)
    no_limit, strict = _core.testing.sgemm_rules(256, 256, 8192, "strict")
    assert no_limit is None
    fastest = min(strict, key=lambda name: strict[name][0])
    assert strict[fastest][1] > limit
    for name in CLUSTER_SPLIT_K:
        assert table[name][1] < strict[name][1] / 2


def test_no_limit_for_strict_products_nor_where_cublas_has_long_chains():
    for shape in ((4096, 4096, 8192), (512, 512, 8192), (64, 64, 64), (256, 256, 1024)):
        assert _core.testing.sgemm_rules(*shape)[0] is None
    assert _core.testing.sgemm_rules(256, 256, 8192, "strict")[0] is None


@pytest.mark.gpu
@pytest.mark.parametrize("m, n, k", [shape for shape in SHAPES if max(shape) <= 65536])
def test_dispatch_keeps_to_the_limit(m, n, k):
    limit, table = _core.testing.sgemm_rules(m, n, k)
    with fl.Matmul(*on_device(np.zeros((m, k), np.float32), np.zeros((k, n), np.float32))) as plan:
        plan.plan()
        assert table[plan.kernel][1] is None or table[plan.kernel][1] <= limit


@every_row
@pytest.mark.parametrize("k", [512, 2052, 4096, 20000])
def test_the_norm_of_the_error_follows_from_the_chain(row, k, rng):
    """So a row's chains are as long as the table says, in both precisions."""
    m, n = 192, 160
    a, b = rng.standard_normal((m, k), np.float32), rng.standard_normal((k, n), np.float32)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    operands = on_device(a, b)
    for precision in ("strict", "accurate"):
        chain = accumulation_depth(row, m, n, k, precision)
        if chain is None:
            continue
        got = fl.sgemm(*operands, kernel=row.name, precision=precision).numpy()
        error = np.linalg.norm(got - exact) / np.linalg.norm(exact)
        assert 1.3e-8 * chain**0.5 < error < 2.4e-8 * chain**0.5, f"{precision}, chain {chain}: {error:.3g}"


@slice_row
@pytest.mark.parametrize("k", [4096, 4608, 5000, 6000, 9216])
def test_slices_in_runs(row, k, rng):
    """Ends of runs, slots and slices at the same k and at different ones; whole tiles and edges, all transpositions."""
    rows_of, cols_of, _ = FULL_TILES[row.name]
    accurate, strict = (accumulation_depth(row, 96, 96, k, precision) for precision in ("accurate", "strict"))
    assert accurate < strict, "there are runs"
    for m, n in ((2 * rows_of, 2 * cols_of), (2 * rows_of - 3, cols_of + 5)):
        a, b, c = (rng.standard_normal((1, *size), np.float32) for size in ((m, k), (k, n), (m, n)))
        for trans_a, trans_b, placement in (
            (False, False, "aligned"),
            (True, False, "odd_shifted"),
            (True, True, "tight"),
        ):
            for alpha, beta in ((1.0, 0.0), (-0.5, 2.0)):
                start = c if beta else np.full_like(c, np.nan)
                operands = place(a, placement, trans_a), place(b, placement, trans_b), place(start, placement)
                got = product(row.name, *operands, alpha, beta, "accurate")
                assert_within(got[0], *oracle(a[0], b[0], start[0], alpha, beta), f"{m} x {n} x {k} {placement}")


@slice_row
def test_slices_in_runs_give_the_same_bits_by_boxes(row, rng):
    rows_of, cols_of, _ = FULL_TILES[row.name]
    m, n, k = 2 * rows_of, cols_of, 9 * 512
    a, b = rng.standard_normal((1, m, k), np.float32), rng.standard_normal((1, k, n), np.float32)
    nothing = np.full((1, m, n), np.nan, np.float32)
    got = [
        product(row.name, place(a, way), place(b, way), place(nothing, way), precision="accurate")
        for way in ("aligned", "odd_shifted", "aligned_padded")
    ]
    assert_same_bits(got[1], got[0])
    assert_same_bits(got[2], got[0])
    strict = product(row.name, place(a, "tight"), place(b, "tight"), place(nothing, "tight"))
    assert (strict != got[0]).any(), "strict products are not added up in runs"


@slice_row
def test_slices_in_runs_keep_infinities_and_nans_where_they_are(row, rng):
    m, n, k = 70, 60, 5000
    a, b = rng.standard_normal((m, k), np.float32), rng.standard_normal((k, n), np.float32)
    a[3, 4999], a[5, 0], b[77, 9] = np.inf, np.nan, -np.inf
    got = fl.sgemm(*on_device(a, b), kernel=row.name).numpy()
    want = fl.sgemm(*on_device(a, b), kernel="naive", precision="strict").numpy()
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    np.testing.assert_array_equal(got[np.isinf(want)], want[np.isinf(want)])
