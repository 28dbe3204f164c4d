"""What a call on device arrays costs on the host: products with ``out=``, alone, through a plan, and those of peers.

python benchmarks/call_cost.py
python benchmarks/call_cost.py 32 128 --csv calls.csv

Microseconds until a call returns. The contenders take turns; each turn is a block of calls behind a wait for the
device, short enough that its queue never fills. The median and the best of the blocks.
"""

from __future__ import annotations

import argparse
import csv
import importlib
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import fastlinalg as fl
from fastlinalg.bench import machine

BLOCK, ROUNDS, WARM = 200, 60, 100
Call = Callable[[], object]


def contenders(n: int) -> Iterator[tuple[str, str, Call]]:
    """The library of the operands, the name, and one call."""
    rng = np.random.default_rng(0)
    a, b, out = (rng.standard_normal((n, n), dtype=np.float32) for _ in range(3))
    put: dict[str, Callable[[Any], Any]] = {"fastlinalg": fl.DeviceArray.from_numpy}
    for name in ("torch", "cupy", "numba.cuda"):
        try:
            library = importlib.import_module(name)
        except ImportError:
            continue
        put[name] = {
            "torch": lambda x, torch=library: torch.from_numpy(x).cuda(),
            "cupy": lambda x, cupy=library: cupy.asarray(x),
            "numba.cuda": lambda x, numba=library: numba.to_device(x),
        }[name]
        if name == "torch":
            x, y, z = map(put[name], (a, b, out))
            yield name, "torch.mm", lambda x=x, y=y, z=z, torch=library: torch.mm(x, y, out=z)
            yield name, "torch.mm in a CUDA graph", torch_graph(library, x, y, z)
        if name == "cupy":
            x, y, z = map(put[name], (a, b, out))
            yield name, "cupy.matmul", lambda x=x, y=y, z=z, cupy=library: cupy.matmul(x, y, out=z)
    for name, copy in put.items():
        x, y, z = map(copy, (a, b, out))
        yield name, "fl.matmul", lambda x=x, y=y, z=z: fl.matmul(x, y, z)
        yield name, "fl.Matmul.execute", fl.Matmul(x, y, out=z).execute
        yield name, "fl.Matmul.execute, new result", fl.Matmul(x, y).execute


def torch_graph(torch: Any, x: Any, y: Any, z: Any) -> Call:
    torch.mm(x, y, out=z)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        torch.mm(x, y, out=z)
    replay: Call = graph.replay
    return replay


def block(call: Call, wait: Call) -> float:
    wait()
    begin = time.perf_counter()
    for _ in range(BLOCK):
        call()
    return (time.perf_counter() - begin) * 1e6 / BLOCK


def device_wait() -> Call:
    """Waits for all that is queued on the device, by whichever library can."""
    for name, function in (("torch", "cuda.synchronize"), ("cupy", "cuda.runtime.deviceSynchronize")):
        try:
            found: Any = importlib.import_module(name)
        except ImportError:
            continue
        for part in function.split("."):
            found = getattr(found, part)
        return found
    mark = fl.DeviceArray.from_numpy(np.zeros(1, np.float32))
    return mark.numpy


def measure(n: int) -> list[dict[str, Any]]:
    calls, wait = list(contenders(n)), device_wait()
    samples: list[list[float]] = [[] for _ in calls]
    for _, _, call in calls:
        for _ in range(WARM):
            call()
    for _ in range(ROUNDS):
        for (_, _, call), list_ in zip(calls, samples, strict=True):
            list_.append(block(call, wait))
    return [
        {"n": n, "operands": library, "call": name, "median_us": statistics.median(us), "best_us": min(us)}
        for (library, name, _), us in zip(calls, samples, strict=True)
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sizes", nargs="*", type=int, default=[32])
    parser.add_argument("--csv", help="write the table here too")
    args = parser.parse_args()
    if not fl.cuda.is_available():
        print(f"no CUDA device: {fl.info()['cuda']['message']}", file=sys.stderr)
        return 1
    rows = [row for n in args.sizes for row in measure(n)]
    about = machine.describe("cuda", 0.0, fl.get_num_threads())
    about = {key: about[key] for key in ("gpu", "driver", "cpu", "cores", "python")} | {"commit": machine.commit()}
    print(", ".join(f"{key} {value}" for key, value in about.items()))
    for row in rows:
        what = f"{row['n']:>5}  {row['operands']:<11} {row['call']:<30}"
        print(f"{what} {row['median_us']:6.2f} us, best {row['best_us']:.2f}")
    with open(args.csv or "/dev/null", "w", newline="") as file:
        table = csv.DictWriter(file, [*rows[0], *about])
        table.writeheader()
        table.writerows(row | about for row in rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
