"""How a call that does not fit in device memory is cut up, and what comes out of it there."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

import fastlinalg as fl
from fastlinalg import _core
from support.accuracy import assert_product

MiB = 2**20
SIZES = (
    (1, 1, 1),
    (700, 700, 700),
    (3000, 1000, 2000),
    (1, 70_000, 300),
    (70_000, 1, 300),
    (129, 131, 60_001),
    (2049, 2047, 511),
)


def grid(parts, size):
    """The distinct ranges of one dimension: in order, without gap or overlap."""
    found = sorted(set(parts))
    assert found[0][0] == 0 and found[-1][0] + found[-1][1] == size
    assert all(a[0] + a[1] == b[0] for a, b in itertools.pairwise(found))
    return found


def check_order(shape, tiles, block_a, block_b):
    """Replays the plan: an operand is in its slot when it is used, sums begin once, go on in order and end once."""
    _, *slots, slice_rows = shape
    holds = [[None] * slots[0], [None] * slots[1]]
    sums: dict = {}
    for tile in tiles:
        for operand, block in enumerate((block_a(tile), block_b(tile))):
            slot = tile["slots"][operand]
            if tile["load"][operand]:
                holds[operand][slot] = block
            assert block is None or holds[operand][slot] == block
        element = tile["problem"], tile["row"], tile["col"]
        assert tile["first"] == (element not in sums) and sums.get(element, 0) == tile["depth"][0]
        sums[element] = sum(tile["depth"])
        for other in sums:  # the slot of the result is free
            assert other == element or sums[other] == sums[element] or tile["last"] or sums[other] == total(tiles)
        assert tile["slices"][0] == 0 and tile["slices"][-1] == tile["row"][1]
        assert all(0 < b - a <= max(slice_rows, tile["row"][1]) for a, b in itertools.pairwise(tile["slices"]))
    return sums


def total(tiles):
    return max(sum(tile["depth"]) for tile in tiles)


@pytest.mark.parametrize("m, n, k", SIZES)
@pytest.mark.parametrize("memory", [1 * MiB, 3 * MiB, 16 * MiB])
def test_products(m, n, k, memory):
    shape, tiles = _core.testing.sgemm_tiles(m, n, k, 1, memory)
    assert tiles and 0 < shape[0] <= memory
    assert (shape, tiles) == _core.testing.sgemm_tiles(m, n, k, 1, memory)
    rows, cols = grid([t["row"] for t in tiles], m), grid([t["col"] for t in tiles], n)
    depths = grid([t["depth"] for t in tiles], k)
    assert len(tiles) == len(rows) * len(cols) * len(depths)
    sums = check_order(shape, tiles, lambda t: (t["row"], t["depth"]), lambda t: (t["depth"], t["col"]))
    assert len(sums) == len(rows) * len(cols) and set(sums.values()) == {k}
    assert all(t["last"] == (sum(t["depth"]) == k) for t in tiles)


@pytest.mark.parametrize("one_a, one_b", [(False, False), (True, False), (False, True)])
def test_batches(one_a, one_b):
    for m, n, k, batch, memory in ((30, 40, 50, 1000, MiB), (600, 500, 700, 5, 2 * MiB)):
        shape, tiles = _core.testing.sgemm_tiles(m, n, k, batch, memory, one_a, one_b)
        problems = grid([t["problem"] for t in tiles], batch)
        per_problem = len({(t["row"], t["col"]) for t in tiles})
        sums = check_order(
            shape,
            tiles,
            lambda t: (None if one_a else t["problem"], t["row"], t["depth"]),
            lambda t: (None if one_b else t["problem"], t["depth"], t["col"]),
        )
        assert len(sums) == len(problems) * per_problem and set(sums.values()) == {k}


def test_vectors_and_transposes():
    for m, n, batch in ((5000, 3000, 1), (3, 2_000_000, 1), (2_000_000, 3, 1), (300, 200, 100)):
        shape, tiles = _core.testing.sgemv_tiles(m, n, batch, 4 * MiB)
        assert tiles and shape[0] <= 4 * MiB
        (
            grid([t["row"] for t in tiles], m),
            grid([t["depth"] for t in tiles], n),
            grid([t["problem"] for t in tiles], batch),
        )
        check_order(shape, tiles, lambda t: (t["problem"], t["row"], t["depth"]), lambda t: (t["problem"], t["depth"]))
        shape, tiles = _core.testing.transpose_tiles(m, n, batch, 4 * MiB)
        assert tiles and shape[0] <= 4 * MiB
        covered = len(grid([t["row"] for t in tiles], m)) * len(grid([t["col"] for t in tiles], n))
        assert len(tiles) == covered * len(grid([t["problem"] for t in tiles], batch))


def test_no_plan_where_nothing_fits():
    assert _core.testing.sgemm_tiles(1000, 1000, 1000, 1, 1000)[1] == []


def test_no_plan_of_more_tiles_than_the_host_can_hold():
    assert _core.testing.sgemm_tiles(6000, 6000, 6000, 1, MiB // 8)[1] == []
    assert _core.testing.sgemm_tiles(1000, 1000, 1000, 1, MiB // 8)[1] != []


def test_traffic_of_a_large_product():
    """Under 2 GiB a tile of half the size each way stays there: about 16 GiB go in, not 96."""
    shape, tiles = _core.testing.sgemm_tiles(32768, 32768, 32768, 1, 2048 * MiB, kernel="fp16x2")
    loaded = sum(t["load"][0] * t["row"][1] * t["depth"][1] + t["load"][1] * t["depth"][1] * t["col"][1] for t in tiles)
    assert 4 * loaded <= 22 * 2**30 and shape[0] <= 2048 * MiB
    _, tiles = _core.testing.sgemm_tiles(32768, 32768, 1024, 1, 2048 * MiB, kernel="fp16x2")
    loaded = sum(t["load"][0] * t["row"][1] * t["depth"][1] + t["load"][1] * t["depth"][1] * t["col"][1] for t in tiles)
    assert 4 * loaded == 2 * 4 * 32768 * 1024


# ---------------------------------------------------------------- on the device
LIMIT_TEST = 6 * MiB


def layouts(x):
    """The same values in C order, F order, as a view of every second row and column, and backwards."""
    yield x
    yield np.asfortranarray(x)
    wide = np.full([2 * size for size in x.shape], np.nan, np.float32)
    wide[::2, ::2] = x
    yield wide[::2, ::2]
    yield x[::-1, ::-1].copy()[::-1, ::-1]


PRODUCTS = ((1500, 1500, 1500), (3001, 2003, 517), (257, 6001, 1030), (40, 50, 300_001), (2_000_003, 3, 5))


@pytest.mark.gpu
@pytest.mark.parametrize("m, n, k", PRODUCTS)
@pytest.mark.parametrize("precision", ["strict", "accurate"])
def test_product_under_a_limit(m, n, k, precision, limit, rng):
    """Right, in every layout the same bits, and never more memory than allowed."""
    a, b = rng.standard_normal((m, k), np.float32), rng.standard_normal((k, n), np.float32)
    limit(LIMIT_TEST)
    got = fl.matmul(a, b, precision=precision, device="cuda")
    assert_product(got, a, b)
    assert np.array_equal(got, fl.matmul(a, b, precision=precision, device="cuda"))
    if m * n * k < 4e9:
        for a_view, b_view in zip(layouts(a), layouts(b), strict=True):
            assert_product(fl.matmul(a_view, b_view, precision=precision, device="cuda"), a, b)
    assert fl.cuda.memory_info()["used"] == 0


@pytest.mark.gpu
def test_scalars_and_out_under_a_limit(limit, rng):
    """Old values are read once, and nothing beside a strided result is written."""
    m, n, k = 1301, 1203, 1005
    a, b = rng.standard_normal((m, k), np.float32), rng.standard_normal((k, n), np.float32)
    c = rng.standard_normal((m, n), np.float32)
    limit(LIMIT_TEST // 2)
    for alpha, beta in ((1.0, 0.0), (0.5, 1.0), (-1.0, 0.25), (0.0, 2.0), (1.0, -1.0)):
        parent = np.full((m + 4, 2 * n), 7, np.float32)
        out = parent[2:-2, ::2]
        out[:] = c
        result = fl.sgemm(a, b, out if beta else None, alpha=alpha, beta=beta, out=out, device="cuda")
        assert result is out
        assert_product(out, a, b, c, alpha, beta)
        assert (parent[:2] == 7).all() and (parent[-2:] == 7).all() and (parent[:, 1::2] == 7).all()
        options = {"alpha": alpha, "beta": beta, "trans_a": True, "trans_b": True, "device": "cuda"}
        assert_product(fl.sgemm(a.T, b.T, c if beta else None, **options), a, b, c, alpha, beta)


@pytest.mark.gpu
def test_scalars_of_parts_in_one_place(limit, rng):
    """Old values are copied to where the slices of the part before lie until all of them have been stored."""
    m, n, k = 200_000, 3, 5
    a, b, c = (rng.standard_normal(shape, np.float32) for shape in ((m, k), (k, n), (m, n)))
    (_, *slots, _), tiles = _core.testing.sgemm_tiles(m, n, k, 1, 2 * MiB)
    assert slots[-1] == 1 and len(tiles[0]["slices"]) > 2
    limit(2 * MiB)
    for _ in range(10):
        assert_product(fl.sgemm(a, b, c, beta=1.0, precision="strict", device="cuda"), a, b, c, 1.0, 1.0)


@pytest.mark.gpu
def test_the_log_tells_of_parts(limit, rng, caplog):
    a, x = rng.standard_normal((1411, 1301), np.float32), rng.standard_normal(1301, np.float32)
    caplog.set_level("DEBUG", "fastlinalg")
    calls = {
        r"sgemm 1411x1411x1301": lambda: fl.matmul(a, a.T, device="cuda"),
        r"sgemv 1411x1301": lambda: fl.sgemv(a, x, device="cuda"),
        r"transpose 1411x1301": lambda: fl.transpose(a, device="cuda"),
    }
    for name, call in calls.items():
        limit(0)
        call()
        limit(3 * MiB)
        for _ in range(2):
            call()
        (line,) = [
            r.getMessage() for r in caplog.records if r.getMessage().startswith(name) and " parts " in r.getMessage()
        ]
        found = re.fullmatch(
            rf"{name} -> cuda:0 in (\d+) parts of at most [0-9x]+, which take (\d+) bytes of its memory; "
            r"the whole takes (\d+)",
            line,
        )
        assert found and int(found[1]) > 1 and int(found[2]) <= 3 * MiB < int(found[3]), line


@pytest.mark.gpu
def test_batches_under_a_limit(limit, rng):
    for batch, m, n, k in ((500, 60, 50, 70), (3, 1100, 900, 1300)):
        a, b = rng.standard_normal((batch, m, k), np.float32), rng.standard_normal((batch, k, n), np.float32)
        limit(LIMIT_TEST)
        for left, right in ((a, b), (a[:1], b), (a, b[:1])):
            got = fl.matmul(left, right, device="cuda")
            for i in range(0, batch, max(1, batch // 7)):
                assert_product(got[i], left[min(i, len(left) - 1)], right[min(i, len(right) - 1)])


@pytest.mark.gpu
def test_vectors_and_transposes_under_a_limit(limit, rng):
    for m, n in ((3001, 2003), (5, 1_000_001), (1_000_001, 5)):
        a, x, z = (
            rng.standard_normal((m, n), np.float32),
            rng.standard_normal(n, np.float32),
            rng.standard_normal(m, np.float32),
        )
        limit(3 * MiB)
        for view in layouts(a):
            assert_product(
                fl.sgemv(view, x, z, alpha=0.5, beta=2.0, device="cuda")[:, None], a, x[:, None], z[:, None], 0.5, 2.0
            )
            assert_product(fl.sgemv(view, z, trans=True, device="cuda")[:, None], np.ascontiguousarray(a.T), z[:, None])
            assert np.array_equal(fl.transpose(view, device="cuda"), a.T)
    stack = rng.standard_normal((50, 300, 200), np.float32)
    assert np.array_equal(fl.transpose(stack, device="cuda"), stack.swapaxes(1, 2))


@pytest.mark.gpu
def test_special_values_under_a_limit(limit, rng):
    """NaN and Inf stay in their rows and columns, across the panels of a sum."""
    m, n, k = 1200, 1100, 3000
    a, b = rng.standard_normal((m, k), np.float32), rng.standard_normal((k, n), np.float32)
    a[7, 2999], a[1100, 5], b[2000, 1099] = np.nan, np.inf, np.inf
    limit(LIMIT_TEST)
    for precision in ("strict", "accurate"):
        got = fl.matmul(a, b, precision=precision, device="cuda")
        want = np.ones((m, n), bool)
        want[[7, 1100]] = want[:, 1099] = False
        assert np.array_equal(np.isfinite(got), want) and np.isnan(got[7]).all()


@pytest.mark.gpu
def test_nothing_fits(limit, rng):
    a, out = rng.standard_normal((1000, 1000), np.float32), np.full((1000, 1000), 7, np.float32)
    limit(2**9)
    for call in (
        lambda: fl.matmul(a, a, out, device="cuda"),
        lambda: fl.sgemv(a, a[0], out=out[0], device="cuda"),
        lambda: fl.transpose(a, out, device="cuda"),
    ):
        with pytest.raises(MemoryError, match=r"cuda:0.* bytes.* 512 .*limit"):
            call()
    assert (out == 7).all()
    limit(2**16)
    assert_product(fl.matmul(a, a, out, device="cuda"), a, a)


@pytest.mark.gpu
def test_many_small_parts(limit, rng):
    """Slots of operands and of results are used again and again."""
    for m, n, k in ((130, 140, 150), (700, 33, 20), (20, 700, 33), (66, 65, 900)):
        a, b, c = (rng.integers(-9, 10, size).astype(np.float32) for size in ((m, k), (k, n), (m, n)))
        for most in (2**14, 2**15, 2**16):
            limit(most)
            for beta in (0.0, 2.0):
                out = c.copy()
                fl.sgemm(a, b, out if beta else None, alpha=-1.0, beta=beta, out=out, device="cuda")
                assert np.array_equal(out, beta * c - a @ b), (m, n, k, most, beta)
            assert np.array_equal(fl.sgemv(c, b[0], device="cuda"), c @ b[0])
            assert np.array_equal(fl.transpose(c, device="cuda"), c.T)


@pytest.mark.gpu
def test_what_others_have_taken(limit, rng):
    """Where less is free than the limit allows, the parts become smaller."""
    a = rng.standard_normal((1000, 1000), np.float32)
    limit(16 * MiB)
    held = _core.DeviceBuffer(13 * MiB)
    assert_product(fl.matmul(a, a, device="cuda"), a, a)
    del held
    assert_product(fl.matmul(a, a, device="cuda"), a, a)
