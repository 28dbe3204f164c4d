"""The C interface by ctypes: its structs, the library with the types of its functions, a small product."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path

import pytest

import fastlinalg as fl
from support.source_tree import ROOT

needs_installation = pytest.mark.skipif(
    not Path(fl.get_cmake_dir()).exists() and ROOT / "python" in Path(fl.get_cmake_dir()).parents,
    reason="fastlinalg is imported from its source tree: install it to test the C interface",
)
FL_INVALID_VALUE, FL_OUT_OF_MEMORY, FL_CUDA_ERROR = 1, 2, 3


INSTALLED, SOURCES = Path(fl.get_include()), ROOT / "cpp" / "include"
HEADER = (INSTALLED if INSTALLED.exists() else SOURCES) / "fastlinalg" / "fastlinalg.h"
TEXT = re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.DOTALL)
TYPES = {"int64_t": ctypes.c_int64, "size_t": ctypes.c_size_t, "float": ctypes.c_float, "double": ctypes.c_double}
TYPES |= {"char*": ctypes.c_char_p, "fl_log_function": ctypes.c_void_p, "void": None}


def c_type(name):
    """Of a type as the header writes it; int and enumerations are left."""
    name = name.removeprefix("const ")
    return TYPES.get(name, ctypes.c_void_p if name.endswith("*") else ctypes.c_int)


def fields(struct):
    """Of a struct of the header."""
    body = re.search(rf"typedef struct {struct} {{(.*?)}}", TEXT, re.DOTALL)[1]
    rows = re.findall(r"((?:const )?\w+\*?) ([^;]+);", body)
    return [(name, c_type(kind)) for kind, names in rows for name in re.split(r",\s*", names)]


class Struct(ctypes.Structure):
    """With struct_size as the macros of the header set it."""

    def __init__(self, **fields):
        super().__init__(**{"struct_size": ctypes.sizeof(type(self))} | fields)


class Options(Struct):
    _fields_ = fields("fl_options")


def options(**fields):
    return ctypes.byref(Options(**fields))


class LongerOptions(Options):
    """Those of a later version."""

    _fields_ = (("later", ctypes.c_int64),)


class FirstKernelInfo(Struct):
    """What the header had before kernels had traits."""

    _fields_ = fields("fl_kernel_info")[:7]


def struct(name: str) -> type[Struct]:
    return type(name, (Struct,), {"_fields_": fields(name)})


KernelInfo, Explanation, Info = map(struct, ("fl_kernel_info", "fl_explanation", "fl_info"))
DeviceInfo, SgemmProblem = map(struct, ("fl_device_info", "fl_sgemm_problem"))
PlanInfo, MemoryInfo = map(struct, ("fl_plan_info", "fl_memory_info"))


def load():
    """The library, with the types of its functions as the header has them."""
    lib = ctypes.CDLL(fl.load_library())
    for result, name, arguments in re.findall(r"FL_API ([\w ]+?\*?) (fl_\w+)\(([^)]*)\)", TEXT):
        function, kinds = getattr(lib, name), re.findall(r"((?:const )?\w+\*{0,2}) \w+(?:,|$)", arguments)
        function.restype, function.argtypes = c_type(result), [c_type(kind) for kind in kinds]
    return lib


def gemm_arguments(memory, **changes):
    """A valid fl_sgemm call, 2 x 3 times 3 x 2, with some arguments replaced."""
    a, b, c = (ctypes.byref(memory, 4 * offset) for offset in (0, 8, 16))
    call = {"trans_a": 0, "trans_b": 0, "m": 2, "n": 2, "k": 3, "alpha": 1, "a": a, "lda": 3, "b": b, "ldb": 2}
    return list((call | {"beta": 0, "c": c, "ldc": 2, "options": None} | changes).values())


def gemm(a, b):
    return [sum(a[3 * i + k] * b[2 * k + j] for k in range(3)) for i in range(2) for j in range(2)]
