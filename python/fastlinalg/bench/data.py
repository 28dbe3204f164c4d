"""Operands as people have them, by name: `a` is m by k and `b` k by n, in float64, as they are multiplied."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .._check import Array

NORMAL = "normal"
Rng = np.random.Generator
Pair = tuple[Array, Array]


def _normal(rng: Rng, m: int, n: int, k: int) -> Pair:
    return rng.standard_normal((m, k)), rng.standard_normal((k, n))


def _kernel_of(x: Array, y: Array) -> Array:
    """exp(-d²/2) of the distances between points of a plane: from 1 down to what underflows."""
    squares = (x * x).sum(1)[:, None] + (y * y).sum(1) - 2 * x @ y.T
    kernel: Array = np.exp(-np.maximum(squares, 0.0) / 2)
    return kernel


def _points(rng: Rng, count: int) -> Array:
    return 20 * rng.random((count, 2))


def _kernel_matrix(rng: Rng, m: int, n: int, k: int) -> Pair:
    points = _points(rng, k)
    return _kernel_of(_points(rng, m), points), _kernel_of(points, _points(rng, n))


def _cholesky(rng: Rng, m: int, n: int, k: int) -> Pair:
    """The factor of a kernel matrix with some noise, transposed, and its inverse: half of either is zeros."""
    size = max(m, n, k)
    points = _points(rng, size)
    factor = np.linalg.cholesky(_kernel_of(points, points) + 0.01 * np.eye(size))
    return factor.T[:m, :k], np.tril(np.linalg.inv(factor))[:k, :n]


def _softmax_of(logits: Array) -> Array:
    shares = np.exp(logits - logits.max(1, keepdims=True))
    rows: Array = shares / shares.sum(1, keepdims=True)
    return rows


def _softmax(rng: Rng, m: int, n: int, k: int) -> Pair:
    a, b = _normal(rng, m, n, k)
    return _softmax_of(3 * a), b


def _gradient(rng: Rng, m: int, n: int, k: int) -> Pair:
    """Of the last layer's weights of a trained classifier: activations after ReLU, a loss small for most samples."""
    a, b = _normal(rng, m, n, k)
    labels = np.arange(n) == rng.integers(0, n, k)[:, None]
    return np.maximum(a, 0.0), (_softmax_of(2 * b + 12 * labels) - labels) / k


def _one_hot(rng: Rng, m: int, n: int, k: int) -> Pair:
    return np.eye(k)[rng.integers(0, k, m)], rng.standard_normal((k, n))


def _sparse(rng: Rng, m: int, n: int, k: int) -> Pair:
    a, b = _normal(rng, m, n, k)
    return a * (rng.random(a.shape) < 0.1), b * (rng.random(b.shape) < 0.1)


def _counts(rng: Rng, m: int, n: int, k: int) -> Pair:
    a, b = (rng.poisson(rng.gamma(0.3, 3.0, shape)).astype(np.float64) for shape in ((m, k), (k, n)))
    return a, b


def _images(rng: Rng, m: int, n: int, k: int) -> Pair:
    """Patches of eight bits a pixel, some of them dark or overexposed, and filters."""
    patches = rng.normal(0.5, 0.3, (m, 1)) + np.cumsum(rng.normal(0, 0.03, (m, k)), 1)
    return np.round(255 * np.clip(patches, 0.0, 1.0)) / 255, rng.normal(0.0, 0.05, (k, n))


def _unit_vectors(rng: Rng, m: int, n: int, k: int) -> Pair:
    a, b = _normal(rng, m, n, k)
    return a / np.linalg.norm(a, axis=1, keepdims=True), b / np.linalg.norm(b, axis=0)


def _vandermonde(rng: Rng, m: int, n: int, k: int) -> Pair:
    return rng.uniform(-1, 1, (m, 1)) ** np.arange(k), rng.standard_normal((k, n))


def _lognormal(rng: Rng, m: int, n: int, k: int) -> Pair:
    a, b = _normal(rng, m, n, k)
    return np.exp(2 * a), np.exp(2 * b)


def _graded_rows(rng: Rng, m: int, n: int, k: int) -> Pair:
    a, b = _normal(rng, m, n, k)
    return a * np.logspace(-6, 6, m)[:, None], b


def _graded_columns(rng: Rng, m: int, n: int, k: int) -> Pair:
    """Features in units of their own."""
    a, b = _normal(rng, m, n, k)
    return a * np.logspace(-6, 6, k), b


def _outliers(rng: Rng, m: int, n: int, k: int) -> Pair:
    a, b = _normal(rng, m, n, k)
    return np.where(rng.random(a.shape) < 1e-4, 1e4 * a, a), b


def _fft(rng: Rng, m: int, n: int, k: int) -> Pair:
    """Real parts of spectra, one of walks and one of noise."""
    a, b = _normal(rng, m, n, k)
    return np.fft.fft(np.cumsum(a, 1), axis=1).real, np.fft.fft(b, axis=0).real


def _logits(rng: Rng, m: int, n: int, k: int) -> Pair:
    """A language model's last layer: the gradient of k words' logits, one of them large for each, and activations."""
    a, b = _normal(rng, m, n, k)
    shares = np.exp(a - 11)
    shares[rng.integers(0, m, k), np.arange(k)] -= 1
    return shares, b


_SETS = (
    *(_kernel_matrix, _cholesky, _softmax, _gradient, _one_hot, _sparse, _counts, _images, _unit_vectors),
    *(_vandermonde, _lognormal, _graded_rows, _graded_columns, _outliers, _fft, _logits),
)
SETS: dict[str, Callable[[Rng, int, int, int], Pair]] = {make.__name__[1:]: make for make in _SETS}
NAMES = (NORMAL, *SETS)
