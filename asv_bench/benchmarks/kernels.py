"""Kernels by name, apart from what dispatch would choose. Names are those of the table beside the benchmarks.

CPU kernels run on one thread. A kernel that a commit does not have, or a machine cannot run, says so.
"""

import pathlib
import re

import fastlinalg as fl

from . import device, timing
from . import support as s

_TABLE = (pathlib.Path(__file__).parents[2] / "cpp" / "table" / "kernels.def").read_text()


def _rows(macro):
    return re.findall(rf"^(?:{macro})\((\w+),", _TABLE, re.MULTILINE)


CPU_SGEMM, GPU_SGEMM = _rows("(?:PACKED_)?SGEMM"), _rows(r"[A-Z_]*(?<!PACKED)_SGEMM")
GPU_SGEMV, GPU_TRANSPOSE = _rows("CUDA_SGEMV"), _rows("CUDA_TRANSPOSE")
CPU_VECTORS = _rows("SGEMV")  # transposes have the same


class _Kernel(s.Limited):
    version = "1"
    param_names = ("kernel", "shape")

    def setup(self, kernel, shape):
        if self.where == "cuda":
            device.demand_device()
        s.demand_kernel(self.op, kernel)
        s.clear()
        put = device.put if self.where == "cuda" else lambda array: array
        sizes = s.sizes(shape)
        extra = {"kernel": kernel} | ({} if self.where == "cuda" else {"device": "cpu"})
        if self.op == "sgemm":
            m, n, k = sizes
            a, b, out = put(s.random(m, k)), put(s.random(k, n)), put(s.empty(m, n))
            precision = "strict" if kernel.startswith("strict") else "accurate"
            self.call = lambda **on: fl.sgemm(a, b, out=out, precision=precision, **extra, **on)
        elif self.op == "sgemv":
            m, n = sizes
            a, x, y = put(s.random(m, n)), put(s.random(n)), put(s.empty(m))
            self.call = lambda **on: fl.sgemv(a, x, out=y, **extra, **on)
        else:
            m, n = sizes
            a, out = put(s.random(m, n)), put(s.empty(n, m))
            self.call = lambda **on: fl.transpose(a, out, **extra, **on)
        self.limits = s.Threads(1, peer=False)
        try:
            self.call()
        except ValueError as error:  # legal for this kernel or not is the table's to say
            raise NotImplementedError(f"{kernel} does not take {shape}: {error}") from None

    @s.unit("seconds")
    def track_seconds(self, *_):
        if self.where == "cuda":
            return device.seconds(lambda stream: self.call(stream=stream))
        return timing.least(self.call)


class CpuSgemm(_Kernel):
    op, where = "sgemm", "cpu"
    params = (CPU_SGEMM, ["64x64x64", "256x256x256", "512x512x512", "1000x8x1000"])
    quick = {
        "track_seconds": [
            ("avx2_6x16", "256x256x256"), ("avx2_small", "64x64x64"), ("avx512_14x32", "256x256x256"),
            ("avx512_small", "64x64x64"), ("neon_8x12", "256x256x256"), ("neon_small", "64x64x64"),
        ]
    }  # fmt: skip


class CpuSgemv(_Kernel):
    op, where = "sgemv", "cpu"
    params = (CPU_VECTORS, ["256x256", "2048x2048", "16x100000", "100000x16"])
    quick = {"track_seconds": [(name, "2048x2048") for name in ("avx2", "avx512", "neon")]}


class CpuTranspose(_Kernel):
    op, where = "transpose", "cpu"
    params = (CPU_VECTORS, ["256x256", "2048x2048", "1000x3"])
    quick = {"track_seconds": [(name, "2048x2048") for name in ("avx2", "avx512", "neon")]}


class GpuSgemm(_Kernel):
    op, where = "sgemm", "cuda"
    params = (GPU_SGEMM, ["512x512x512", "4096x4096x1024"])
    quick = {"track_seconds": [(name, "4096x4096x1024") for name in ("double_buffered", "strict_128x256", "fp16x2")]}


class GpuSgemv(_Kernel):
    op, where = "sgemv", "cuda"
    params = (GPU_SGEMV, ["1024x1024", "16384x16", "128x262144"])


class GpuTranspose(_Kernel):
    op, where = "transpose", "cuda"
    params = (GPU_TRANSPOSE, ["1024x1024", "4096x4096", "1000000x16"])
