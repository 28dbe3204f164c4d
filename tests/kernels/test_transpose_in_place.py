"""Transposes whose result is their operand: square matrices are exchanged in place, others copied."""

from __future__ import annotations

import threading
from itertools import product

import numpy as np
import pytest

import fastlinalg as fl
from support.accuracy import assert_same_bits
from support.c_interface import FL_INVALID_VALUE, load, options
from support.device import PLACEMENTS, place
from support.device_libraries import LIBRARIES
from support.rows import rows
from support.threads import in_threads

F32 = np.float32
SIZES = (0, 1, 2, 3, 4, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 95, 96, 127, 128, 129, 191, 200, 257)
every_row = pytest.mark.parametrize("row", rows("transpose"))


def numbered(*shape):
    """Every element another bit pattern, NaN among them."""
    count = int(np.prod(shape))
    return (np.arange(count, dtype=np.uint32) * np.uint32(2654435761)).view(F32).reshape(shape)


def inside(values, view):
    """`values` in a view of a larger array of canaries, with that array."""
    parent = np.full((values.shape[-1] * 2 + 9,) * 2, -7.0, F32)
    target = view(parent)[: values.shape[-2], : values.shape[-1]]
    target[...] = values
    return target, parent


VIEWS = {
    "padded rows": lambda x: x[3:, 5:],
    "columns first": lambda x: x.T[3:, 4:],
    "a step": lambda x: x[1::2, ::2],
    "a step, columns first": lambda x: x.T[1::2, 1::2],
    "backwards": lambda x: x[::-1, ::-1],
    "rows backwards": lambda x: x[::-1],
}


@every_row
def test_sizes(row):
    for n in SIZES:
        a = numbered(n, n)
        want = a.T.copy()
        assert fl.transpose(a, out=a, kernel=row.name) is a
        assert_same_bits(a, want, f"{n}")


@every_row
@pytest.mark.parametrize("name", VIEWS)
def test_views(row, name):
    """Nothing beside the view changes."""
    for n in (1, 5, 33, 64, 70, 130):
        a, parent = inside(numbered(n, n), VIEWS[name])
        expected = parent.copy()
        VIEWS[name](expected)[:n, :n] = a.T.copy()
        fl.transpose(a, out=a, kernel=row.name)
        assert_same_bits(parent, expected, f"{n} {name}")


@every_row
def test_rows_a_power_of_two_apart(row):
    """They are exchanged in larger tiles."""
    for n in (1, 40, 127, 129, 300):
        parent = numbered(n + 1, 1024)
        a, expected = parent[:n, 7 : n + 7], parent.copy()
        expected[:n, 7 : n + 7] = a.T.copy()
        fl.transpose(a, out=a, kernel=row.name)
        assert_same_bits(parent, expected, f"{n}")


@every_row
def test_batches(row):
    for lead, n in product(((3,), (2, 3), (0,), (1, 2, 1)), (1, 6, 33, 65)):
        a = numbered(*lead, n, n)
        want = a.swapaxes(-1, -2).copy()
        fl.transpose(a, out=a, kernel=row.name)
        assert_same_bits(a, want, f"{lead} of {n}")
    stack = numbered(12, 12, 5)  # problems beside each other
    want = stack.transpose(2, 1, 0).copy()
    view = stack.transpose(2, 0, 1)
    fl.transpose(view, out=view, kernel=row.name)
    assert_same_bits(view, want)


@every_row
def test_many_problems(row):
    a = numbered(70001, 3, 3)
    want = a.swapaxes(-1, -2).copy()
    fl.transpose(a, out=a, kernel=row.name)
    assert_same_bits(a, want)


def test_larger_than_the_caches():
    for n in (2048, 2111):
        a = numbered(n, n)
        want = a.T.copy()
        fl.transpose(a, out=a)
        assert_same_bits(a, want, f"{n}")


def test_the_number_of_threads_does_not_matter():
    for threads in (1, 2, 3, 7):
        a = numbered(900, 900)
        want = a.T.copy()
        with fl.num_threads(threads):
            fl.transpose(a, out=a)
        assert_same_bits(a, want, f"{threads} threads")


def test_same_shapes_with_and_without(rng):
    """The choice for one is not remembered for the other."""
    a, other = rng.standard_normal((2, 40, 40), dtype=F32)
    for _ in range(3):
        want = a.T.copy()
        fl.transpose(a, out=a)
        assert_same_bits(a, want)
        assert_same_bits(fl.transpose(a, out=other), a.T)
        assert_same_bits(fl.transpose(a), a.T)


def test_other_overlaps_are_copied():
    for select in (
        lambda x: (x, x.T),
        lambda x: (x, x[::-1]),
        lambda x: (x[:8, :4], x[2:6, 1:9]),
        lambda x: (x[:9, :9], x[1:10, :9]),
    ):
        a = numbered(12, 12)
        source, target = select(a)
        want = source.T.copy()
        fl.transpose(source, out=target)
        assert_same_bits(target, want)
    a = numbered(6, 8)
    with pytest.raises(ValueError, match=r"out has shape \(6, 8\), the result needs \(8, 6\)"):
        fl.transpose(a, out=a)


def test_nothing_is_copied():
    """In place needs no memory of the matrix's size."""
    resource = pytest.importorskip("resource")
    a = np.ones((6000, 6000), F32)
    fl.transpose(a[:64, :64], out=a[:64, :64])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    fl.transpose(a, out=a, device="cpu")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # KiB; a copy has 140 000


def test_threads_at_once():
    matrices = [numbered(301, 301).copy() for _ in range(6)]
    wants = [a.T.copy() for a in matrices]
    barrier = threading.Barrier(6)

    def turn(a):
        barrier.wait()
        for _ in range(3):
            fl.transpose(a, out=a)

    in_threads(turn, matrices)
    for a, want in zip(matrices, wants, strict=True):
        assert_same_bits(a, want)


# ---------------------------------------------------------------- stacks and orders
@pytest.mark.parametrize("axes", [(2, 0, 1), (1, 0, 2), (0, 2, 1), (2, 1, 0), (1, 2, 0), (0, 1, 2)])
@pytest.mark.parametrize("out_axes", [(0, 1, 2), (2, 0, 1), (0, 2, 1), (1, 2, 0)])
@every_row
def test_permuted_stacks(row, axes, out_axes):
    """Whichever axes are contiguous: the problem's axes are renamed before a row is chosen."""
    for shape in ((5, 6, 7), (33, 4, 40), (2, 65, 3)):
        a = numbered(*shape).transpose(axes)
        want = a.swapaxes(1, 2)
        out = np.empty([want.shape[out_axes.index(i)] for i in range(3)], F32).transpose(out_axes)
        fl.transpose(a, out=out, kernel=row.name)
        assert_same_bits(out, want, f"{shape} {axes} {out_axes}")


# ---------------------------------------------------------------- device memory
@pytest.mark.gpu
def test_on_the_device_in_all_placements():
    for n, placement, batch in product(SIZES[1:], PLACEMENTS, (1, 3)):
        values = np.arange(1, batch * n * n + 1, dtype=np.uint32).view(F32).reshape(batch, n, n)
        a = place(values, placement)
        context = f"{n} {placement} batch {batch}"
        fl.transpose(a, a, kernel="in_place")
        assert_same_bits(a.download(context), values.swapaxes(-1, -2), context)
        fl.transpose(a, a)
        assert_same_bits(a.download(context), values, context)


@pytest.mark.gpu
def test_large_on_the_device():
    for n, pad in ((1500, 0), (1501, 0), (2304, 4), (2305, 6)):
        values = np.arange(1, n * n + 1, dtype=np.uint32).view(F32).reshape(1, n, n)
        a = place(values, "tight") if not pad else place(values, "aligned_padded")
        fl.transpose(a, a, kernel="in_place")
        assert_same_bits(a.download(f"{n}"), values.swapaxes(-1, -2), f"{n}")


@pytest.mark.gpu
def test_rows_that_cannot_say_so():
    library, a = load(), place(np.ones((1, 40, 40), F32), "aligned")
    for row in (row for row in fl.kernels("transpose") if row.device == "cuda" and row.name != "in_place"):
        asked = options(kernel=row.name.encode(), device=b"cuda", device_memory=1)
        assert library.fl_transpose(40, 40, a.ptr, a.ld, a.ptr, a.ld, asked) == FL_INVALID_VALUE
        assert f"kernel '{row.name}' needs a result that is not its operand" in library.fl_last_error().decode()


@pytest.mark.gpu
@pytest.mark.parametrize("name", LIBRARIES)
def test_device_arrays(name):
    """Whole arrays, and views where the library has them; those that the row does not take are copied."""
    library = LIBRARIES[name]()
    if name == "jax":
        pytest.skip("its arrays cannot be written")
    views = [lambda x: x]
    if name in ("torch", "cupy"):
        views += [lambda x: x[:40, :40], lambda x: x.T, lambda x: x[3:50, 1:48], lambda x: x[::2, ::2]]
    for view in views:
        host = numbered(80, 80)
        device = library.put(host)
        view(host)[...] = view(host).T.copy()
        part = view(device)
        assert fl.transpose(part, out=part) is part
        assert_same_bits(library.get(device), host)
