"""The order of the sums of the CPU kernels in NumPy: chains over ascending k, begun anew every `CHAIN` and then added.

This is what `cpp/kernels/micro_kernel.h` says of every kernel of SGEMM but the reference and those for one column, and
with FMAs the order of `docs/reproducible.md`.
"""

from __future__ import annotations

import numpy as np

F32, F64 = np.float32, np.float64
CHAIN = 256


def fused(x, y, z):
    """float32 x * y + z, rounded once. The product is exact in float64; the sum is rounded to odd before to float32."""
    product, z = np.asarray(x, F64) * np.asarray(y, F64), np.asarray(z, F64)
    total = product + z
    back = total - product
    error = (product - (total - back)) + (z - back)  # total + error is exact (Knuth)
    even = (total.view(np.int64) & 1) == 0
    towards = np.where(error > 0, np.inf, -np.inf)
    return np.where((error != 0) & even, np.nextafter(total, towards), total).astype(F32)


def rounded(x, y, z):
    """The same with a rounded product: what a CPU without FMA does."""
    return F32(x) * F32(y) + F32(z)


def product(a, b, alpha=1.0, add=fused):
    """alpha * a @ b."""
    a, b, alpha = np.asarray(a, F32), np.asarray(b, F32), F32(alpha)
    result = None
    for first in range(0, a.shape[1], CHAIN):
        total = np.zeros((a.shape[0], b.shape[1]), F32)
        for k in range(first, min(first + CHAIN, a.shape[1])):
            total = add(a[:, k : k + 1], b[k : k + 1], total)
        result = alpha * total if result is None else add(alpha, total, result)
    return result
