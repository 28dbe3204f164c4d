"""Hardware counters of the GPU kernels, read with Nsight Compute, as one CSV row per launch.

python benchmarks/counters.py sgemm 2048x2048x1024 --csv counters.csv
python benchmarks/counters.py sgemm 8192x8192x1024 --kernels fp16x2,bf16x6 --csv counters.csv
python benchmarks/counters.py transpose 2048x512 --csv counters.csv

Runs itself under ``ncu`` (which must be on the PATH), one call of every available kernel, with the clocks left alone.
A row of the table may launch several CUDA kernels.
"""

from __future__ import annotations

import argparse
import csv
import io
import itertools
import re
import subprocess
import sys

import numpy as np

import fastlinalg as fl
from fastlinalg import _core

METRICS = {
    "time_ns": "gpu__time_duration.sum",
    "sm_clock_hz": "gpc__cycles_elapsed.avg.per_second",
    "registers": "launch__registers_per_thread",
    "occupancy_pct": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "issue_active_pct": "smsp__issue_active.avg.pct_of_peak_sustained_active",
    "instructions": "smsp__inst_executed.sum",
    "tensor_pipe_pct": "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
    "fma_instructions": "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
    "shared_load_wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "shared_load_conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    "shared_store_wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    "shared_store_conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
    "load_sector_use_pct": "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct",
    "store_sector_use_pct": "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.pct",
    "shared_use_pct": "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum.pct_of_peak_sustained_elapsed",
    "l2_use_pct": "lts__throughput.avg.pct_of_peak_sustained_elapsed",
    "dram_read_bytes": "dram__bytes_read.sum",
    "dram_write_bytes": "dram__bytes_write.sum",
    "stall_barrier_pct": "smsp__average_warps_issue_stalled_barrier_per_issue_active.pct",
    "stall_short_scoreboard_pct": "smsp__average_warps_issue_stalled_short_scoreboard_per_issue_active.pct",
    "stall_long_scoreboard_pct": "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.pct",
    "stall_mio_throttle_pct": "smsp__average_warps_issue_stalled_mio_throttle_per_issue_active.pct",
}


def launch_all(op: str, shape: list[int], kernels: list[str]) -> None:
    """One call of each kernel on random operands, in table order, each behind a launch that tells them apart."""
    rng = np.random.default_rng(0)

    def buffer(count: int) -> _core.DeviceBuffer:
        memory = _core.DeviceBuffer(4 * count)
        memory.upload(rng.standard_normal(count, dtype=np.float32))
        return memory

    m, n, *rest = shape
    one, other = buffer(4), buffer(4)
    a, b, c = buffer(m * (rest[0] if rest else n)), buffer((rest[0] if rest else m) * n), buffer(m * n)
    for name in kernels:
        if op == "transpose":
            _core.device_sgemv("warp_per_row", 1, 1, 1.0, one.ptr, 1, 1, one.ptr, 1, 0.0, other.ptr, 1)
            _core.device_transpose(name, m, n, a.ptr, n, b.ptr, m)
            continue
        _core.device_transpose("naive", 1, 1, one.ptr, 1, other.ptr, 1)
        if op == "sgemm":
            k = rest[0]
            _core.device_sgemm(name, m, n, k, 1.0, a.ptr, k, 1, b.ptr, n, 1, 0.0, c.ptr, n, precision="accurate")
        else:
            _core.device_sgemv(name, m, n, 1.0, a.ptr, n, 1, b.ptr, 1, 0.0, c.ptr, 1)
    one.download(np.empty(1, dtype=np.float32))  # waits


def launch_name(kernel: str) -> str:
    """``void <unnamed>::f_kernel<1>(Args)`` without all but the name."""
    found = re.search(r"\w+(?=[<(]|$)", re.sub(r"(\(anonymous namespace\)|<unnamed>)::", "", kernel))
    return found[0] if found else kernel


def read(op: str, shape: str, kernels: list[str]) -> list[list[dict[str, str]]]:
    """Run this file under ncu and return the launches of each call."""
    command = ["ncu", "--clock-control", "none", "--csv", "--page", "raw", "--metrics", ",".join(METRICS.values())]
    command += [sys.executable, __file__, op, shape, "--launch", *kernels]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"ncu ended with {done.returncode}:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    text = done.stdout
    lines = [line for line in text.splitlines() if line.startswith('"')]
    launches = list(csv.DictReader(io.StringIO("\n".join(lines))))[1:]  # the first row has the units
    mark = "warp_per_row" if op == "transpose" else "transpose_naive"
    calls = [
        list(group) for marks, group in itertools.groupby(launches, lambda x: mark in x["Kernel Name"]) if not marks
    ]
    return [
        [
            {"launch": launch_name(row["Kernel Name"])}
            | {short: row.get(metric, "").replace(",", "") for short, metric in METRICS.items()}
            for row in call
        ]
        for call in calls
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("op", choices=("sgemm", "sgemv", "transpose"))
    parser.add_argument("shape", help="MxNxK or MxN")
    parser.add_argument("--kernels", help="names, with commas between them (default: all that run here)")
    parser.add_argument("--csv", help="write the table here too")
    parser.add_argument("--launch", nargs="*", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.launch is not None:
        launch_all(args.op, [int(x) for x in args.shape.split("x")], args.launch)
        return 0

    kernels = [k.name for k in fl.kernels(args.op) if k.device == "cuda" and k.available]
    if args.kernels:
        kernels = args.kernels.split(",")
    calls = read(args.op, args.shape, kernels)
    if len(calls) != len(kernels):
        print(f"{len(kernels)} kernels were called, ncu saw {len(calls)} calls", file=sys.stderr)
        return 1
    rows = [(name, launch) for name, call in zip(kernels, calls, strict=True) for launch in call]
    with open(args.csv or "/dev/null", "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["op", "shape", "kernel", "launch", *METRICS])
        table.writerows([args.op, args.shape, name, *launch.values()] for name, launch in rows)
    for name, launch in rows:
        print(f"{name:<22}" + "  ".join(f"{key}={value}" for key, value in launch.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
