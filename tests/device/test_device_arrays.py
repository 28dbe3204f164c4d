"""Arrays in device memory, of every library that is there: where they may lie, and what the result is."""

from __future__ import annotations

import numpy as np
import pytest

import fastlinalg as fl
from support.accuracy import assert_product, assert_same_bits
from support.device_libraries import LIBRARIES, Announced, Cupy, Torch
from support.operands import normal

pytestmark = pytest.mark.gpu
F32 = np.float32


# ---------------------------------------------------------------- results
def test_results_are_of_the_callers_library(library, rng):
    a, b, x, c = normal(rng, 33, 20), normal(rng, 20, 45), normal(rng, 20), normal(rng, 33, 45)
    da, db, dx, dc = map(library.put, (a, b, x, c))
    results = {
        "matmul": (fl.matmul(da, db), a @ b),
        "sgemm": (fl.sgemm(da, db, dc, alpha=2, beta=0.5), 2 * a @ b + 0.5 * c),
        "sgemv": (fl.sgemv(da, dx), a @ x),
        "matrix-vector": (fl.matmul(da, dx), a @ x),
        "vector-matrix": (fl.matmul(dx, db), x @ b),
        "dot": (fl.matmul(dx, dx), x @ x),
        "transpose": (fl.transpose(da), a.T),
        "empty": (fl.matmul(library.put(np.zeros((0, 20), F32)), db), np.zeros((0, 45), F32)),
    }
    for name, (got, want) in results.items():
        if library.name != "numba":
            assert isinstance(got, library.type()), (name, type(got))
        host = library.get(got)
        assert host.shape == want.shape and host.dtype == F32, name
        np.testing.assert_allclose(host, want, rtol=2e-5, atol=2e-5, err_msg=name)


def test_numba_gets_a_device_array(rng):
    numba = LIBRARIES["numba"]()
    a = normal(rng, 4, 5)
    result = fl.transpose(numba.put(a))
    assert type(result) is fl.DeviceArray
    assert_same_bits(numba.lib.as_cuda_array(result).copy_to_host(), a.T)


def test_out_is_written_and_returned(writable, rng):
    a, b = normal(rng, 33, 20), normal(rng, 20, 45)
    out = writable.empty(33, 45) if writable.name != "numba" else writable.put(np.zeros((33, 45), F32))
    assert fl.matmul(writable.put(a), writable.put(b), out=out) is out
    assert_product(writable.get(out), a, b)


def test_the_library_of_the_first_operand_decides(rng):
    torch, cupy = Torch(), Cupy()
    a, b = normal(rng, 5, 6), normal(rng, 6, 7)
    first = fl.matmul(torch.put(a), cupy.put(b))
    assert isinstance(first, torch.type())
    assert_product(torch.get(first), a, b)
    second = fl.matmul(cupy.put(a), torch.put(b))
    assert isinstance(second, cupy.type())
    assert_product(cupy.get(second), a, b)


def test_many_shapes_and_batches(writable, rng):
    for shape_a, shape_b in (
        ((1, 1), (1, 1)),
        ((4, 3, 20), (20, 7)),
        ((2, 1, 9, 8), (3, 8, 5)),
        ((600, 700), (700, 500)),
    ):
        a, b = normal(rng, *shape_a), normal(rng, *shape_b)
        assert_product(writable.get(fl.matmul(writable.put(a), writable.put(b))), a, b)


def test_jax_arrays_are_not_written(rng):
    jax = LIBRARIES["jax"]()
    a = jax.put(normal(rng, 3, 3))
    with pytest.raises(ValueError, match="JAX"):
        fl.matmul(a, a, out=a)


# ---------------------------------------------------------------- views
VIEWS = {
    "whole": lambda x: x,
    "rows": lambda x: x[3:],
    "offset": lambda x: x[1:, 1:],
    "columns with a step": lambda x: x[:, ::2],
    "rows with a step": lambda x: x[::3],
    "both with a step": lambda x: x[1::2, ::3],
    "one column": lambda x: x[:, 2:3],
    "one row": lambda x: x[2:3, ::2],
    "transposed": lambda x: x.T,
    "transposed, with a step": lambda x: x.T[::2, 1::2],
}
BACKWARDS = {"rows": lambda x: x[::-1], "columns": lambda x: x[:, ::-1], "both": lambda x: x[::-2, ::-1]}


def check_view(library, view, rng):
    parent = normal(rng, 41, 38)
    a, da = view(parent), view(library.put(parent))
    b = normal(rng, a.shape[1], 29)
    assert_product(library.get(fl.matmul(da, library.put(b))), a, b)
    assert_product(library.get(fl.sgemm(da, library.put(b.T.copy()), trans_b=True)), a, b)
    c = normal(rng, 23, a.shape[0])
    assert_product(library.get(fl.matmul(library.put(c), da)), c, a)
    x = normal(rng, a.shape[1])
    np.testing.assert_allclose(library.get(fl.sgemv(da, library.put(x))), a @ x, rtol=1e-4, atol=1e-4)
    assert_same_bits(library.get(fl.transpose(da)), a.T)


@pytest.mark.parametrize("name", VIEWS)
def test_views_of_operands(views, name, rng):
    check_view(views, VIEWS[name], rng)


def test_one_number_all_along_a_row_or_a_column(rng):
    """As a row or as a column no product kernel takes it where it lies."""
    x, a = (fl.DeviceArray.from_numpy(values) for values in (np.full(1, 1.5, F32), normal(rng, 9, 30)))
    row, column = (Announced(x, shape=shape, strides=(0, 0)) for shape in ((1, 9), (30, 1)))
    assert_product(fl.sgemm(row, a, kernel="naive").numpy(), np.full((1, 9), 1.5, F32), a.numpy())
    assert_product(fl.sgemm(a, column, kernel="naive").numpy(), a.numpy(), np.full((30, 1), 1.5, F32))


def test_views_that_are_not_read():
    """With alpha 0, or k 0, whatever their strides are."""

    def view(*shape, strides=(480, 8)):
        return Announced(x, shape=shape, strides=strides)

    x, c = (fl.DeviceArray.from_numpy(np.ones(shape, F32)) for shape in ((20, 60), (1, 30)))
    a, tall, y = view(10, 30), view(30, 10, strides=(8, 480)), view(30, strides=(8,))
    assert (fl.sgemm(tall, a, c, alpha=0.0, beta=2.0).numpy() == np.full((30, 30), 2)).all()
    assert (fl.sgemv(a, y, alpha=0.0).numpy() == np.zeros(10)).all()
    assert (fl.matmul(view(10, 0), view(0, 30)).numpy() == np.zeros((10, 30))).all()


@pytest.mark.parametrize("name", BACKWARDS)
def test_views_that_run_backwards(name, rng):
    check_view(Cupy(), BACKWARDS[name], rng)


def test_broadcast_operands(rng):
    torch = Torch()
    row, matrix, tall = normal(rng, 1, 30), normal(rng, 30, 20), normal(rng, 50, 4)
    wide, host = torch.put(row).expand(50, 30), np.broadcast_to(row, (50, 30))
    assert_product(torch.get(fl.matmul(wide, torch.put(matrix))), host, matrix)
    assert_product(torch.get(fl.matmul(wide.T, torch.put(tall))), host.T, tall)
    assert_same_bits(torch.get(fl.transpose(wide)), host.T)
    one = torch.put(normal(rng, 1)).expand(30)
    got = torch.get(fl.sgemv(torch.put(matrix.T.copy()), one))
    np.testing.assert_allclose(got, matrix.T @ torch.get(one), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", [name for name in VIEWS if name != "whole"])
def test_views_of_results(views, name, rng):
    """Only the elements of the view change."""
    view = VIEWS[name]
    parent = normal(rng, 41, 38)
    want = parent.copy()
    target = view(want)
    a, b = normal(rng, target.shape[0], 17), normal(rng, 17, target.shape[1])
    for operation in ("product", "with beta", "transpose"):
        device = views.put(parent)
        got, old = view(device), view(parent.copy())
        want = parent.copy()
        if operation == "product":
            fl.matmul(views.put(a), views.put(b), out=got)
            expected = (a.astype(np.float64) @ b).astype(F32)
        elif operation == "with beta":
            fl.sgemm(views.put(a), views.put(b), got, beta=2.0, out=got)
            expected = (a.astype(np.float64) @ b + 2.0 * old).astype(F32)
        else:
            source = normal(rng, *target.shape[::-1])
            fl.transpose(views.put(source), out=got)
            expected = source.T
        view(want)[...] = expected
        np.testing.assert_allclose(views.get(device), want, rtol=1e-4, atol=1e-4, err_msg=operation)


# ---------------------------------------------------------------- overlap
def test_out_may_overlap_the_operands(views, rng):
    host = normal(rng, 60, 40)
    square = normal(rng, 40, 40)
    cases = {
        "out is a": lambda p, m: (p[:40], m, p[:40]),
        "out is b": lambda p, m: (m, p[:40], p[:40]),
        "out is a transposed": lambda p, m: (p[:40], m, p[:40].T),
        "shifted rows": lambda p, m: (p[:40], m, p[8:48]),
        "both": lambda p, m: (p[:40], p[10:50], p[5:45]),
    }
    for name, select in cases.items():
        a, b, _ = select(host, square)
        want = (a.astype(np.float64) @ b).astype(F32)
        device = views.put(host)
        da, db, result = select(device, views.put(square))
        assert fl.matmul(da, db, out=result) is result
        np.testing.assert_allclose(views.get(result), want, rtol=1e-4, atol=1e-4, err_msg=name)
    # c, the addend, overlapping out
    device = views.put(host)
    a = views.put(square)
    fl.sgemm(a, a, device[:40], beta=1.0, out=device[7:47])
    want = (square.astype(np.float64) @ square + host[:40]).astype(F32)
    np.testing.assert_allclose(views.get(device[7:47]), want, rtol=1e-4, atol=1e-4)
    device = views.put(square)
    fl.transpose(device, out=device)
    assert_same_bits(views.get(device), square.T)


def test_overlapping_elements_of_out_are_refused():
    torch = Torch()
    a = torch.put(np.ones((4, 4), F32))
    with pytest.raises(ValueError, match="share memory"):
        fl.matmul(a, a, out=torch.put(np.ones((1, 4), F32)).expand(4, 4))
