"""What a right answer is: the bound of `fastlinalg selftest`, and bitwise comparison where float32 is exact."""

from __future__ import annotations

import numpy as np

from fastlinalg._check import SMALLEST, expected_product


def oracle(a, b, c0=None, alpha=1.0, beta=0.0):
    """Return ``alpha * a @ b + beta * c0`` in float64 and the componentwise bound of a float32 result."""
    expected = expected_product(a, b, c0, alpha=alpha, beta=beta)
    return expected.value, expected.bound


def in_float32(got, want, context) -> np.ndarray:
    """What was computed, if it has the type of all results and the shape of this one."""
    got, shape = np.asarray(got), np.shape(want)
    assert got.dtype == np.float32, f"{context}: the result has dtype {got.dtype}, not float32"
    assert got.shape == shape, f"{context}: the result has shape {got.shape}, not {shape}"
    return got


def assert_within(got, want, bound, context="") -> None:
    """Fail with the worst element unless ``|got - want| <= bound`` everywhere, in float32 and in the right shape."""
    got = in_float32(got, want, context)
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.abs(got.astype(np.float64) - want)
    bad = ~(error <= bound)  # written so that a NaN is bad
    if bad.any():
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            score = np.where(np.isnan(error), np.inf, error / np.maximum(bound, SMALLEST))
        worst = np.unravel_index(int(np.argmax(np.where(bad, score, -1.0))), bad.shape)
        raise AssertionError(
            f"{context}: {int(bad.sum())} of {bad.size} elements are outside the bound; at {tuple(map(int, worst))} "
            f"got {got[worst]!r}, want {want[worst]!r} +- {bound[worst]:.3g}, error {error[worst]:.3g}"
        )


def assert_product(got, a, b, c0=None, alpha=1.0, beta=0.0, context="") -> None:
    """Fail unless ``got`` is ``alpha * a @ b + beta * c0`` within the componentwise bound."""
    assert_within(got, *oracle(a, b, c0, alpha, beta), context)


def bits(x):
    return np.ascontiguousarray(x, np.float32).view(np.uint32)


def assert_same_bits(got, want, context="") -> None:
    """Fail unless both float32 arrays hold the same bit patterns (so -0.0 is not 0.0, and NaN equals NaN)."""
    got, want = in_float32(got, want, context), np.asarray(want)
    bad = np.atleast_1d(bits(got) != bits(want))
    if bad.any():
        first = tuple(int(i) for i in np.argwhere(bad)[0])
        got, want = np.atleast_1d(got), np.atleast_1d(want)
        raise AssertionError(
            f"{context}: {int(bad.sum())} of {bad.size} elements differ; the first at {first}: "
            f"got {got[first]!r}, want {want[first]!r}"
        )


def assert_equal_values(got, want, context="") -> None:
    """Fail unless both arrays hold the same values; 0.0 equals -0.0, and any NaN equals any NaN."""
    np.testing.assert_array_equal(in_float32(got, want, context), want, str(context))


# ---- operands for which float32 arithmetic is exact, in any order of summation
def integers(rng, shape, k) -> np.ndarray:
    """Small integers such that every partial sum of ``k`` products stays below 2^24."""
    top = max(1, min(2047, int((2**24 / max(k, 1)) ** 0.5) - 1))
    return rng.integers(-top, top + 1, shape).astype(np.float32)


def full_mantissas(rng, shape) -> np.ndarray:
    """Normal numbers whose 24-bit mantissas are odd, so that any arithmetic with fewer bits changes them."""
    mantissa = rng.integers(2**23, 2**24, shape) | 1
    sign = rng.choice([-1.0, 1.0], shape)
    return (sign * np.ldexp(mantissa.astype(np.float64), rng.integers(-40, 16, shape))).astype(np.float32)


def permutation(rng, n) -> np.ndarray:
    return np.eye(n, dtype=np.float32)[rng.permutation(n)]


def truncated_to_tf32(x) -> np.ndarray:
    """Drop the 13 low mantissa bits, as a tensor core does that is fed float32 as TF32."""
    return (bits(x) & np.uint32(0xFFFFE000)).view(np.float32).reshape(np.shape(x))


def without_payload(x) -> np.ndarray:
    """Which NaN an operation gives is left to the processor."""
    x = np.asarray(x)
    return np.where(np.isnan(x), np.float32(np.nan), x)
