"""Every operation on the CPU as users call it: dispatch chooses the kernel. One thread, and two.

The peer is NumPy on as many threads; for transposes it is a copy of as many bytes.
"""

import numpy as np

import fastlinalg as fl

from . import shapes, timing
from . import support as s


class _Cpu(s.Limited):
    """One call into an existing result, and what NumPy does instead."""

    version = "1"
    timeout = 120

    def _set_up(self, threads):
        s.demand_threads(threads)
        self.threads = threads
        self.limits = s.Threads(threads, peer=False)
        s.clear()

    @s.unit("seconds")
    def track_seconds(self, *_):
        return timing.least(self.ours, self.threads)

    def _ratio(self):
        limits = s.Threads(self.threads, peer=True)
        try:
            return timing.ratio(self.ours, self.theirs, self.threads)
        finally:
            limits.restore()

    def _demand_size(self, flops, elements):
        s.demand(flops <= shapes.CPU_FLOPS, f"{flops:.1e} operations are too many for a CPU here")
        s.demand(4 * elements <= shapes.CPU_BYTES, f"{4 * elements / 2**30:.1f} GiB are too much memory here")


class _BesideNumpy(_Cpu):
    @s.unit("ratio")
    def track_ratio_to_numpy(self, *_):
        return self._ratio()


class _Product(_BesideNumpy):
    param_names = ("shape", "precision", "threads")
    trans_a = trans_b = False

    def setup(self, shape, precision, threads):
        m, n, k = s.sizes(shape)
        self._demand_size(2 * m * n * k, m * n + m * k + k * n)
        s.demand_precision(precision)
        self._set_up(threads)
        a = s.random(k, m).T if self.trans_a else s.random(m, k)
        b = s.random(n, k).T if self.trans_b else s.random(k, n)
        out, peers = s.empty(m, n), s.empty(m, n)
        self.ours = lambda: fl.matmul(a, b, out, precision=precision, device="cpu")
        self.theirs = lambda: np.matmul(a, b, out=peers)


class Products(_Product):
    """Squares with K = 1024, the fifteen sizes."""

    params = (shapes.FIFTEEN, shapes.PRECISIONS, [1, 2])
    quick = {
        "track_seconds": [
            ("128x128x1024", "accurate", 1), ("256x256x1024", "accurate", 1), ("512x512x1024", "accurate", 1),
            ("1024x1024x1024", "accurate", 1), ("256x256x1024", "accurate", 2), ("1024x1024x1024", "accurate", 2),
        ],
        "track_ratio_to_numpy": [
            ("128x128x1024", "accurate", 1), ("256x256x1024", "accurate", 1), ("1024x1024x1024", "accurate", 1),
            ("1024x1024x1024", "accurate", 2),
        ],
    }  # fmt: skip


class Cubes(_Product):
    params = (shapes.CUBES, ["accurate"], [1, 2])
    quick = {
        "track_seconds": [(n, "accurate", 1) for n in shapes.CUBES],
        "track_ratio_to_numpy": [(n, "accurate", 1) for n in ("8x8x8", "32x32x32", "64x64x64", "200x200x200")],
    }


class Transposed(_Product):
    """Both operands transposed, which nothing is copied for."""

    trans_a = trans_b = True
    params = (["64x64x64", "256x256x256", "1024x1024x1024"], ["accurate"], [1, 2])
    quick = {"track_seconds": [("256x256x256", "accurate", 1)]}


class Thin(_Product):
    """One dimension short."""

    params = (shapes.THIN, ["accurate", "strict", "reproducible"], [1, 2])
    quick = {
        "track_seconds": [
            (shape, "accurate", 1)
            for shape in ("1x4096x4096", "4x4096x1024", "16384x16x128", "1000x8x1000", "64x64x65536")
        ],
        "track_ratio_to_numpy": [
            (shape, "accurate", 1) for shape in ("4x4096x1024", "16384x16x128", "64x64x65536")
        ],
    }  # fmt: skip


class Batches(_BesideNumpy):
    """Stacks of small products."""

    params = (shapes.BATCHES, ["accurate"], [1, 2])
    param_names = ("batch", "precision", "threads")
    quick = {
        "track_seconds": [("1000x8x8x8", "accurate", 1), ("64x128x128x128", "accurate", 1)],
        "track_ratio_to_numpy": [("1000x8x8x8", "accurate", 1), ("64x128x128x128", "accurate", 1)],
    }

    def setup(self, batch, precision, threads):
        count, m, n, k = s.sizes(batch)
        s.demand_precision(precision)
        self._set_up(threads)
        a, b, out, peers = s.random(count, m, k), s.random(count, k, n), s.empty(count, m, n), s.empty(count, m, n)
        self.ours = lambda: fl.matmul(a, b, out, precision=precision, device="cpu")
        self.theirs = lambda: np.matmul(a, b, out=peers)


class Addend(_BesideNumpy):
    """`sgemm` with C, in place: alpha = 1, beta = 1."""

    params = (["64x64x64", "512x512x512", "1024x1024x1024"], ["accurate"], [1, 2])
    param_names = ("shape", "precision", "threads")
    quick = {"track_seconds": [("512x512x512", "accurate", 1)]}

    def setup(self, shape, precision, threads):
        m, n, k = s.sizes(shape)
        s.demand_precision(precision)
        self._set_up(threads)
        a, b, c, peers = s.random(m, k), s.random(k, n), s.empty(m, n), s.empty(m, n)
        product = np.empty((m, n), np.float32)
        self.ours = lambda: fl.sgemm(a, b, c, beta=0.5, out=c, precision=precision, device="cpu")

        def theirs():
            np.matmul(a, b, out=product)
            np.multiply(peers, 0.5, out=peers)
            np.add(peers, product, out=peers)

        self.theirs = theirs


class Syrk(_BesideNumpy):
    """A times its own transpose, the full matrix, by the general call and by its own."""

    params = (["256x256", "1024x1024", "2048x512"], ["matmul", "ssyrk"], ["accurate", "strict", "reproducible"], [1, 2])
    param_names = ("shape", "call", "precision", "threads")
    quick = {
        "track_seconds": [("1024x1024", "matmul", "accurate", 1), ("1024x1024", "ssyrk", "accurate", 1)],
        "track_ratio_to_numpy": [("1024x1024", "matmul", "accurate", 1), ("1024x1024", "ssyrk", "accurate", 1)],
    }

    def setup(self, shape, call, precision, threads):
        if call == "ssyrk":
            s.demand_name(call)
        m, k = s.sizes(shape)
        s.demand_precision(precision)
        self._set_up(threads)
        a, out, peers = s.random(m, k), s.empty(m, m), s.empty(m, m)
        self.ours = {
            "matmul": lambda: fl.matmul(a, a.T, out, precision=precision, device="cpu"),
            "ssyrk": lambda: fl.ssyrk(a, out=out, precision=precision, device="cpu"),
        }[call]
        self.theirs = lambda: np.matmul(a, a.T, out=peers)


class Vectors(_BesideNumpy):
    """A times x, and its transpose times x."""

    params = (shapes.VECTORS, ["A x", "A^T x"], [1, 2])
    param_names = ("shape", "product", "threads")
    quick = {
        "track_seconds": [
            (shape, product, 1)
            for shape in ("100x100", "1024x1024", "16384x16", "16384x128")
            for product in ("A x", "A^T x")
        ],
        "track_ratio_to_numpy": [
            (shape, product, 1) for shape in ("1024x1024", "16384x16") for product in ("A x", "A^T x")
        ],
    }  # fmt: skip

    def setup(self, shape, product, threads):
        m, n = s.sizes(shape)
        self._demand_size(0, m * n)
        self._set_up(threads)
        trans = product == "A^T x"
        a = s.random(m, n)
        x, out, peers = s.random(m if trans else n), *(s.empty(n if trans else m) for _ in range(2))
        turned = a.T if trans else a
        self.ours = lambda: fl.sgemv(a, x, trans=trans, out=out, device="cpu")
        self.theirs = lambda: np.matmul(turned, x, out=peers)


class Transposes(_Cpu):
    """A transposed copy. What bounds it is a copy of the same bytes."""

    params = (shapes.TRANSPOSES, [1, 2])
    param_names = ("shape", "threads")
    quick = {
        "track_seconds": [
            (shape, 1) for shape in ("100x100", "1024x1024", "2048x512", "4096x4096", "1000000x16", "777x3")
        ],
        "track_ratio_to_copy": [(shape, 1) for shape in ("1024x1024", "2048x512", "4096x4096", "1000000x16")],
    }  # fmt: skip

    def setup(self, shape, threads):
        m, n = s.sizes(shape)
        self._demand_size(0, 2 * m * n)
        self._set_up(threads)
        a, out, copy = s.random(m, n), s.empty(n, m), s.empty(m, n)
        self.ours = lambda: fl.transpose(a, out, device="cpu")
        self.theirs = lambda: np.copyto(copy, a)

    @s.unit("ratio")
    def track_ratio_to_copy(self, *_):
        return self._ratio()
