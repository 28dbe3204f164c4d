"""Joules, watts and clock of products on a GPU: what a card at its power limit pays for each way to multiply.

python benchmarks/energy.py 8192x8192x1024 16384x16384x1024 --csv energy.csv

Every contender runs in a loop of some seconds on operands of normal data; the energy is the difference of the GPU's own
counter, which holds all of the card. Contenders whose operands are float16 are another product: they are there because
they show what the tensor cores cost. Needs PyTorch with CUDA and nvidia-ml-py.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import fastlinalg as fl
from fastlinalg.bench import machine

OURS = ("fp16x2", "bf16x6", "fp16x2_mma", "strict")
COLUMNS = ("shape", "product", "us", "tflops", "joules", "pj_per_flop", "watts", "sm_mhz", "celsius")


class Meter:
    """Energy, clock and temperature of one GPU."""

    def __init__(self) -> None:
        import pynvml as nvml

        nvml.nvmlInit()
        self._nvml, self._gpu = nvml, nvml.nvmlDeviceGetHandleByIndex(0)

    def joules(self) -> float:
        return float(self._nvml.nvmlDeviceGetTotalEnergyConsumption(self._gpu)) / 1000.0

    def sm_mhz(self) -> float:
        return float(self._nvml.nvmlDeviceGetClockInfo(self._gpu, self._nvml.NVML_CLOCK_SM))

    def celsius(self) -> float:
        return float(self._nvml.nvmlDeviceGetTemperature(self._gpu, self._nvml.NVML_TEMPERATURE_GPU))


def contenders(m: int, n: int, k: int) -> dict[str, Callable[[], object]]:
    import torch

    a, b = torch.randn(m, k, device="cuda"), torch.randn(k, n, device="cuda")
    c = torch.empty(m, n, device="cuda")
    halves = a.half(), b.half(), c.half()

    def cublas(x: Any, y: Any, out: Any, tf32: bool) -> Callable[[], object]:
        def call() -> object:
            torch.backends.cuda.matmul.allow_tf32 = tf32
            return torch.mm(x, y, out=out)

        return call

    def ours(name: str) -> Callable[[], object]:
        options: Any = {"precision": "strict"} if name == "strict" else {"kernel": name}
        return lambda: fl.sgemm(a, b, out=c, **options)

    return {name: ours(name) for name in OURS} | {
        "cuBLAS float32": cublas(a, b, c, False),
        "cuBLAS TF32": cublas(a, b, c, True),
        "cuBLAS float16": cublas(*halves, False),
    }


def measure(call: Callable[[], object], seconds: float, meter: Meter) -> dict[str, float]:
    """A loop of about so many seconds behind a third as long of warming up."""
    import torch

    def run(count: int) -> float:
        start = time.perf_counter()
        for _ in range(count):
            call()
        torch.cuda.synchronize()
        return time.perf_counter() - start

    run(3)
    each = run(10) / 10
    run(max(1, int(seconds / 3 / each)))
    count = max(1, int(seconds / each))
    clocks: list[float] = []
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.02):
            clocks.append(meter.sm_mhz())

    watcher = threading.Thread(target=watch)
    watcher.start()
    before = meter.joules()
    took = run(count)
    joules = meter.joules() - before
    done.set()
    watcher.join()
    return {
        "us": took / count * 1e6,
        "joules": joules / count,
        "watts": joules / took,
        "sm_mhz": statistics.median(clocks),
        "celsius": meter.celsius(),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shapes", nargs="+", metavar="MxNxK")
    parser.add_argument("--products", help="names, with commas between them (default: all)")
    parser.add_argument("--seconds", type=float, default=2.0, help="of each loop (default: 2)")
    parser.add_argument("--csv", metavar="FILE", help="write the table here too")
    args = parser.parse_args()

    meter = Meter()
    print(f"# {fl.devices()[0]['name']}, commit {machine.commit()}, {meter.celsius():.0f} degrees before")
    rows = []
    for shape in args.shapes:
        m, n, k = (int(size) for size in shape.split("x"))
        for name, call in contenders(m, n, k).items():
            if args.products and name not in args.products.split(","):
                continue
            found = measure(call, args.seconds, meter)
            flops = 2.0 * m * n * k
            found |= {"tflops": flops / found["us"] / 1e6, "pj_per_flop": found["joules"] / flops * 1e12}
            rows.append([shape, name, *(f"{found[key]:.4g}" for key in COLUMNS[2:])])
            print("  ".join(f"{key}={value}" for key, value in zip(COLUMNS, rows[-1], strict=True)), flush=True)
    if args.csv:
        with open(args.csv, "w", newline="") as file:
            csv.writer(file).writerows([COLUMNS, *rows])
    return 0


if __name__ == "__main__":
    sys.exit(main())
