"""The C interface, called without a compiler: calls, threads, memory, streams."""

from __future__ import annotations

import ctypes

import pytest

import fastlinalg as fl
from support.c_interface import (
    FL_CUDA_ERROR,
    FL_INVALID_VALUE,
    FL_OUT_OF_MEMORY,
    MemoryInfo,
    PlanInfo,
    SgemmProblem,
    gemm,
    gemm_arguments,
    needs_installation,
    options,
)

pytestmark = needs_installation


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"m": -1}, "m must be at least 0, got -1"),
        ({"n": -(2**63)}, "n must be at least 0"),
        ({"k": -3}, "k must be at least 0, got -3"),
        ({"trans_a": 111}, "trans_a must be 0 or 1, got 111"),
        ({"lda": 2}, "lda must be at least 3"),
        ({"k": 2**32 + 1, "lda": 2**32}, "lda must be at least 4294967297"),
        ({"trans_b": 1}, "ldb must be at least 3"),
        ({"ldc": 0}, "ldc must be at least 2"),
        ({"a": None}, "a is NULL"),
        ({"b": 4098}, "b is not aligned to 4 bytes"),
        ({"c": None}, "c is NULL"),
        ({"m": 2**40, "lda": 2**40}, "a would be larger than the address space"),
        ({"options": options(kernel=b"nonsense")}, "unknown sgemm kernel 'nonsense'; the closest that run here: "),
        ({"options": options(kernel=b"")}, "kernel must be a name or NULL"),
        ({"options": options(kernel=b"nonsense"), "m": 0}, " (fl_kernel_at() lists all)"),
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
    assert library.fl_sgemv_batched_strided(0, 2, 5, 1, None, 5, 0, None, 1, 0, 0, None, 1, 2, 0, None) == 0
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
    rows = (ctypes.c_float * 12)()  # two of each, in rows that are just long enough
    call = (0, 0, 2, 2, 2, 1, memory, 2, 1, memory, 2, 0, 0, rows)
    assert library.fl_sgemm_batched_strided(*call, 6, 2, 3, None) == 0
    assert list(rows) == [2, 3, 4, 7, 6, 11, 6, 11, 8, 15, 10, 19]
    assert library.fl_sgemm_batched_strided(*call, 5, 2, 3, None) == FL_INVALID_VALUE
    assert b"would overlap with stride_c 2 and ldc 5" in library.fl_last_error()


def test_c_interface_multiplies_lists(library, memory):
    """[[0, 1, 2], [3, 4, 5]] times its transpose, 2 [1] [0, 1] + [1, 1], and products without elements or terms."""
    start, out = ctypes.addressof(memory), (ctypes.c_float * 12)(*([1] * 12))
    c = [ctypes.addressof(out) + 4 * i for i in range(12)]
    problems = (SgemmProblem * 4)(
        SgemmProblem(trans_b=1, m=2, n=2, k=3, alpha=1, a=start, lda=3, b=start, ldb=3, c=c[0], ldc=3),
        SgemmProblem(m=1, n=2, k=1, alpha=2, a=start + 4, lda=1, b=start, ldb=2, beta=1, c=c[6], ldc=2),
        SgemmProblem(m=0, n=2, k=1, alpha=1, lda=1, b=start, ldb=2, ldc=2),
        SgemmProblem(m=1, n=1, k=0, alpha=1, lda=1, ldb=1, c=c[9], ldc=1),
    )
    assert library.fl_sgemm_grouped(4, problems, None) == 0
    assert list(out) == [5, 14, 1, 14, 50, 1, 1, 3, 1, 0, 1, 1]
    assert library.fl_sgemm_grouped(0, None, None) == 0
    plan = ctypes.c_void_p()
    assert library.fl_plan_sgemm_grouped(ctypes.byref(plan), 4, problems, None) == 0
    out[0], out[6] = 0, 2
    assert library.fl_plan_execute(plan, None) == 0 and list(out) == [5, 14, 1, 14, 50, 1, 2, 5, 1, 0, 1, 1]
    assert library.fl_plan_reset_operands(plan, start, None, None) == FL_INVALID_VALUE
    assert b"make a new one by fl_plan_sgemm_grouped()" in library.fl_last_error()
    library.fl_plan_free(plan)
    problems[1].ldc = 1
    problems[3].struct_size += 8
    for count, given, message in (
        (-1, problems, b"fl_sgemm_grouped: count must be at least 0, got -1"),
        (1, None, b"fl_sgemm_grouped: problems is NULL"),
        (4, problems, b"fl_sgemm_grouped, problems[1]: ldc must be at least 2"),
    ):
        assert library.fl_sgemm_grouped(count, given, None) == FL_INVALID_VALUE
        assert message in library.fl_last_error()
    problems[1].ldc = 2
    assert library.fl_sgemm_grouped(4, problems, None) == FL_INVALID_VALUE
    assert b"problems[3]: struct_size is" in library.fl_last_error()
    assert list(out) == [5, 14, 1, 14, 50, 1, 2, 5, 1, 0, 1, 1]


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
    for incx in (2**62, -(2**62), -(2**63)):
        assert library.fl_sgemv(0, 2, 3, 1, memory, 3, memory, incx, 0, memory, 1, None) == FL_INVALID_VALUE
        assert b"x would be larger than the address space" in library.fl_last_error()


FL_FLOAT32, FL_FLOAT16 = 0, 1


def test_c_interface_reads_16_bits(library, memory):
    """A and B of 3.0, 2.0, 1.0, ... in float16; as in float32, forwards and backwards."""
    halves = (ctypes.c_uint16 * 6)(0x4200, 0x4000, 0x3C00, 0, 0xBC00, 0xC000)
    a, b = [3, 2, 1, 0, -1, -2], list(memory[8:14])
    one, both = options(a_type=FL_FLOAT16), options(a_type=FL_FLOAT16, b_type=FL_FLOAT16)
    assert library.fl_sgemm(*gemm_arguments(memory, a=halves, options=one)) == 0
    assert list(memory[16:20]) == gemm(a, b)
    assert library.fl_sgemm(*gemm_arguments(memory, a=halves, b=halves, options=both)) == 0
    assert list(memory[16:20]) == gemm(a, a)
    whole, y = (ctypes.c_float * 4)(), (ctypes.c_float * 2)()
    assert library.fl_ssyrk(0, 0, 2, 3, 1, halves, 3, 0, whole, 2, one) == 0
    assert list(whole) == [14, -4, -4, 5]
    assert library.fl_sgemv(0, 2, 3, 1, halves, 3, halves, -1, 0, y, 1, both) == 0
    assert list(y) == [10, -8]
    plan = ctypes.c_void_p()
    assert library.fl_plan_sgemv(ctypes.byref(plan), 0, 2, 3, 1, halves, 3, halves, -1, 0, y, 1, both) == 0
    other = (ctypes.c_uint16 * 6)(*reversed(halves))
    assert library.fl_plan_reset_operands(plan, other, ctypes.byref(other, 6), None) == 0
    assert library.fl_plan_execute(plan, None) == 0 and list(y) == [-8, 10]
    library.fl_plan_free(plan)


@pytest.mark.gpu
def test_c_interface_reads_16_bits_in_device_memory(library):
    """The same, of A alone and of x too; x is A from its end."""
    buffer, stream, plan = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    host = (ctypes.c_uint16 * 128)(0x4200, 0x4000, 0x3C00, 0, 0xBC00, 0xC000)
    c = (ctypes.c_float * 4).from_buffer(host, 128)
    assert library.fl_buffer_create(ctypes.byref(buffer), 0, 256) == 0
    assert library.fl_own_stream(0, ctypes.byref(stream)) == 0
    assert library.fl_buffer_upload(buffer, 0, host, 256) == 0
    a = library.fl_buffer_data(buffer)
    both = options(stream=stream, device_memory=1, a_type=FL_FLOAT16, b_type=FL_FLOAT16)
    for call, want in (
        (
            lambda: library.fl_sgemm(0, 0, 2, 2, 3, 1, a, 3, a, 2, 0, a + 128, 2, both),
            gemm(*[[3, 2, 1, 0, -1, -2]] * 2),
        ),
        (lambda: library.fl_ssyrk(0, 0, 2, 3, 1, a, 3, 0, a + 128, 2, both), [14, -4, -4, 5]),
        (lambda: library.fl_sgemv(0, 2, 3, 1, a, 3, a, -1, 0, a + 128, 1, both), [10, -8]),
    ):
        assert call() == 0
        assert library.fl_buffer_download(buffer, 0, host, 256) == 0
        assert list(c[: len(want)]) == want
    assert library.fl_plan_sgemv(ctypes.byref(plan), 0, 2, 2, 1, a, 3, a, -1, 0, a + 128, 1, both) == 0
    assert library.fl_plan_reset_operands(plan, a + 2, a + 4, None) == 0  # [[2, 1], [-1, -2]] @ [0, 1]
    assert library.fl_plan_execute(plan, None) == 0 and library.fl_buffer_download(buffer, 0, host, 256) == 0
    assert list(c[:2]) == [1, -2]
    library.fl_plan_free(plan)
    library.fl_buffer_free(buffer)


@pytest.mark.parametrize(
    ("changes", "asked", "message"),
    [
        ({}, {"a_type": 3}, "a_type must be FL_FLOAT32, FL_FLOAT16 or FL_BFLOAT16, got 3"),
        ({"a": 4097}, {"a_type": FL_FLOAT16}, "a is not aligned to 2 bytes"),
        ({"b": 4098}, {"a_type": FL_FLOAT16}, "b is not aligned to 4 bytes"),
        ({"b": 4097}, {"b_type": FL_FLOAT16}, "b is not aligned to 2 bytes"),
    ],
    ids=str,
)
def test_c_interface_refuses_types(library, memory, changes, asked, message):
    assert library.fl_sgemm(*gemm_arguments(memory, **changes, options=options(**asked))) == FL_INVALID_VALUE
    assert message in library.fl_last_error().decode()
    assert library.fl_transpose(2, 3, memory, 3, memory, 2, options(a_type=FL_FLOAT16)) == FL_INVALID_VALUE


def test_c_interface_transposes_in_place(library):
    matrix = (ctypes.c_float * 12)(*range(12))  # 3 x 3 in rows of 4
    assert library.fl_transpose(3, 3, matrix, 4, matrix, 4, None) == 0
    assert list(matrix) == [0, 4, 8, 3, 1, 5, 9, 7, 2, 6, 10, 11]
    for m, n, lda, ldb in ((2, 3, 4, 4), (3, 3, 4, 3)):
        assert library.fl_transpose(m, n, matrix, lda, matrix, ldb, None) == FL_INVALID_VALUE
        assert b"a and b are the same memory, so the matrix must be square" in library.fl_last_error()


@pytest.mark.parametrize("device", [b"cpu", pytest.param(b"cuda", marks=pytest.mark.gpu)], ids=["cpu", "cuda"])
def test_c_interface_transposes_in_place_in_batches(library, device):
    """Two squares of 2 in rows of 3, 7 elements apart; what is between them stays. A GPU is sent a copy."""
    matrices = (ctypes.c_float * 14)(*range(14))
    call = (matrices, 3, 7, matrices, 3, 7, 2, options(device=device))
    assert library.fl_transpose_batched_strided(2, 2, *call) == 0
    assert list(matrices) == [0, 3, 2, 1, 4, 5, 6, 7, 10, 9, 8, 11, 12, 13]
    assert library.fl_transpose_batched_strided(2, 2, matrices, 3, 7, matrices, 3, 0, 1, None) == 0
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


def test_c_interface_loads_a_table(library, tmp_path):
    path = tmp_path / "table.txt"
    assert library.fl_load_tuning(str(path).encode()) == FL_INVALID_VALUE
    assert b"there is no such file" in library.fl_last_error()
    path.write_text("fastlinalg-tuning 2 0.0.1\nend\n")
    assert library.fl_load_tuning(str(path).encode()) == FL_INVALID_VALUE
    assert b"made by version 0.0.1" in library.fl_last_error()
    path.write_text(f"fastlinalg-tuning 2 {fl.__version__}\nend\n")
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


def test_threads(library):
    before = library.fl_get_num_threads()
    assert library.fl_set_num_threads(3) == 0 and fl.get_num_threads() == 3
    assert library.fl_set_num_threads(before) == 0 and library.fl_max_threads() >= 1
    assert library.fl_set_num_threads(0) == library.fl_set_num_threads(257) == FL_INVALID_VALUE


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
