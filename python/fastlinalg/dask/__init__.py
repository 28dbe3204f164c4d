"""Products and transposes of Dask arrays, chunk by chunk through this library.

The tasks of the graphs made here call `fastlinalg` on the chunks, under any scheduler of Dask: threads, a
``LocalCluster``, the workers of a running scheduler. Nothing else in the package imports dask; this does.
"""

from ._chunks import Chunks, suggest_chunks
from ._products import matmul, matvec, transpose

__all__ = ["Chunks", "matmul", "matvec", "suggest_chunks", "transpose"]
