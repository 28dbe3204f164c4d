"""Every GPU benchmark over commits once, small: a program that test_benchmarks.py runs on the simulated device."""

import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[2] / "asv_bench"))
from benchmarks import device, early, timing
from turns import cases
from turns.child import measure

from support.accuracy import assert_product


def normal(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).standard_normal(shape, dtype=np.float32)


device.REPLAYS = device.ROUNDS = device.MOST_LAUNCHES = 1
timing.BLOCK_S = timing.BUDGET_S = 1e-5
SMALL = {
    "gpu.State": "128x128x1024",  # smaller than the one it has
    "gpu.Products": "128x128x1024",
    "gpu.Cubes": "32x32x32",
    "gpu.Thin": "1000x8x1000",
    "gpu.Batches": "1000x8x8x8",
}

answers = {}
for name, _, _ in cases.methods():
    if not name.startswith(("gpu.", "kernels.Gpu", "host.")) or "FirstOnDevice" in name:
        continue
    every = [case.params for case in cases.every() if case.name == name]
    if name.startswith("kernels"):
        every = [
            params for params in every if params[0] in ("double_buffered", "warp_per_row", "naive", "strict_64x128k4")
        ]
    if name.startswith("host"):
        every = [params for params in every if params[0] == "64" and params[2] == "cuda"][:2]
    size = SMALL.get(name.rsplit(".", 1)[0])
    answers[name] = measure(name, [size, *every[0][1:]] if size else list(every[0]))
# As at commits without device arrays, by the pointers that are still there.
device.library = lambda: early
for kind, params in (
    ("Products", ["128x128x1024", "accurate"]),
    ("Batches", ["1000x8x8x8", "strict"]),
    ("Syrk", ["1024x1024", "matmul", "strict"]),
    ("Vectors", ["100x100", "A^T x"]),
    ("Transposes", ["100x100"]),
):
    answers[f"early {kind}"] = measure(f"gpu.{kind}.track_ratio_to_ladder", params)
a, b, x = normal(3, 20, 30), normal(3, 30, 40, seed=1), normal(20)
put = early.DeviceArray.from_numpy
assert_product(early.matmul(put(a), put(b)).numpy(), a, b)
assert_product(early.sgemm(put(a[0]), put(a[1]), trans_b=True).numpy(), a[0], a[1].T)
assert_product(early.sgemv(put(a[0]), put(x), trans=True).numpy()[:, None], a[0].T, x[:, None])
assert (early.transpose(put(a[0])).numpy() == a[0].T).all()
print(json.dumps(answers))
