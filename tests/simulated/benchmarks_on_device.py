"""Every GPU benchmark over commits once, small: a program that test_benchmarks.py runs on the simulated device."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "asv_bench"))
from benchmarks import device, timing
from turns import cases
from turns.child import measure

device.PLAN = timing.PLAN = timing.shared.Plan(repeats=1, budget_us=10)
timing.shared.BLOCK_US, timing.shared.MAX_LAUNCHES = 10, 1
SMALL = {
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
answers["wide"] = measure("wide.Random.track_seconds", ["40x30x20:TN", "strict"])
print(json.dumps(answers))
