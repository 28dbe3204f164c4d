"""What the C interface says: why a kernel was chosen, what there is, in structs of any version."""

from __future__ import annotations

import ctypes

import pytest

import fastlinalg as fl
from support.c_interface import (
    FL_CUDA_ERROR,
    FL_INVALID_VALUE,
    DeviceInfo,
    Explanation,
    FirstKernelInfo,
    Info,
    KernelInfo,
    LongerOptions,
    MemoryInfo,
    Options,
    PlanInfo,
    SgemmProblem,
    gemm_arguments,
    needs_installation,
    options,
)

pytestmark = needs_installation


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


OF_0_1 = {  # what programs that were compiled with a header of 0.1 have, and where
    Options: "kernel precision device stream device_memory a_type b_type",
    SgemmProblem: "trans_a trans_b m n k alpha a lda b ldb beta c ldc",
    PlanInfo: "kernel device workspace_bytes",
    Explanation: "kernel device estimated_us steps triangle text",
    KernelInfo: "name device needs available reason blurb passed_over strict ladder tile_rows tile_cols terms split_k "
    "cluster_k stream_k tma measured_on addend triangle reproducible",
    Info: "isa cuda_built architectures cuda_error cuda_message missing_code driver runtime",
    DeviceInfo: "name compute_capability hardware_capability pretended sm_count clock_khz memory l2_cache "
    "shared_per_block memory_bytes_per_us peak_gflops costs_from",
    MemoryInfo: "used reserved limit free total pinned results",
}


@pytest.mark.parametrize("struct", OF_0_1, ids=lambda struct: struct.__name__)
def test_structs_grow_at_their_ends(struct):
    names = [name for name, _ in struct._fields_]
    first = ["struct_size", *OF_0_1[struct].split()]
    assert names[: len(first)] == first


def test_options_of_a_later_version(library, memory):
    call = gemm_arguments(memory, options=ctypes.byref(LongerOptions()))
    assert library.fl_sgemm(*call) == 0, "what it does not set is no matter"
    much = ctypes.create_string_buffer(1 << 24)  # more than a stack has
    much[:8] = len(much).to_bytes(8, "little")
    assert library.fl_sgemm(*gemm_arguments(memory, options=much)) == 0
    call = gemm_arguments(memory, options=ctypes.byref(LongerOptions(later=1)))
    assert library.fl_sgemm(*call) == FL_INVALID_VALUE
    assert b"options sets a field that this library, which knows 56 bytes of it, does not have" in (
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
        known = min(size, ctypes.sizeof(KernelInfo))
        assert room[known:size] == bytes(size - known), "what this library does not know is 0"
    for size in (0, 55, 2**24 + 1, 2**62):
        assert library.fl_kernel_at(0, 0, ctypes.byref(FirstKernelInfo(struct_size=size))) == FL_INVALID_VALUE
        assert (
            b"info->struct_size is %d, this library knows sizes from 56 to 16777216" % size in library.fl_last_error()
        )
    assert library.fl_kernel_at(0, 0, None) == FL_INVALID_VALUE


@pytest.mark.parametrize(("number", "op"), list(enumerate(("sgemm", "sgemv", "transpose"))))
def test_traits_are_those_of_python(library, number, op):
    for index, row in enumerate(fl.kernels(op)):
        info = KernelInfo()
        assert library.fl_kernel_at(number, index, ctypes.byref(info)) == 0
        for name in ("name", "device", "needs", "reason", "blurb", "passed_over"):
            assert getattr(info, name).decode() == getattr(row, name)
        assert bool(info.available) == row.available
        traits = "strict ladder split_k cluster_k stream_k tma addend triangle reproducible"
        for name in traits.split():
            assert getattr(info, name) == getattr(row.traits, name), (row.name, name)
        assert (f"{info.tile_rows}x{info.tile_cols}" if info.tile_rows else "") == row.traits.tile
        assert info.terms.decode() == row.traits.terms
        assert tuple(filter(None, info.measured_on.decode().split(","))) == row.traits.measured_on
