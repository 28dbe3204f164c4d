"""What the memory of this host and its links to the GPUs allow any call on host arrays.

    python benchmarks/host_limits.py [--threads 8,14,16,28,32] [--seconds 0.5]

GB/s, each byte of a copy counted once. Copies between ordinary arrays by threads, which read and write the host's
memory; and copies of 512 MiB of pinned memory by the copy engines of one GPU and of all (CuPy), to the devices, and
both ways at once, where the figure is that of one way.
"""

from __future__ import annotations

import argparse
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

PART = 64 << 20  # bytes that a thread copies from one place to another, larger than caches
PINNED = 512 << 20  # bytes


def by_threads(threads: int, seconds: float) -> float:
    pairs = [(np.ones(PART, np.uint8), np.ones(PART, np.uint8)) for _ in range(threads)]
    begin = time.perf_counter()

    def copy(pair: tuple[np.ndarray, np.ndarray]) -> int:
        done = 0
        while time.perf_counter() < begin + seconds:
            np.copyto(pair[1], pair[0])
            done += PART
        return done

    with ThreadPoolExecutor(threads) as pool:
        copied = sum(pool.map(copy, pairs))
    return copied / (time.perf_counter() - begin)


class Link:
    """Pinned memory beside a device, a buffer on it for each way, and a stream for each."""

    def __init__(self, device: int):
        import cupy

        self.device = cupy.cuda.Device(device)
        with self.device:
            self.streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(2)]
            self.buffers = [cupy.empty(PINNED, cupy.uint8) for _ in range(2)]
            self.hosts = [np.frombuffer(cupy.cuda.alloc_pinned_memory(PINNED), np.uint8, PINNED) for _ in range(2)]
        for host in self.hosts:
            host.fill(1)

    def queue(self, ways: int) -> None:
        with self.device:
            self.buffers[0].set(self.hosts[0], self.streams[0])
            if ways == 2:
                self.buffers[1].get(self.streams[1], out=self.hosts[1], blocking=False)

    def wait(self) -> None:
        for stream in self.streams:
            stream.synchronize()


def by_engines(links: list[Link], ways: int, seconds: float) -> float:
    begin, copied = time.perf_counter(), 0
    while time.perf_counter() < begin + seconds:
        for link in links:
            link.queue(ways)
        for link in links:
            link.wait()
        copied += PINNED * len(links)
    return copied / (time.perf_counter() - begin)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", default="8,14,16,28,32")
    parser.add_argument("--seconds", type=float, default=0.5, help="for each figure")
    args = parser.parse_args()
    for threads in map(int, args.threads.split(",")):
        print(f"copies by {threads} threads: {1e-9 * by_threads(threads, args.seconds):.1f} GB/s", flush=True)
    try:
        import cupy

        devices = cupy.cuda.runtime.getDeviceCount()
    except Exception as error:
        print(f"links not measured: {error}")
        return 0
    links = [Link(device) for device in range(devices)]
    for name, some in {"one GPU": links[:1], "all GPUs": links}.items():
        one_way, each_way = (1e-9 * by_engines(some, ways, args.seconds) for ways in (1, 2))
        print(f"pinned, {name}: in {one_way:.1f} GB/s; both ways at once {each_way:.1f} GB/s each way", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
