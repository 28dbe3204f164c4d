"""A product on all GPUs of this machine by Dask, one worker each, beside device="cuda:all" and one GPU, in one run.

    python benchmarks/dask_gpus.py [--sizes 16384,32768] [--ways mapped] [--rounds 3] [--workers N] [--side CHUNK]
    python benchmarks/dask_gpus.py --device cuda:all                           (one worker, whose tasks take all GPUs)
    python benchmarks/dask_gpus.py --device cpu --workers 2 --sizes 1000       (the same program on the CPU)

Seconds, the least of the rounds after one that is not counted. The calls without Dask write into one array; "each" are
threads of this process, one for each GPU, which multiply some rows of A by B, as the workers do. By Dask in two ways,
neither of which counts the making of operands, and whose result stays where it is computed:

- "chunks": operands are chunks in the workers' memory, made there, half of the rows of each on each of two workers. A
  worker needs all of B, so Dask sends it what the others have: serialised, by TCP, and stored once more.
- "mapped": operands are .npy files in shared memory (--folder), which tasks map by name, some rows of the result each.
  Nothing goes between workers.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import dask.array as da
import numpy as np
from distributed import Client, wait

import fastlinalg as fl
import fastlinalg.dask as fld
from fastlinalg.bench.operands import fill_normal

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))
from dask_gpus import default_workers, gpu_cluster, random_matrix

CHECKED = slice(0, 4)  # rows of the result


def least(call: Callable[[], object], rounds: int) -> float:
    found = []
    for _ in range(rounds + 1):
        begin = time.perf_counter()
        call()
        found.append(time.perf_counter() - begin)
    return min(found[1:])


def shared(folder: Path, n: int) -> list[np.memmap]:
    """Two matrices of normal numbers in files."""
    found = []
    for seed in (1, 2):
        x = np.lib.format.open_memmap(folder / f"{seed}.npy", mode="w+", dtype=np.float32, shape=(n, n))
        fill_normal(x.reshape(-1), seed)
        x.flush()
        found.append(np.lib.format.open_memmap(folder / f"{seed}.npy", mode="r"))
    return found


def check(got: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
    want = a.astype(np.float64) @ b
    error = np.linalg.norm(got - want) / np.linalg.norm(want)
    assert error < 1e-5, f"relative error of rows {error:.1e}"


def by_dask(client: Client, make: Callable[[float], da.Array], rounds: int) -> float:
    """Dask computes nothing twice that it still has, so each time has another alpha, and gives back the last result."""
    count = iter(range(10**6))

    def once() -> None:
        wait(client.persist(make(1.0 + 2.0**-20 * next(count))))

    return least(once, rounds)


def plain_calls(args: argparse.Namespace, a: np.ndarray, b: np.ndarray, out: np.ndarray) -> dict[str, Callable]:
    """Without Dask."""
    if args.device == "cpu":
        return {"one": lambda: fl.matmul(a, b, out, device="cpu")}
    gpus = len(fl.devices())
    rows, results = np.array_split(a, gpus), np.array_split(out, gpus)

    def each() -> None:
        with ThreadPoolExecutor(gpus) as pool:
            list(pool.map(lambda i: fl.matmul(rows[i], b, results[i], device=f"cuda:{i}"), range(gpus)))

    return {
        "one": lambda: fl.matmul(a, b, out, device="cuda"),
        "all": lambda: fl.matmul(a, b, out, device="cuda:all"),
        "each": each,
    }


def mapped(client: Client, side: int, a: np.ndarray, b: np.ndarray, device: str) -> Callable[[float], da.Array]:
    n = len(a)
    cuts = fld.Chunks(a=(side, n), b=(n, n), c=(side, n))
    check(client.compute(fld.matmul(a, b, chunks=cuts, device=device)[CHECKED]).result(), a[CHECKED], b)
    return lambda alpha: fld.matmul(a, b, chunks=cuts, alpha=alpha, device=device)


def chunks(client: Client, side: int, a: np.ndarray, b: np.ndarray, device: str) -> Callable[[float], da.Array]:
    x, y = client.persist([random_matrix(len(a), side, seed) for seed in (1, 2)])
    wait([x, y])
    first = fld.matmul(x, y, device=device)[CHECKED]
    check(*client.gather(client.compute([first, x[CHECKED], y])))
    return lambda alpha: fld.matmul(x, y, alpha=alpha, device=device)


WAYS = {"mapped": mapped, "chunks": chunks}


def measure(client: Client, n: int, side: int, folder: Path, args: argparse.Namespace) -> None:
    a, b = shared(folder, n)
    out = np.empty((n, n), np.float32)
    times = {}
    for name, call in plain_calls(args, a, b, out).items():
        out[CHECKED] = np.nan
        times[name] = least(call, args.rounds)
        check(out[CHECKED], a[CHECKED], b)
    for name in args.ways:
        times[name] = by_dask(client, WAYS[name](client, side, a, b, args.device), args.rounds)
    best = times.get("all", times["one"])
    print(f"{n}, chunks of {side}")
    for name, seconds in times.items():
        rate = 2e-12 * n**3 / seconds
        print(f"  {name:7} {seconds:8.4f} s, {rate:7.2f} TFLOP/s, {seconds / best:5.2f} times", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="16384,32768")
    parser.add_argument("--ways", type=lambda text: text.split(","), default=list(WAYS), help="by default both")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--workers", type=int, help="by default the number of GPUs, and 1 with --device cuda:all")
    parser.add_argument("--side", type=int, help="of chunks; by default n over the number of workers")
    parser.add_argument("--folder", type=Path, default=Path("/dev/shm"), help="for the files, which are removed")
    args = parser.parse_args()
    workers = args.workers or default_workers(args.device)
    if not workers:
        print("no CUDA device here; --device cpu --workers 2 runs the program on the CPU")
        return 0
    with (
        gpu_cluster(workers, args.device) as cluster,
        Client(cluster) as client,
        tempfile.TemporaryDirectory(dir=args.folder) as folder,
    ):
        client.wait_for_workers(workers)
        for n in map(int, args.sizes.split(",")):
            measure(client, n, args.side or -(-n // workers), Path(folder), args)
    return 0


if __name__ == "__main__":
    sys.exit(main())
