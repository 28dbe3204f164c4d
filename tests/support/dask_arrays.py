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

__all__ = ["ReadBySlices", "da", "dask", "distributed", "fld"]


class ReadBySlices:
    """As an array of Zarr: neither NumPy's nor Dask's."""

    def __init__(self, values):
        self.values, self.shape, self.dtype = values, values.shape, values.dtype
        self.read = []

    def __getitem__(self, index):
        self.read.append(self.values[index].shape)
        return self.values[index]
