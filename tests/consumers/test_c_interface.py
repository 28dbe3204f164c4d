"""The C interface, called without a compiler."""

from __future__ import annotations

import ctypes
import json
from pathlib import Path

import pytest

import fastlinalg as fl
from support.source_tree import ROOT
from support.threads import in_threads

pytestmark = pytest.mark.skipif(
    not Path(fl.get_cmake_dir()).exists() and ROOT / "python" in Path(fl.get_cmake_dir()).parents,
    reason="fastlinalg is imported from its source tree: install it to test the C interface",
)
FL_INVALID_VALUE, FL_OUT_OF_MEMORY, FL_CUDA_ERROR = 1, 2, 3


class Struct(ctypes.Structure):
    """With struct_size as the macros of the header set it."""

    def __init__(self, **fields):
        super().__init__(**{"struct_size": ctypes.sizeof(type(self))} | fields)


class Options(Struct):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("kernel", ctypes.c_char_p),
        ("precision", ctypes.c_int),
        ("device", ctypes.c_char_p),
        ("stream", ctypes.c_void_p),
        ("device_memory", ctypes.c_int),
    )


def options(**fields):
    return ctypes.byref(Options(**fields))


class LongerOptions(Options):
    """Those of a later version."""

    _fields_ = (("later", ctypes.c_int64),)


class FirstKernelInfo(Struct):
    """What the header had before kernels had traits."""

    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("name", ctypes.c_char_p),
        ("device", ctypes.c_char_p),
        ("needs", ctypes.c_char_p),
        ("available", ctypes.c_int),
        ("reason", ctypes.c_char_p),
        ("blurb", ctypes.c_char_p),
    )


class KernelInfo(FirstKernelInfo):
    _fields_ = (
        ("passed_over", ctypes.c_char_p),
        ("strict", ctypes.c_int),
        ("ladder", ctypes.c_int),
        ("tile_rows", ctypes.c_int),
        ("tile_cols", ctypes.c_int),
        ("terms", ctypes.c_char_p),
        ("split_k", ctypes.c_int),
        ("cluster_k", ctypes.c_int),
        ("stream_k", ctypes.c_int),
        ("tma", ctypes.c_int),
        ("measured_on", ctypes.c_char_p),
        ("addend", ctypes.c_int),
        ("triangle", ctypes.c_int),
    )


class Explanation(Struct):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("kernel", ctypes.c_char_p),
        ("device", ctypes.c_char_p),
        ("estimated_us", ctypes.c_double),
        ("steps", ctypes.c_int64),
        ("triangle", ctypes.c_int),
        ("text", ctypes.c_char_p),
    )


class Info(Struct):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("isa", ctypes.c_char_p),
        ("cuda_built", ctypes.c_int),
        ("architectures", ctypes.c_char_p),
        ("cuda_error", ctypes.c_int),
        ("cuda_message", ctypes.c_char_p),
        ("missing_code", ctypes.c_char_p),
        ("driver", ctypes.c_int),
        ("runtime", ctypes.c_int),
    )


class DeviceInfo(Struct):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("name", ctypes.c_char_p),
        ("compute_capability", ctypes.c_int),
        ("hardware_capability", ctypes.c_int),
        ("pretended", ctypes.c_char_p),
        ("sm_count", ctypes.c_int),
        ("clock_khz", ctypes.c_int),
        ("memory", ctypes.c_int64),
        ("l2_cache", ctypes.c_int64),
        ("shared_per_block", ctypes.c_int64),
        ("memory_bytes_per_us", ctypes.c_double),
        ("peak_gflops", ctypes.c_double),
        ("costs_from", ctypes.c_char_p),
    )


class PlanInfo(Struct):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("kernel", ctypes.c_char_p),
        ("device", ctypes.c_int),
        ("workspace_bytes", ctypes.c_size_t),
    )


class MemoryInfo(Struct):
    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in ("struct_size", "used", "reserved", "limit", "free", "total", "pinned", "results")
    )


def types(signature):
    letters = {"i": ctypes.c_int, "l": ctypes.c_int64, "f": ctypes.c_float, "p": ctypes.c_void_p}
    return [letters[letter] for letter in signature.replace(" ", "")]


@pytest.fixture(scope="module")
def library():
    lib = fl.load_library()
    lib.fl_last_error.restype = lib.fl_version.restype = ctypes.c_char_p
    lib.fl_sgemm.argtypes = types("ii lll f pl pl f pl p")
    lib.fl_sgemm_batched_strided.argtypes = types("ii lll f pll pll f pll l p")
    lib.fl_ssyrk.argtypes = types("ii ll f pl f pl p")
    lib.fl_sgemv.argtypes = types("i ll f pl pl f pl p")
    lib.fl_transpose.argtypes = types("ll pl pl p")
    lib.fl_sgemv_batched_strided.argtypes = types("i ll f pll pll f pll l p")
    lib.fl_transpose_batched_strided.argtypes = types("ll pll pll l p")
    lib.fl_plan_sgemv_batched_strided.argtypes = types("p i ll f pll pll f pll l p")
    lib.fl_explain_sgemm.argtypes = types("p ii lll f pll pll f pll l p")
    lib.fl_explain_sgemv.argtypes = types("p i ll f pll pll f pll l p")
    lib.fl_explain_transpose.argtypes = types("p ll pll pll l p")
    lib.fl_load_tuning.argtypes = (ctypes.c_char_p,)
    lib.fl_plan_sgemm.argtypes = types("p ii lll f pll pll f pll l i p")
    lib.fl_plan_sgemv.argtypes = types("p i ll f pl pl f pl p")
    lib.fl_plan_execute.argtypes = types("pp")
    lib.fl_plan_reset_operands.argtypes = types("pppp")
    lib.fl_plan_get_info.argtypes = types("pp")
    lib.fl_plan_free.argtypes = types("p")
    lib.fl_plan_free.restype = None
    lib.fl_set_memory_limit.argtypes = (ctypes.c_int, ctypes.c_size_t)
    lib.fl_buffer_create.argtypes = (ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t)
    lib.fl_buffer_data.argtypes = lib.fl_buffer_free.argtypes = (ctypes.c_void_p,)
    lib.fl_buffer_data.restype, lib.fl_buffer_free.restype = ctypes.c_void_p, None
    for copy in (lib.fl_buffer_upload, lib.fl_buffer_download):
        copy.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t)
    lib.fl_order_after.argtypes = types("ipp")
    return lib


@pytest.fixture
def memory():
    return (ctypes.c_float * 64)(*range(64))


def gemm_arguments(memory, **changes):
    """A valid fl_sgemm call, 2 x 3 times 3 x 2, with some arguments replaced."""
    a, b, c = (ctypes.byref(memory, 4 * offset) for offset in (0, 8, 16))
    call = {"trans_a": 0, "trans_b": 0, "m": 2, "n": 2, "k": 3, "alpha": 1, "a": a, "lda": 3, "b": b, "ldb": 2}
    return list((call | {"beta": 0, "c": c, "ldc": 2, "options": None} | changes).values())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"m": -1}, "m must be at least 0, got -1"),
        ({"n": -(2**63)}, "n must be at least 0"),
        ({"k": -3}, "k must be at least 0, got -3"),
        ({"trans_a": 111}, "trans_a must be 0 or 1, got 111"),
        ({"lda": 2}, "lda must be at least 3"),
        ({"trans_b": 1}, "ldb must be at least 3"),
        ({"ldc": 0}, "ldc must be at least 2"),
        ({"a": None}, "a is NULL"),
        ({"b": 4098}, "b is not aligned to 4 bytes"),
        ({"c": None}, "c is NULL"),
        ({"m": 2**40, "lda": 2**40}, "a would be larger than the address space"),
        ({"options": options(kernel=b"nonsense")}, "unknown sgemm kernel 'nonsense'; the closest that run here: "),
        ({"options": options(kernel=b"")}, "kernel must be a name or NULL"),
        ({"options": options(kernel=b"nonsense"), "m": 0}, "unknown sgemm kernel 'nonsense'"),
        ({"options": options(device=b"tpu")}, "got 'tpu'"),
        ({"options": options(precision=7)}, "precision must be FL_ACCURATE, FL_STRICT or FL_REPRODUCIBLE, got 7"),
        ({"options": options(struct_size=0)}, "start from FL_OPTIONS_INIT"),
        ({"options": options(device=b"cpu", device_memory=1)}, "device_memory needs a CUDA device"),
    ],
)
def test_c_interface_refuses(library, memory, changes, message):
    before = list(memory)
    assert library.fl_sgemm(*gemm_arguments(memory, **changes)) == FL_INVALID_VALUE
    text = library.fl_last_error().decode()
    assert text.startswith("fl_sgemm: ") or "'" in text
    assert message in text
    assert list(memory) == before


def test_c_interface_accepts_nothing_to_do(library, memory):
    assert library.fl_sgemm(*gemm_arguments(memory, m=0, a=None, c=None)) == 0
    assert library.fl_sgemm(*gemm_arguments(memory, n=0, b=None, c=None)) == 0
    assert library.fl_sgemm(*gemm_arguments(memory, m=0, n=0, k=0, a=None, b=None, c=None)) == 0
    assert library.fl_ssyrk(1, 0, 0, 5, 1, None, 5, 0, None, 1, None) == 0
    assert library.fl_sgemv(0, 0, 5, 1, None, 5, memory, 1, 0, None, 1, None) == 0
    assert library.fl_transpose(0, 5, None, 5, None, 1, None) == 0


def test_c_interface_batches(library, memory):
    """Row vectors [l, l+1] times one matrix; the results side by side in one row."""
    result = (ctypes.c_float * 6)()
    call = (0, 0, 1, 2, 2, 1, memory, 2, 1, memory, 2, 0, 0, result, 2)
    assert library.fl_sgemm_batched_strided(*call, 2, 3, None) == 0
    assert list(result) == [2, 3, 4, 7, 6, 11]  # [[0, 1], [2, 3]] is the matrix
    assert library.fl_sgemm_batched_strided(*call, 1, 3, None) == FL_INVALID_VALUE
    assert b"would overlap with stride_c 1" in library.fl_last_error()
    assert library.fl_sgemm_batched_strided(*call, -2, 3, None) == FL_INVALID_VALUE


@pytest.mark.parametrize("trans", [0, 1])
def test_c_interface_multiplies_by_the_transpose(library, memory, trans):
    """[[0, 1], [2, 3], [4, 5]], or as it is stored by columns, in rows of 4."""
    stored = (ctypes.c_float * 12)(*((0, 2, 4, 9, 1, 3, 5, 9) if trans else (0, 1, 9, 9, 2, 3, 9, 9, 4, 5, 9, 9)))
    whole = [1, 3, 5, -7, 3, 13, 23, -7, 5, 23, 41, -7]
    triangles = {0: range(12), 1: (0, 4, 5, 8, 9, 10), 2: (0, 1, 2, 5, 6, 10)}
    for uplo, written in triangles.items():
        result = (ctypes.c_float * 12)(*([-7] * 12))
        assert library.fl_ssyrk(uplo, trans, 3, 2, 1, stored, 4, 0, result, 4, None) == 0
        assert list(result) == [whole[i] if i in written else -7 for i in range(12)]
        assert library.fl_ssyrk(uplo, trans, 3, 2, 2, stored, 4, -1, result, 4, None) == 0
        assert [list(result)[i] for i in written if i % 4 < 3] == [whole[i] for i in written if i % 4 < 3]
    for call, message in (
        ((3, 0, 3, 2, 1, stored, 4, 0, result, 4), b"fl_ssyrk: uplo must be FL_WHOLE, FL_LOWER or FL_UPPER, got 3"),
        ((1, 2, 3, 2, 1, stored, 4, 0, result, 4), b"fl_ssyrk: trans must be 0 or 1, got 2"),
        ((1, 0, -3, 2, 1, stored, 4, 0, result, 4), b"fl_ssyrk: n must be at least 0"),
        ((1, 0, 3, 5, 1, stored, 4, 0, result, 4), b"fl_ssyrk: lda must be at least 5"),
        ((1, 0, 3, 2, 1, stored, 4, 0, result, 2), b"fl_ssyrk: ldc must be at least 3"),
        ((1, 0, 3, 2, 1, None, 4, 0, result, 4), b"fl_ssyrk: a is NULL"),
    ):
        assert library.fl_ssyrk(*call, None) == FL_INVALID_VALUE
        assert message in library.fl_last_error()


@pytest.mark.gpu
@pytest.mark.parametrize(("uplo", "written"), [(0, range(4)), (1, (0, 2, 3)), (2, (0, 1, 3))])
def test_c_interface_has_triangles_in_device_memory(library, memory, uplo, written):
    """[[0, 1, 2], [3, 4, 5]] times its transpose."""
    buffer, stream = ctypes.c_void_p(), ctypes.c_void_p()
    assert library.fl_buffer_create(ctypes.byref(buffer), 0, 64) == 0
    assert library.fl_own_stream(0, ctypes.byref(stream)) == 0
    assert library.fl_buffer_upload(buffer, 0, memory, 64) == 0
    a, before = library.fl_buffer_data(buffer), list(memory[8:12])
    on_device = options(stream=stream, device_memory=1)
    for beta in (0, -1):
        assert library.fl_ssyrk(uplo, 0, 2, 3, 1, a, 3, beta, a + 32, 2, on_device) == 0
        assert library.fl_buffer_download(buffer, 0, memory, 64) == 0
        whole = [x * (1 + beta) for x in (5, 14, 14, 50)]
        assert list(memory[8:12]) == [whole[i] if i in written else before[i] for i in range(4)]
    library.fl_buffer_free(buffer)


def test_c_interface_walks_vectors_backwards(library, memory):
    """[[0, 1, 2], [3, 4, 5]] @ [100, 10, 1], the last element of the result first."""
    x, y = (ctypes.c_float * 3)(1, 10, 100), (ctypes.c_float * 4)()
    assert library.fl_sgemv(0, 2, 3, 1, memory, 3, x, -1, 0, y, -3, None) == 0
    assert list(y) == [345, 0, 0, 12]
    assert library.fl_sgemv(0, 2, 3, 1, memory, 3, x, 0, 0, y, 1, None) == FL_INVALID_VALUE
    assert b"incx must not be 0" in library.fl_last_error()


def test_c_interface_transposes_in_place(library):
    matrix = (ctypes.c_float * 12)(*range(12))  # 3 x 3 in rows of 4
    assert library.fl_transpose(3, 3, matrix, 4, matrix, 4, None) == 0
    assert list(matrix) == [0, 4, 8, 3, 1, 5, 9, 7, 2, 6, 10, 11]
    for m, n, lda, ldb in ((2, 3, 4, 4), (3, 3, 4, 3)):
        assert library.fl_transpose(m, n, matrix, lda, matrix, ldb, None) == FL_INVALID_VALUE
        assert b"a and b are the same memory, so the matrix must be square" in library.fl_last_error()


def test_c_interface_transposes_in_place_in_batches(library):
    """Two squares of 2 in rows of 3, 7 elements apart; what is between them stays."""
    matrices = (ctypes.c_float * 14)(*range(14))
    call = (matrices, 3, 7, matrices, 3, 7, 2, None)
    assert library.fl_transpose_batched_strided(2, 2, *call) == 0
    assert list(matrices) == [0, 3, 2, 1, 4, 5, 6, 7, 10, 9, 8, 11, 12, 13]
    assert library.fl_transpose_batched_strided(2, 2, matrices, 3, 7, matrices, 3, 8, 2, None) == FL_INVALID_VALUE
    assert b"stride_a 7 equal stride_b, got 8" in library.fl_last_error()


def test_c_interface_transposes_batches(library, memory):
    """Three matrices of 2 x 3, 8 elements apart, and one three times."""
    results = (ctypes.c_float * 24)()
    for stride in (8, 0):
        assert library.fl_transpose_batched_strided(2, 3, memory, 3, stride, results, 2, 8, 3, None) == 0
        for i in range(3):
            first = i * stride
            wanted = [first + offset for offset in (0, 3, 1, 4, 2, 5)]
            assert list(results[8 * i : 8 * i + 6]) == wanted
    for stride, batch in ((5, 3), (-8, 3), (8, -1)):
        call = (2, 3, memory, 3, 8, results, 2, stride, batch, None)
        assert library.fl_transpose_batched_strided(*call) == FL_INVALID_VALUE
    assert library.fl_transpose_batched_strided(2, 3, memory, 3, 8, results, 2, 5, 3, None) == FL_INVALID_VALUE
    assert b"fl_transpose_batched_strided: the 3 results of 3 x 2 would overlap with stride_b 5 and ldb 2" in (
        library.fl_last_error()
    )
    assert library.fl_transpose_batched_strided(2, 3, None, 3, 8, None, 2, 8, 0, None) == 0


def test_c_interface_multiplies_batches_by_vectors(library, memory):
    """Two matrices of 2 x 3 times one vector, walked backwards; the results interleaved, as well as in turn."""
    x = (ctypes.c_float * 3)(1, 10, 100)
    products = [[sum(memory[8 * i + 3 * row + k] * x[2 - k] for k in range(3)) for row in range(2)] for i in range(2)]
    for incy, stride, order in ((1, 2, (0, 1, 2, 3)), (2, 1, (0, 2, 1, 3)), (-1, 2, (1, 0, 3, 2))):
        y = (ctypes.c_float * 4)()
        call = (0, 2, 3, 1, memory, 3, 8, x, -1, 0, 0, y, incy, stride, 2, None)
        assert library.fl_sgemv_batched_strided(*call) == 0
        assert [y[i] for i in order] == products[0] + products[1]
        made, again = ctypes.c_void_p(), list(y)
        assert library.fl_plan_sgemv_batched_strided(ctypes.byref(made), *call) == 0
        ctypes.memset(y, 0, 16)
        assert library.fl_plan_execute(made, None) == 0 and list(y) == again
        library.fl_plan_free(made)
    refused = (0, 2, 3, 1, memory, 3, 8, x, -1, 0, 0, y, 1, 1, 2, None)
    assert library.fl_sgemv_batched_strided(*refused) == FL_INVALID_VALUE
    assert b"would overlap with stride_y 1 and incy 1" in library.fl_last_error()


# ---------------------------------------------------------------- why
def test_explanations_are_those_of_python(library):
    sizes = (301, 203, 405)
    m, n, k = sizes
    answer, on_cpu = Explanation(), options(device=b"cpu")
    assert (
        library.fl_explain_sgemm(
            ctypes.byref(answer), 0, 0, m, n, k, 1, None, k, 0, None, n, 0, 0, None, n, 0, 1, on_cpu
        )
        == 0
    )
    of_python = [(answer_of(answer), fl.explain((m, k), (k, n), device="cpu"))]
    assert (
        library.fl_explain_sgemv(ctypes.byref(answer), 1, m, n, 1, None, n, m * n, None, 1, m, 0, None, 1, n, 3, None)
        == 0
    )
    of_python.append((answer_of(answer), fl.explain((3, m, n), (3, m, 1), trans_a=True)))
    assert library.fl_explain_transpose(ctypes.byref(answer), m, n, None, n, m * n, None, m, m * n, 7, None) == 0
    of_python.append((answer_of(answer), fl.explain((7, m, n))))
    for i, (ours, theirs) in enumerate(of_python):
        if i != 1:  # a product of matrices in Python
            assert ours == (theirs.kernel, theirs.device, theirs.estimated_us, theirs.text)
        assert ours[0] in {row.name for row in fl.kernels(("sgemm", "sgemv", "transpose")[i])}
        assert ours[0] in ours[3]


def answer_of(answer):
    return answer.kernel.decode(), answer.device.decode(), answer.estimated_us, answer.text.decode()


def test_an_explanation_goes_by_what_is_given(library, memory):
    answer, a = Explanation(), (ctypes.c_float * (300 * 200))()

    def explained(a, b, **fields):
        call = (
            ctypes.byref(answer),
            0,
            1,
            300,
            300,
            200,
            1,
            a,
            200,
            0,
            b,
            200,
            0,
            0,
            None,
            300,
            0,
            1,
            options(**fields),
        )
        return library.fl_explain_sgemm(*call)

    assert explained(a, a, device=b"cpu") == 0 and answer.triangle == 1 and "symmetric" in answer.text.decode()
    assert explained(None, None, device=b"cpu") == 0 and answer.triangle == 0
    assert "because device='cpu' says so" in answer.text.decode()
    assert explained(a, a, kernel=b"reference") == 0 and answer.kernel == b"reference" and answer.triangle == 0
    assert "as asked for" in answer.text.decode()
    assert explained(a, 4098) == FL_INVALID_VALUE and b"b is not aligned" in library.fl_last_error()
    assert explained(a, a, kernel=b"nonsense") == FL_INVALID_VALUE
    nothing = (ctypes.byref(answer), 0, 3, None, 3, 0, None, 1, 0, 1, None)
    assert library.fl_explain_transpose(*nothing) == 0
    assert answer.kernel == b"" and answer.device == b"" and b"nothing to compute" in answer.text
    assert library.fl_explain_transpose(None, *nothing[1:]) == FL_INVALID_VALUE


# ---------------------------------------------------------------- what there is
def test_what_was_found_is_what_python_says(library):
    info, of_python = Info(), fl.info()
    assert library.fl_get_info(ctypes.byref(info)) == 0
    cpu, cuda = of_python["cpu"], of_python["cuda"]
    assert info.isa.decode() == cpu["isa"] and bool(info.cuda_built) == of_python["cuda_built"]
    assert info.architectures.decode() == of_python["architectures"]
    assert (info.cuda_error, info.driver, info.runtime) == (cuda["code"], cuda["driver"], cuda["runtime"])
    assert (info.cuda_message.decode(), info.missing_code.decode()) == (cuda["message"], cuda["missing_code"])
    assert (info.cuda_error == 0) == fl.cuda.is_available()


def test_devices_are_those_of_python(library):
    found = fl.devices()
    for ordinal, device in enumerate(found):
        info = DeviceInfo()
        assert library.fl_get_device_info(ordinal, ctypes.byref(info)) == 0
        for name in ("name", "pretended", "costs_from"):
            assert getattr(info, name).decode() == device[name]
        for name in ("compute_capability", "hardware_capability"):
            capability = getattr(info, name)
            assert f"{capability // 10}.{capability % 10}" == device[name]
        for name in ("sm_count", "clock_khz", "memory", "l2_cache", "shared_per_block", "memory_bytes_per_us"):
            assert getattr(info, name) == device[name]
        assert info.peak_gflops == device["peak_gflops"]
    for ordinal in (len(found), -1):
        assert library.fl_get_device_info(ordinal, ctypes.byref(DeviceInfo())) == FL_CUDA_ERROR


def test_c_interface_loads_a_table(library, tmp_path):
    path = tmp_path / "table.json"
    assert library.fl_load_tuning(str(path).encode()) == 0, "no file is no table"
    path.write_text('{"format": 1, "version": "0.0.1", "devices": []}')
    assert library.fl_load_tuning(str(path).encode()) == FL_INVALID_VALUE
    assert b"made by version 0.0.1" in library.fl_last_error()
    path.write_text(json.dumps({"format": 1, "version": fl.__version__, "devices": []}))
    assert library.fl_load_tuning(str(path).encode()) == 0
    assert library.fl_load_tuning(None) == 0, "FASTLINALG_TUNE is off in the tests"


def test_c_interface_without_a_device(library, memory):
    status = library.fl_sgemm(*gemm_arguments(memory, options=options(device=b"cuda:99")))
    assert status == FL_CUDA_ERROR
    assert library.fl_last_cuda_error() != 0 and library.fl_last_error()


def test_one_library_for_python_and_c(library):
    assert library.fl_version().decode() == fl.__version__
    with fl.num_threads(3):
        assert library.fl_get_num_threads() == 3
    for number, op in enumerate(("sgemm", "sgemv", "transpose")):
        assert library.fl_kernel_count(number) == len(fl.kernels(op))
    assert library.fl_kernel_count(3) == -1
    assert library.fl_last_error() == b"fl_kernel_count: op must be FL_SGEMM, FL_SGEMV or FL_TRANSPOSE, got 3"


def test_exports_no_cuda_symbol(library):
    for name in ("cudaMalloc", "cudaGetDeviceCount", "cudaLaunchKernel", "__cudaRegisterFatBinary", "cuInit"):
        assert not hasattr(library, name)


# ---------------------------------------------------------------- structs of other versions
def test_options_of_a_later_version(library, memory):
    call = gemm_arguments(memory, options=ctypes.byref(LongerOptions()))
    assert library.fl_sgemm(*call) == 0, "what it does not set is no matter"
    call = gemm_arguments(memory, options=ctypes.byref(LongerOptions(later=1)))
    assert library.fl_sgemm(*call) == FL_INVALID_VALUE
    assert b"options sets a field that this library, which knows 48 bytes of it, does not have" in (
        library.fl_last_error()
    )


def test_kernel_information_of_other_versions(library):
    room = (ctypes.c_char * 256)(*b"x" * 256)
    for size, written in ((56, 56), (ctypes.sizeof(KernelInfo), ctypes.sizeof(KernelInfo)), (232, 232)):
        ctypes.memset(room, 0x78, 256)
        ctypes.memmove(room, ctypes.byref(ctypes.c_size_t(size)), 8)
        assert library.fl_kernel_at(0, 0, room) == 0
        assert ctypes.c_size_t.from_buffer(room).value == size
        assert room[written:] == b"x" * (256 - written), "nothing is written behind what the caller has"
    assert library.fl_kernel_at(0, 0, ctypes.byref(FirstKernelInfo(struct_size=55))) == FL_INVALID_VALUE
    assert b"info->struct_size is 55, this library knows sizes from 56 on" in library.fl_last_error()
    assert library.fl_kernel_at(0, 0, None) == FL_INVALID_VALUE


@pytest.mark.parametrize(("number", "op"), list(enumerate(("sgemm", "sgemv", "transpose"))))
def test_traits_are_those_of_python(library, number, op):
    for index, row in enumerate(fl.kernels(op)):
        info = KernelInfo()
        assert library.fl_kernel_at(number, index, ctypes.byref(info)) == 0
        for name in ("name", "device", "needs", "reason", "blurb", "passed_over"):
            assert getattr(info, name).decode() == getattr(row, name)
        assert bool(info.available) == row.available
        for name in ("strict", "ladder", "split_k", "cluster_k", "stream_k", "tma", "addend", "triangle"):
            assert getattr(info, name) == getattr(row.traits, name), (row.name, name)
        assert (f"{info.tile_rows}x{info.tile_cols}" if info.tile_rows else "") == row.traits.tile
        assert info.terms.decode() == row.traits.terms
        assert tuple(filter(None, info.measured_on.decode().split(","))) == row.traits.measured_on


# ---------------------------------------------------------------- plans
@pytest.fixture
def plan(library, memory):
    """2 x 3 times 3 x 2, freed in the end."""
    made = ctypes.c_void_p()

    def make(**changes):
        constant = changes.pop("constant", 0)
        *call, given = gemm_arguments(memory, **changes)
        for after_ld in (13, 10, 8):  # of c, b and a
            call.insert(after_ld, 0)
        call += [1, constant, given]
        return library.fl_plan_sgemm(ctypes.byref(made), *call), made

    yield make
    library.fl_plan_free(made)


def gemm(a, b):
    return [sum(a[3 * i + k] * b[2 * k + j] for k in range(3)) for i in range(2) for j in range(2)]


def test_a_plan_is_executed_on_what_is_there(library, memory, plan):
    status, made = plan()
    assert status == 0 and list(memory[16:20]) == [16, 17, 18, 19], "nothing is computed yet"
    for _ in range(3):
        assert library.fl_plan_execute(made, None) == 0
        assert list(memory[16:20]) == gemm(memory[0:6], memory[8:14])
        memory[0], memory[9] = memory[0] + 1, memory[9] - 2
    info = PlanInfo()
    assert library.fl_plan_get_info(made, ctypes.byref(info)) == 0
    assert info.device == -1 and info.kernel.decode() in {row.name for row in fl.kernels("sgemm")}


def test_a_plan_on_other_operands(library, memory, plan):
    _, made = plan()
    other = (ctypes.c_float * 6)(3, 1, 4, 1, 5, 9)
    result = (ctypes.c_float * 4)()
    assert library.fl_plan_reset_operands(made, other, None, result) == 0
    assert library.fl_plan_execute(made, None) == 0
    assert list(result) == gemm(other, memory[8:14]) and list(memory[16:20]) == [16, 17, 18, 19]
    assert library.fl_plan_reset_operands(made, None, 4098, None) == FL_INVALID_VALUE
    assert b"fl_plan_reset_operands: b is not aligned to 4 bytes" in library.fl_last_error()
    assert library.fl_plan_execute(made, None) == 0, "it is as it was"


def test_a_plan_walks_vectors_backwards(library, memory):
    made = ctypes.c_void_p()
    x, y = (ctypes.c_float * 3)(1, 10, 100), (ctypes.c_float * 2)()
    call = (ctypes.byref(made), 0, 2, 3, 1, memory, 3, x, -1, 0, y, -1, None)
    assert library.fl_plan_sgemv(*call) == 0
    assert library.fl_plan_execute(made, None) == 0 and list(y) == [345, 12]
    other = (ctypes.c_float * 3)(0, 0, 1)
    assert library.fl_plan_reset_operands(made, None, other, None) == 0
    assert library.fl_plan_execute(made, None) == 0 and list(y) == [3, 0]
    library.fl_plan_free(made)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"m": -1}, "fl_plan_sgemm: m must be at least 0, got -1"),
        ({"a": None}, "fl_plan_sgemm: a is NULL"),
        ({"constant": 3}, "constant must be FL_NO_OPERAND, FL_OPERAND_A or FL_OPERAND_B, got 3"),
        ({"options": options(kernel=b"nonsense")}, "unknown sgemm kernel 'nonsense'"),
    ],
)
def test_plans_that_cannot_be(library, plan, changes, message):
    status, made = plan(**changes)
    assert status == FL_INVALID_VALUE and made.value is None
    assert message in library.fl_last_error().decode()


def test_no_plan(library):
    for call in (library.fl_plan_execute(None, None), library.fl_plan_reset_operands(None, None, None, None)):
        assert call == FL_INVALID_VALUE and b"plan is NULL" in library.fl_last_error()
    library.fl_plan_free(None)


def test_a_plan_keeps_its_name_of_a_kernel(library, memory, plan):
    """It looks for it again where the number of threads is another one."""
    name = ctypes.create_string_buffer(b"reference")
    status, made = plan(options=options(kernel=ctypes.cast(name, ctypes.c_char_p)))
    name.value = b"gone"
    info = PlanInfo()
    with fl.num_threads(3):
        assert status == 0 and library.fl_plan_execute(made, None) == 0
    assert library.fl_plan_get_info(made, ctypes.byref(info)) == 0 and info.kernel == b"reference"


def test_threads_take_turns_at_a_plan(library):
    """Each execution adds to what those before it have left."""
    n, turns = 128, 50
    ones, made = (ctypes.c_float * (n * n))(*[1] * (n * n)), ctypes.c_void_p()
    sums = (ctypes.c_float * (n * n))()
    call = (0, 0, n, n, n, 1, ones, n, 0, ones, n, 0, 1, sums, n, 0, 1, 0, None)
    assert library.fl_plan_sgemm(ctypes.byref(made), *call) == 0
    statuses = []
    in_threads(lambda _: statuses.extend([library.fl_plan_execute(made, None) for _ in range(turns)]), range(4))
    assert statuses == [0] * 4 * turns and set(sums) == {4 * turns * n}
    library.fl_plan_free(made)


def test_a_child_of_fork_uses_a_plan(python):
    """Which another thread of its parent was using."""
    python(
        "import signal, ctypes, os, threading, fastlinalg as fl\n"
        "signal.alarm(60)\n"
        "library = fl.load_library()\n"
        "n = 64; square = ctypes.c_float * (n * n); a = square(*[1] * (n * n)); c = square(); p = ctypes.c_void_p()\n"
        "l, f = ctypes.c_int64, ctypes.c_float\n"
        "assert library.fl_plan_sgemm(ctypes.byref(p), 0, 0, l(n), l(n), l(n), f(1), a, l(n), l(0), a, l(n), l(0),\n"
        "                             f(0), c, l(n), l(0), l(1), 0, None) == 0\n"
        "stop = False\n"
        "def work():\n"
        "    while not stop: library.fl_plan_execute(p, None)\n"
        "thread = threading.Thread(target=work); thread.start()\n"
        "for _ in range(20):\n"
        "    pid = os.fork()\n"
        "    if pid == 0:\n"
        "        c[0] = 0\n"
        "        os._exit(library.fl_plan_execute(p, None) + (c[0] != n))\n"
        "    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0\n"
        "stop = True; thread.join()\n"
    )


# ---------------------------------------------------------------- the log
LOG = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_void_p)


@pytest.fixture
def log(library):
    """Lines of the log, and what was given for `user`."""
    lines = []
    write = LOG(lambda line, user: lines.append((line.decode(), user)))
    assert library.fl_set_log(write, ctypes.c_void_p(42)) == 0
    yield lines
    assert library.fl_set_log(LOG(), None) == 0


def test_the_log_names_the_kernel_of_new_sizes(library, memory, log):
    for _ in range(3):
        assert library.fl_sgemm(*gemm_arguments(memory)) == 0
        assert library.fl_transpose(2, 3, memory, 3, ctypes.byref(memory, 128), 2, None) == 0
        assert library.fl_transpose(1, 3, memory, 3, ctypes.byref(memory, 128), 1, None) == 0
    product, transpose, other = log
    assert other[0].startswith("transpose 1x3 -> cpu ")
    assert product[0].startswith("sgemm 2x2x3 -> cpu ") and product[1] == 42
    assert transpose[0].startswith("transpose 2x3 -> cpu ")
    assert library.fl_set_log(LOG(), None) == 0
    assert library.fl_sgemm(*gemm_arguments(memory, m=1)) == 0
    assert len(log) == 3


def test_the_log_of_plans(library, plan, log):
    _, made = plan(k=1)
    assert [line for line, _ in log if line.startswith("sgemm 2x2x1 -> cpu ")]
    assert library.fl_plan_execute(made, None) == 0 and len(log) == 1


def test_the_log_says_what_is_ignored(python):
    out = python(
        "import ctypes, fastlinalg as fl\n"
        "library = fl.load_library()\n"
        "write = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_void_p)(lambda line, user: print(line.decode()))\n"
        "library.fl_set_log(write, None)\n"
        "x = (ctypes.c_float * 4)()\n"
        "l = ctypes.c_int64\n"
        "for _ in range(2): assert library.fl_transpose(l(1), l(2), x, l(2), ctypes.byref(x, 8), l(1), None) == 0\n",
        FASTLINALG_NUM_THREADS="many",
    )
    assert out.count("FASTLINALG_NUM_THREADS") == 1


# ---------------------------------------------------------------- threads, memory, streams
def test_threads(library):
    before = library.fl_get_num_threads()
    assert library.fl_set_num_threads(3) == 0 and fl.get_num_threads() == 3
    assert library.fl_set_num_threads(before) == 0 and library.fl_max_threads() >= 1
    assert library.fl_set_num_threads(0) == FL_INVALID_VALUE


def test_memory_of_a_device_that_is_not_there(library):
    pointer = ctypes.c_void_p(1)
    assert library.fl_get_memory_info(99, ctypes.byref(MemoryInfo())) == FL_CUDA_ERROR
    assert library.fl_set_memory_limit(99, 0) == FL_CUDA_ERROR
    assert library.fl_trim(99) == FL_CUDA_ERROR
    assert library.fl_buffer_create(ctypes.byref(pointer), 99, 8) == FL_CUDA_ERROR and pointer.value is None
    assert library.fl_own_stream(99, ctypes.byref(pointer)) == FL_CUDA_ERROR
    assert library.fl_order_after(99, None, None) == FL_CUDA_ERROR
    assert library.fl_buffer_create(None, 99, 8) == library.fl_own_stream(0, None) == FL_INVALID_VALUE
    assert library.fl_buffer_upload(None, 0, pointer, 4) == FL_INVALID_VALUE
    assert library.fl_buffer_data(None) is None
    library.fl_buffer_free(None)


@pytest.mark.gpu
def test_a_plan_in_device_memory(library, memory):
    """Without a CUDA toolkit: memory and the stream are the library's."""
    buffer, stream, made = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    assert library.fl_buffer_create(ctypes.byref(buffer), 0, 256) == 0
    assert library.fl_own_stream(0, ctypes.byref(stream)) == 0
    info = MemoryInfo()
    assert library.fl_get_memory_info(0, ctypes.byref(info)) == 0 and info.used >= 256
    a, b, c = (library.fl_buffer_data(buffer) + offset for offset in (0, 32, 64))
    on_device = options(device=b"cuda:0", stream=stream, device_memory=1)
    call = (0, 0, 2, 2, 3, 1, a, 3, 0, b, 2, 0, 0, c, 2, 0, 1, 2, on_device)
    assert library.fl_plan_sgemm(ctypes.byref(made), *call) == 0
    for step in range(3):
        memory[0] = step
        assert library.fl_buffer_upload(buffer, 0, memory, 64) == 0
        assert library.fl_plan_execute(made, None) == 0
        assert library.fl_buffer_download(buffer, 64, ctypes.byref(memory, 64), 16) == 0
        assert list(memory[16:20]) == gemm(memory[0:6], memory[8:14])
    plan_info = PlanInfo()
    assert library.fl_plan_get_info(made, ctypes.byref(plan_info)) == 0 and plan_info.device == 0
    assert library.fl_buffer_upload(buffer, 200, memory, 64) == FL_INVALID_VALUE, "past its end"
    assert library.fl_order_after(0, stream, None) == library.fl_order_after(0, None, stream) == 0
    library.fl_plan_free(made)
    library.fl_buffer_free(buffer)
    assert library.fl_trim(0) == 0


@pytest.mark.gpu
def test_the_memory_limit(library):
    buffer = ctypes.c_void_p(1)
    assert library.fl_set_memory_limit(0, 1 << 20) == 0
    try:
        assert library.fl_buffer_create(ctypes.byref(buffer), 0, 2 << 20) == FL_OUT_OF_MEMORY
        assert buffer.value is None and library.fl_last_error()
    finally:
        assert library.fl_set_memory_limit(0, 0) == 0
