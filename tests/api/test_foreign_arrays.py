"""Arrays of other libraries in host memory, by DLPack: real and made up ones, since none but NumPy has to be there."""

from __future__ import annotations

import gc
import sys
import weakref

import numpy as np
import pytest

import fastlinalg as fl
from support.accuracy import assert_product, assert_same_bits
from support.operands import normal

F32 = np.float32


class Foreign:
    """A NumPy array that says nothing but DLPack, as of version 1 or as of before."""

    device = (1, 0)

    def __init__(self, array, versions=True):
        self.array, self.versions, self.keywords = array, versions, []

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **keywords):
        self.keywords.append(keywords)
        if not self.versions and "max_version" in keywords:
            raise TypeError("__dlpack__() got an unexpected keyword argument 'max_version'")
        return self.array.__dlpack__(**keywords)


class Namespace(Foreign):
    """One whose library is known by the array API standard."""

    def __array_namespace__(self, api_version=None):
        return Namespace

    @staticmethod
    def from_dlpack(x):
        return Namespace(np.from_dlpack(x))


# What producers say of a keyword that they do not know: a function of Python, one of C with no and with other keywords,
# one of pybind11 or nanobind.
UNKNOWN = (
    "__dlpack__() got an unexpected keyword argument 'max_version'",
    "Array.__dlpack__() takes no keyword arguments",
    "'max_version' is an invalid keyword argument for __dlpack__()",
    "__dlpack__(): incompatible function arguments. The following argument types are supported:",
)


@pytest.mark.parametrize("message", UNKNOWN)
def test_producers_of_before_versions(message, rng):
    class Older(Foreign):
        def __dlpack__(self, **keywords):
            if keywords:
                raise TypeError(message)
            return self.array.__dlpack__()

    a = normal(rng, 3, 3)
    assert_product(fl.matmul(Older(a), a), a, a)


@pytest.mark.parametrize("versions", [True, False])
def test_operands_and_results(versions, rng):
    a, b, c, x = normal(rng, 7, 5), normal(rng, 5, 6), normal(rng, 7, 6), normal(rng, 5)
    fa, fb, fc, fx = (Foreign(y, versions) for y in (a, b, c, x))
    assert_product(fl.matmul(fa, fb), a, b)
    assert_product(fl.matmul(fa, b), a, b)
    assert_product(fl.matmul(a, fb), a, b)
    assert_product(fl.sgemm(fa, fb, fc, alpha=2.0, beta=0.5), a, b, c0=c, alpha=2.0, beta=0.5)
    assert_same_bits(fl.transpose(fa), a.T)
    np.testing.assert_allclose(fl.sgemv(fa, fx), a @ x, rtol=1e-5, atol=1e-5)
    out = np.full((7, 6), np.nan, F32)
    target = Foreign(out, versions)
    assert fl.matmul(fa, fb, out=target) is target
    assert_product(out, a, b)
    assert all("stream" not in keywords for keywords in fa.keywords), "host arrays have no stream"
    assert any("max_version" in keywords for keywords in fa.keywords)


def test_the_result_goes_back_to_the_namespace(rng):
    a = normal(rng, 4, 4)
    result = fl.matmul(Namespace(a), a)
    assert type(result) is Namespace
    assert_product(result.array, a, a)
    out = Namespace(np.zeros((4, 4), F32))
    assert fl.matmul(Namespace(a), a, out=out) is out


VIEWS = {
    "F order": lambda x: np.asfortranarray(x),
    "steps": lambda x: x[::2, 1::2],
    "backwards": lambda x: x[::-1, ::-1],
    "offset": lambda x: x[3:, 2:],
    "broadcast": lambda x: np.broadcast_to(x[:1], x.shape),
    "empty": lambda x: x[:, :0],
    "one row": lambda x: x[:1],
}


@pytest.mark.parametrize("name", VIEWS)
def test_views(name, rng):
    a = VIEWS[name](normal(rng, 12, 14))
    b = normal(rng, a.shape[1], 3)
    assert_product(fl.matmul(Foreign(a), b), a, b)
    assert_same_bits(fl.transpose(Foreign(a)), a.T)
    if name != "broadcast":
        out = VIEWS[name](np.zeros((12, 14), F32))
        fl.transpose(np.ascontiguousarray(a.T), out=Foreign(out))
        assert_same_bits(out, a)


def test_out_may_overlap(rng):
    p = normal(rng, 12, 6)
    for select in (
        lambda p: (p[:6], p[6:], p[:6]),
        lambda p: (p[:6], p[6:], p[3:9]),
        lambda p: (p[:6], p[:6], p[:6].T),
    ):
        host = p.copy()
        a, b, out = select(host)
        want = (a.astype(np.float64) @ b).astype(F32)
        fl.matmul(Foreign(a), Foreign(b), out=Foreign(out))
        np.testing.assert_allclose(out, want, rtol=1e-5, atol=1e-5)
    host = p.copy()
    a, c, out = normal(rng, 6, 6), host[:6], host[2:8]
    want = (a.astype(np.float64) @ a + c).astype(F32)
    fl.sgemm(a, a, Foreign(c), beta=1.0, out=Foreign(out))
    np.testing.assert_allclose(out, want, rtol=1e-5, atol=1e-5)
    stack = normal(rng, 3, 5, 5)
    want = stack.swapaxes(1, 2).copy()
    fl.transpose(Foreign(stack), out=Foreign(stack))
    assert_same_bits(stack, want)


def test_read_only(rng):
    a = normal(rng, 4, 4)
    a.flags.writeable = False
    assert_product(fl.matmul(Foreign(a), Foreign(a)), a, a)
    with pytest.raises(ValueError, match="out is read-only"):
        fl.matmul(a, a, out=Foreign(a))


def test_copies(rng):
    """Of what a library does not show, a result would be lost."""

    class Copied(Foreign):
        def __dlpack__(self, **keywords):
            return self.array.__dlpack__(copy=True, **keywords)

    a, out = normal(rng, 4, 4), np.zeros((4, 4), F32)
    assert_product(fl.matmul(Copied(a), Copied(a)), a, a)
    with pytest.raises(ValueError, match="out cannot be written: its __dlpack__\\(\\) gives a copy"):
        fl.matmul(a, a, out=Copied(out))


def test_what_is_exported_lives_until_the_call_ends_and_no_longer(rng):
    class Owned(np.ndarray):
        pass

    class Temporary(Foreign):
        def __dlpack__(self, **keywords):
            mine = normal(rng, 5, 5).view(Owned)
            gone.append(weakref.ref(mine))
            return mine.__dlpack__(**keywords)

    gone = []
    fl.matmul(Temporary(None), Temporary(None))
    gc.collect()
    assert len(gone) == 2 and not any(reference() is not None for reference in gone)
    a = normal(rng, 3, 3)
    before = sys.getrefcount(a)
    for _ in range(10):
        fl.matmul(Foreign(a), Foreign(a))
        with pytest.raises(TypeError):
            fl.matmul(Foreign(a), Foreign(a.astype(np.float64)))
    gc.collect()
    assert sys.getrefcount(a) == before


def test_refused_arrays_keep_no_references(rng):
    """An array that was read and then refused is given back."""
    good = normal(rng, 3, 3)
    read_only = normal(rng, 3, 3)
    read_only.flags.writeable = False
    wrong = {"dtype": np.zeros((3, 3)), "byte order": np.zeros((3, 3), ">f4"), "read-only": read_only}
    for name, array in wrong.items():
        before = sys.getrefcount(array)
        for _ in range(10):
            with pytest.raises((TypeError, ValueError)):
                fl.matmul(good, good, out=array)
            with pytest.raises((TypeError, ValueError, BufferError)):
                fl.matmul(good, good, out=Foreign(array))
        gc.collect()
        assert sys.getrefcount(array) == before, name


@pytest.mark.parametrize("dtype", ["f8", "f2", "i4", "u1", "?", "c8"])
def test_dtypes_are_never_cast(dtype):
    bad = Foreign(np.zeros((2, 2), dtype))
    with pytest.raises(TypeError, match=r"a must have dtype float32, got .*astype\('float32'\)"):
        fl.matmul(bad, bad)


def test_producers_errors_arrive(rng):
    class Broken(Foreign):
        def __dlpack__(self, **keywords):
            raise BufferError("not today")

    class NoCapsule(Foreign):
        def __dlpack__(self, **keywords):
            return 7

    class Elsewhere(Foreign):
        device = (8, 0)  # Metal

    class NullsInside(Foreign):
        def __dlpack__(self, **keywords):
            self.keywords.append(keywords)
            raise TypeError("Can only use DLPack on arrays with no nulls.")

    a = normal(rng, 2, 2)
    with pytest.raises(BufferError, match="not today"):
        fl.matmul(Broken(a), a)
    thing = NullsInside(a)
    with pytest.raises(TypeError, match="no nulls"):
        fl.matmul(thing, a)
    assert [list(keywords) for keywords in thing.keywords] == [["max_version"]], "asked again"
    with pytest.raises(TypeError, match="no DLPack capsule"):
        fl.matmul(NoCapsule(a), a)
    with pytest.raises(TypeError, match="device type 8"):
        fl.matmul(Elsewhere(a), a)
    with pytest.raises(TypeError, match="type"):
        fl.matmul(Foreign, a)  # the class, not an array


def test_mixed_places_are_refused_by_name(rng):
    class OnDevice(Foreign):
        device = (2, 0)

    a = normal(rng, 2, 2)
    for call in (
        lambda: fl.matmul(a, OnDevice(a)),
        lambda: fl.sgemm(a, a, OnDevice(a), beta=1.0),
        lambda: fl.matmul(a, a, out=OnDevice(a)),
    ):
        with pytest.raises(ValueError, match=r"a is in host memory and (b|c|out) in cuda:0"):
            call()
    with pytest.raises(ValueError, match=r"a is in the memory of cuda:0 and device='cpu'"):
        fl.matmul(OnDevice(a), a, device="cpu")


@pytest.mark.skipif(fl.cuda.is_available(), reason="for machines without a CUDA device")
def test_device_arrays_without_a_device(rng):
    class OnDevice(Foreign):
        device = (2, 0)

    class Interface:
        @property
        def __cuda_array_interface__(self):
            return {"shape": (2, 2), "typestr": "<f4", "data": (4096, False), "version": 3}

    for array in (OnDevice(normal(rng, 2, 2)), Interface()):
        with pytest.raises(fl.CudaError):
            fl.matmul(array, array)
    with pytest.raises(fl.CudaError):
        fl.DeviceArray.from_numpy(normal(rng, 2, 2))


def test_plans_take_host_arrays_of_any_library(rng):
    a, b = normal(rng, 6, 6), normal(rng, 6, 6)
    with fl.Matmul(Namespace(a), b) as plan:
        plan.plan()
        result = plan.execute()
        assert type(result) is Namespace
        assert_product(result.array, a, b)


def test_an_addend_of_a_plan_that_overlaps_the_result_in_part(rng):
    """Then a temporary is loaded with the addend, and takes the place of the result."""
    a, b, rows = normal(rng, 30, 30) / 8, normal(rng, 30, 30) / 8, normal(rng, 31, 30)
    want = rows.copy()
    with fl.Matmul(a, b, Foreign(rows[1:]), beta=1.0, out=Foreign(rows[:30]), device="cpu") as plan:
        for _ in range(3):
            plan.execute()
            want[:30] = want[1:] + a @ b
            np.testing.assert_allclose(rows, want, rtol=1e-4, atol=1e-4)


def test_a_copy_of_what_is_not_aligned_lets_the_memory_go():
    memory = bytearray(17)
    view = np.frombuffer(memory, np.uint8)[1:].view(np.float32)
    assert (fl.sgemv(np.ones((2, 4), np.float32), view) == 0).all()
    del view
    memory.clear()  # a BufferError while it is exported
