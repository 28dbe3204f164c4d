"""The public functions as users call them: dispatch, argument checks and threads included."""

import numpy as np

import fastlinalg as fl


def random(*shape):
    return np.random.default_rng(0).standard_normal(shape, dtype=np.float32)


class Matmul:
    """Square products; the smallest one is the cost of a call."""

    params = ([2, 16, 64, 256, 1024],)
    param_names = ("n",)

    def setup(self, n):
        self.a, self.b, self.out = random(n, n), random(n, n), np.empty((n, n), np.float32)

    def time_matmul(self, n):
        fl.matmul(self.a, self.b, device="cpu")

    def time_out(self, n):
        fl.matmul(self.a, self.b, self.out, device="cpu")

    def time_transposed(self, n):
        fl.matmul(self.a.T, self.b.T, device="cpu")


class Batches:
    def setup(self):
        self.a, self.b = random(1000, 8, 8), random(1000, 8, 8)

    def time_thousand_8x8(self):
        fl.matmul(self.a, self.b, device="cpu")


class Vectors:
    params = ([100, 4000], [False, True])
    param_names = ("n", "trans")

    def setup(self, n, trans):
        self.a, self.x = random(n, n), random(n)

    def time_sgemv(self, n, trans):
        fl.sgemv(self.a, self.x, trans=trans, device="cpu")


class Transposes:
    params = ([100, 4000],)
    param_names = ("n",)

    def setup(self, n):
        self.a = random(n, n)

    def time_transpose(self, n):
        fl.transpose(self.a, device="cpu")


def timeraw_import():
    """NumPy's own import is not counted: it comes first."""
    return "import fastlinalg", "import numpy"
