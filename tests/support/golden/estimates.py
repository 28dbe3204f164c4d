"""What kernels are expected to take.

For each kind of call how many of them the kernel takes, and the geometric mean of the microseconds: one estimate of a
hundred that changes by 1e-5 moves it visibly.
"""

from __future__ import annotations

import math
import platform

import fastlinalg as fl
from fastlinalg import _core

from .calls import DEVICES, KINDS, calls
from .tables import Table

COUNT = 100  # calls of each kind
THREADS = (1, 6)
ON_X86 = platform.machine() in ("x86_64", "AMD64")


def mean(estimates: list[float]) -> list[float]:
    logs = [math.log(us) for us in estimates if not math.isnan(us)]
    return [len(logs), float(f"{math.exp(math.fsum(logs) / len(logs)):.9g}")] if logs else [0]


def estimates_on_gpus() -> dict[str, Table]:
    """device and operation -> kernel -> kind of call."""
    tables: dict[str, Table] = {}
    for op, kinds in KINDS.items():
        rows = [row.name for row in fl.kernels(op) if row.device == "cuda"]
        for device, description in DEVICES.items():
            asked = {kind: _core.CostCalls(op, calls(op, kind, COUNT), description) for kind in kinds}
            tables[f"{device} {op}"] = {
                name: {kind: mean(of_kind.estimate_us(name, [], range(COUNT))) for kind, of_kind in asked.items()}
                for name in rows
            }
    return tables


def estimates_on_cpus() -> dict[str, Table]:
    """The same by the coefficients of one chip, whatever instructions the machine has."""
    tables: dict[str, Table] = {}
    for op, kinds in KINDS.items():
        asked = {kind: _core.CostCalls(op, calls(op, kind, COUNT)) for kind in kinds}
        rows = {
            row.name: [value for _, value in _core.cost_coefficients(op, row.name, "zen4")]
            for row in fl.kernels(op)
            if row.device == "cpu"
        }
        for threads in THREADS:
            with fl.num_threads(threads):
                tables[f"zen4, {threads} threads {op}"] = {
                    name: {
                        kind: mean(of_kind.estimate_us(name, numbers, range(COUNT))) for kind, of_kind in asked.items()
                    }
                    for name, numbers in rows.items()
                }
    return tables


def estimates() -> dict[str, Table]:
    return estimates_on_gpus() | (estimates_on_cpus() if ON_X86 else {})
