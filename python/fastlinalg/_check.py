"""What every kernel must compute: reference answers and error bounds, in plain NumPy.

``fastlinalg selftest``, ``fastlinalg bench`` and the test suite judge all kernels with these. The awkward
cases to run them on are in ``_cases``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

UNIT = 2.0**-24  # the rounding error of one float32 operation, relative
UNIT64 = 2.0**-53
CHAIN = 256  # FMAs of a CPU kernel, whose sum is then added to the result
SMALLEST = 2.0**-149  # the smallest float32 above zero

Array = NDArray[Any]
Options = dict[str, Any]


def gamma(operations: int, unit: float = UNIT) -> float:
    """The classic bound on the relative error of so many operations in a row, of float32 or of another unit."""
    return operations * unit / (1 - operations * unit)


@dataclass(frozen=True, eq=False)
class Expected:
    """The true result in float64, and how far each element may be from it; 0 asks for the exact value.

    Where `value` is not finite the result must have the same NaN or Inf.
    """

    value: Array
    bound: Array


def _product(a: Array, b: Array) -> Array:
    if np.isfinite(a).all() and np.isfinite(b).all():
        plain: Array = np.matmul(a, b)
        return plain
    # A BLAS may multiply its zero padding by Inf, or skip a zero; plain loops do what IEEE 754 says.
    i, j = "i" if a.ndim > 1 else "", "j" if b.ndim > 1 else ""
    with np.errstate(invalid="ignore"):
        product: Array = np.einsum(f"...{i}k,...k{j}->...{i}{j}", a, b, optimize=False)
    return product


def expected_product(a: Array, b: Array, c: Array | None = None, *, alpha: float = 1.0, beta: float = 0.0) -> Expected:
    """``alpha * a @ b + beta * c`` in float64, with the componentwise bound of float32.

    The bound is one that every order of summation meets (Higham, "Accuracy and Stability of Numerical Algorithms",
    3.5): ``gamma(k) |alpha| |a| |b|``, one more operation in gamma for each of alpha and beta that rounds, the
    roundings of ``beta * c``, what gradual underflow may lose, and the errors of float64. It is never relative to
    the result, which cancellation may make as small as it likes. As in the BLAS, `a` and `b` are not read if alpha
    is 0 and `c` is not read if beta is 0. Leading dimensions broadcast.
    """
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    alpha, beta = float(np.float32(alpha)), float(np.float32(beta))
    if alpha == 0.0:
        a, b = a[..., :0], b[..., :0, :] if b.ndim > 1 else b[:0]
    k = a.shape[-1]
    with np.errstate(invalid="ignore", over="ignore"):
        value = alpha * _product(a, b)
        roundings = k + (abs(alpha) != 1.0) + (beta != 0.0)
        bound = (gamma(roundings) + gamma(k + 3, UNIT64)) * abs(alpha) * _product(abs(a), abs(b))
        if k:
            bound += (roundings * max(1.0, abs(alpha)) + 2) * SMALLEST
        if beta != 0.0:
            if c is None:
                raise ValueError("beta != 0 needs c")
            addend = beta * np.asarray(c, np.float64)
            rounded = 0 if k == 0 and beta == 1.0 else 2 + k // CHAIN
            value = value + addend if k else np.broadcast_to(addend, value.shape)
            bound = bound + gamma(rounded) * abs(addend) + (SMALLEST if rounded else 0.0)
    return Expected(value, bound)


def expected_result(op: str, operands: tuple[Any, ...], options: Options) -> Expected:
    """What ``fastlinalg.<op>(*operands, **options)`` has to return."""
    if op == "transpose":
        value = np.asarray(operands[0], np.float64).swapaxes(-1, -2)
        return Expected(value, np.zeros(value.shape))
    a, b, c = (*operands, None, None)[:3]
    scalars = {name: options[name] for name in ("alpha", "beta") if name in options}
    if op == "sgemm":
        a = a.swapaxes(-1, -2) if options.get("trans_a") else a
        b = b.swapaxes(-1, -2) if options.get("trans_b") else b
        return expected_product(a, b, c, **scalars)
    a = a.swapaxes(-1, -2) if options.get("trans") else a
    if op == "ssyrk":
        return _expected_triangle(expected_product(a, a.swapaxes(-1, -2), b, **scalars), options.get("uplo"))
    column = expected_product(a, b[..., None], None if c is None else c[..., None], **scalars)
    return Expected(column.value[..., 0], column.bound[..., 0])


def written(n: int, uplo: str | None) -> Array:
    """A mask of the elements that ``ssyrk`` computes."""
    lower = np.tri(n, dtype=bool)
    return np.ones((n, n), bool) if uplo is None else lower if uplo == "L" else lower.T


def _expected_triangle(whole: Expected, uplo: str | None) -> Expected:
    """Beside the triangle there are zeros: what a new result has there."""
    inside = written(whole.value.shape[-1], uplo)
    return Expected(np.where(inside, whole.value, 0.0), np.where(inside, whole.bound, 0.0))


def error_units(result: Array, expected: Expected) -> float:
    """The largest error in units of the bound: at most 1 is right.

    Infinite if the shape or dtype is wrong, if NaN or Inf stand where they should not or are missing, and for
    any error where none is allowed.
    """
    if result.shape != expected.value.shape or result.dtype != np.float32:
        return np.inf
    finite = np.isfinite(expected.value)
    if not np.array_equal(result[~finite], expected.value[~finite].astype(np.float32), equal_nan=True):
        return np.inf
    got = result[finite].astype(np.float64)
    if not np.isfinite(got).all():
        return np.inf
    error, bound = abs(got - expected.value[finite]), expected.bound[finite]
    if (error[bound == 0.0] > 0.0).any():
        return np.inf
    return float(np.max(error[bound > 0.0] / bound[bound > 0.0], initial=0.0))


def wrong_elements(result: Array, expected: Expected) -> Array:
    """A mask of the elements that are not within the bound, for a result of the right shape and dtype."""
    value = expected.value
    with np.errstate(invalid="ignore", over="ignore"):
        near = abs(result - value) <= expected.bound
    same = (result == value) | (np.isnan(result) & np.isnan(value))
    mask: Array = ~np.where(np.isfinite(value), near, same)
    return mask


CANARY = np.uint32(0x7FC0DEAD)  # a NaN with a payload: where it is still there, nobody wrote


def canaries(size: int) -> Array:
    """A flat float32 array full of canaries."""
    return np.full(size, CANARY).view(np.float32)


def make_out(shape: tuple[int, ...], layout: str) -> tuple[Array, Array, Array]:
    """A result array inside a larger one that is full of canaries.

    Parameters
    ----------
    shape : tuple of int
    layout : {"C", "F", "strided", "reversed"}
        For "strided" every second row and column of the parent belongs to the result; for "reversed" the last
        dimension runs backwards.

    Returns
    -------
    out, parent, outside : ndarray
        The view to write, the array that holds it, and a mask of the parent's elements that must stay.
    """
    step = 2 if layout == "strided" else 1
    inner = tuple(step * n for n in shape)
    parent = canaries(int(np.prod([n + 2 for n in inner]))).reshape(
        [n + 2 for n in inner], order="F" if layout == "F" else "C"
    )
    cut: tuple[slice, ...] = tuple(slice(1, n + 1, step) for n in inner)
    if layout == "reversed":
        cut = (*cut[:-1], slice(shape[-1], 0, -1)) if shape[-1] else cut
    outside = np.ones(parent.shape, bool)
    outside[cut] = False
    return parent[cut], parent, outside


def untouched(parent: Array, outside: Array) -> bool:
    """Whether the elements outside are still canaries."""
    return bool((parent.view(np.uint32)[outside] == CANARY).all())
