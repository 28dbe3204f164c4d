"""What kernels are expected to take.

For each kind of call how many of them the kernel takes, the geometric mean of the microseconds, which one estimate of
a hundred that changes by 1e-5 moves visibly, and all bytes of workspace, which on a CPU tell how threads share calls.
"""

from __future__ import annotations

import math
import platform
from itertools import product
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
    """operation -> kernel -> device and kind of call."""
    tables: dict[str, Table] = {}
    for op in KINDS:
        held = {f"{name}, {kind}": x for name, device in DEVICES.items() for kind, x in asked(op, device).items()}
        tables[f"gpus {op}"] = {
            kernel: {call: summary(of_kind, kernel, []) for call, of_kind in held.items()}
            for kernel in rows_on(op, "cuda")
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
    """The same by the coefficients of one chip, whatever instructions the machine has, on some numbers of threads."""
    tables: dict[str, Table] = {}
    for op in KINDS:
        table = tables[f"zen4 {op}"] = {kernel: {} for kernel in rows_on(op, "cpu")}
        for (kind, of_kind), threads, kernel in product(asked(op).items(), THREADS, table):
            numbers = [value for _, value in _core.testing.cost_coefficients(op, kernel, "zen4")]
            with fl.num_threads(threads):
                table[kernel][f"{threads} threads, {kind}"] = summary(of_kind, kernel, numbers)
    return tables


def estimates() -> dict[str, Table]:
    return estimates_on_gpus() | {"chips": estimates_on_chips()} | (estimates_on_cpus() if ON_X86 else {})
