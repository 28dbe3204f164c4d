"""What a run asks for: what FASTLINALG_REQUIRE lists has to be there, or a test that misses it fails, where it would be
skipped; and which cases stand for their kind in the first tier of tests."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import pytest

import fastlinalg as fl
from support.rows import OPERATIONS

ALIASES = {"avx2": "avx2_fma", "avx512": "avx512f", "amx": "amx_bf16"}


def required() -> frozenset[str]:
    names = (name.strip() for name in os.environ.get("FASTLINALG_REQUIRE", "").split(","))
    return frozenset(ALIASES.get(name, name) for name in names if name)


def known() -> frozenset[str]:
    """Every name that may be required."""
    names = {"avx2_fma", "avx512f", "amx_bf16", "neon", "cuda", "cuda2", "sm_80", "sm_90", "sm_90a", "simulated"}
    names |= {"torch", "dask", "ml_dtypes", "mypy", "pyright", "browser"}
    return frozenset(names | {row.needs for op in OPERATIONS for row in fl.kernels(op)})


def demanded(needs: str) -> bool:
    """Whether what is missing has to be there."""
    return needs in required() or (needs.startswith("sm_") and "cuda" in required() and not fl.cuda.is_available())


def missing(needs: str, reason: str) -> None:
    """Skip, or fail where the missing thing was required; a whole file if it is being imported."""
    if demanded(needs):
        pytest.fail(f"FASTLINALG_REQUIRE lists it, but: {reason}", pytrace=False)
    pytest.skip(reason, allow_module_level=True)


EXHAUSTIVE = pytest.mark.exhaustive


def mostly_exhaustive(cases: Iterable[Any], *first: Any) -> list[Any]:
    """Parameters of one kind: those named, and otherwise the first, stand for it in the first tier."""
    cases = list(cases)
    kept = first or cases[:1]
    unknown = [case for case in kept if case not in cases]
    assert not unknown, f"there are no cases {unknown}"
    return [
        case if case in kept else pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=EXHAUSTIVE)
        for case in cases
    ]
