"""A product with one row or one column is the matrix-vector product that it is: the same kernels and the same bits."""

from __future__ import annotations

import numpy as np
import pytest

import fastlinalg as fl
from support.accuracy import assert_product, assert_same_bits
from support.operands import normal

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
SHAPES = ((1, 1, 1), (1, 1, 3000), (1, 70, 33), (70, 1, 33), (1, 513, 1030), (513, 1, 1030), (1, 9000, 5), (5, 1, 9000))
SGEMV = {row.name for row in fl.kernels("sgemv")}
LAYOUTS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "every other": lambda x: np.repeat(np.repeat(x, 2, 0), 2, 1)[::2, ::2],
    "backwards": lambda x: np.ascontiguousarray(x[::-1, ::-1])[::-1, ::-1],
    "repeated": lambda x: np.broadcast_to(x[:1], x.shape),
}


def by_sgemv(a, b, c=None, alpha=1.0, beta=0.0, **options):
    """The same by `sgemv`, as matrices of the product's shape."""
    y = None if c is None else np.ravel(c)
    if b.shape[1] == 1:
        return fl.sgemv(a, b[:, 0], y, alpha=alpha, beta=beta, **options)[:, None]
    return fl.sgemv(b, a[0], y, alpha=alpha, beta=beta, trans=True, **options)[None]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("precision", ["accurate", "strict"])
def test_layouts_and_scalars(device, precision, rng):
    for m, n, k in SHAPES:
        x, y, c = normal(rng, m, k), normal(rng, k, n), normal(rng, m, n)
        for name, layout in LAYOUTS.items():
            a, b = layout(x), layout(y)
            for alpha, beta in ((1.0, 0.0), (-0.5, 2.0), (0.0, 0.5), (1.0, 1.0)):
                added = c if beta else None
                got = fl.sgemm(a, b, added, alpha=alpha, beta=beta, precision=precision, device=device)
                context = f"{m}x{n}x{k}, {name}, alpha {alpha}, beta {beta}"
                assert_product(got, a, b, added, alpha, beta)
                assert_same_bits(got, by_sgemv(a, b, added, alpha, beta, device=device), context)


@pytest.mark.parametrize("device", DEVICES)
def test_an_empty_sum(device):
    for m, n in ((1, 5), (5, 1), (1, 1)):
        a, b, c = np.ones((m, 0), np.float32), np.ones((0, n), np.float32), np.full((m, n), 3, np.float32)
        assert (fl.sgemm(a, b, device=device) == 0).all()
        assert (fl.sgemm(a, b, c, beta=2.0, device=device) == 6).all()
        assert (fl.sgemm(a, b, c, beta=1.0, device=device) == 3).all()


@pytest.mark.parametrize("device", DEVICES)
def test_batches(device, rng):
    for (m, n, k), broadcast in (((1, 40, 70), False), ((40, 1, 70), False), ((1, 1, 70), True), ((1, 40, 70), True)):
        a, b = normal(rng, 6, m, k), normal(rng, 1 if broadcast else 6, k, n)
        got = fl.matmul(a, b, device=device)
        assert_product(got, a, np.broadcast_to(b, (6, k, n)))
        uneven = fl.matmul(a.reshape(2, 3, m, k)[:, :2], b[:1], device=device)
        assert_product(uneven, a.reshape(2, 3, m, k)[:, :2], np.broadcast_to(b[:1], (2, 2, k, n)))


@pytest.mark.parametrize("device", DEVICES)
def test_results_in_place_and_by_columns(device, rng):
    n = 90
    a, row = normal(rng, n, n), normal(rng, 1, n)
    out = row.copy()
    assert fl.sgemm(out, a, out=out, device=device) is out
    assert_same_bits(out, fl.sgemm(row, a, device=device))
    square = a.copy()
    fl.sgemm(square, a[:, :1], out=square[:, 3:4], device=device)
    assert_same_bits(square[:, 3:4], fl.sgemm(a, a[:, :1], device=device))
    assert_same_bits(np.delete(square, 3, 1), np.delete(a, 3, 1), "beside it")
    wide = np.zeros((n, 1), np.float32)
    fl.sgemm(row, a, out=wide.T, device=device)
    assert_same_bits(wide.T, fl.sgemm(row, a, device=device))
    added = out.copy()
    fl.sgemm(row, a, added, beta=-1.0, out=added, device=device)
    assert_product(added, row, a, out, 1.0, -1.0)


def test_explanations():
    """What computes it is named; a kernel by name, and the order of 'reproducible', are SGEMM's own."""
    for shapes in (((1, 50), (50, 60)), ((60, 50), (50, 1)), ((1, 50), (50, 1))):
        answer = fl.explain(*shapes, device="cpu")
        assert answer.op == "sgemv" and answer.kernel in SGEMV and answer.text.startswith("sgemm ")
        assert fl.explain(*shapes, device="cpu", precision="reproducible").op == "sgemm"
        assert fl.explain(*shapes, kernel="portable_small").op == "sgemm"
    assert fl.explain((2, 50), (50, 60), device="cpu").op == "sgemm"


@pytest.mark.parametrize("device", DEVICES)
def test_plans(device, rng):
    for m, n, k in ((1, 70, 300), (70, 1, 300), (1, 1, 300)):
        a, b, c, out = normal(rng, m, k), normal(rng, k, n), normal(rng, m, n), np.empty((m, n), np.float32)
        with fl.Matmul(a, b, c=c, out=out, alpha=2.0, beta=0.5, device=device, constant="b") as plan:
            plan.plan()
            assert plan.kernel in SGEMV and plan.device.startswith(device)
            for _ in range(2):
                plan.execute()
                assert_product(out, a, b, c, 2.0, 0.5)
                a[:] = normal(rng, m, k)
            x, y = normal(rng, m, k), normal(rng, k, n)
            plan.reset_operands(a=x, b=y)
            plan.execute()
            assert_product(out, x, y, c, 2.0, 0.5)


@pytest.mark.parametrize("device", DEVICES)
def test_other_types(device, rng):
    """Each is converted as what it is, also where the operands change places."""
    for m, n in ((1, 600), (600, 1)):
        a, b = rng.integers(-9, 9, (m, 700)), normal(rng, 700, n).astype(np.float64)
        got = fl.matmul(a, b, dtype=np.float32, device=device)
        assert_same_bits(got, fl.matmul(a.astype(np.float32), b.astype(np.float32), device=device))


@pytest.mark.gpu
def test_device_memory(rng):
    put = fl.DeviceArray.from_numpy
    for m, n, k in ((1, 300, 700), (300, 1, 700), (1, 1, 700)):
        a, b, c = normal(rng, m, k), normal(rng, k, n), normal(rng, m, n)
        x, y, z = put(a), put(b), put(c)
        assert_same_bits(fl.matmul(x, y).numpy(), by_sgemv(a, b, device="cuda"))
        for precision in ("accurate", "strict"):
            got = fl.sgemm(x, y, z, alpha=0.5, beta=-2.0, precision=precision).numpy()
            assert_product(got, a, b, c, 0.5, -2.0)
            assert_same_bits(z.numpy(), c, "only read")
        stacked = normal(rng, 3, m, k), b, normal(rng, 3, m, n)
        assert_product(fl.sgemm(*map(put, stacked), alpha=0.5, beta=-2.0).numpy(), *stacked, 0.5, -2.0)
