"""Every GPU row on operands in device memory: leading dimensions and alignments that NumPy operands never bring."""

from __future__ import annotations

import functools
from itertools import product

import numpy as np
import pytest

import fastlinalg as fl
from fastlinalg import _core
from support.accuracy import assert_same_bits, assert_within, oracle
from support.device import PLACEMENTS, DeviceMatrix, place, vectors
from support.rows import OPERATIONS, best_precision, refused, rows, taken

pytestmark = pytest.mark.gpu
SIZES = (
    (1, 1, 1),
    (5, 7, 3),
    (8, 4, 12),
    (33, 31, 17),
    (64, 64, 32),
    (65, 130, 33),
    (129, 127, 40),
    (128, 256, 8),
    (70, 36, 0),
    (65, 130, 300),
    (132, 68, 1100),
)


@functools.cache
def stacks(m, n, k, batch=1):
    rng = np.random.default_rng([m, n, k, batch])
    draw = functools.partial(rng.standard_normal, dtype=np.float32)
    return draw((batch, m, k)), draw((batch, k, n)), draw((batch, m, n))


@functools.cache
def answer(m, n, k, batch, alpha, beta):
    return oracle(*stacks(m, n, k, batch), alpha, beta)


def must_take(placement, *sizes):
    """Aligned operands suit every row. A dimension of size 1 has no leading dimension that could be aligned."""
    return placement.startswith("aligned") and 1 not in sizes


def sgemm(row, a, b, c, alpha, beta, must, precision="strict"):
    options = {"alpha": alpha, "beta": beta, "out": c, "kernel": row.name, "precision": precision}
    return taken(row, lambda: fl.sgemm(a, b, c if beta else None, **options), must)


@pytest.mark.parametrize("row", rows("sgemm", "cuda"))
def test_sgemm_placements(row):
    precision = best_precision(row)
    ran = 0
    for (m, n, k), placement, (trans_a, trans_b) in product(SIZES, PLACEMENTS, product((False, True), repeat=2)):
        for alpha, beta in ((1.0, 0.0), (-0.5, 2.0)):
            a_values, b_values, c_values = stacks(m, n, k)
            a, b = place(a_values, placement, trans_a), place(b_values, placement, trans_b)
            c = place(c_values if beta else np.full_like(c_values, np.nan), placement)
            context = f"{(m, n, k)} {placement} trans {trans_a}, {trans_b} alpha {alpha} beta {beta}"
            if sgemm(row, a, b, c, alpha, beta, must_take(placement, m, n, k), precision):
                assert_within(c.download(context), *answer(m, n, k, 1, alpha, beta), context)
                ran += 1
            else:
                assert_same_bits(c.download(context), c.view(c.host), f"{context}: refused, but written")
    assert ran


@pytest.mark.parametrize("row", rows("sgemm", "cuda"))
def test_sgemm_mixed_placements(row):
    """Each operand on its own off a boundary: a kernel that checks only one of them faults here."""
    precision = best_precision(row)
    m, n, k = 65, 68, 36
    a_values, b_values, c_values = stacks(m, n, k)
    for odd, (trans_a, trans_b) in product(("a", "b", "c"), product((False, True), repeat=2)):
        for bad in ("odd", "shifted", "shifted_two"):
            where = {name: bad if name == odd else "aligned" for name in "abc"}
            a, b, c = (
                place(a_values, where["a"], trans_a),
                place(b_values, where["b"], trans_b),
                place(c_values, where["c"]),
            )
            context = f"{odd} is {bad}, trans {trans_a}, {trans_b}"
            if sgemm(row, a, b, c, 1.0, 0.0, False, precision):
                assert_within(c.download(context), *answer(m, n, k, 1, 1.0, 0.0), context)


@pytest.mark.parametrize("row", rows("sgemm", "cuda"))
def test_sgemm_batches(row):
    precision = best_precision(row)
    for (m, n, k), gap in product(((5, 7, 3), (33, 36, 20), (128, 130, 9)), (0, 4, 5)):
        a_values, b_values, c_values = stacks(m, n, k, 3)
        a, b, c = (place(x, "aligned", gap=gap) for x in (a_values, b_values, c_values))
        if sgemm(row, a, b, c, 1.0, -1.0, gap % 4 == 0, precision):
            assert_within(c.download(), *answer(m, n, k, 3, 1.0, -1.0), f"{(m, n, k)} gap {gap}")


def test_dispatch_takes_any_placement():
    for (m, n, k), placement, trans in product(SIZES, PLACEMENTS, (False, True)):
        a_values, b_values, c_values = stacks(m, n, k)
        a, b, c = place(a_values, placement, trans), place(b_values, placement, trans), place(c_values, placement)
        fl.sgemm(a, b, c, beta=1.0, out=c, precision="strict")
        assert_within(c.download(placement), *answer(m, n, k, 1, 1.0, 1.0), f"{(m, n, k)} {placement} trans {trans}")


# ---------------------------------------------------------------- sgemv
@pytest.mark.parametrize("row", rows("sgemv", "cuda"))
def test_sgemv_placements(row):
    ran = 0
    sizes = ((1, 1), (3, 5), (9, 4), (33, 16), (70, 32), (129, 33), (40, 128), (7, 1030), (300, 17), (5, 0))
    for (m, n), placement, trans, inc in product(sizes, PLACEMENTS, (False, True), (1, 3, -2)):
        a_values, x_values, y_values = stacks(m, 1, n)
        a = place(a_values, placement, trans)
        shift = PLACEMENTS[placement][1]
        x, y = strided_vector(x_values[0, :, 0], inc, shift), strided_vector(y_values[0, :, 0], abs(inc), shift)
        for alpha, beta in ((1.0, 0.0), (-0.5, 2.0)):
            y.buffer.upload(y.host)  # the call before has overwritten it
            call = sgemv(row.name, a, vectors(x, inc < 0), y, alpha, beta)
            context = f"{(m, n)} {placement} trans {trans} inc {inc} alpha {alpha} beta {beta}"
            if taken(row, call, must_take(placement, m, n) and inc == 1):
                want, bound = answer(m, 1, n, 1, alpha, beta)
                assert_within(y.download(context)[..., 0], want[..., 0], bound[..., 0], context)
                ran += 1
    assert ran


def strided_vector(values, inc, shift):
    """A vector with an increment: a one-column matrix whose leading dimension is the increment."""
    ordered = values[::-1] if inc < 0 else values
    return DeviceMatrix(ordered[None, :, None], abs(inc) - 1, shift)


def sgemv(kernel, a, x, y, alpha, beta):
    out = vectors(y)
    return functools.partial(fl.sgemv, a, x, out if beta else None, alpha=alpha, beta=beta, out=out, kernel=kernel)


@pytest.mark.parametrize("row", rows("sgemv", "cuda"))
def test_sgemv_batches(row):
    for (m, n), trans in product(((5, 7), (33, 32), (130, 20)), (False, True)):
        a_values, x_values, y_values = stacks(m, 1, n, 3)
        a, x, y = place(a_values, "aligned", trans), place(x_values, "tight"), place(y_values, "tight")
        if taken(row, sgemv(row.name, a, vectors(x), y, 2.0, -1.0), a.bs % 4 == 0):
            assert_within(y.download(), *answer(m, 1, n, 3, 2.0, -1.0), f"{(m, n)} trans {trans}")


ROWS_OF_EVERY_TEAM = ((1600, 300), (1500, 2047), (760, 1100), (700, 1000), (5, 5003), (2, 40000))


@pytest.mark.parametrize("shape", ROWS_OF_EVERY_TEAM, ids=lambda shape: "x".join(map(str, shape)))
@pytest.mark.parametrize("kernel", ["any_rows", None])
def test_rows_and_x_begin_anywhere(kernel, shape):
    """Pieces of four begin where A's rows are aligned, and x is somewhere else then."""
    m, n = shape
    a_values, x_values, y_values = stacks(m, 1, n)
    want, bound = answer(m, 1, n, 1, 1.0, 0.0)
    for shift, x_shift, pad, inc in product(range(4), range(4), (0, 1), (1, 2)):
        a, x = DeviceMatrix(a_values, pad, shift), strided_vector(x_values[0, :, 0], inc, x_shift)
        y = strided_vector(np.full_like(y_values[0, :, 0], np.nan), 1, 0)
        sgemv(kernel, a, vectors(x), y, 1.0, 0.0)()
        context = f"{shape}: A {shift} floats off, x {x_shift}, pad {pad}, inc {inc}"
        assert_within(y.download(context)[..., 0], want[..., 0], bound[..., 0], context)


# ---------------------------------------------------------------- transpose
def numbered(turn, *shape):
    """Other values each turn: what shared memory still holds of the call before is wrong."""
    return np.arange(turn, turn + np.prod(shape), dtype=np.uint32).view(np.float32).reshape(shape)


@pytest.mark.parametrize("row", rows("transpose", "cuda", names=("narrow",)))
def test_transpose_placements_of_long_rows(row):
    """Whose pieces begin on sectors, one beside the other, the first and the last within the rows."""
    for turn, (width, placement) in enumerate(product((2, 3, 8, 13), ("tight", "odd", "shifted", "odd_shifted"))):
        m = 2**20 // width + 5
        a = place(numbered(turn, 1, m, width), placement)
        b = place(np.full((1, width, m), np.nan, np.float32), placement)
        fl.transpose(a, b, kernel=row.name)
        assert_same_bits(b.download(placement), a.view(a.host).swapaxes(-1, -2), f"{width} {placement}")


@pytest.mark.parametrize("row", rows("transpose", "cuda"))
def test_transpose_placements(row):
    ran = 0
    sizes = ((1, 1), (3, 5), (4, 4), (8, 12), (33, 31), (64, 64), (65, 130), (2, 257), (257, 2), (128, 36),
             (200, 3), (3, 200), (131, 5), (5, 131))  # fmt: skip
    for turn, ((m, n), placement, batch) in enumerate(product(sizes, PLACEMENTS, (1, 3))):
        a = place(numbered(turn, batch, m, n), placement)
        values = np.array(a.view(a.host))
        b = place(np.full((batch, n, m), np.nan, np.float32), placement)
        context = f"{(m, n)} {placement} batch {batch}"
        if taken(row, lambda a=a, b=b: fl.transpose(a, b, kernel=row.name), must_take(placement, m, n)):
            assert_same_bits(b.download(context), values.swapaxes(-1, -2), context)
            ran += 1
    assert ran


# ---------------------------------------------------------------- refusals
@pytest.mark.parametrize("op", OPERATIONS)
def test_some_rows_refuse_unaligned_operands_and_say_what_they_need(op):
    """The 128-bit kernels: if none refuses, the alignment check is gone."""
    refusals = 0
    for row in (row for row in fl.kernels(op) if row.device == "cuda" and row.available):
        a, b, c = (place(np.ones((1, 32, 32), np.float32), "shifted") for _ in range(3))
        x, y = (vectors(place(np.ones((1, 32, 1), np.float32), "shifted")) for _ in range(2))
        *operands, out = {"sgemm": (a, b, c), "sgemv": (a, x, y), "transpose": (a, b)}[op]
        options = {"precision": best_precision(row)} if op == "sgemm" else {}
        try:
            getattr(fl, op)(*operands, out=out, kernel=row.name, **options)
        except ValueError as error:
            refusals += 1
            assert refused(row, error) and "aligned" in str(error), str(error)
    assert refusals


def test_a_buffer_checks_its_bounds():
    buffer = _core.DeviceBuffer(64)
    assert buffer.nbytes == 64 and buffer.ptr % 256 == 0
    for call in (buffer.upload, buffer.download):
        for array, offset in (
            (np.zeros(17, np.float32), 0),
            (np.zeros(1, np.float32), 64),
            (np.zeros(16, np.float32), 4),
        ):
            with pytest.raises(ValueError):
                call(array, offset)
    with pytest.raises(TypeError):
        buffer.upload(np.zeros(4))
    with pytest.raises(ValueError):
        buffer.upload(np.zeros((4, 4), np.float32)[:, ::2])


# ---------------------------------------------------------------- one kernel behind another
@pytest.mark.parametrize("row", [*rows("sgemm", "cuda"), *rows("sgemv", "cuda"), *rows("transpose", "cuda")])
def test_a_kernel_waits_for_the_one_that_writes_its_operand(row):
    """That one lets it start early, and a long product before both keeps the device busy for the host to be ahead."""
    put, rng = fl.DeviceArray.from_numpy, np.random.default_rng(5)
    first, second, b = (rng.integers(-3, 4, (256, 256)).astype(np.float32) for _ in range(3))
    a, right, x, same = map(put, (np.zeros_like(b), b, b[0].copy(), np.eye(256, dtype=np.float32)))
    written = put(first), put(second)
    long, busy = (put(np.ones((2048, 2048), np.float32)) for _ in range(2))
    starts_next = next((k.name for k in fl.kernels("sgemm") if k.name == "strict_128x256" and k.available), None)
    calls = {
        "sgemm": [(lambda: fl.sgemm(a, right, kernel=row.name), lambda a: a @ b)],
        "sgemv": [(lambda: fl.sgemv(a, x, kernel=row.name), lambda a: a @ b[0]),
                  (lambda: fl.sgemv(a, x, trans=True, kernel=row.name), lambda a: a.T @ b[0])],
        "transpose": [(lambda: fl.transpose(a, kernel=row.name), lambda a: a.T)],
    }[row.op]  # fmt: skip
    got = []
    for turn, (call, want) in product(range(6), calls):
        fl.sgemm(long, long, out=busy)
        fl.sgemm(written[turn % 2], same, kernel=starts_next, out=a)
        got.append((call(), want((first, second)[turn % 2])))
    for turn, (result, wanted) in enumerate(got):
        assert_same_bits(result.numpy(), wanted, f"turn {turn}")
