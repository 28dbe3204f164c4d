"""Every operation on arrays in device memory, as users call it: dispatch chooses the kernel.

Peers are cuBLAS itself, and a kernel of the ladder, which is always there.
"""

import time

import fastlinalg as fl

from . import device, shapes
from . import support as s

LADDER = {"sgemm": "double_buffered", "sgemv": "warp_per_row_vec4", "transpose": "naive"}


class _Gpu:
    version = "1"
    timeout = 120

    def setup(self, *params):
        device.demand_device()
        s.clear()
        self.prepare(*params)
        self.ours(2)  # an argument that this commit refuses fails here; 2 is the per-thread stream

    @s.unit("seconds")
    def track_seconds(self, *_):
        return device.seconds(self.ours)

    @s.unit("ratio")
    def track_ratio_to_ladder(self, *_):
        return device.ratio(self.ours, self.ladder)


class _BesideCublas(_Gpu):
    @s.unit("ratio")
    def track_ratio_to_cublas(self, *_):
        return device.ratio(self.ours, self.theirs())


class _Product(_BesideCublas):
    param_names = ("shape", "precision")

    def prepare(self, shape, precision):
        *count, m, n, k = s.sizes(shape)
        elements = (count or [1])[0] * (m * n + m * k + k * n)
        device.demand_memory(elements)
        s.demand_precision(precision)
        a, b = device.put(s.random(*count, m, k)), device.put(s.random(*count, k, n))
        out = fl.matmul(a, b, precision=precision)
        self.ours = lambda stream: fl.matmul(a, b, out, precision=precision, stream=stream)
        self.ladder = lambda stream: fl.sgemm(a, b, out=out, kernel=LADDER["sgemm"], stream=stream)
        self.theirs = lambda: device.cublas_product(a, b, out)


class Products(_Product):
    """Squares with K = 1024, the fifteen sizes."""

    params = (shapes.FIFTEEN, shapes.PRECISIONS)
    quick = {
        name: [
            (f"{n}x{n}x1024", precision) for n in (128, 512, 1024, 2048, 4096, 8192) for precision in shapes.PRECISIONS
        ]
        for name in ("track_seconds", "track_ratio_to_cublas", "track_ratio_to_ladder")
    }


class Cubes(_Product):
    params = (["32x32x32", "256x256x256", "2048x2048x2048", "8192x8192x8192"], shapes.PRECISIONS)
    quick = {"track_ratio_to_cublas": [("8192x8192x8192", "accurate")]}


class Thin(_Product):
    """One dimension short."""

    params = (shapes.THIN, shapes.PRECISIONS)
    quick = {
        "track_ratio_to_cublas": [
            (shape, precision)
            for shape in ("12x562x5524", "100000x33x17", "64x64x65536")
            for precision in ("accurate", "strict")
        ]
    }


class Batches(_Product):
    """How many products, then the shape of each."""

    params = (shapes.BATCHES, shapes.PRECISIONS)
    param_names = ("batch", "precision")
    quick = {"track_ratio_to_cublas": [("64x128x128x128", "accurate"), ("64x128x128x128", "strict")]}


class Syrk(_BesideCublas):
    """A times its own transpose, the full matrix; cuBLAS computes the general product."""

    params = (["1024x1024", "4096x1024", "8192x8192"], ["matmul", "ssyrk"], shapes.PRECISIONS)
    param_names = ("shape", "call", "precision")
    quick = {
        "track_ratio_to_cublas": [
            ("4096x1024", call, precision) for call in ("matmul", "ssyrk") for precision in ("accurate", "strict")
        ]
    }

    def prepare(self, shape, call, precision):
        if call == "ssyrk":
            s.demand_name(call)
        m, k = s.sizes(shape)
        device.demand_memory(m * m + m * k)
        s.demand_precision(precision)
        a = device.put(s.random(m, k))
        out = fl.sgemm(a, a, trans_b=True)
        options = {"trans_b": True, "out": out}
        self.ours = {
            "matmul": lambda stream: fl.sgemm(a, a, precision=precision, stream=stream, **options),
            "ssyrk": lambda stream: fl.ssyrk(a, out=out, precision=precision, stream=stream),
        }[call]
        self.ladder = lambda stream: fl.sgemm(a, a, kernel=LADDER["sgemm"], stream=stream, **options)
        self.theirs = lambda: device.cublas_product(a, a, out, trans_b=True)


class Vectors(_BesideCublas):
    params = (shapes.VECTORS, ["A x", "A^T x"])
    param_names = ("shape", "product")
    quick = {
        "track_ratio_to_cublas": [
            (shape, product)
            for shape in ("1024x1024", "16384x16", "16384x128", "128x262144")
            for product in ("A x", "A^T x")
        ]
    }

    def prepare(self, shape, product):
        m, n = s.sizes(shape)
        device.demand_memory(m * n)
        trans = product == "A^T x"
        a, x = device.put(s.random(m, n)), device.put(s.random(m if trans else n))
        out = fl.sgemv(a, x, trans=trans)
        self.ours = lambda stream: fl.sgemv(a, x, trans=trans, out=out, stream=stream)
        self.ladder = lambda stream: fl.sgemv(a, x, trans=trans, out=out, kernel=LADDER["sgemv"], stream=stream)
        self.theirs = lambda: device.cublas_times_vector(a, x, out, trans)


class Transposes(_Gpu):
    """What bounds a transposed copy is a copy of the same bytes."""

    params = (shapes.TRANSPOSES,)
    param_names = ("shape",)
    quick = {"track_ratio_to_copy": [("2048x512",), ("4096x4096",), ("1000000x16",), ("777x3",)]}

    def prepare(self, shape):
        m, n = s.sizes(shape)
        device.demand_memory(2 * m * n)
        a = self.a = device.put(s.random(m, n))
        out = self.out = fl.transpose(a)
        self.ours = lambda stream: fl.transpose(a, out, stream=stream)
        self.ladder = lambda stream: fl.transpose(a, out, kernel=LADDER["transpose"], stream=stream)

    @s.unit("ratio")
    def track_ratio_to_copy(self, *_):
        return device.ratio(self.ours, device.copy(self.a, self.out))


class Call(_Gpu):
    """What a product of 32x32 on device arrays costs on the host, seconds until it returns; and through a plan."""

    params = (["matmul out", "plan execute"],)
    param_names = ("call",)
    quick = {"track_host_seconds": [("matmul out",), ("plan execute",)]}

    def prepare(self, call):
        a, out = device.put(s.random(32, 32)), device.put(s.empty(32, 32))
        self.last = out
        self.ours = lambda stream: fl.matmul(a, a, out, stream=stream)
        self.ladder = lambda stream: fl.sgemm(a, a, out=out, kernel=LADDER["sgemm"], stream=stream)
        if call == "plan execute":
            s.demand_name("Matmul")
            self.call = fl.Matmul(a, a, out=out).execute
        else:
            self.call = lambda: fl.matmul(a, a, out)

    @s.unit("seconds")
    def track_host_seconds(self, *_):
        def block():
            self.last.numpy()  # an empty queue
            begin = time.perf_counter()
            for _ in range(200):
                self.call()
            return (time.perf_counter() - begin) / 200

        return min(block() for _ in range(20))
