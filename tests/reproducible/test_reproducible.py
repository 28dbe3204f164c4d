"""precision="reproducible": the order of docs/reproducible.md, and the recorded bits of 400 random calls."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import fastlinalg as fl
from support import reproducible
from support.accuracy import assert_same_bits
from support.device import place
from support.device import product as by_row
from support.operands import normal
from support.rows import SLOW, rows
from support.source_tree import needs_source_tree

PROMISED = [row for row in rows("sgemm") if row.values[0].traits.reproducible]
MiB = 2**20
NOT_PROMISED = [row for row in rows("sgemm", "cpu") if not row.values[0].traits.reproducible]


def product(a, b, **options):
    return fl.matmul(a, b, precision="reproducible", **options)


def in_order(a, b):
    """By the program of the page."""
    return reproducible.program()[1](a, b)


# ---------------------------------------------------------------- the specification and the recorded bits
@needs_source_tree
def test_the_page_says_what_was_recorded():
    (_, by_page), want = reproducible.program(), reproducible.recorded()
    small = [at for at in reproducible.calls() if at.work < 20_000]
    assert len(small) > 100
    with np.errstate(all="ignore"):
        other = [at.number for at in small if reproducible.digest(at.expected(by_page)) != want[at.number]]
    assert other == []


def test_recorded_bits_on_the_cpu():
    assert reproducible.differing(lambda at: at.run(device="cpu")) == []


@pytest.mark.parametrize("row", PROMISED)
def test_recorded_bits_by_each_kernel(row):
    put = fl.DeviceArray.from_numpy if row.device == "cuda" else np.asarray
    most = 2e5 if row.name in SLOW else np.inf
    assert reproducible.differing(lambda at: at.run(put, kernel=row.name), most) == []


@pytest.mark.gpu
@pytest.mark.parametrize("row", [row for row in PROMISED if row.values[0].device == "cuda"])
@pytest.mark.parametrize("shape", [
    (2309, 2333, 600, 1), (2304, 3072, 512, 1), (300, 260, 700, 47), (20, 30, 9000, 40), (192, 768, 2560, 1),
])  # fmt: skip
def test_many_tiles(row, shape, rng):
    """More tiles than multiprocessors, more slabs than there is room for at a time, more problems than blocks, and ten
    blocks of k of whole tiles, which groups of warps share unevenly."""
    m, n, k, batch = shape
    a, b, c = normal(rng, batch, m, k), normal(rng, batch, k, n), normal(rng, batch, m, n)
    for scalars in ({}, {"alpha": 0.3, "beta": -0.7}):
        old = c if scalars else None
        want = fl.sgemm(a, b, old, **scalars, precision="reproducible", device="cpu")
        got = fl.sgemm(*(None if x is None else fl.DeviceArray.from_numpy(x) for x in (a, b, old)), **scalars,
                       kernel=row.name, precision="reproducible")  # fmt: skip
        assert_same_bits(got.numpy(), want, str(scalars))


# Outputs, K and problems.
VECTORS = [
    *((outputs, k, 1) for outputs in (1, 2, 8, 31, 32, 33, 100) for k in (1, 255, 256, 257, 513, 5000)),
    *((outputs, k, 7) for outputs in (1, 3, 40) for k in (200, 600)),
    (4500, 1100, 1), (3, 70000, 1), (1, 300, 9000),
]  # fmt: skip


@pytest.mark.gpu
@pytest.mark.parametrize("row", rows("sgemm", names=("reproducible_vector",)))
@pytest.mark.parametrize("column", [False, True])
def test_one_row_or_one_column(row, column, rng):
    for outputs, k, batch in VECTORS:
        shape = (outputs, 1, k, batch) if column else (1, outputs, k, batch)
        m, n = shape[:2]
        a, b, c = normal(rng, batch, m, k), normal(rng, batch, k, n), normal(rng, batch, m, n)
        a[:, :, :: k // 3 + 1] *= np.float32(-0.0)
        b[:, k // 2 :] *= np.float32(1e-40 if k % 2 else 1.0)
        for alpha, beta in ((1.0, 0.0), (0.3, -0.7)):
            want = fl.sgemm(a, b, c if beta else None, alpha=alpha, beta=beta, precision="reproducible", device="cpu")
            for placement, transposed in itertools.product(("aligned", "odd", "shifted"), (False, True)):
                on_device = (place(a, placement, transposed), place(b, placement, transposed), place(c, placement))
                got = by_row(row.name, *on_device, alpha, beta, "reproducible")
                assert_same_bits(got, want, f"{shape}, {placement}, {transposed}, {alpha}, {beta}")


@pytest.mark.gpu
def test_recorded_bits_on_a_gpu():
    """As dispatch chooses, on device arrays and through the host pipeline."""
    assert reproducible.differing(lambda at: at.run(fl.DeviceArray.from_numpy)) == []
    assert reproducible.differing(lambda at: at.run(device="cuda")) == []


def test_what_was_recorded_is_worth_comparing():
    """Most results are finite, and each kind of call is among them."""
    calls = list(reproducible.calls())
    finite = [np.isfinite(at.run(device="cpu")).mean() > 0.5 for at in calls]
    assert sum(finite) > 320 and not all(finite)
    assert sum(at.beta != 0 for at in calls) > 100 and sum(at.alpha != 1 for at in calls) > 100
    assert sum(max(at.a.ndim, at.b.ndim) > 2 for at in calls) > 40
    assert len(set(reproducible.recorded())) > 380


# ---------------------------------------------------------------- of what the bits are a function
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_slices_batches_and_threads(device, rng):
    a, b = normal(rng, 300, 700), normal(rng, 700, 260)
    want = in_order(a, b)
    for threads in (1, 2, 3):
        with fl.num_threads(threads):
            assert_same_bits(product(a, b, device=device), want, f"{threads} threads")
    parts = (slice(3, 4), slice(None)), (slice(7, 90), slice(5, 6)), (slice(0, 300, 7), slice(200, 3, -3))
    for down, across in parts:
        assert_same_bits(product(a[down], b[:, across], device=device), want[down, across], f"{down}, {across}")
    stack = product(np.stack([a, a[::-1]]), b, device=device)
    assert_same_bits(stack[0], want, "of a batch")
    assert_same_bits(stack[1], want[::-1], "of a batch")


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_vectors_are_columns(device, rng):
    a, x = normal(rng, 70, 1100), normal(rng, 1100)
    want = in_order(a, x[:, None])[:, 0]
    assert_same_bits(product(a, x, device=device), want, "a @ x")
    assert_same_bits(product(x, a.T, device=device), want, "x @ a.T")
    assert_same_bits(product(a[5], x, device=device), want[5], "a dot product")
    assert_same_bits(product(np.stack([a, a]), x, device=device), np.stack([want, want]), "a batch")
    out = np.zeros((70, 2), np.float32)[:, 1]
    assert product(a, x, out=out, device=device) is out
    assert_same_bits(out, want, "out=")
    with fl.Matmul(a, x, precision="reproducible", device=device) as plan:
        assert_same_bits(plan.execute(), want, "a plan")


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_products_that_are_cut_at_multiples_of_256(device, rng):
    a, b, c = normal(rng, 60, 1500), normal(rng, 1500, 50), normal(rng, 60, 50)
    options = {"alpha": 0.3, "precision": "reproducible", "device": device}
    want = fl.sgemm(a, b, c, beta=-0.7, **options)
    part = fl.sgemm(a[:, :512], b[:512], c, beta=-0.7, **options)
    assert_same_bits(fl.sgemm(a[:, 512:], b[512:], part, beta=1.0, **options), want)


@pytest.mark.gpu
def test_out_of_core(limit, rng):
    """Tiles are cut along k too, where blocks of the sum begin."""
    a, b, c = normal(rng, 300, 9000), normal(rng, 9000, 280), normal(rng, 300, 280)
    options = {"alpha": 0.3, "beta": -0.7, "precision": "reproducible"}
    want = fl.sgemm(a, b, c, device="cpu", **options)
    limit(3 * MiB)
    assert_same_bits(fl.sgemm(a, b, c, device="cuda", **options), want)


@pytest.mark.gpu
@pytest.mark.gpu2
def test_two_devices(rng):
    assert reproducible.differing(lambda at: at.run(device="cuda:all")) == []
    a, b = normal(rng, 900, 700), normal(rng, 700, 800)
    want = product(a, b, device="cpu")
    assert_same_bits(product(a, b, device=["cuda:0", "cuda:1"]), want)


def test_a_matrix_times_its_own_transpose(rng):
    a = normal(rng, 200, 600)
    want = in_order(a, a.T)
    assert_same_bits(product(a, a.T, device="cpu"), want, "matmul")
    lower = fl.ssyrk(a, uplo="L", precision="reproducible", device="cpu")
    assert_same_bits(np.tril(lower), np.tril(want), "ssyrk")


# ---------------------------------------------------------------- who serves it
@pytest.mark.parametrize("row", NOT_PROMISED)
def test_kernels_with_another_order_refuse(row, rng):
    with pytest.raises(ValueError, match="needs another precision than 'reproducible'"):
        fl.sgemm(normal(rng, 5, 5), normal(rng, 5, 5), kernel=row.name, precision="reproducible")


def test_dispatch_takes_no_others(rng):
    for shape in ((1, 1, 1), (8, 8, 8), (300, 1, 300), (1, 2000, 500), (2000, 3, 40), (400, 400, 400)):
        told = fl.explain(normal(rng, shape[0], shape[2]), normal(rng, shape[2], shape[1]), precision="reproducible",
                          device="cpu")  # fmt: skip
        assert next(row for row in fl.kernels("sgemm") if row.name == told.kernel).traits.reproducible, shape
    assert fl.explain(normal(rng, 9, 9), normal(rng, 9), precision="reproducible").op == "sgemm"


def test_default_calls_have_the_same_bits_where_there_is_fma(rng):
    if fl.info()["cpu"]["isa"] == "baseline":
        pytest.skip("products are rounded before they are added")
    a, b = normal(rng, 90, 500), normal(rng, 500, 80)
    assert_same_bits(fl.matmul(a, b, device="cpu"), product(a, b, device="cpu"))
