"""The C interface by ctypes: its structs, the library with the types of its functions, a small product."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

import fastlinalg as fl
from support.source_tree import ROOT

needs_installation = pytest.mark.skipif(
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
        ("a_type", ctypes.c_int),
        ("b_type", ctypes.c_int),
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


class SgemmProblem(Struct):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("trans_a", ctypes.c_int),
        ("trans_b", ctypes.c_int),
        ("m", ctypes.c_int64),
        ("n", ctypes.c_int64),
        ("k", ctypes.c_int64),
        ("alpha", ctypes.c_float),
        ("a", ctypes.c_void_p),
        ("lda", ctypes.c_int64),
        ("b", ctypes.c_void_p),
        ("ldb", ctypes.c_int64),
        ("beta", ctypes.c_float),
        ("c", ctypes.c_void_p),
        ("ldc", ctypes.c_int64),
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


def load():
    lib = ctypes.CDLL(fl.load_library())
    lib.fl_last_error.restype = lib.fl_version.restype = ctypes.c_char_p
    lib.fl_sgemm.argtypes = types("ii lll f pl pl f pl p")
    lib.fl_sgemm_batched_strided.argtypes = types("ii lll f pll pll f pll l p")
    lib.fl_sgemm_grouped.argtypes = types("l p p")
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
    lib.fl_plan_sgemm_grouped.argtypes = types("p l p p")
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


def gemm_arguments(memory, **changes):
    """A valid fl_sgemm call, 2 x 3 times 3 x 2, with some arguments replaced."""
    a, b, c = (ctypes.byref(memory, 4 * offset) for offset in (0, 8, 16))
    call = {"trans_a": 0, "trans_b": 0, "m": 2, "n": 2, "k": 3, "alpha": 1, "a": a, "lda": 3, "b": b, "ldb": 2}
    return list((call | {"beta": 0, "c": c, "ldc": 2, "options": None} | changes).values())


def gemm(a, b):
    return [sum(a[3 * i + k] * b[2 * k + j] for k in range(3)) for i in range(2) for j in range(2)]
