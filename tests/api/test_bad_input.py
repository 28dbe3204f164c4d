"""Bad input: each fault has an error of the right type, whose message says what was given and what is wanted."""

from __future__ import annotations

import inspect
import pathlib
import re
from array import array

import numpy as np
import pytest

import fastlinalg as fl
from fastlinalg._sizes import parse_bytes
from support.accuracy import assert_same_bits

F32 = np.float32


def ones(*shape):
    return np.ones(shape, F32)


# call, type of the error, what the message must contain
SHAPES = {
    "inner dimensions": (lambda: fl.matmul(ones(2, 3), ones(4, 5)), ["(2, 3)", "(4, 5)", "3", "4"]),
    "inner dimensions, sgemm": (lambda: fl.sgemm(ones(2, 3), ones(2, 5), trans_b=True), ["(2, 3)", "(2, 5)", "op(b)"]),
    "inner dimensions, transposed a": (lambda: fl.sgemm(ones(2, 3), ones(3, 5), trans_a=True), ["(2, 3)", "op(a)"]),
    "vectors": (lambda: fl.matmul(ones(3), ones(4)), ["(3,)", "(4,)"]),
    "matrix and vector": (lambda: fl.matmul(ones(2, 3), ones(2)), ["(2, 3)", "(2,)"]),
    "vector and matrix": (lambda: fl.matmul(ones(3), ones(2, 3)), ["(3,)", "(2, 3)"]),
    "sgemv": (lambda: fl.sgemv(ones(2, 3), ones(2)), ["(2, 3)", "(2,)"]),
    "sgemv, transposed": (lambda: fl.sgemv(ones(2, 3), ones(3), trans=True), ["(2, 3)", "(3,)"]),
    "batches": (lambda: fl.matmul(ones(2, 3, 4), ones(3, 4, 5)), ["(2, 3, 4)", "(3, 4, 5)", "broadcast"]),
    "empty and full batch": (lambda: fl.matmul(ones(0, 3, 4), ones(2, 4, 5)), ["(0, 3, 4)", "broadcast"]),
    "empty inner dimension": (lambda: fl.matmul(ones(2, 0), ones(1, 2)), ["(2, 0)", "(1, 2)"]),
    "0-d a": (lambda: fl.matmul(ones(), ones(2, 2)), ["a", "()", "dimension"]),
    "0-d b": (lambda: fl.matmul(ones(2, 2), ones()), ["b", "()", "dimension"]),
    "1-D for sgemm": (lambda: fl.sgemm(ones(2), ones(2, 2)), ["a", "(2,)", "2 dimensions"]),
    "1-D matrix for sgemv": (lambda: fl.sgemv(ones(2), ones(2)), ["a", "(2,)", "2 dimensions"]),
    "0-d x": (lambda: fl.sgemv(ones(2, 2), ones()), ["x", "()"]),
    "1-D for transpose": (lambda: fl.transpose(ones(2)), ["a", "(2,)"]),
    "0-d for transpose": (lambda: fl.transpose(ones()), ["a", "()"]),
    "out": (lambda: fl.matmul(ones(2, 3), ones(3, 4), out=ones(4, 2)), ["out", "(4, 2)", "(2, 4)"]),
    "out of another rank": (
        lambda: fl.matmul(ones(2, 3), ones(3, 4), out=ones(1, 2, 4)),
        ["out", "(1, 2, 4)", "(2, 4)"],
    ),
    "out of a dot product": (lambda: fl.matmul(ones(3), ones(3), out=ones(1)), ["out", "(1,)", "()"]),
    "out is not broadcast": (lambda: fl.matmul(ones(5, 2, 3), ones(3, 4), out=ones(2, 4)), ["out", "(5, 2, 4)"]),
    "out of sgemv": (lambda: fl.sgemv(ones(2, 3), ones(3), out=ones(3)), ["out", "(3,)", "(2,)"]),
    "out of transpose": (lambda: fl.transpose(ones(2, 3), out=ones(2, 3)), ["out", "(2, 3)", "(3, 2)"]),
    "c": (lambda: fl.sgemm(ones(2, 3), ones(3, 4), ones(4, 2), beta=1.0), ["c", "(4, 2)", "(2, 4)"]),
    "c with beta 0": (
        lambda: fl.sgemm(ones(2, 3), ones(3, 4), ones(2, 4)),
        ["sgemm: c was given, but beta is 0", "pass beta=1 to add it, or out=c"],
    ),
    "c of ssyrk with beta 0": (lambda: fl.ssyrk(ones(2, 2), ones(2, 2).T), ["ssyrk: c was given, but beta is 0"]),
    "c of a triangle with beta 0": (lambda: fl.ssyrk(ones(2, 2), ones(2, 2), uplo="L"), ["c was given, but beta is 0"]),
    "y with beta 0": (lambda: fl.sgemv(ones(2, 3), ones(3), ones(2)), ["sgemv: y was given, but beta is 0", "out=y"]),
    "no c": (lambda: fl.sgemm(ones(2, 3), ones(3, 4), beta=0.5), ["beta", "0.5", "c"]),
    "no c, a small beta": (lambda: fl.sgemm(ones(2, 3), ones(3, 4), beta=1e-9), ["beta=1e-09", "c"]),
    "y": (lambda: fl.sgemv(ones(2, 3), ones(3), ones(3), beta=1.0), ["y", "(3,)", "(2,)"]),
    "no y": (lambda: fl.sgemv(ones(2, 3), ones(3), beta=1.0), ["beta", "y"]),
    "alpha beyond every float": (lambda: fl.sgemm(ones(2, 2), ones(2, 2), alpha=10**400), ["alpha=1000", "of float32"]),
    "threads beyond every int": (lambda: fl.set_num_threads(10**30), ["n=1000", "beyond the range of 64 bits"]),
    "an ordinal of 33 bits": (lambda: fl.cuda.memory_info(2**32), ["device must be the ordinal", "got 4294967296"]),
    "operation": (lambda: fl.kernels("dgemm"), ["'dgemm'"]),
}


@pytest.mark.parametrize("name", SHAPES)
def test_shapes(name):
    call, words = SHAPES[name]
    with pytest.raises(ValueError) as caught:
        call()
    for word in words:
        assert word in str(caught.value), str(caught.value)


NO_NUMBERS = "does not hold numbers"
ADVICE = {"c8": "a.real.astype(np.float32)", "c16": "imaginary part", "O": "Python objects", "S4": NO_NUMBERS}
ADVICE |= {"M8[s]": NO_NUMBERS, "V4": NO_NUMBERS, "x,f4": NO_NUMBERS, "U1": NO_NUMBERS}


@pytest.mark.parametrize("dtype", ["f8", "f2", "i4", "i8", "u1", "?", "g", ">f4", *ADVICE])
def test_dtypes_are_never_cast(dtype):
    words = ADVICE.get(dtype, "nothing is cast silently, use a.astype(np.float32)")
    dtype = [tuple(dtype.split(","))] if "," in dtype else dtype
    good, bad = ones(2, 2), np.zeros((2, 2), dtype)
    calls = {
        "a": [
            lambda: fl.matmul(bad, good),
            lambda: fl.sgemm(bad, good),
            lambda: fl.sgemv(bad, good[0]),
            lambda: fl.transpose(bad),
        ],
        "b": [lambda: fl.matmul(good, bad), lambda: fl.sgemm(good, bad)],
        "x": [lambda: fl.sgemv(good, bad[0])],
        "c": [lambda: fl.sgemm(good, good, bad, beta=1.0)],
        "y": [lambda: fl.sgemv(good, good[0], bad[0], beta=1.0)],
    }
    for name, cases in calls.items():
        for call in cases:
            with pytest.raises(TypeError) as caught:
                call()
            message = str(caught.value)
            assert f"{name} must have dtype float32, got {bad.dtype}" in message, message
            assert words.replace("a.", f"{name}.") in message, message
    for call in (lambda: fl.matmul(good, good, out=bad), lambda: fl.transpose(good, out=bad)):
        # A converted copy of `out` would get the result in its place.
        with pytest.raises(TypeError, match=f"got {re.escape(str(bad.dtype))}; allocate it as float32") as caught:
            call()
        assert "astype" not in str(caught.value)


RECORDS = [np.dtype((np.record, [("x", F32)])), np.dtype([("n", "i1"), ("x", F32)], align=True)]


@pytest.mark.parametrize("dtype", RECORDS, ids=str)
def test_records_hold_no_numbers(dtype):
    for options in ({}, {"dtype": np.float32}):
        with pytest.raises(TypeError, match=f"^a must have dtype float32, got .*, which {NO_NUMBERS}$"):
            fl.matmul(np.zeros((2, 2), dtype), ones(2, 2), **options)


NOT_ARRAYS = {
    "None": (None, "got None"),
    "list": ([[1.0, 2.0], [3.0, 4.0]], "got list"),
    "float": (1.0, r"got the scalar 1\.0"),
    "numpy.float32": (np.float32(3), "got the scalar .*3"),
}


@pytest.mark.parametrize("name", NOT_ARRAYS)
def test_what_is_not_an_array_is_a_type_error(name):
    thing, words = NOT_ARRAYS[name]
    good = ones(2, 2)
    calls = [
        lambda: fl.matmul(thing, good),
        lambda: fl.matmul(good, thing),
        lambda: fl.sgemm(thing, good),
        lambda: fl.transpose(thing),
    ]
    if thing is not None:
        calls.append(lambda: fl.matmul(good, good, out=thing))
        calls.append(lambda: fl.sgemm(good, good, thing, beta=1.0))
    for call in calls:
        with pytest.raises(TypeError, match=words) as caught:
            call()
        assert "got float32" not in str(caught.value)


WRONG_KINDS = {
    "alpha": (lambda: fl.sgemm(ones(2, 2), ones(2, 2), alpha="1"), "sgemm: alpha must be a real number, got '1'"),
    "beta": (lambda: fl.sgemm(ones(2, 2), ones(2, 2), beta=None), "sgemm: beta must be a real number, got None"),
    "complex alpha": (lambda: fl.sgemv(ones(2, 2), ones(2), alpha=1j), "sgemv: alpha must be a real number, got 1j"),
    "precision": (lambda: fl.matmul(ones(2, 2), ones(2, 2), precision=None), "or 'reproducible', got None"),
    "device": (lambda: fl.matmul(ones(2, 2), ones(2, 2), device=0), "a list as ['cuda:0', 'cuda:2'], got 0"),
    "device of a plan": (lambda: fl.Matmul(ones(2, 2), ones(2, 2), device=None), "['cuda:0', 'cuda:2'], got None"),
    "alpha of a plan": (lambda: fl.Matmul(ones(2, 2), ones(2, 2), alpha="1"), "alpha must be a real number"),
    "threads": (lambda: fl.set_num_threads(2.5), "set_num_threads: n must be an int, got 2.5"),
    "threads of a block": (lambda: fl.num_threads("2"), "set_num_threads: n must be an int, got '2'"),
    "limit": (lambda: fl.cuda.set_memory_limit([2]), "set_memory_limit: nbytes must be a number of bytes or text like"),
    "half a byte": (lambda: fl.cuda.set_memory_limit(0.5), "got 0.5, which is not whole"),
    "ordinal": (lambda: fl.cuda.memory_info("cuda:0"), "memory_info: device must be an int, got 'cuda:0'"),
    "ordinal to trim": (lambda: fl.cuda.trim(None), "trim: device must be an int, got None"),
    "operation": (lambda: fl.kernels(3), "op must be the name of an operation, got 3"),
}


@pytest.mark.parametrize("name", WRONG_KINDS)
def test_arguments_of_a_wrong_kind(name):
    """Said in the library's words, not by the binding's list of signatures."""
    call, words = WRONG_KINDS[name]
    with pytest.raises(TypeError, match=re.escape(words)):
        call()


@pytest.mark.parametrize("name", ["kernel", "alpha", "beta", "c", "trans_a", "trans_b", "trans"])
def test_matmul_says_what_is_an_argument_of_sgemm(name):
    wanted = "trans_a= and trans_b= are arguments of sgemm" if name == "trans" else f"{name}= is an argument of sgemm"
    with pytest.raises(TypeError, match=re.escape(f"matmul() takes no {name}=: {wanted}, as in fl.sgemm(a, b, ...)")):
        fl.matmul(ones(2, 2), ones(2, 2), **{name: 1})


def test_matmul_has_no_other_arguments():
    a = ones(2, 2)
    with pytest.raises(TypeError, match=r"^matmul\(\) got an unexpected keyword argument 'order'$"):
        fl.matmul(a, a, order="C")
    few, many, unknown = lambda: fl.matmul(a), lambda: fl.matmul(a, a, a, a), lambda: fl.sgemm(a, a, unknown=1)
    for call in (few, many, unknown, lambda: fl.matmul(a=a, b=a)):
        with pytest.raises(TypeError):
            call()
    assert list(inspect.signature(fl.matmul).parameters) == ["a", "b", "out", "precision", "device", "stream", "dtype"]


def test_masked_arrays_are_refused():
    masked, good = np.ma.masked_array(ones(2, 2), [[True, False], [False, False]]), ones(2, 2)
    with pytest.raises(TypeError, match=re.escape("elements would be used; pass a.filled(0), or another number in")):
        fl.matmul(masked, good)
    assert (fl.matmul(masked.filled(0), good) == [[1, 1], [2, 2]]).all()
    with pytest.raises(TypeError, match=re.escape("elements would be written; pass out.data, a view of all elements")):
        fl.matmul(good, good, out=masked)
    fl.matmul(good, good, out=masked.data)
    assert (masked.filled(0) == [[0, 2], [2, 2]]).all(), "the result is where the caller looks"


class Metres(np.ndarray):
    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        return NotImplemented


class NoArithmetic(np.ndarray):
    __array_ufunc__ = None


@pytest.mark.parametrize("kind", [Metres, NoArithmetic])
def test_subclasses_that_mean_more_than_their_numbers_are_refused(kind):
    good, bad = ones(2, 2), ones(2, 2).view(kind)
    calls = {
        "a": [
            lambda: fl.matmul(bad, good),
            lambda: fl.matmul(bad, good, dtype=np.float32),
            lambda: fl.sgemm(bad, good),
            lambda: fl.ssyrk(bad),
            lambda: fl.sgemv(bad, good[0]),
            lambda: fl.transpose(bad),
            lambda: fl.Matmul(bad, good),
            lambda: fl.explain(bad, good),
        ],
        "b": [lambda: fl.matmul(good, bad), lambda: fl.sgemm(good, bad), lambda: fl.Matmul(good, bad)],
        "x": [lambda: fl.sgemv(good, bad[0])],
        "c": [lambda: fl.sgemm(good, good, bad, beta=1.0), lambda: fl.ssyrk(good, bad, beta=1.0)],
        "y": [lambda: fl.sgemv(good, good[0], bad[0], beta=1.0)],
        "out": [
            lambda: fl.matmul(good, good, out=bad),
            lambda: fl.sgemm(good, good, out=bad),
            lambda: fl.ssyrk(good, out=bad),
            lambda: fl.sgemv(good, good[0], out=bad[0]),
            lambda: fl.transpose(good, out=bad),
        ],
        "array": [lambda: fl.DeviceArray.from_numpy(bad)],
    }
    for name, cases in calls.items():
        for call in cases:
            with pytest.raises(TypeError) as caught:
                call()
            message = str(caught.value)
            assert f"{name} must not be a {kind.__name__}" in message and f"pass np.asarray({name})" in message
    assert (bad.view(np.ndarray) == 1).all()
    assert (fl.matmul(np.asarray(bad), good) == 2).all()


def test_a_device_array_is_on_one_device():
    for device in ("cpu", "cuda:all", "cuda:0,cuda:1"):
        with pytest.raises(ValueError, match="one CUDA device"):
            fl.DeviceArray.from_numpy(np.ones((2, 2), F32), device=device)


def test_how_a_device_array_is_made():
    for call in (fl.DeviceArray, lambda: fl.DeviceArray(ones(2, 2)), lambda: fl.DeviceArray(shape=(2, 2))):
        with pytest.raises(
            TypeError, match=re.escape("is made of an array: DeviceArray.from_numpy(array, device='cuda')")
        ):
            call()
    with pytest.raises(TypeError, match=r"got list; use np\.asarray\(array, dtype=np\.float32\)"):
        fl.DeviceArray.from_numpy([[1.0]])
    with pytest.raises(TypeError, match="array must be a float32 array, got None"):
        fl.DeviceArray.from_numpy(None)
    with pytest.raises(TypeError, match=r"device must be .* got 0"):
        fl.DeviceArray.from_numpy(ones(2, 2), 0)
    with pytest.raises(TypeError, match=r"from_numpy\(\) missing required argument 'array'"):
        fl.DeviceArray.from_numpy()
    with pytest.raises(TypeError, match=r"without memory; use DeviceArray\.from_numpy"):
        fl.DeviceArray.__new__(fl.DeviceArray).numpy()
    assert str(inspect.signature(fl.DeviceArray.from_numpy)) == "(array, device='cuda')"


class Wordy:
    """As much text as a repr can have."""

    def __repr__(self):
        return "word, " * 100_000


class Labelled(Wordy):
    """As an array of xarray: NumPy can read it, and `float()` where it has one element."""

    shape, ndim = (2, 2), 2

    def __float__(self):
        raise TypeError("only length-1 arrays can be converted to a scalar")

    def __array__(self, dtype=None, copy=None):
        return ones(2, 2)


class Sparse(Wordy):
    """As an array of the package `sparse`, and as those of SciPy that have no indices."""

    shape, ndim, __float__ = (2, 2), 2, Labelled.__float__

    def todense(self):
        return ones(2, 2)


class Rows(Sparse):
    """As SciPy's arrays of compressed rows: a sequence that NumPy does not read."""

    def toarray(self):
        return ones(2, 2)

    def __getitem__(self, i):
        return self


class Scalar(Labelled):
    """As an array of xarray without dimensions, which has no rows to try."""

    shape, ndim = (), 0

    def __getitem__(self, i):
        raise IndexError("too many indices")


class Quantity(Wordy):
    """As one of pint: all that the array in it has, and arithmetic with units."""

    def __init__(self):
        self.magnitude = ones(2, 2)

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        return NotImplemented

    def __getattr__(self, name):
        return getattr(self.magnitude, name)


WAYS = {Labelled: "np.asarray(a, dtype=np.float32)", Sparse: "a.todense()", Rows: "a.toarray()"}
WAYS |= {Quantity: WAYS[Labelled], Scalar: WAYS[Labelled]}


@pytest.mark.parametrize("kind", WAYS)
def test_arrays_that_have_to_become_numpy_s_say_how(kind):
    thing, good = kind(), ones(2, 2)
    for call in (lambda: fl.matmul(thing, good), lambda: fl.sgemm(thing, good), lambda: fl.transpose(thing)):
        with pytest.raises(TypeError) as caught:
            call()
        assert str(caught.value).endswith(f"a must be a float32 array, got {kind.__name__}; use {WAYS[kind]}")
    assert (eval(WAYS[kind], {"a": thing, "np": np}) == 1).all()
    with pytest.raises(TypeError, match=f"got {kind.__name__}$"):
        fl.matmul(good, good, out=thing)


class Interface:
    """Memory that NumPy's older protocol describes."""

    def __init__(self):
        self.array = ones(2, 2)

    @property
    def __array_interface__(self):
        return self.array.__array_interface__


class Table(Wordy):
    """As a frame of pandas or polars, one column of which is text."""

    shape, ndim = (10**6, 2), 2

    def __init__(self):
        self.read = []

    def __getitem__(self, rows):
        self.read.append(rows)
        return [[1.0, "text"]]

    def __array__(self, dtype=None, copy=None):
        raise AssertionError("all of it was read, for a message")


CONTAINERS = [array("f", [1, 2]), range(2), Interface(), [[1.0, 1.0]] * 2, bytearray(b"ab"), memoryview(b"ab"), (1.0,)]
NO_NUMBERS_IN_IT = [[[1, 2], [3]], [["text"]], [object()], Table()]
NO_CONTAINERS = ["1", b"1", {0: 1}, {1}, pathlib.Path("a.npy"), object(), np.ndarray, lambda: 1]


@pytest.mark.parametrize("thing", [*CONTAINERS, *NO_NUMBERS_IN_IT, *NO_CONTAINERS], ids=lambda x: type(x).__name__)
def test_advice_works_or_is_not_given(thing):
    name = type(thing).__name__
    wanted = f"a must be a float32 array, got {name}; use np.asarray(a, dtype=np.float32)"
    if any(thing is x for x in NO_NUMBERS_IN_IT):
        wanted = f"a must be a float32 array, got {name}, which NumPy cannot read as an array of numbers"
    if any(thing is x for x in NO_CONTAINERS):
        wanted = f"a must be a float32 array (NumPy's, or one with DLPack or __cuda_array_interface__), got {name}"
    with pytest.raises(TypeError) as caught:
        fl.matmul(thing, ones(2, 2))
    assert str(caught.value) == wanted
    if "asarray" in wanted:
        assert fl.transpose(np.atleast_2d(np.asarray(thing, dtype=np.float32))).dtype == np.float32
    if isinstance(thing, Table):
        assert thing.read and all(rows == slice(0, 1, 1) for rows in thing.read)
    with pytest.raises(TypeError, match=rf"out must be a float32 array \(NumPy's.*\), got {name}$"):
        fl.matmul(ones(2, 2), ones(2, 2), out=thing)


@pytest.mark.parametrize("scalar", [True, 1, F32(1)], ids=repr)
def test_a_scalar_as_out_is_not_to_be_multiplied_by(scalar):
    with pytest.raises(TypeError, match=r"out must be a float32 array .* got the scalar [^;]*$"):
        fl.matmul(ones(2, 2), ones(2, 2), out=scalar)


@pytest.mark.parametrize("scalar", [True, 1, F32(1)], ids=repr)
def test_a_scalar_to_add_becomes_an_array(scalar):
    with pytest.raises(TypeError, match=r"c must be .* got the scalar .*; use np\.asarray\(c, dtype=np\.float32\)$"):
        fl.sgemm(ones(2, 2), ones(2, 2), scalar, beta=1.0)
    with pytest.raises(TypeError, match=r"; use np\.asarray\(y, dtype=np\.float32\)$"):
        fl.sgemv(ones(2, 2), ones(2), scalar, beta=1.0)
    assert (fl.sgemm(ones(2, 2), ones(2, 2), np.asarray(scalar, dtype=np.float32), beta=1.0) == 3).all()


def test_arrays_of_dask_are_for_another_function():
    da = pytest.importorskip("dask.array")
    for call in (lambda x: fl.matmul(x, ones(2, 2)), lambda x: fl.sgemm(x, x), fl.transpose):
        with pytest.raises(
            TypeError, match=r"a must be a float32 array, got Array; use fastlinalg\.dask, or a\.compute"
        ):
            call(da.ones((2, 2), dtype=F32))
    with pytest.raises(TypeError, match=r"got Delayed; use a\.compute\(\)"):
        fl.transpose(da.ones((2, 2)).to_delayed()[0, 0])


@pytest.mark.parametrize("axes", [(1, 0), (2, 0, 1), [0, 1]], ids=str)
def test_axes_are_no_out(axes):
    with pytest.raises(
        TypeError, match=re.escape(f"transpose: out must be a float32 array, got {axes}; axes cannot be")
    ):
        fl.transpose(ones(2, 2, 2), axes)


def test_how_large_a_result_would_have_been():
    column = np.broadcast_to(ones(1, 1), (2**23, 1))  # times its row more than there are addresses
    with pytest.raises(MemoryError, match=r"could not allocate 281474976710656 bytes \(256\.0 TiB\) for the result"):
        fl.matmul(column, column.T, device="cpu")


def test_sparse_matrices_of_scipy_say_how():
    sparse = pytest.importorskip("scipy.sparse")
    good = ones(2, 2)
    for make in (sparse.csr_array, sparse.coo_array, sparse.csr_matrix, sparse.coo_matrix, sparse.dia_array):
        thing = make(good)
        with pytest.raises(TypeError, match=re.escape("; use b.toarray()")):
            fl.matmul(good, thing)
        assert (fl.matmul(good, thing.toarray()) == 2).all()


class Number(Wordy):
    def __float__(self):
        raise TypeError("not today")


def test_messages_are_short_however_long_the_arguments_are():
    good = ones(2, 2)
    for thing in (Number(), Wordy(), [1.0] * 100_000, 10**4000, "no such name" * 1000):
        for call in (
            lambda x: fl.matmul(x, good),
            lambda x: fl.matmul(good, good, out=x),
            lambda x: fl.sgemm(good, good, alpha=x),
            lambda x: fl.sgemm(good, good, trans_a=x),
            lambda x: fl.sgemm(good, good, kernel=x),
            lambda x: fl.ssyrk(good, uplo=x),
            lambda x: fl.matmul(good, good, precision=x),
            lambda x: fl.matmul(good, good, device=x),
            lambda x: fl.matmul(good, good, device=["cuda", x]),
            lambda x: fl.matmul(good, good, stream=[x]),
            lambda x: fl.matmul(good, good, dtype=x),
            lambda x: fl.Matmul(good, good, constant=x),
            lambda x: fl.explain((x,) * 2, (2, 2)),
            lambda x: fl.set_num_threads(x),
            lambda x: fl.kernels([x]),
        ):
            with pytest.raises((TypeError, ValueError, OverflowError)) as caught:
                call(thing)
            assert len(str(caught.value)) < 400, str(caught.value)[:400]


def test_read_only_out(rng):
    out = np.full((2, 2), 7, F32)
    out.flags.writeable = False
    for call in (lambda: fl.matmul(ones(2, 2), ones(2, 2), out=out), lambda: fl.transpose(ones(2, 2), out=out)):
        with pytest.raises(ValueError, match="out is read-only"):
            call()
    assert (out == 7).all()


def test_out_whose_elements_share_memory():
    a = ones(4, 4)
    bad = (
        np.lib.stride_tricks.as_strided(ones(4), (4, 4), (0, 4)),
        np.lib.stride_tricks.as_strided(ones(4), (4, 4), (4, 0)),
        np.lib.stride_tricks.as_strided(ones(7), (4, 4), (4, 4)),
        np.lib.stride_tricks.as_strided(ones(16), (4, 4), (8, 4)),
        np.ndarray((4, 4), F32, buffer=ones(20), strides=(17, 7)),
    )
    for out in bad:
        before = out.copy()
        with pytest.raises(ValueError, match="out share memory"):
            fl.matmul(a, a, out=out)
        assert_same_bits(out, before)


@pytest.mark.parametrize("op", ["sgemm", "sgemv", "transpose"])
def test_unknown_kernel(op):
    operands = {"sgemm": (ones(2, 2), ones(2, 2)), "sgemv": (ones(2, 2), ones(2)), "transpose": (ones(2, 2),)}[op]
    with pytest.raises(ValueError) as caught:
        getattr(fl, op)(*operands, kernel="fastest")
    for word in (f"unknown {op} kernel 'fastest'", "closest that run here: '", f"fastlinalg.kernels('{op}')"):
        assert word in str(caught.value)
    empty = [x[:0] for x in operands]
    if op == "sgemm" or op == "sgemv":
        empty[1] = operands[1]
    with pytest.raises(ValueError, match="fastest"):
        getattr(fl, op)(*empty, kernel="fastest")
    with pytest.raises(ValueError, match="kernel"):
        getattr(fl, op)(*operands, kernel="")
    with pytest.raises(TypeError, match="kernel"):
        getattr(fl, op)(*operands, kernel=3)
    with pytest.raises(UnicodeEncodeError):
        getattr(fl, op)(*operands, kernel="\ud800")
    with pytest.raises(ValueError, match="kernel"):
        getattr(fl, op)(*operands, kernel="reference\0")


def test_the_closest_kernels_that_run_here_are_named():
    wanted = next(row.name for row in fl.kernels("sgemm") if row.available)
    typo = wanted[:-1] + wanted[-1] * 2
    with pytest.raises(ValueError) as caught:
        fl.sgemm(ones(2, 2), ones(2, 2), kernel=typo)
    suggested = str(caught.value).split("closest that run here: ")[1].split(" (")[0]
    names = [name.strip("'") for name in suggested.split(", ")]
    assert names[0] == wanted and len(names) == 3
    assert all(row.available for row in fl.kernels("sgemm") if row.name in names)


def test_kernel_of_another_device():
    gpu = next(row for row in fl.kernels("sgemm") if row.device == "cuda")
    with pytest.raises((ValueError, fl.CudaError), match=gpu.name):
        fl.sgemm(ones(2, 2), ones(2, 2), kernel=gpu.name, device="cpu")
    if not fl.cuda.is_available():
        with pytest.raises(fl.CudaError):
            fl.sgemm(ones(2, 2), ones(2, 2), kernel=gpu.name)
    else:
        with pytest.raises(ValueError, match="reference"):
            fl.sgemm(ones(2, 2), ones(2, 2), kernel="reference", device="cuda")


@pytest.mark.parametrize("device", ["tpu", "", "cuda:", "cuda:x", "cuda:-1", "cuda:1x", "CPU", "gpu", "cuda:1,cuda:64"])
def test_unknown_device(device):
    for call in (
        lambda: fl.matmul(ones(2, 2), ones(2, 2), device=device),
        lambda: fl.transpose(ones(2, 2), device=device),
    ):
        with pytest.raises(ValueError) as caught:
            call()
        assert f"'{device}'" in str(caught.value) and "'cuda:N'" in str(caught.value)


@pytest.mark.parametrize("name", ["cpu", "auto", "cuda:all", "cuda:0,cuda:1"])
def test_a_list_is_of_one_device_each(name):
    with pytest.raises(ValueError, match=f"a list is of CUDA devices as 'cuda:0', got '{name}'"):
        fl.matmul(ones(2, 2), ones(2, 2), device=["cuda:0", name])


def test_unknown_precision():
    for call in (fl.matmul, fl.sgemm):
        with pytest.raises(ValueError, match="'strict', 'accurate' or 'reproducible', got 'fast'"):
            call(ones(2, 2), ones(2, 2), precision="fast")
        with pytest.raises(ValueError, match="'strict', 'accurate' or 'reproducible'"):
            call(ones(2, 2), ones(2, 2), precision="strict\0")
        with pytest.raises(ValueError, match="'cuda:N'"):
            call(ones(2, 2), ones(2, 2), device="cpu\0")


@pytest.mark.parametrize("call", [fl.sgemm, fl.Matmul])
def test_scalars(call):
    """A finite number that float32 makes infinite is none of its own; flags may be NumPy's."""
    a = np.arange(6, dtype=F32).reshape(2, 3)
    for name, value in (("alpha", 1e39), ("beta", -1e300), ("alpha", 2**200)):
        with pytest.raises(ValueError, match=f"{name}={value:g}".replace("+", ".") + " is beyond the range of float32"):
            call(a, a.T, ones(2, 2), **{name: value})
    call(a, a.T, alpha=float("inf")), call(a, a.T, alpha=np.float64(3.4028235677e38)), call(a, a.T, alpha=True)
    assert call(a, a, trans_a=np.bool_(a.ndim > 1)) is not None
    for flag in (1, "N", 0.0, np.int64(1)):
        with pytest.raises(TypeError, match="trans_b must be True or False, got"):
            call(a, a, trans_b=flag)


@pytest.mark.parametrize("device", ["cuda", "cuda:0", "cuda:7"])
def test_a_gpu_asked_for_where_there_is_none(device):
    if fl.cuda.is_available() and device != "cuda:7":
        pytest.skip("there is one")
    if len(fl.devices()) > 7:
        pytest.skip("there are eight")
    a = ones(2, 2)
    calls = (
        lambda: fl.matmul(a, a, device=device), lambda: fl.sgemm(a, a, device=device),
        lambda: fl.sgemv(a, a[0], device=device),
        lambda: fl.transpose(a, device=device), lambda: fl.matmul(a[:0], a, device=device),
        lambda: fl.matmul(a[0], a[0], device=device),
    )  # fmt: skip
    for call in calls:
        with pytest.raises(fl.CudaError) as caught:
            call()
        error = caught.value
        assert isinstance(error, RuntimeError) and isinstance(error.code, int) and error.code != 0
        assert error.name.startswith("cuda") and len(str(error)) > 20
    assert (fl.matmul(a, a) == 2).all(), "the next call works"


@pytest.mark.parametrize("size", [-1, -0.5e3, 2**63, "2 gigs", "", "iB", "1 ib", ".", "-1 kB", "1e400"])
def test_memory_limits_that_are_no_sizes(size):
    with pytest.raises(ValueError, match=r"set_memory_limit: nbytes must be .* got"):
        fl.cuda.set_memory_limit(size)


@pytest.mark.parametrize(
    ("size", "nbytes"),
    [
        (0, 0),
        (7, 7),
        (2**63 - 1, 2**63 - 1),
        (np.int64(7), 7),
        (2e9, 2 * 10**9),
        (np.float64(8), 8),
        ("2 GiB", 2 << 30),
        ("2GB", 2 * 10**9),
        ("1.5 kb", 1500),
        ("128MiB", 128 << 20),
        ("3m", 3 * 10**6),
        ("4 Ki", 4096),
        (" 12 ", 12),
        ("MB", 10**6),
        ("5 B", 5),
        ("1e3 k", 10**6),
        (".5 TiB", 1 << 39),
    ],
)
def test_sizes_as_people_write_them(size, nbytes):
    """Text as Dask takes it."""
    assert parse_bytes("f", "x", size) == nbytes
    if isinstance(size, str):
        assert pytest.importorskip("dask.utils").parse_bytes(size) == nbytes


def test_gpu_memory_where_there_is_no_gpu():
    """What gives memory back or limits it does nothing there: scripts need not ask. A question has no answer."""
    if fl.cuda.is_available():
        pytest.skip("there is one")
    assert fl.devices() == []
    fl.cuda.trim()
    for nbytes in (2**20, "2 GiB", None, 0):
        fl.cuda.set_memory_limit(nbytes)
    with pytest.raises(fl.CudaError):
        fl.cuda.memory_info()


def test_streams():
    a = ones(2, 2)
    for bad in ("stream", 1.5, [1], False):
        with pytest.raises(TypeError, match="stream"):
            fl.matmul(a, a, stream=bad)
    for default in (0, 1, 2, np.int64(0)):
        assert (fl.matmul(a, a, stream=default) == 2).all()
        assert (fl.sgemm(a, a, stream=default) == 2).all()
        assert (fl.sgemv(a, a[0], stream=default) == 2).all()
        assert (fl.transpose(a, stream=default) == 1).all()
        with fl.Matmul(a, a, stream=default) as plan:
            assert (plan.execute(stream=default) == 2).all()

    class Stream:
        def __cuda_stream__(self):
            return (0, "seven")

    with pytest.raises(TypeError, match=r"__cuda_stream__\(\) must give .* 'seven'"):
        fl.matmul(a, a, stream=Stream())
    for given in (7, None, (0,), (0, 1, 2), (0, -1), ("x", 3), (0, 2**70)):
        Stream.__cuda_stream__ = lambda self, given=given: given
        with pytest.raises(TypeError, match=r"must give \(version, handle\), two ints, got"):
            fl.matmul(a, a, stream=Stream())
    Stream.__cuda_stream__ = lambda self: (1, 1)
    with pytest.raises(ValueError, match="version 1 of the protocol"):
        fl.matmul(a, a, stream=Stream())
    Stream.__cuda_stream__ = (0, 1)  # a property, as the first releases of cuda.core had it
    assert (fl.matmul(a, a, stream=Stream(), device="cpu") == 2).all()
