"""Kernels by name, apart from what dispatch would choose. Names are those of the table, literally.

CPU kernels run on one thread. A kernel that a commit does not have, or a machine cannot run, says so.
"""

import fastlinalg as fl

from . import device, timing
from . import support as s

CPU_SGEMM = [
    "reference", "portable", "portable_small", "portable_column", "portable_fused", "avx2_6x16", "avx2_small",
    "avx2_rows", "avx2_column", "avx512_14x32", "avx512_small", "avx512_rows", "avx512_column", "neon_8x12",
    "neon_small", "neon_rows", "neon_column",
]  # fmt: skip
CPU_VECTORS = ["reference", "portable", "avx2", "avx512", "neon"]  # of SGEMV and of transposes
GPU_SGEMM = [
    "naive", "coalesced", "smem", "blocktile_1d", "blocktile_2d", "vectorized", "blocktile_8x8",
    "bank_conflict_free", "double_buffered", "strict_32x32k8c4", "strict_32x32k8c2", "strict_48x32k8c4",
    "strict_48x48k8c2", "strict_64x64k4c2", "strict_96x96k4c2", "strict_64x32k8", "strict_64x48k8",
    "strict_32x96k8", "strict_64x64k4", "strict_64x128k4", "strict_96x192k2", "strict_128x256", "strict_192x192",
    "strict_128x128", "strict_128x192p", "strict_128x128p", "strict_64x128k2p", "strict_128x192r",
    "strict_128x128r", "strict_64x64k4p", "strict_32x64k8p", "strict_32x32s8", "strict_64x32s8", "strict_64x16m4",
    "strict_64x32m4", "strict_64x48m4", "strict_64x64m4", "strict_96x64m2", "strict_64x128m2", "strict_64x64m1",
    "strict_64x128m1", "strict_64x32w", "strict_32x32w", "strict_16x16w", "strict_short_k", "strict_32x32i4",
    "strict_32x64i4", "strict_64x64i2", "strict_64x128i2", "strict_element", "strict_tall_skinny", "strict_column",
    "strict_column_no_clusters", "reproducible_128x256", "reproducible_192x192", "reproducible_128x128",
    "reproducible_96x192k2", "reproducible_64x128k4", "reproducible_128x192p", "reproducible_128x128p",
    "reproducible_128x192r", "reproducible_128x128r", "reproducible_64x128m1", "reproducible_64x64m1",
    "reproducible_64x32w", "reproducible_32x32w", "reproducible_16x16w", "reproducible_short_k",
    "reproducible_64x32k4", "reproducible_48x32k4", "reproducible_32x32k4", "reproducible_32x16k4",
    "reproducible_16x16k4", "reproducible_vector", "reproducible_element", "fp16x2", "bf16x6", "fp16x2_mma",
    "fp16x2_mma_k8", "bf16x6_mma",
]  # fmt: skip
GPU_SGEMV = [
    "warp_per_row", "warp_per_row_vec4", "rows_per_warp", "rows_per_warp_vec4", "short_rows", "long_rows",
    "any_rows", "cluster_columns", "split_columns", "short_columns",
]  # fmt: skip
GPU_TRANSPOSE = [
    "naive", "naive_32x32", "naive_16x16", "naive_8x8", "row2", "smem", "strided", "vec4_direct", "vec4_rows",
    "vec4_rows_16x16", "vec4_staged", "vec2", "vec2_16x16", "tiled", "tiled_any", "pieces", "narrow", "in_place",
]  # fmt: skip


class _Kernel:
    version = "1"
    param_names = ("kernel", "shape")

    def setup(self, kernel, shape):
        if self.where == "cuda":
            device.demand_device()
            device.demand_arrays()
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

    def teardown(self, *_):
        if hasattr(self, "limits"):
            self.limits.restore()

    def track_seconds(self, *_):
        if self.where == "cuda":
            return device.seconds(lambda stream: self.call(stream=stream))
        return timing.least(self.call)

    track_seconds.unit = "seconds"


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
