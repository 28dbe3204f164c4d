"""The library with the names of the CBLAS, beside OpenBLAS as SciPy has it, on every combination of arguments."""

from __future__ import annotations

import ctypes
import mmap
import re
import shutil
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from support.cpp_program import build, loaded_library
from support.source_tree import ROOT, TESTS, needs_source_tree

pytestmark = needs_source_tree
ROWS, COLUMNS = 101, 102
NO, YES, CONJUGATE, CONJUGATE_NO = 111, 112, 113, 114
UPPER, LOWER = 121, 122
SCALARS = list(product((0.0, 1.0, -0.5), (0.0, 1.0, 2.0)))


def with_types(library, before="", after=""):
    """The functions of a CBLAS by their plain names."""
    letters = {"i": ctypes.c_int, "f": ctypes.c_float, "p": ctypes.c_void_p}
    signatures = {"sgemm": "iiiiiifpipifpi", "sgemv": "iiiifpipifpi", "ssyrk": "iiiiifpifpi", "somatcopy": "iiiifpipi"}
    functions = {}
    for name, signature in signatures.items():
        function = getattr(library, f"{before}cblas_{name}{after}")
        function.argtypes, function.restype = [letters[letter] for letter in signature], None
        functions[name] = function
    return functions


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """That of a library with these names, which calls the package's own."""
    folder, source, library = tmp_path_factory.mktemp("cblas"), ROOT / "cpp" / "cblas" / "cblas.cpp", loaded_library()
    link = ("-shared", "-fPIC", f"-I{ROOT / 'cpp' / 'include'}", source, library, f"-Wl,-rpath,{library.parent}")
    build(folder / "libfastlinalg_cblas.so", source, "-O1", *link, seconds=100)
    return folder


@pytest.fixture(scope="module")
def ours(folder):
    return with_types(ctypes.CDLL(str(folder / "libfastlinalg_cblas.so")))


@pytest.fixture(scope="module")
def theirs():
    scipy = pytest.importorskip("scipy")
    folder = Path(scipy.__file__).parent
    for path in (*folder.parent.glob("scipy.libs/*openblas*"), *folder.glob(".dylibs/*openblas*")):
        try:
            return with_types(ctypes.CDLL(str(path)), "scipy_")
        except AttributeError:
            continue
    pytest.skip("this SciPy has no OpenBLAS of its own with these names")


def data(rng, size):
    return rng.standard_normal(size).astype(np.float32)


def pointer(array):
    return array.ctypes.data


def both(ours, theirs, call, result):
    """What each makes of a copy of `result`."""
    copies = result.copy(), result.copy()
    for functions, copy in zip((ours, theirs), copies, strict=True):
        call(functions, pointer(copy))
    return copies


def assert_close(got, want, before, depth, written):
    """Normal numbers, sums of so many; what is not to be written keeps its bits."""
    bound = 2.0**-22 * (depth + 4) * (1 + np.abs(want.astype(float)))
    assert np.array_equal(got[~written], before[~written], equal_nan=True)
    assert np.all(np.abs(got.astype(float) - want)[written] <= (16 * bound)[written])


def lines(layout, m, n, extra):
    """(leading dimension, elements, which of them are the matrix's) of a stored m x n matrix."""
    count, length = (m, n) if layout == ROWS else (n, m)
    ld = max(1, length) + extra
    inside = np.zeros((count, ld), bool)
    inside[:, :length] = True
    return ld, count * ld, inside.ravel()


@pytest.mark.parametrize("layout", [ROWS, COLUMNS])
@pytest.mark.parametrize("extra", [0, 3])
@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 5, 2), (17, 9, 33), (64, 70, 0), (0, 4, 3), (4, 0, 3)])
def test_sgemm(ours, theirs, rng, layout, extra, shape):
    m, n, k = shape
    ldc, size_c, written = lines(layout, m, n, extra)
    for trans_a, trans_b in product((NO, YES, CONJUGATE), repeat=2):
        lda, size_a, _ = lines(layout, *((m, k) if trans_a == NO else (k, m)), extra)
        ldb, size_b, _ = lines(layout, *((k, n) if trans_b == NO else (n, k)), extra)
        a, b = data(rng, size_a), data(rng, size_b)
        for alpha, beta in SCALARS:
            c = np.full(size_c, np.nan, np.float32) if beta == 0 else data(rng, size_c)
            sizes = (layout, trans_a, trans_b, m, n, k, alpha, pointer(a), lda, pointer(b), ldb, beta)
            got, want = both(ours, theirs, lambda f, p: f["sgemm"](*sizes, p, ldc), c)  # noqa: B023
            assert_close(got, want, c, k, written)


@pytest.mark.parametrize(("alpha", "k"), [(0, 4), (1, 0)])
def test_a_result_that_stays_is_not_written(ours, alpha, k):
    a, c = np.ones((4, 4), np.float32), np.frombuffer(mmap.mmap(-1, 4096, prot=mmap.PROT_READ), np.float32)
    ours["sgemm"](ROWS, NO, NO, 4, 4, k, alpha, pointer(a), 4, pointer(a), 4, 1, pointer(c), 4)


@pytest.mark.parametrize("layout", [ROWS, COLUMNS])
@pytest.mark.parametrize("trans", [NO, YES, CONJUGATE])
@pytest.mark.parametrize("shape", [(1, 1), (7, 4), (33, 65), (0, 3), (3, 0)])
def test_sgemv(ours, theirs, rng, layout, trans, shape):
    m, n = shape
    size_x, size_y = (n, m) if trans == NO else (m, n)
    for extra, incx, incy in product((0, 3), (1, -1, 2, -3), (1, -1, 3)):
        lda, size_a, _ = lines(layout, m, n, extra)
        a, x = data(rng, size_a), data(rng, max(0, size_x * abs(incx)))
        written = np.zeros(size_y * abs(incy), bool)
        written[: max(0, (size_y - 1) * abs(incy) + 1) : abs(incy)] = size_y > 0
        for alpha, beta in SCALARS:
            y = data(rng, size_y * abs(incy))
            if beta == 0 and m and n:
                y[written] = np.nan
            head = (layout, trans, m, n, alpha, pointer(a), lda, pointer(x), incx, beta)
            got, want = both(ours, theirs, lambda f, p: f["sgemv"](*head, p, incy), y)  # noqa: B023
            if m and n:
                assert_close(got, want, y, size_x, written)
            else:
                assert np.array_equal(got, y), "as the reference has it: nothing is scaled"


@pytest.mark.parametrize("layout", [ROWS, COLUMNS])
@pytest.mark.parametrize("uplo", [UPPER, LOWER])
@pytest.mark.parametrize("trans", [NO, YES, CONJUGATE])
@pytest.mark.parametrize("n", [0, 1, 5, 64, 65, 200])
def test_ssyrk(ours, theirs, rng, layout, uplo, trans, n):
    for k, extra in product((0, 1, 7, 40), (0, 3)):
        lda, size_a, _ = lines(layout, *((n, k) if trans == NO else (k, n)), extra)
        ldc, size_c, _ = lines(layout, n, n, extra)
        triangle = np.zeros((n, ldc), bool)
        triangle[:, :n] = np.tri(n, dtype=bool) if (layout == ROWS) == (uplo == LOWER) else np.tri(n, dtype=bool).T
        a = data(rng, size_a)
        for alpha, beta in SCALARS:
            c = data(rng, size_c)
            if beta == 0:
                c[triangle.ravel()] = np.nan
            head = (layout, uplo, trans, n, k, alpha, pointer(a), lda, beta)
            got, want = both(ours, theirs, lambda f, p: f["ssyrk"](*head, p, ldc), c)  # noqa: B023
            assert_close(got, want, c, k, triangle.ravel())


@pytest.mark.parametrize("layout", [ROWS, COLUMNS])
@pytest.mark.parametrize("trans", [NO, YES, CONJUGATE, CONJUGATE_NO])
@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (70, 33), (1, 40)])
def test_somatcopy(ours, theirs, rng, layout, trans, shape):
    rows, cols = shape
    for extra, alpha in product((0, 3), (0.0, 1.0, -0.5)):
        lda, size_a, _ = lines(layout, rows, cols, extra)
        ldb, size_b, _ = lines(layout, *((cols, rows) if trans in (YES, CONJUGATE) else (rows, cols)), extra)
        a, b = data(rng, size_a), data(rng, size_b)
        head = (layout, trans, rows, cols, alpha, pointer(a), lda)
        got, want = both(ours, theirs, lambda f, p: f["somatcopy"](*head, p, ldb), b)  # noqa: B023
        assert np.array_equal(got, want)


def test_scalars_of_zero_look_at_no_operand(ours):
    """They may be anything, even no address."""
    c = np.full(6, np.nan, np.float32)
    ours["sgemm"](ROWS, NO, NO, 2, 3, 4, 0.0, None, 4, None, 3, 0.0, pointer(c), 3)
    assert not c.any()
    c[:] = np.nan
    ours["somatcopy"](COLUMNS, YES, 2, 3, 0.0, None, 2, pointer(c), 3)
    assert not c.any()
    c[:] = 1
    ours["sgemv"](ROWS, YES, 5, 6, 0.0, None, 6, None, 1, 3.0, pointer(c), 1)
    assert (c == 3).all()
    ours["ssyrk"](ROWS, LOWER, NO, 2, 5, 0.0, None, 5, 0.0, pointer(c), 3)
    assert c.tolist() == [0, 3, 3, 0, 0, 3]


# ---------------------------------------------------------------- arguments that are not allowed
WRONG = {  # a call that is right, and for each position values that are not
    "sgemm": (
        (ROWS, NO, NO, 2, 2, 3, 1.0, 0, 3, 0, 2, 0.0, 0, 2),
        {1: (0, 103), 2: (110, CONJUGATE_NO), 3: (0, 121), 4: (-1,), 5: (-5,), 6: (-1,), 9: (2, 0), 11: (1,), 14: (1,)},
    ),
    "sgemv": (
        (ROWS, NO, 2, 2, 1.0, 0, 2, 0, 1, 0.0, 0, 1),
        {1: (100,), 2: (0, CONJUGATE_NO), 3: (-1,), 4: (-2,), 7: (1, -2), 9: (0,), 12: (0,)},
    ),
    "ssyrk": (
        (COLUMNS, UPPER, NO, 2, 2, 1.0, 0, 2, 0.0, 0, 2),
        {1: (0,), 2: (123, NO), 3: (LOWER,), 4: (-1,), 5: (-1,), 8: (1,), 11: (1, 0)},
    ),
    "somatcopy": (
        (ROWS, YES, 2, 2, 1.0, 0, 2, 0, 2),
        {1: (0,), 2: (115, 0), 3: (-1,), 4: (-1,), 7: (1,), 9: (1,)},
    ),
}


@pytest.mark.parametrize(
    ("name", "position", "value"),
    [(name, at, value) for name, (_, wrong) in WRONG.items() for at, values in wrong.items() for value in values],
)
def test_what_is_wrong_is_reported(ours, capfd, name, position, value):
    """Its position in the call, as the reference implementation reports it, and nothing is computed."""
    call, types = list(WRONG[name][0]), ours[name].argtypes
    memory = np.arange(16, dtype=np.float32)
    for i, kind in enumerate(types):
        if kind is ctypes.c_void_p:
            call[i] = pointer(memory)
    call[position - 1] = value
    ours[name](*call)
    said = capfd.readouterr().err
    assert (
        said.startswith(f"Parameter {position} to routine cblas_{name} was incorrect\nIllegal ") and str(value) in said
    )
    assert memory.tolist() == list(range(16))


def test_of_several_wrong_arguments_the_references_first_is_reported(ours, capfd):
    """It hands the transposes of rows on: n comes before m, and the second operand before the first."""
    memory = pointer(np.zeros(16, np.float32))
    for layout, expected in ((COLUMNS, (4, 9)), (ROWS, (5, 11))):
        ours["sgemm"](layout, NO, NO, -1, -1, -1, 1.0, memory, 0, memory, 0, 0.0, memory, 0)
        ours["sgemm"](layout, NO, NO, 2, 2, 2, 1.0, memory, 0, memory, 0, 0.0, memory, 0)
        said = [int(number) for number in re.findall(r"Parameter (\d+)", capfd.readouterr().err)]
        assert tuple(said) == expected


def test_sgemm_refuses_what_openblas_refuses(ours, theirs, capfd):
    """By columns, where its numbers are those of Fortran: one less."""
    memory = pointer(np.zeros(64, np.float32))
    for sizes in product((-1, 2), (-1, 3), (-1, 0, 3), (1, 2, 3), (1, 2, 3), (1, 2)):
        m, n, k, lda, ldb, ldc = sizes
        for trans_a, trans_b in product((NO, YES), repeat=2):
            call = (COLUMNS, trans_a, trans_b, m, n, k, 1.0, memory, lda, memory, ldb, 0.0, memory, ldc)
            found = []
            for functions, pattern in ((ours, r"Parameter +(\d+)"), (theirs, r"parameter number +(\d+)")):
                functions["sgemm"](*call)
                ctypes.CDLL(None).fflush(None)  # OpenBLAS writes to C's stdout
                found.append([int(number) for number in re.findall(pattern, "".join(capfd.readouterr()))])
            assert [number - 1 for number in found[0]] == found[1], call


def test_other_failures_have_no_position(ours, capfd):
    memory = np.zeros(16, np.float32)
    ours["sgemm"](ROWS, NO, NO, 2, 2, 2, 1.0, None, 2, pointer(memory), 2, 0.0, pointer(memory), 2)
    assert capfd.readouterr().err == "cblas_sgemm: fl_sgemm: a is NULL, but has elements\n"
    memory[:] = 1
    ours["somatcopy"](ROWS, YES, 2, 2, 3.0, None, 2, pointer(memory), 2)
    assert capfd.readouterr().err == "cblas_somatcopy: fl_transpose: a is NULL, but has elements\n"
    assert (memory == 1).all(), "what is not computed is not scaled either"
    ours["sgemm"](ROWS, NO, NO, 0, 2, 2, 1.0, None, 2, None, 2, 0.0, None, 2)
    assert not capfd.readouterr().err, "of a result without elements nothing is wrong"


# ---------------------------------------------------------------- relinking
PRINTED = """\
sgemm 17 22 27 22 29 36 27 36 45
sgemv 12 18 24
ssyrk 0 0 0 22 0 0 27 36 0
somatcopy 0.5 2 1 2.5 1.5 3
"""


@pytest.fixture(params=["folder", pytest.param("prefix", marks=pytest.mark.exhaustive)])
def libraries(request, output_of):
    """What a program is linked with: the library as above, and as CMake installs it, found by pkg-config."""
    place = request.getfixturevalue(request.param)
    if request.param == "folder":
        return [f"-L{place}", f"-Wl,-rpath,{place}", "-lfastlinalg_cblas"]
    if not shutil.which("pkg-config"):
        pytest.skip("needs pkg-config")
    return output_of("pkg-config", "--libs", "fastlinalg_cblas", PKG_CONFIG_PATH=place / "lib" / "pkgconfig").split()


def test_a_program_is_relinked(libraries, output_of, tmp_path):
    """Compiled once; with OpenBLAS, where there is one, and with this library."""
    if not shutil.which("cc"):
        pytest.skip("needs a C compiler")
    compiled = tmp_path / "relinked.o"
    output_of("cc", "-std=c99", "-c", TESTS / "consumers" / "relinked.c", "-o", compiled)
    link = ("cc", compiled, "-o")
    output_of(*link, tmp_path / "relinked", *libraries)
    expected = output_of(tmp_path / "relinked", "errors")
    assert expected == PRINTED + "reported 9\n", "to the program's own cblas_xerbla"
    try:
        output_of(*link, tmp_path / "before", "-lopenblas")
    except AssertionError:
        pytest.skip("no OpenBLAS to link with: the relinked program alone has run")
    assert output_of(tmp_path / "before") == PRINTED
