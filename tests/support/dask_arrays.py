"""Dask for the tests of fastlinalg.dask, or a skip with the reason."""

from __future__ import annotations

from support.requirements import missing

try:
    import dask
    import dask.array as da
    import distributed
except ImportError as error:
    missing("dask", f"no Dask: {error}")

import fastlinalg.dask as fld

__all__ = ["da", "dask", "distributed", "fld"]
