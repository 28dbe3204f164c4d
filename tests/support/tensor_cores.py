"""A software model of the tensor cores of each generation, and of the products by fp16 terms that are built on them.

What one addition takes and keeps is known from measurements, not from the maker: M. Fasi, N. Higham, M. Mikaitis and
S. Pranesh, "Numerical behavior of NVIDIA tensor cores" (PeerJ Computer Science 7:e330, 2021) for V100, T4 and A100;
F. Khattak and M. Mikaitis, "Accurate models of NVIDIA tensor cores" (arXiv 2512.07004, 2025) for V100, A100, A30, A2,
L40S, RTX 1000 Ada, H100, H200 and B200. Nobody has published the like of compute capability 12.x.

An addition takes the accumulator and some exact products. All are cut to a multiple of the same unit, which is `extra`
bits finer than the last bit of a float32 number as large as the largest of them; the sum of that is exact, and is cut
to 24 bits. Longer sums are one addition after the other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class TensorCore:
    products: int  # that one addition takes
    extra: int  # bits behind the last one of the largest addend that the others keep

    def truncation(self, k: int) -> float:
        """The most that a sum of k products loses, in units of u = 2^-24 of the sum of magnitudes."""
        addition = (self.products + 1) * 2.0 ** (1 - self.extra) + 2
        return k / self.products * addition


TENSOR_CORES = {
    75: TensorCore(4, 0),  # as V100: an instruction of 8 k is two additions
    80: TensorCore(8, 1),
    86: TensorCore(8, 1),
    89: TensorCore(8, 1),
    90: TensorCore(16, 2),
    100: TensorCore(16, 2),
}


def toward_zero(x, unit):
    return np.trunc(x / unit) * unit


def largest_power(x):
    """The largest power of two that is not larger than x; 1 for 0."""
    return np.ldexp(1.0, np.frexp(np.where(x == 0, 1.0, x))[1] - 1)


def accumulate(core: TensorCore, sums, left, right):
    """sums + left @ right as the tensor cores compute it: of float64 arrays that hold float32 and 16-bit numbers."""
    for k in range(0, left.shape[1], core.products):
        products = left[:, k : k + core.products, None] * right[None, k : k + core.products, :]
        addends = np.concatenate([sums[:, None, :], products], axis=1)
        largest = largest_power(np.abs(addends).max(axis=1))
        exact = toward_zero(addends, (largest * 2.0 ** (-23 - core.extra))[:, None, :]).sum(axis=1)
        sums = toward_zero(exact, largest_power(np.abs(exact)) * 2.0**-23)
    return sums


def fp16_terms(x):
    """Two fp16 numbers whose sum stands for x, a float32 number of magnitude below 2^15."""
    high = x.astype(np.float16).astype(np.float64)
    return high, (x - high).astype(np.float16).astype(np.float64)


def fp16x2_product(core: TensorCore, a, b, promoted_every=64):
    """a @ b as sgemm_fp16x2_mma computes it without scales, where a warp takes all of k: small products first."""
    (a_high, a_low), (b_high, b_low) = fp16_terms(a), fp16_terms(b)
    total = np.zeros((a.shape[0], b.shape[1]), np.float32)
    for first in range(0, a.shape[1], promoted_every):
        k = slice(first, first + promoted_every)
        block = np.zeros(total.shape)
        for left, right in ((a_low, b_high), (a_high, b_low), (a_high, b_high)):
            block = accumulate(core, block, left[:, k], right[k])
        total += block.astype(np.float32)
    return total
