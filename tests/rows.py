"""The kernel table as pytest parameters: a new row is tested by every test that takes a row."""

from __future__ import annotations

import pytest

import fastlinalg as fl

OPERATIONS = ("sgemm", "sgemv", "transpose")


def rows(op: str, device: str | None = None):
    """One parameter for each row of an operation, GPU rows with the mark ``gpu``."""
    return [
        pytest.param(row, id=f"{op}-{row.name}", marks=[pytest.mark.gpu] if row.device == "cuda" else [])
        for row in fl.kernels(op)
        if device in (None, row.device)
    ]


def best_precision(row) -> str:
    return "strict" if row.strict else "accurate"


def refused(row, error: ValueError) -> bool:
    """Whether the error is the row's own statement that it cannot take the operands."""
    return f"kernel '{row.name}' needs" in str(error)


def attempt(row, call, must: bool):
    """Return ``call()``, or None where the row refuses the operands and may: GPU rows never, they get padded copies."""
    try:
        return call()
    except ValueError as error:
        if must or row.device == "cuda" or not refused(row, error):
            raise
        return None
