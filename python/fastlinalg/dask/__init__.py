"""Products and transposes of Dask arrays, chunk by chunk through this library.

The tasks of the graphs made here call `fastlinalg` on the chunks, under any scheduler of Dask: threads, a
``LocalCluster``, the workers of a running scheduler. Nothing else in the package imports dask; this does.
"""

try:
    import dask.array  # noqa: F401
    import distributed  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"fastlinalg.dask needs Dask 2025.4 or newer ({error}): pip install 'dask[array]' distributed", name=error.name
    ) from None

from ._chunks import Chunks, suggest_chunks
from ._products import matmul, matvec, transpose

__all__ = ["Chunks", "matmul", "matvec", "suggest_chunks", "transpose"]
