"""What kernels are expected to take.

For each kind of call how many of them the kernel takes, the geometric mean of the microseconds, which one estimate of
a hundred that changes by 1e-5 moves visibly, and all bytes of workspace, which on a CPU tell how threads share calls.
"""

from __future__ import annotations

import math
import platform
from typing import Any

import fastlinalg as fl
from fastlinalg import _core

from ..chips import CHIPS, chip
from .calls import DEVICES, ITSELF, KINDS, calls
from .tables import Table

COUNT = 100  # calls of each kind
THREADS = (1, 6)
ON_X86 = platform.machine() in ("x86_64", "AMD64")


def asked(op: str, device: dict[str, Any] | None = None) -> dict[str, _core.testing.CostCalls]:
    """kind of call -> calls"""
    return {kind: _core.testing.CostCalls(op, calls(op, kind, COUNT), device, kind == ITSELF) for kind in KINDS[op]}


def summary(of_kind: _core.testing.CostCalls, kernel: str, coefficients: list[float]) -> list[float]:
    estimates = of_kind.estimate_us(kernel, coefficients)
    logs = [math.log(us) for us in estimates if not math.isnan(us)]
    if not logs:
        return [0]
    return [len(logs), float(f"{math.exp(math.fsum(logs) / len(logs)):.9g}"), of_kind.workspace_bytes(kernel)]


def rows_on(op: str, device: str) -> list[str]:
    return [row.name for row in fl.kernels(op) if row.device == device]


def estimates_on_gpus() -> dict[str, Table]:
    """device and operation -> kernel -> kind of call."""
    tables: dict[str, Table] = {}
    for op in KINDS:
        for name_of_device, device in DEVICES.items():
            kinds = asked(op, device)
            tables[f"{name_of_device} {op}"] = {
                name: {kind: summary(of_kind, name, []) for kind, of_kind in kinds.items()}
                for name in rows_on(op, "cuda")
            }
    return tables


OF_CHIPS = (
    "double_buffered", "strict_64x128k4", "strict_128x256", "strict_32x32i4", "strict_tall_skinny", "bf16x6_mma",
    "fp16x2_mma", "fp16x2", "reproducible_64x64m1",
)  # fmt: skip


def estimates_on_chips() -> Table:
    """What each chip has: chip -> some of the kernels."""
    asked_of = {name: _core.testing.CostCalls("sgemm", calls("sgemm", "any size", COUNT), chip(name)) for name in CHIPS}
    return {name: {kernel: summary(held, kernel, []) for kernel in OF_CHIPS} for name, held in asked_of.items()}


def estimates_on_cpus() -> dict[str, Table]:
    """The same by the coefficients of one chip, whatever instructions the machine has."""
    tables: dict[str, Table] = {}
    for op in KINDS:
        kinds = asked(op)
        rows = {
            name: [value for _, value in _core.testing.cost_coefficients(op, name, "zen4")]
            for name in rows_on(op, "cpu")
        }
        for threads in THREADS:
            with fl.num_threads(threads):
                tables[f"zen4, {threads} threads {op}"] = {
                    name: {kind: summary(of_kind, name, numbers) for kind, of_kind in kinds.items()}
                    for name, numbers in rows.items()
                }
    return tables


def estimates() -> dict[str, Table]:
    return estimates_on_gpus() | {"chips": estimates_on_chips()} | (estimates_on_cpus() if ON_X86 else {})
