"""Hardware counters of the GPU kernels, read with Nsight Compute, as one CSV row per kernel.

python benchmarks/counters.py sgemm 2048x2048x1024 --csv counters.csv
python benchmarks/counters.py transpose 2048x512 --csv counters.csv

Runs itself under ``ncu`` (which must be on the PATH), one launch of every available kernel, with the clocks left alone.
"""

from __future__ import annotations

import argparse
import csv
import io
import subprocess
import sys

import numpy as np

import fastlinalg as fl
from fastlinalg import _core

METRICS = {
    "time_ns": "gpu__time_duration.sum",
    "registers": "launch__registers_per_thread",
    "occupancy_pct": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "issue_active_pct": "smsp__issue_active.avg.pct_of_peak_sustained_active",
    "instructions": "smsp__inst_executed.sum",
    "fma_instructions": "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
    "shared_load_wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "shared_load_conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    "shared_store_wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    "shared_store_conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
    "load_sector_use_pct": "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct",
    "store_sector_use_pct": "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.pct",
    "dram_read_bytes": "dram__bytes_read.sum",
    "dram_write_bytes": "dram__bytes_write.sum",
    "stall_barrier_pct": "smsp__average_warps_issue_stalled_barrier_per_issue_active.pct",
    "stall_short_scoreboard_pct": "smsp__average_warps_issue_stalled_short_scoreboard_per_issue_active.pct",
    "stall_long_scoreboard_pct": "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.pct",
    "stall_mio_throttle_pct": "smsp__average_warps_issue_stalled_mio_throttle_per_issue_active.pct",
}


def launch_all(op: str, shape: list[int], kernels: list[str]) -> None:
    """One launch of each kernel on random operands, in table order."""
    rng = np.random.default_rng(0)

    def buffer(count: int) -> _core.DeviceBuffer:
        memory = _core.DeviceBuffer(4 * count)
        memory.upload(rng.standard_normal(count, dtype=np.float32))
        return memory

    m, n, *rest = shape
    if op == "sgemm":
        (k,) = rest
        a, b, c = buffer(m * k), buffer(k * n), buffer(m * n)
        for name in kernels:
            _core.device_sgemm(name, m, n, k, 1.0, a.ptr, k, 1, b.ptr, n, 1, 0.0, c.ptr, n)
    elif op == "sgemv":
        a, x, y = buffer(m * n), buffer(max(m, n)), buffer(max(m, n))
        for name in kernels:
            _core.device_sgemv(name, m, n, 1.0, a.ptr, n, 1, x.ptr, 1, 0.0, y.ptr, 1)
    else:
        a, b = buffer(m * n), buffer(m * n)
        for name in kernels:
            _core.device_transpose(name, m, n, a.ptr, n, b.ptr, m)
    c = np.empty(1, dtype=np.float32)
    a.download(c)  # waits


def read(op: str, shape: str, kernels: list[str]) -> list[dict[str, str]]:
    """Run this file under ncu and return one dict per launch."""
    command = ["ncu", "--clock-control", "none", "--csv", "--page", "raw", "--metrics", ",".join(METRICS.values())]
    command += [sys.executable, __file__, op, shape, "--launch", *kernels]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    lines = [line for line in text.splitlines() if line.startswith('"')]
    launches = list(csv.DictReader(io.StringIO("\n".join(lines))))[1:]  # the first row has the units
    own = [row for row in launches if f"{op}_" in row["Kernel Name"] or "gemv" in row["Kernel Name"]]
    return [{short: row.get(metric, "").replace(",", "") for short, metric in METRICS.items()} for row in own]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("op", choices=("sgemm", "sgemv", "transpose"))
    parser.add_argument("shape", help="MxNxK or MxN")
    parser.add_argument("--csv", help="write the table here too")
    parser.add_argument("--launch", nargs="*", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.launch is not None:
        launch_all(args.op, [int(x) for x in args.shape.split("x")], args.launch)
        return 0

    kernels = [k.name for k in fl.kernels(args.op) if k.device == "cuda" and k.available]
    rows = read(args.op, args.shape, kernels)
    if len(rows) != len(kernels):
        print(f"{len(kernels)} kernels were launched, ncu saw {len(rows)} of ours", file=sys.stderr)
        return 1
    with open(args.csv or "/dev/null", "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["op", "shape", "kernel", *METRICS])
        table.writerows([args.op, args.shape, name, *row.values()] for name, row in zip(kernels, rows, strict=True))
    for name, row in zip(kernels, rows, strict=True):
        print(f"{name:<22}" + "  ".join(f"{key}={value}" for key, value in row.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
