"""A product of Dask arrays on all GPUs of this machine: one worker each, or one that has them all.

Chunks ask for the resource GPU. Workers are started by dask-cuda where it is installed, which also binds them to the
cores near their GPU; else as Dask's own, each of which sees one GPU. Rows of the result are checked against float64.

It needs the extra `dask` (pip install '.[dask]').

Run: python examples/dask_gpus.py [-n 16384] [--workers N]
One worker, whose tasks take all GPUs together: python examples/dask_gpus.py --device cuda:all
Without a GPU: python examples/dask_gpus.py -n 2000 --device cpu --workers 2   (the same program on the CPU)
"""

from __future__ import annotations

import argparse
import os
import sys
import time

import dask
import dask.array as da
import numpy as np
from distributed import Client, Nanny, Scheduler, SpecCluster, wait
from distributed.system import MEMORY_LIMIT

import fastlinalg as fl
import fastlinalg.dask as fld

ROWS_CHECKED = 4


def default_workers(device: str) -> int:
    """One for each GPU, or one for all; none where there is no GPU."""
    gpus = len(fl.devices())
    return min(gpus, 1) if device == "cuda:all" else gpus


def gpu_cluster(workers: int, device: str):
    """One worker for each GPU, or for all of them, that has it as its resource and does one task at a time.

    Its threads copy between chunks and the GPU, so each worker has its share of the cores; Dask would allow it one.
    """
    threads = max(1, fl.get_num_threads() // workers)
    with dask.config.set({"distributed.nanny.pre-spawn-environ.FASTLINALG_NUM_THREADS": threads}):
        return started(workers, device)


def started(workers: int, device: str):
    if device == "cuda":
        try:
            from dask_cuda import LocalCUDACluster
        except ImportError:
            pass
        else:
            return LocalCUDACluster(n_workers=workers, threads_per_worker=1, resources={"GPU": 1})
    here = {"host": "127.0.0.1"}
    one_each = {"nthreads": 1, "resources": {"GPU": 1}, "silence_logs": "WARNING", **here}
    one_each["memory_limit"] = MEMORY_LIMIT // workers  # by default that of one core, as a worker has one thread
    specs = {
        number: {"cls": Nanny, "options": {**one_each, "env": own_gpu(number) if device == "cuda" else {}}}
        for number in range(workers)
    }
    scheduler = {"cls": Scheduler, "options": {**here, "dashboard": False}}
    return SpecCluster(workers=specs, scheduler=scheduler, silence_logs="WARNING")


def own_gpu(number: int) -> dict[str, str]:
    visible = [name for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name]
    return {"CUDA_VISIBLE_DEVICES": visible[number] if visible else str(number)}


def random_matrix(n: int, side: int, seed: int) -> da.Array:
    def block(block_info=None):
        place = block_info[None]
        rng = np.random.default_rng((seed, *place["chunk-location"]))
        return rng.standard_normal(place["chunk-shape"], dtype=np.float32)

    cuts = tuple(min(side, n - begin) for begin in range(0, n, side))
    return da.map_blocks(block, chunks=(cuts, cuts), dtype=np.float32, meta=np.empty((0, 0), np.float32))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", type=int, default=16384)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--workers", type=int, help="by default the number of GPUs, and 1 with --device cuda:all")
    args = parser.parse_args()
    workers = args.workers or default_workers(args.device)
    if not workers or (args.device != "cpu" and not fl.cuda.is_available()):
        print("no CUDA device here; --device cpu --workers 2 runs the program on the CPU")
        return 0

    with gpu_cluster(workers, args.device) as cluster, Client(cluster) as client:
        client.wait_for_workers(workers)
        side = fld.suggest_chunks(args.n, args.n, args.n).c[0]
        with dask.annotate(resources={"GPU": 1}):
            a, b = client.persist([random_matrix(args.n, side, seed) for seed in (1, 2)])
            wait([a, b])
            begin = time.perf_counter()
            c = client.persist(fld.matmul(a, b, device=args.device))
            wait(c)
        seconds = time.perf_counter() - begin
        print(f"{workers} workers, chunks of {side}: {seconds:.2f} s, {2e-9 * args.n**3 / seconds:.0f} GFLOP/s")
        rows = slice(0, min(ROWS_CHECKED, args.n))
        got, left, right = client.gather(client.compute([c[rows], a[rows], b]))
        want = left.astype(np.float64) @ right
        error = np.linalg.norm(got - want) / np.linalg.norm(want)
        print(f"error of rows against float64: {error:.1e}")
        return 0 if error < 1e-5 else 1


if __name__ == "__main__":
    sys.exit(main())
