"""What FASTLINALG_REQUIRE lists has to be there: a test that misses it fails, where it would be skipped."""

from __future__ import annotations

import os

import pytest

import fastlinalg as fl
from support.rows import OPERATIONS

ALIASES = {"avx2": "avx2_fma", "avx512": "avx512f"}


def required() -> frozenset[str]:
    names = (name.strip() for name in os.environ.get("FASTLINALG_REQUIRE", "").split(","))
    return frozenset(ALIASES.get(name, name) for name in names if name)


def known() -> frozenset[str]:
    """Every name that may be required."""
    names = {"avx2_fma", "avx512f", "neon", "cuda", "cuda2", "sm_80", "sm_90", "sm_90a", "simulated"}
    names |= {"torch", "dask", "ml_dtypes", "mypy", "pyright", "browser"}
    return frozenset(names | {row.needs for op in OPERATIONS for row in fl.kernels(op)})


def missing(needs: str, reason: str) -> None:
    """Skip, or fail where the missing thing was required; a whole file if it is being imported."""
    if needs in required() or (needs.startswith("sm_") and "cuda" in required() and not fl.cuda.is_available()):
        pytest.fail(f"FASTLINALG_REQUIRE lists it, but: {reason}", pytrace=False)
    pytest.skip(reason, allow_module_level=True)
