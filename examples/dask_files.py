"""A product of matrices on disk that is larger than memory, on this machine or on the workers of a Dask cluster.

Makes A and B (random, n x n) in a folder, multiplies them by `fastlinalg.dask` into a third array there, and checks
rows of it against float64. Tasks read their parts of A and B, compute, and write their part of C; nothing else is held.
The arrays are of Zarr, or files of NumPy (.npy) that are mapped to memory, where Zarr is missing or by --files npy.

It needs the extra `dask` (pip install '.[dask]').

Run: python examples/dask_files.py [-n 8192] [--memory "2 GiB"] [--workers 2] [--device cpu] [--to FOLDER]
Cluster: python examples/dask_files.py --scheduler tcp://host:8786 --to /shared/folder   (which all workers see)
"""

from __future__ import annotations

import argparse
import contextlib
import resource
import sys
import tempfile
import time
from pathlib import Path

import dask.array as da
import numpy as np
from dask.utils import format_bytes, parse_bytes
from distributed import Client, LocalCluster, progress

import fastlinalg.dask as fld

try:
    import zarr
except ImportError:
    zarr = None

UNIT = 2.0**-24
ROWS_CHECKED = 6
OTHERS = 512 * 2**20  # bytes of the memory for this process, in which the scheduler runs
LEAST = 256 * 2**20  # of a worker, of which Python and Dask take a third
PIECES = 5  # files along each side of a chunk, so that reading one needs little more than the chunk


class NpyFile:
    """A .npy file that every process maps by itself; a mapped array would be sent with all it contains."""

    def __init__(self, path: Path, n: int):
        self.path, self.shape, self.dtype = path, (n, n), np.dtype(np.float32)
        np.lib.format.open_memmap(path, "w+", self.dtype, self.shape)

    def __getitem__(self, index):
        return np.load(self.path, mmap_mode="r")[index]

    def __setitem__(self, index, values):
        np.load(self.path, mmap_mode="r+")[index] = values


def new_array(kind: str, path: Path, n: int, piece: int):
    if kind == "npy":
        return NpyFile(path.with_suffix(".npy"), n)
    return zarr.open_array(str(path.with_suffix(".zarr")), mode="w", shape=(n, n), chunks=(piece, piece), dtype="f4")


def random_matrix(n: int, side: int, seed: int) -> da.Array:
    def block(block_info=None):
        place = block_info[None]
        rng = np.random.default_rng((seed, *place["chunk-location"]))
        return rng.standard_normal(place["chunk-shape"], dtype=np.float32)

    cuts = tuple(min(side, n - begin) for begin in range(0, n, side))
    return da.map_blocks(block, chunks=(cuts, cuts), dtype=np.float32, meta=np.empty((0, 0), np.float32))


def run(client: Client, what: str, stored) -> float:
    begin = time.perf_counter()
    future = client.compute(stored)
    if sys.stdout.isatty():
        progress(future)
    future.result()
    seconds = time.perf_counter() - begin
    print(f"{what}: {seconds:.1f} s", flush=True)
    return seconds


def peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def wrong_rows(a, b, c, n: int, panel: int = 512) -> int:
    """Of some rows, those outside of the error that any order of a float32 sum keeps to."""
    rows = sorted(np.random.default_rng(1).choice(n, min(n, ROWS_CHECKED), replace=False).tolist())
    left = np.stack([np.asarray(a[i : i + 1, :])[0] for i in rows]).astype(np.float64)
    want, size = np.zeros((2, len(rows), n))
    for begin in range(0, n, panel):
        right = np.asarray(b[begin : begin + panel, :]).astype(np.float64)
        want += left[:, begin : begin + panel] @ right
        size += np.abs(left[:, begin : begin + panel]) @ np.abs(right)
    got = np.stack([np.asarray(c[i : i + 1, :])[0] for i in rows])
    bound = n * UNIT / (1 - n * UNIT) * size
    error = np.abs(got - want)
    print(f"rows {rows} against float64: largest error {(error / bound).max():.1e} of its bound")
    return int((~(error <= bound)).any(axis=1).sum())


def multiply(client: Client, args: argparse.Namespace, folder: Path):
    """Make A and B, and C from them; the sizes of chunks are what the workers' memory allows."""
    n = args.n
    side = fld.suggest_chunks(n, n, n).a[0]  # for the workers of the current client
    piece = -(-side // PIECES)
    side = piece * PIECES  # tasks write whole files
    sizes = fld.Chunks((side, side), (side, side), (side, side))
    a, b, c = (new_array(args.files, folder / name, n, piece) for name in "abc")
    print(f"{n} x {n} float32, {format_bytes(4 * n * n)} each, in chunks of {side} x {side}; {args.files} in {folder}")
    for seed, array in enumerate((a, b)):
        run(client, "a random matrix", da.store(random_matrix(n, side, seed), array, lock=False, compute=False))
    product = fld.matmul(a, b, device=args.device, chunks=sizes)
    seconds = run(client, "the product", da.store(product, c, lock=False, compute=False))
    peaks = list(client.run(peak_bytes).values())
    print(
        f"{2e-9 * n**3 / seconds:.0f} GFLOP/s, reading and writing included; peak of memory: workers "
        f"{', '.join(map(format_bytes, peaks))}, this process {format_bytes(peak_bytes())}"
    )
    return a, b, c


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", type=int, default=8192)
    parser.add_argument("--memory", default="2 GiB", help="of this process and its workers together")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--scheduler", help="address of a running one; its workers have their own memory limits")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--files", choices=("zarr", "npy"), default="zarr" if zarr else "npy")
    parser.add_argument("--to", type=Path, help="a new folder by default, which is removed at the end")
    args = parser.parse_args()
    limit = (parse_bytes(args.memory) - OTHERS) // max(args.workers, 1)
    if args.n < 1 or args.workers < 1:
        parser.error("-n and --workers must be at least 1")
    if not args.scheduler and limit < LEAST:
        least = format_bytes(OTHERS + args.workers * LEAST)
        parser.error(f"--memory must be at least {least} for {args.workers} workers, got {args.memory}")

    with contextlib.ExitStack() as stack:
        folder = args.to or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        with contextlib.ExitStack() as cluster:
            address = args.scheduler
            if not address:
                options = {"memory_limit": limit, "threads_per_worker": 1, "dashboard_address": None}
                address = cluster.enter_context(LocalCluster(args.workers, **options))
            arrays = multiply(cluster.enter_context(Client(address)), args, folder.resolve())
        return 1 if wrong_rows(*arrays, args.n) else 0


if __name__ == "__main__":
    sys.exit(main())
