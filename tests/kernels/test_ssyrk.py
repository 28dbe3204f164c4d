"""``fl.ssyrk``: within the bound in the triangle that was asked for, and nothing else is read or written."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import fastlinalg as fl
from fastlinalg._check import written
from support.accuracy import assert_same_bits, assert_within, oracle
from support.device import DeviceMatrix
from support.device_libraries import view
from support.layouts import BROADCAST_LAYOUTS, MATRIX_LAYOUTS, matrix_input, result
from support.operands import normal
from support.requirements import mostly_exhaustive
from support.rows import best_precision, rows

F32 = np.float32
# Around a square on the diagonal and a few of them; k around a chain and a block of k.
SHAPES = ((0, 3), (1, 1), (2, 0), (5, 7), (17, 33), (64, 20), (127, 5), (128, 300), (129, 31), (200, 257), (257, 64),
          (300, 1), (385, 40), (513, 17), (150, 1030))  # fmt: skip
SCALARS = ((1.0, 0.0), (-0.75, 0.0), (1.0, 1.0), (1.5, -0.5), (0.0, 0.0), (0.0, 2.0), (0.0, 1.0))
PARTS = (None, "L", "U")
WAYS = tuple(product(PARTS, (False, True)))


def check(got, beside, a, uplo, c=None, alpha=1.0, beta=0.0, context=""):
    """The product with `a` as it is, and `beside` the triangle the bits that were there."""
    if alpha == 0.0:  # the operand is not read
        a = np.zeros((*a.shape[:-1], 0), F32)
    inside = written(got.shape[-1], uplo)
    want, bound = oracle(a, a.swapaxes(-1, -2), c, alpha, beta)
    assert_within(np.where(inside, got, F32(0)), np.where(inside, want, 0), np.where(inside, bound, 0), context)
    assert_same_bits(np.where(inside, F32(0), got), np.where(inside, F32(0), beside), context)


@pytest.mark.parametrize(("uplo", "trans"), WAYS)
@pytest.mark.parametrize("threads", mostly_exhaustive([1, 5], 5))
def test_every_shape_and_scalar(rng, uplo, trans, threads):
    with fl.num_threads(threads):
        for n, k in SHAPES:
            a = normal(rng, n, k)
            stored = np.ascontiguousarray(a.T) if trans else a
            for alpha, beta in SCALARS:
                c = np.where(written(n, uplo), normal(rng, n, n), F32(np.nan)) if beta else np.full((n, n), np.nan, F32)
                options = {"alpha": alpha, "beta": beta, "trans": trans, "uplo": uplo, "device": "cpu"}
                context = f"{n}x{k}, alpha {alpha}, beta {beta}"
                before = c.copy()
                added = c if beta else None
                check(fl.ssyrk(stored, added, **options), np.zeros((n, n), F32), a, uplo, c, alpha, beta, context)
                assert_same_bits(c, before)
                assert fl.ssyrk(stored, added, out=c, **options) is c
                check(c, before, a, uplo, before, alpha, beta, context)


@pytest.mark.parametrize("row", rows("sgemm", "cpu", strict=True))  # the others: symmetric/test_symmetric.py
@pytest.mark.parametrize("uplo", PARTS)
def test_bits_of_the_kernel_that_was_asked_for(row, uplo, rng):
    for n, k in ((5, 7), (67, 41), (150, 300)):
        a, c = normal(rng, n, k), normal(rng, n, n)
        for beta in (0.0, -0.5):
            options = {"alpha": 1.5, "beta": beta, "kernel": row.name}
            added = c if beta else None
            want = np.where(written(n, uplo), fl.sgemm(a.copy(), a.T, added, **options), F32(0))
            assert_same_bits(fl.ssyrk(a, added, uplo=uplo, **options), want, f"{n}x{k}")


@pytest.mark.parametrize("uplo", PARTS)
def test_every_layout(uplo, rng):
    for n in (33, 140):
        values, addend = normal(rng, n, 41), normal(rng, n, n)
        for name in (*MATRIX_LAYOUTS, *BROADCAST_LAYOUTS):
            a = matrix_input(values, name)
            for trans, x in ((False, a), (True, a.T)):
                got = fl.ssyrk(x, addend, alpha=2, beta=1, trans=trans, uplo=uplo, device="cpu")
                check(got, np.zeros((n, n), F32), a, uplo, addend, 2.0, 1.0, name)
        for name in MATRIX_LAYOUTS:
            out = result((n, n), name)
            before = out.array.copy()
            fl.ssyrk(values, addend, beta=0.5, uplo=uplo, out=out.array, device="cpu")
            check(out.array, before, values, uplo, addend, 1.0, 0.5, f"out {name}")
            out.assert_intact(name)
            out = result((n, n), name, addend)
            fl.ssyrk(values, out.array, beta=0.5, uplo=uplo, out=out.array, device="cpu")
            check(out.array, addend, values, uplo, addend, 1.0, 0.5, f"c and out {name}")
            out.assert_intact(name)
        for name in BROADCAST_LAYOUTS:
            c = matrix_input(addend, name)
            check(fl.ssyrk(values, c, beta=2, uplo=uplo), np.zeros((n, n), F32), values, uplo, c, 1.0, 2.0, f"c {name}")


@pytest.mark.parametrize(("uplo", "trans"), WAYS)
def test_batches(rng, uplo, trans):
    for shape in ((3, 40, 20), (2, 3, 130, 9), (0, 5, 5), (1, 150, 30), (150, 128, 1)):
        a = normal(rng, *shape)
        n = shape[-2]
        stored = a.swapaxes(-1, -2) if trans else a
        c = normal(rng, *shape[:-1], n)
        for addend in (c, c[..., :1, :], F32(2.5)):
            got = fl.ssyrk(stored, np.asarray(addend), alpha=-1, beta=3, trans=trans, uplo=uplo, device="cpu")
            check(got, np.zeros_like(got), a, uplo, addend, -1.0, 3.0, str(shape))
        out = np.moveaxis(np.empty((n, *shape[:-2], n + 2), F32), 0, -2)[..., :n]
        before = normal(rng, *out.shape)
        out[...] = before
        fl.ssyrk(stored, trans=trans, uplo=uplo, out=out, device="cpu")
        check(out, before, a, uplo, context=str(shape))


def test_whole_results_are_those_of_the_product(rng):
    a, c = normal(rng, 190, 75), normal(rng, 190, 190)
    assert_same_bits(fl.ssyrk(a, device="cpu"), fl.matmul(a, a.T, device="cpu"))
    assert_same_bits(fl.ssyrk(a, trans=True, alpha=2, device="cpu"), fl.sgemm(a, a, trans_a=True, alpha=2))
    assert_same_bits(fl.ssyrk(a, c, beta=0.5), fl.sgemm(a, a, c, beta=0.5, trans_b=True))
    wide = np.arange(12, dtype=np.int16).reshape(3, 4)
    for uplo in PARTS:
        got = fl.ssyrk(wide, uplo=uplo, dtype=np.float32)
        assert_same_bits(got, np.where(written(3, uplo), wide @ wide.T, 0).astype(F32))


@pytest.mark.parametrize(("uplo", "trans"), WAYS)
def test_out_may_overlap_the_operand_and_the_addend(rng, uplo, trans):
    values = normal(rng, 300, 300)
    for n in (40, 250):
        here, beside, backwards = np.s_[:n, :n], np.s_[3 : n + 3, 5 : n + 5], np.s_[n - 1 :: -1, :n]
        a = values[here].T if trans else values[here]
        for out_place, c_place, apart in product((here, beside, backwards), (here, beside, backwards), (False, True)):
            memory = values.copy()
            operand = values if apart else memory
            fl.ssyrk(operand[here], memory[c_place], beta=1, trans=trans, uplo=uplo, out=memory[out_place])
            context = f"{n} {out_place} {c_place} {apart}"
            check(memory[out_place], values[out_place], a, uplo, values[c_place], 1.0, 1.0, context)
            memory[out_place] = values[out_place]
            assert_same_bits(memory, values)  # and nothing around it


@pytest.mark.parametrize("uplo", ["L", "U"])
def test_nan_and_infinity(rng, uplo):
    """In the operand as in the whole product; beside the triangle they stay where they are, and stay there alone."""
    a = normal(rng, 300, 60)
    a[3, 5], a[170, 6], a[299, 0] = np.nan, np.inf, -np.inf
    whole = fl.ssyrk(a, device="cpu")
    got = fl.ssyrk(a, uplo=uplo, device="cpu")
    np.testing.assert_array_equal(got, np.where(written(300, uplo), whole, 0))
    a = normal(rng, 300, 60)
    for special in (np.nan, np.inf):
        c = np.where(written(300, uplo), F32(1), F32(special))
        got = fl.ssyrk(a, c, beta=2, uplo=uplo, out=c.copy(), device="cpu")
        check(got, c, a, uplo, np.ones((300, 300), F32), 1.0, 2.0)


def test_errors(rng):
    a, square = normal(rng, 4, 3), np.zeros((4, 4), F32)
    read_only = np.zeros((4, 4), F32)
    read_only.flags.writeable = False
    for uplo in PARTS:
        for error, words, operands, options in (
            (ValueError, "ssyrk: beta=1 needs c, which was not given", (a,), {"beta": 1}),
            (ValueError, r"ssyrk: c has shape \(3, 3\), which cannot be broadcast", (a, a.T @ a), {"beta": 1}),
            (ValueError, "ssyrk: c was given, but beta is 0", (a, square), {}),
            (ValueError, r"ssyrk: out has shape \(4, 3\), the result needs \(4, 4\)", (a,), {"out": a}),
            (ValueError, "ssyrk: a must have at least 2 dimensions", (a[0],), {}),
            (ValueError, "read-only", (a,), {"out": read_only}),
            (ValueError, "elements of out share memory", (a,), {"out": as_strided(square, (4, 4), (4, 4))}),
            (ValueError, "unknown sgemm kernel 'nonsense'", (a,), {"kernel": "nonsense"}),
            (TypeError, "float64", (a.astype(float),), {}),
            (TypeError, "ssyrk: trans must be True or False, got 1", (a,), {"trans": 1}),
        ):
            with pytest.raises(error, match=words):
                fl.ssyrk(*operands, uplo=uplo, **options)
    for error, uplo, words in (
        (ValueError, "X", "ssyrk: uplo must be None, 'L' or 'U', got 'X'"),
        (ValueError, "lower", "ssyrk: uplo must be None, 'L' or 'U', got 'lower'"),
        (TypeError, 1, "ssyrk: uplo must be None, 'L' or 'U', got 1"),
    ):
        with pytest.raises(error, match=words):
            fl.ssyrk(a, uplo=uplo)


def test_large_triangles(rng):
    """Many squares, and products of several panels, on more threads than one."""
    for n, k, threads in ((1100, 20, 2), (700, 600, 3)):
        a, c = normal(rng, n, k), normal(rng, n, n)
        with fl.num_threads(threads):
            for uplo, beta in product("LU", (0.0, 0.5)):
                for order in "CF":
                    out = np.array(c, order=order)
                    fl.ssyrk(a, out if beta else None, beta=beta, uplo=uplo, out=out, device="cpu")
                    check(out, c, a, uplo, c, 1.0, beta, f"{n}x{k} {uplo} {order}")


# ---------------------------------------------------------------- arrays in device memory
on_gpu = pytest.mark.gpu
PRECISIONS = ("strict", "accurate", "reproducible")
put = fl.DeviceArray.from_numpy


def marked(*shape):
    """NaNs of which no two next to each other are the same."""
    return (np.uint32(0x7FC00000) + np.arange(np.prod(shape), dtype=np.uint32)).reshape(shape).view(F32)


def placed(values, order="C", pad=0, shift=0, gap=0):
    """A stack of matrices between canaries."""
    return DeviceMatrix(values, pad, shift, order == "F", gap)


@on_gpu
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize(("uplo", "trans"), WAYS[2:])
def test_device_triangles_have_the_bits_of_the_whole(uplo, trans, precision, rng):
    """In any place, of either order; what is beside the triangle is neither read nor written."""
    for n, k, batch in ((1, 3, 1), (2, 0, 3), (31, 40, 1), (31, 40, 3), (33, 5, 3), (129, 70, 3), (1000, 257, 1)):
        a, c = normal(rng, batch, n, k), normal(rng, batch, n, n)
        x = put(np.ascontiguousarray(a.swapaxes(-1, -2)) if trans else a)
        inside = written(n, uplo)
        for beta, order in product((0.0, -0.5), "CF"):
            options = {"alpha": 1.5, "beta": beta, "trans": trans, "precision": precision}
            context = f"{batch} of {n}x{k}, beta {beta}, {order}"
            whole = placed(c, order)
            fl.ssyrk(x, whole if beta else None, out=whole, **options)
            before = np.where(inside, c if beta else F32(np.inf), marked(*c.shape))
            out = placed(before, order)
            assert fl.ssyrk(x, out if beta else None, out=out, uplo=uplo, **options) is out
            assert_same_bits(out.download(context), np.where(inside, whole.download(), before), context)
            out = placed(before, order, 3 - n % 2, 1, 5)
            fl.ssyrk(x, out if beta else None, out=out, uplo=uplo, **options)
            check(out.download(context), before, a, uplo, c, 1.5, beta, f"{context}, padded rows")
            fresh = fl.ssyrk(x, put(before) if beta else None, uplo=uplo, **options).numpy()
            check(fresh, np.zeros_like(c), a, uplo, c, 1.5, beta, f"{context}, a new array")


@on_gpu
@pytest.mark.parametrize("uplo", ["L", "U"])
def test_device_triangles_with_every_scalar(uplo, rng):
    for (n, k), (alpha, beta) in product(((5, 7), (150, 40)), (*SCALARS, (np.nan, 0.0), (0.0, np.nan))):
        a, c = normal(rng, n, k), np.where(written(n, uplo), normal(rng, n, n), marked(n, n))
        x, y = put(a), put(c)
        options = {"alpha": alpha, "beta": beta, "precision": "strict"}
        whole, inside = put(c), written(n, uplo)
        fl.ssyrk(x, whole if beta else None, out=whole, **options)
        for out, beside in ((None, np.zeros_like(c)), (y, c)):
            got = fl.ssyrk(x, y if beta else None, out=out, uplo=uplo, **options).numpy()
            np.testing.assert_array_equal(np.where(inside, got, 0), np.where(inside, whole.numpy(), 0))
            assert_same_bits(np.where(inside, F32(0), got), np.where(inside, F32(0), beside), f"{alpha}, {beta}")
    for special in (np.nan, np.inf):
        a = normal(rng, 140, 30)
        a[3, 5] = special
        got = fl.ssyrk(put(a), uplo=uplo).numpy()
        np.testing.assert_array_equal(got, np.where(written(140, uplo), fl.ssyrk(put(a)).numpy(), 0))


@on_gpu
@pytest.mark.parametrize("row", rows("sgemm", "cuda"))
def test_device_triangles_have_the_bits_of_the_kernel_that_was_asked_for(row, rng):
    for n, k in ((32, 8), (132, 300)):
        x, y = put(normal(rng, n, k)), put(normal(rng, n, n))
        for uplo, beta in product("LU", (0.0, -0.5)):
            options = {"beta": beta, "kernel": row.name, "precision": best_precision(row)}
            added = y if beta else None
            want = np.where(written(n, uplo), fl.ssyrk(x, added, **options).numpy(), F32(0))
            assert_same_bits(fl.ssyrk(x, added, uplo=uplo, **options).numpy(), want, f"{n}x{k} {uplo} {beta}")


@on_gpu
@pytest.mark.parametrize(("uplo", "trans"), WAYS[2:])
def test_device_addends_and_overlap(uplo, trans, rng):
    """Addends of the other order, broadcast, and in the way; batches that are several runs."""
    values = normal(rng, 150, 150)
    for n in (40, 130):
        here, beside, backwards = np.s_[:n, :n], np.s_[3 : n + 3, 5 : n + 5], np.s_[n - 1 :: -1, :n]
        a = values[here].T if trans else values[here]
        options = {"beta": 0.5, "trans": trans, "uplo": uplo}
        places = [lambda x, at=at: x[at] for at in (here, beside, backwards)]
        places += [lambda x, at=at: x[at].T for at in (here, beside)]
        for i, j in product(range(len(places)), repeat=2):
            x = put(values)
            in_device = [view(x, place) for place in (places[0], places[i], places[j])]
            fl.ssyrk(*in_device[:2], out=in_device[2], **options)
            memory, context = x.numpy(), f"{n}, c in place {i}, out in place {j}"
            check(places[j](memory), places[j](values), a, uplo, places[i](values), 1.0, 0.5, context)
            places[j](memory)[...] = places[j](values)
            assert_same_bits(memory, values, context)
        x, out = put(values), placed(values[None, :n, :n], "F")
        fl.ssyrk(put(values[None, :n, :n]), view(x, places[1]), out=out, **options)
        check(out.download(), values[None, :n, :n], a[None], uplo, values[beside], 1.0, 0.5, "another order")
    a, c = normal(rng, 2, 3, 70, 20), normal(rng, 2, 3, 70, 70)
    stored = put(np.ascontiguousarray(a.swapaxes(-1, -2)) if trans else a)
    for addend in (c, c[:, :1], c[..., :1, :], c[..., :1], c[:1, :, :1, :1]):
        got = fl.ssyrk(stored, put(np.ascontiguousarray(addend)), **options).numpy()
        check(got, np.zeros_like(got), a, uplo, addend, 1.0, 0.5, str(addend.shape))
    memory = marked(70, 2, 3, 75)
    select = lambda x: np.moveaxis(x, 0, -2)[..., :70]  # noqa: E731
    x, out = put(memory), select(memory)
    fl.ssyrk(stored, put(c), out=view(x, select), **options)
    before = out.copy()
    memory[...] = x.numpy()
    check(out, before, a, uplo, c, 1.0, 0.5, "problems in between each other")
    out[...] = before
    assert_same_bits(memory, marked(70, 2, 3, 75))


@on_gpu
def test_device_triangles_without_memory(limit, rng):
    n = 1500
    x, y = put(normal(rng, n, 40)), put(marked(n, n))
    limit(fl.cuda.memory_info()["used"] + 4 * n * n // 2)
    with pytest.raises(MemoryError, match="memory limit"):
        fl.ssyrk(x, uplo="L", out=y)
    assert_same_bits(y.numpy(), marked(n, n))


@on_gpu
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("n", [20, 129, 1000])
def test_device_triangles_in_graphs_and_on_streams(n, precision, torch, rng):
    a, c = torch.zeros((n, 40), device="cuda"), torch.zeros((n, n), device="cuda")
    graph, stream, inside = torch.cuda.CUDAGraph(), torch.cuda.Stream(), written(n, "L")
    with torch.cuda.graph(graph):
        fl.ssyrk(a, c, beta=0.5, uplo="L", out=c, precision=precision)
        fresh = fl.ssyrk(a, uplo="U", precision=precision)
    for _ in range(6):
        values, addend = normal(rng, n, 40), np.where(inside, normal(rng, n, n), marked(n, n))
        a.copy_(torch.from_numpy(values)), c.copy_(torch.from_numpy(addend))
        graph.replay()
        result = c.cpu().numpy()
        check(result, addend, values, "L", addend, 1.0, 0.5)
        check(fresh.cpu().numpy(), np.zeros((n, n), F32), values, "U")
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            torch.cuda._sleep(10_000_000)  # the stream is behind the host and all others
            doubled = 2 * a
            made = fl.ssyrk(doubled, c, beta=-1, uplo="L", precision=precision)
            copied = made.clone()
        named = fl.ssyrk(a, uplo="L", stream=stream, precision=precision)
        check(named.cpu().numpy(), np.zeros((n, n), F32), values, "L")
        stream.synchronize()
        check(copied.cpu().numpy(), np.zeros((n, n), F32), 2 * values, "L", result, 1.0, -1.0)
