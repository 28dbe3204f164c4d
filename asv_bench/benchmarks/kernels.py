"""Every kernel of the table by name, on a few shapes. A new row is measured from its first commit on.

CPU kernels run on one thread, which is what stays comparable on a machine that does other things too. GPU kernels are
timed on the device, without transfers, by events around a captured graph.
"""

import statistics

import numpy as np

import fastlinalg as fl

SGEMM = {"64": (64, 64, 64), "256": (256, 256, 256), "512": (512, 512, 512), "1000x8x1000": (1000, 8, 1000)}
SGEMV = {"256": (256, 256), "2048": (2048, 2048), "16x100000": (16, 100_000), "100000x16": (100_000, 16)}
TRANSPOSE = {"256": (256, 256), "2048": (2048, 2048), "1000x3": (1000, 3)}


def rows(op, device):
    return [row.name for row in fl.kernels(op) if row.device == device]


def skip_unless_available(op, name):
    row = next(row for row in fl.kernels(op) if row.name == name)
    if not row.available:
        raise NotImplementedError(row.reason)


def random(*shape):
    return np.random.default_rng(0).standard_normal(shape, dtype=np.float32)


class Cpu:
    param_names = ("kernel", "shape")
    warmup_time = 0.05
    rounds = 1

    def setup(self, kernel, shape):
        skip_unless_available(self.op, kernel)
        self.threads = fl.get_num_threads()
        fl.set_num_threads(1)
        self.prepare(*self.shapes[shape])
        self.run(kernel)  # fails here, and not in the timing, if the row cannot take this shape

    def teardown(self, kernel, shape):
        if hasattr(self, "threads"):
            fl.set_num_threads(self.threads)


class Sgemm(Cpu):
    op, shapes = "sgemm", SGEMM
    params = (rows("sgemm", "cpu"), list(SGEMM))

    def prepare(self, m, n, k):
        self.a, self.b, self.c = random(m, k), random(k, n), np.empty((m, n), np.float32)

    def run(self, kernel):
        fl.sgemm(self.a, self.b, out=self.c, kernel=kernel)

    def time_sgemm(self, kernel, shape):
        self.run(kernel)


class Sgemv(Cpu):
    op, shapes = "sgemv", SGEMV
    params = (rows("sgemv", "cpu"), list(SGEMV))

    def prepare(self, m, n):
        self.a, self.x, self.y = random(m, n), random(n), np.empty(m, np.float32)

    def run(self, kernel):
        fl.sgemv(self.a, self.x, out=self.y, kernel=kernel)

    def time_sgemv(self, kernel, shape):
        self.run(kernel)


class Transpose(Cpu):
    op, shapes = "transpose", TRANSPOSE
    params = (rows("transpose", "cpu"), list(TRANSPOSE))

    def prepare(self, m, n):
        self.a, self.b = random(m, n), np.empty((n, m), np.float32)

    def run(self, kernel):
        fl.transpose(self.a, out=self.b, kernel=kernel)

    def time_transpose(self, kernel, shape):
        self.run(kernel)


class GpuSgemm:
    params = (rows("sgemm", "cuda"), [512, 4096])
    param_names = ("kernel", "n")
    unit = "us"

    def setup(self, kernel, n):
        skip_unless_available("sgemm", kernel)
        core = fl._core
        self.buffers = [core.DeviceBuffer(4 * n * n) for _ in range(3)]
        for buffer in self.buffers[:2]:
            buffer.upload(random(n, n))

    def track_microseconds(self, kernel, n):
        a, b, c = (buffer.ptr for buffer in self.buffers)

        def work(stream):
            fl._core.device_sgemm(kernel, n, n, n, 1.0, a, n, 1, b, n, 1, 0.0, c, n, stream=stream)

        return statistics.median(fl._core.time_in_graph(work, 4, 8))
