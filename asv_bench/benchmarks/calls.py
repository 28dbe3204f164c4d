"""What a call costs beside its arithmetic, and plans."""

import contextlib

import numpy as np

import fastlinalg as fl

from . import support as s
from . import timing


class _Call(s.Limited):
    version = "1"

    def _set_up(self):
        self.limits = s.Threads(1, peer=False)
        s.clear()

    @s.unit("seconds")
    def track_seconds(self, *_):
        return timing.least(self.ours)


class Call(_Call):
    """Calls so small that nothing but the call counts; NumPy arrays, the CPU asked for unless it says "auto"."""

    params = (
        ["matmul out", "matmul fresh", "matmul auto", "sgemm out", "sgemv out", "transpose out", "ssyrk out"],
        [2, 8],
    )
    param_names = ("call", "n")
    quick = {
        "track_seconds": [
            ("matmul out", 2), ("matmul fresh", 2), ("matmul auto", 2), ("sgemm out", 2), ("sgemv out", 2),
            ("transpose out", 2),
        ],
        "track_ratio_to_numpy": [("matmul out", 2), ("matmul fresh", 2)],
    }  # fmt: skip

    def setup(self, call, n):
        if call.startswith("ssyrk"):
            s.demand_name("ssyrk")
        self._set_up()
        a, b, out, x, y = s.random(n, n), s.random(n, n), s.empty(n, n), s.random(n), s.empty(n)
        self.ours = {
            "matmul out": lambda: fl.matmul(a, b, out, device="cpu"),
            "matmul fresh": lambda: fl.matmul(a, b, device="cpu"),
            "matmul auto": lambda: fl.matmul(a, b, out),
            "sgemm out": lambda: fl.sgemm(a, b, out=out, device="cpu"),
            "sgemv out": lambda: fl.sgemv(a, x, out=y, device="cpu"),
            "transpose out": lambda: fl.transpose(a, out, device="cpu"),
            "ssyrk out": lambda: fl.ssyrk(a, out=out, device="cpu"),
        }[call]
        self.theirs = {
            "matmul out": lambda: np.matmul(a, b, out=out),
            "matmul fresh": lambda: np.matmul(a, b),
            "matmul auto": lambda: np.matmul(a, b, out=out),
            "sgemm out": lambda: np.matmul(a, b, out=out),
            "sgemv out": lambda: np.matmul(a, x, out=y),
            "transpose out": lambda: np.copyto(out, a.T),
            "ssyrk out": lambda: np.matmul(a, a.T, out=out),
        }[call]

    @s.unit("ratio")
    def track_ratio_to_numpy(self, *_):
        return timing.ratio(self.ours, self.theirs)


class Plan(_Call):
    """`fl.Matmul`: making one, and executing it."""

    params = (["execute", "make"], ["2x2x2", "64x64x64"])
    param_names = ("step", "shape")
    quick = {"track_seconds": [("execute", "2x2x2"), ("execute", "64x64x64"), ("make", "2x2x2")]}

    def setup(self, step, shape):
        s.demand_name("Matmul")
        m, n, k = s.sizes(shape)
        self._set_up()
        a, b, out = s.random(m, k), s.random(k, n), s.empty(m, n)

        def make():
            with fl.Matmul(a, b, out=out, device="cpu") as plan:
                plan.plan()

        plan = fl.Matmul(a, b, out=out, device="cpu")
        plan.plan()
        self.ours = plan.execute if step == "execute" else make


class Callers(_Call):
    """Several Python threads that call at once, each product on one thread: seconds per product of all of them."""

    params = (["32x32x32", "256x256x256"], [1, 2, 4])
    param_names = ("shape", "callers")
    quick = {"track_seconds": [("256x256x256", 2)]}

    def setup(self, shape, callers):
        m, n, k = s.sizes(shape)
        s.demand_threads(callers)
        self._set_up()
        self.callers = callers
        self.operands = [(s.random(m, k), s.random(k, n), s.empty(m, n)) for _ in range(callers)]

    @s.unit("seconds")
    def track_seconds(self, *_):
        from concurrent.futures import ThreadPoolExecutor

        def work(operands):
            for _ in range(50):
                fl.matmul(*operands, device="cpu")

        with ThreadPoolExecutor(self.callers) as pool:
            return timing.least(lambda: list(pool.map(work, self.operands)), self.callers + 1) / (50 * self.callers)


class Message(_Call):
    """A call that is refused: what an error costs."""

    def setup(self):
        self._set_up()
        operands = s.random(2, 3), s.random(2, 3)

        def refused():
            with contextlib.suppress(ValueError):
                fl.matmul(*operands, device="cpu")

        self.ours = refused
