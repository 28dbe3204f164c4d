"""Calls on host arrays through the GPU, large enough for panels: right, nothing beside them touched, none too early."""

from __future__ import annotations

import threading
from itertools import product

import numpy as np
import pytest

import fastlinalg as fl
from support.accuracy import assert_product, assert_same_bits, oracle
from support.layouts import MATRIX_LAYOUTS, matrix_input, result
from support.operands import normal_of as normal
from support.pinned import check_products_of_pinned_operands
from support.rows import rows
from support.threads import in_threads

pytestmark = pytest.mark.gpu
PINNED_MOST = 256 << 20
SIZES = (
    (700, 600, 500),
    (513, 1025, 700),
    (1031, 2050, 3),
    (20_000, 130, 70),
    (130, 20_000, 70),
    (1, 3000, 1500),
    (3000, 1, 1500),
    (64, 65, 30_001),
    (2, 3, 300_000),
)


def sgemm(a, b, *args, **options):
    return fl.sgemm(a, b, *args, device="cuda", **options)


@pytest.mark.parametrize("precision", ("strict", "accurate"))
@pytest.mark.parametrize("m, n, k", SIZES)
def test_shapes_and_orders(m, n, k, precision):
    a, b, c = normal(m, k), normal(k, n, seed=1), normal(m, n, seed=2)
    for alpha, beta in ((1.0, 0.0), (-0.5, 2.0)):
        want = oracle(a, b, c, alpha, beta)
        for a_order, b_order in product("CF", repeat=2):
            got = sgemm(
                np.asarray(a, order=a_order), np.asarray(b, order=b_order), c if beta else None,
                alpha=alpha, beta=beta, precision=precision,
            )  # fmt: skip
            error = np.abs(got - want[0])
            assert (error <= want[1]).all(), (a_order, b_order, alpha, beta, float((error / want[1]).max()))


@pytest.mark.parametrize("layout", MATRIX_LAYOUTS)
def test_layouts(layout):
    m, n, k = 515, 900, 610
    a, b, c = normal(m, k), normal(k, n, seed=1), normal(m, n, seed=2)
    for alpha, beta in ((1.0, 0.0), (2.0, -1.0)):
        out = result((m, n), layout, c if beta else np.nan)
        sgemm(matrix_input(a, layout), matrix_input(b, layout), out.array if beta else None, alpha=alpha, beta=beta,
              out=out.array)  # fmt: skip
        assert_product(out.array, a, b, c, alpha, beta, layout)
        out.assert_intact(layout)


def test_layouts_in_turns(rng):
    """A thread keeps the plans of its last calls: each has to be that of its call, which a new thread makes anew."""
    kinds = []
    for m, n, k in ((600, 520, 512), (600, 512, 520), (520, 600, 512), (512, 520, 600)):
        for order in "CF":
            a, b = np.asarray(normal(m, k), order=order), normal(k, n, seed=1)
            kinds += [((a, b), {}), ((a, b, normal(m, n, seed=2)), {"beta": 0.5})]
            kinds += [((a, b), {"precision": "strict"}), ((a, b), {"kernel": "naive"})]
    assert len(kinds) > 8, "more than are kept"
    want = []
    for args, options in kinds:
        thread = threading.Thread(target=lambda args=args, options=options: want.append(sgemm(*args, **options)))
        thread.start()
        thread.join()
    for index in (*range(len(kinds)), *rng.integers(0, 8, 24), *rng.integers(0, len(kinds), 24)):
        args, options = kinds[index]
        assert_same_bits(sgemm(*args, **options), want[index], f"{args[0].shape} {args[1].shape} {options}")


def test_batches():
    a, b, one = normal(40, 130, 90), normal(40, 90, 170, seed=1), normal(90, 170, seed=2)
    assert_product(sgemm(a, b), a, b)
    assert_product(sgemm(a, one), a, one)
    assert_product(sgemm(a[:, ::2, ::3], b[:, ::3, ::-1]), a[:, ::2, ::3], b[:, ::3, ::-1])
    c = normal(40, 130, 170, seed=3)
    assert_product(sgemm(a, b, c, beta=0.5), a, b, c, beta=0.5)
    large = normal(2, 2100, 1900), normal(2, 1900, 2000, seed=1)
    assert_product(sgemm(*large), *large)


def test_transposes_and_vectors():
    for shape in ((2000, 1500), (5000, 33), (33, 5000), (60, 130, 170)):
        a = normal(*shape)
        assert_same_bits(fl.transpose(a, device="cuda"), np.ascontiguousarray(a.swapaxes(-1, -2)), str(shape))
    a, x = normal(1500, 2000), normal(2000, seed=1)
    assert_product(fl.sgemv(a, x, device="cuda"), a, x)
    assert_product(fl.sgemv(np.asfortranarray(a), x, device="cuda"), a, x)
    assert_product(fl.sgemv(a[::2, ::-1], x, device="cuda"), a[::2, ::-1], x)


def test_an_empty_sum_leaves_beta_times_c():
    c = normal(1500, 1100)
    a, b = np.full((1500, 3), np.nan, np.float32), np.full((3, 1100), np.nan, np.float32)
    assert_same_bits(sgemm(a[:, :0], b[:0], c, beta=2.0), 2 * c, "k = 0")
    assert_same_bits(sgemm(a, b, c, alpha=0.0, beta=2.0), 2 * c, "alpha = 0")


@pytest.mark.parametrize("precision", ("strict", "accurate"))
def test_same_bits_every_time_with_any_number_of_threads(precision):
    a, b = normal(1500, 1300), normal(1300, 1700, seed=1)
    want = sgemm(a, b, precision=precision)
    for threads in (1, 2, 5, 16, 16, 16):
        with fl.num_threads(threads):
            assert_same_bits(sgemm(a, b, precision=precision), want, f"{threads} threads")


def test_the_input_may_change_right_after_the_call():
    a, b = normal(900, 800), normal(800, 1000, seed=1)
    want = sgemm(a, b, precision="strict")
    for _ in range(50):
        x, y, out = a.copy(), b.copy(), np.empty_like(want)
        sgemm(x, y, out=out, precision="strict")
        x[...] = y[...] = np.nan
        kept = out.copy()
        assert_same_bits(kept, want, "inputs overwritten")
        assert_same_bits(out, kept, "written after the return")


def test_the_input_of_ten_thousand_calls_may_change():
    """Small calls, whose operands travel in one copy, and some that go through the pipeline."""
    kinds = [(normal(m, k, seed=i), normal(k, n, seed=9 + i)) for i in range(4)
             for m, n, k in ((40, 56, 48), (24, 8, 90), (33, 65, 17))]  # fmt: skip
    large = [(normal(530, 510, seed=i), normal(510, 520, seed=9 + i)) for i in range(4)]
    for pairs, calls in ((kinds, 10_000), (large, 400)):
        want = [sgemm(a, b, precision="strict") for a, b in pairs]
        inputs = [(a.copy(), b.copy()) for a, b in pairs]
        for i in range(calls):
            at = i % len(pairs)
            (x, y), (a, b) = inputs[at], pairs[at]
            x[...], y[...] = a, b
            got = sgemm(x, y, precision="strict")
            x.fill(np.nan), y.fill(np.nan)
            assert got.tobytes() == want[at].tobytes(), f"call {i}"


def test_threads_share_the_pinned_memory():
    a, b = normal(2000, 1500), normal(1500, 1800, seed=1)
    want = sgemm(a, b, precision="strict")
    fl.cuda.trim()
    most, start = [0], threading.Barrier(4)

    def caller(seed):
        start.wait()
        for i in range(8):
            with fl.num_threads(1 + (seed + i) % 16):
                got = sgemm(a, b, precision="strict")
            most[0] = max(most[0], fl.cuda.memory_info()["pinned"])
            assert got.tobytes() == want.tobytes(), (seed, i)

    with fl.num_threads(fl.get_num_threads()):  # the callers' settings are of all threads: one ends as another's
        in_threads(caller, range(4))
    assert 0 < most[0] <= PINNED_MOST
    fl.cuda.trim()
    assert fl.cuda.memory_info()["pinned"] == 0
    assert_same_bits(sgemm(a, b, precision="strict"), want, "after trim")


def test_out_of_device_memory_leaves_the_result_alone(limit):
    a, b = normal(1500, 1500), normal(1500, 1500, seed=1)
    want, out = sgemm(a, b), np.full((1500, 1500), 7, np.float32)
    limit(fl.cuda.memory_info()["used"] + (1 << 9))  # 1 MiB would do, a part at a time
    with pytest.raises(MemoryError, match="limit"):
        sgemm(a, b, out=out)
    limit(0)
    assert (out == 7).all()
    assert_same_bits(sgemm(a, b, out=out), want, "the next call")


def test_pinned_operands_are_used_where_they_are(torch, rng):
    def pinned(values):
        return torch.empty(values.shape, pin_memory=True).copy_(torch.from_numpy(values)).numpy()

    check_products_of_pinned_operands(pinned, 1100, rng)


@pytest.mark.parametrize("row", rows("sgemm", "cuda", strict=False))
@pytest.mark.parametrize("m, n, k", ((1400, 1300, 600), (1000, 5000, 530), (5000, 1000, 1100)))
def test_steps_share_the_splits_of_their_operands(m, n, k, row, caplog, limit):
    """And split both themselves, with the same bits, where there is no room for that."""
    a, b = normal(m, k), normal(k, n, seed=1)
    a[m // 2 :, 3] *= np.float32(2.0**40)  # some steps have what two terms cannot hold
    got = sgemm(a, b, kernel=row.name)
    assert_product(got, a, b)
    with fl.Matmul(a, b, kernel=row.name, device="cuda") as plan:
        plan.plan()
        room = plan.workspace_bytes + int(4.2 * (m * k + k * n + m * n)) + (1 << 16)
    fl.cuda.trim()
    limit(fl.cuda.memory_info()["used"] + room)
    with caplog.at_level("DEBUG", logger="fastlinalg"):
        assert_same_bits(sgemm(a, b, kernel=row.name), got)
    assert "parts" not in caplog.text
