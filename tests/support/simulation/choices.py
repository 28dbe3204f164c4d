"""Which GPU kernel has to answer on operands in device memory: the cheapest of those that dispatch may choose.

Put together of the parts of its rule: estimates, what is passed over, the length of sums.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import fastlinalg as fl
from fastlinalg import _core

from ..golden.calls import Call


def runs_on(device: dict[str, Any], needs: str) -> bool:
    capability = float(device["compute_capability"])
    return {"cuda": True, "sm_80": capability >= 8, "sm_90": capability >= 9, "sm_90a": capability == 9}[needs]


def to_be_read(row) -> bool:
    """Steps of SGEMM's ladder before the last one answer to their names alone."""
    return row.op == "sgemm" and row.traits.ladder and row.name != "double_buffered"


def rows_to_choose(op: str, precision: str, device: dict[str, Any]) -> Iterator[str]:
    for row in fl.kernels(op):
        if row.device != "cuda" or not runs_on(device, row.needs) or _core.testing.passed_over(op, row.name, device):
            continue
        if not to_be_read(row) and serves(row, precision):
            yield row.name


def serves(row, precision: str) -> bool:
    """Rows that keep the order of sums for nothing are no choice for another precision."""
    if row.op == "sgemm" and precision == "reproducible":
        return row.traits.reproducible
    return not row.name.startswith("reproducible_")


def chosen(op: str, asked: list[Call], precision: str, device: dict[str, Any]) -> list[str]:
    best = [(True, math.inf, "none")] * len(asked)
    held = _core.testing.CostCalls(op, asked, device)
    for name in rows_to_choose(op, precision, device):
        for i, (us, short) in enumerate(zip(held.estimate_us(name), held.short_sums(name), strict=True)):
            if not math.isnan(us):
                best[i] = min(best[i], (not short, us, name), key=lambda row: row[:2])
    return [name for _, _, name in best]
