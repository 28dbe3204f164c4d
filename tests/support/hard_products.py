"""Operands made to break a product by terms, and as people have them, by name: all is finite, products too."""

from __future__ import annotations

import numpy as np

from fastlinalg.bench.data import SETS

LARGEST = float(np.finfo(np.float32).max)

# A product for each tile that fp16x2 takes on 132 multiprocessors, none a multiple of it: 64x64 in two parts and in
# one, 64x96, 128x64 in one round and in several, 128x128, 192x96, 192x128, 128x64 again and 256x128 in several rounds.
TILED = ((400, 390, 600), (640, 630, 300), (760, 750, 520), (1000, 1020, 330), (1290, 1270, 260), (1290, 1270, 700),
         (1530, 1500, 260), (3060, 3070, 256), (2000, 2040, 256), (4090, 4090, 1100))  # fmt: skip


def signs(rng, shape):
    return rng.choice((-1.0, 1.0), shape)


def spread(rng, shape, octaves):
    return signs(rng, shape) * 2.0 ** rng.uniform(-octaves / 2, octaves / 2, shape)


def ordinary(kind, rng, a, b):
    """Positive and of either sign."""
    if kind == "uniform":
        return rng.random(a.shape), rng.random(b.shape)
    if kind == "exp_normal":
        return signs(rng, a.shape) * np.exp(a), signs(rng, b.shape) * np.exp(b)
    if kind == "positive_exp_normal":
        return np.exp(a), np.exp(b)
    if kind == "twelve_decades":
        return spread(rng, a.shape, 40), spread(rng, b.shape, 40)
    if kind == "positive_twelve_decades":
        return np.abs(spread(rng, a.shape, 40)), np.abs(spread(rng, b.shape, 40))
    if kind == "integers":
        return tuple(rng.integers(-(2**24), 2**24 + 1, x.shape).astype(np.float64) for x in (a, b))
    if kind == "hilbert":
        (m, k), n = a.shape, b.shape[1]
        return 1.0 / (np.arange(m)[:, None] + np.arange(k) + 1), 1.0 / (np.arange(k)[:, None] + np.arange(n) + 1)
    if kind == "sparse":
        return a * (rng.random(a.shape) < 0.02), b * (rng.random(b.shape) < 0.5)
    return a, b


def graded(kind, rng, a, b):
    """Small numbers against large ones."""
    (m, k), n = a.shape, b.shape[1]
    steps = 2.0 ** rng.integers(-60, 61, max(m, n, k))
    if kind == "graded":
        return a * steps[:k], b / steps[:k, None]
    if kind == "graded_in_order":
        ramp = 2.0 ** np.linspace(-60, 60, k).round()
        return a * ramp, b / ramp[:, None]
    if kind == "level_products":  # alike where they count; elsewhere the largest numbers of B meet small ones
        ramp, small = np.linspace(0, 16, k), np.arange(k) % 2 == 1
        return (signs(rng, a.shape) * np.where(small, rng.uniform(1, 2, k) * 2.0**-26, 2.0**-ramp),
                signs(rng, b.shape) * np.where(small, 1.0, 2.0 ** (ramp - 16))[:, None])  # fmt: skip
    if kind == "scaled_lines":
        return a * steps[:m, None] * 2.0**-6, b / steps[:n]
    if kind == "hundred_octaves":
        return spread(rng, a.shape, 100), spread(rng, b.shape, 100)
    if kind == "many_octaves":
        return tuple(spread(rng, x.shape, 180) * 2.0**-50 for x in (a, b))
    if kind == "one_outlier":
        ones = np.ones((m, k))
        ones[np.arange(m), np.arange(m) % k] = 1e9
        return ones, np.ones((k, n))
    if kind == "outliers_that_cancel":  # what is left is the sum of the rest
        ones = np.ones((m, k))
        ones[:, 3], ones[:, k - 2] = 2.0**40, -(2.0**40)
        return ones, np.ones((k, n))
    if kind == "cancelling":
        half = k // 2
        return np.hstack([a[:, :half], -a[:, :half]]), np.vstack([b[:half], b[:half]])
    return a, b


def edge_of_range(kind, rng, a, b):
    """The ends of the exponents."""
    m = len(a)
    if kind == "huge_and_tiny_rows":
        return a * np.where(np.arange(m) % 2, 2.0**100, 2.0**-100)[:, None], b * 2.0**10
    if kind == "tiny_lines":
        a[::3] *= 2.0**-125
    if kind == "subnormal":
        return a * 2.0**-135, b
    if kind == "subnormal_times_huge":
        return a * 2.0**-145, b * 2.0**120
    if kind == "near_the_largest":
        return a * 2.0**124, b * 2.0**-20
    if kind == "the_largest":  # sums of half of them would overflow without b
        return signs(rng, a.shape) * LARGEST, rng.random(b.shape) * 2.0**-24
    if kind == "the_largest_and_the_smallest":
        a[:] = np.where(rng.random(a.shape) < 0.5, LARGEST, 2.0**-149) * signs(rng, a.shape)
        return a, b * 2.0**-30
    if kind == "zero_lines":
        a[1::2], b[:, ::3] = 0.0, 0.0
    return a, b


def wrong_guess(kind, rng, a, b):
    """A scale that was guessed from the first 1024 k of a line is wrong: its strip of 16 lines is split again."""
    (m, k), n = a.shape, b.shape[1]
    late = np.arange(k) >= min(1024, k // 2)
    if kind == "growing":
        return a * 2.0 ** (np.arange(k) * 40 // k - 20), b * 2.0 ** (np.arange(k) * 30 // k)[:, None]
    if kind == "late_start":
        a[:, : k // 2] = 0.0
    if kind == "late_start_of_b":
        b[: k // 2] = 0.0
    if kind == "one_late_line":  # of a strip: the others keep what they had
        return a * np.where(late & (np.arange(m) == 5)[:, None], 2.0**6, 1.0), b
    if kind == "one_late_line_of_b":
        return a, b * np.where(late & (np.arange(n) == n - 2)[:, None], 2.0**6, 1.0).T
    if kind == "late_and_huge":
        return a * np.where(late, 2.0**90, 1.0), b * 2.0**-30
    if kind == "late_and_tiny":
        return a * np.where(late, 2.0**-120, 1.0), b
    return a, b


def as_people_have_them(kind, rng, a, b):
    return SETS[kind](rng, len(a), b.shape[1], len(b))


FAMILIES = {
    ordinary: (
        *("normal", "uniform", "exp_normal", "positive_exp_normal", "twelve_decades", "positive_twelve_decades"),
        *("integers", "hilbert", "sparse"),
    ),
    graded: (
        *("graded", "graded_in_order", "level_products", "scaled_lines", "hundred_octaves", "many_octaves"),
        *("one_outlier", "outliers_that_cancel", "cancelling"),
    ),
    edge_of_range: (
        *("huge_and_tiny_rows", "tiny_lines", "subnormal", "subnormal_times_huge", "near_the_largest"),
        *("the_largest", "the_largest_and_the_smallest", "zero_lines"),
    ),
    wrong_guess: (
        *("growing", "late_start", "late_start_of_b", "one_late_line", "one_late_line_of_b"),
        *("late_and_huge", "late_and_tiny"),
    ),
    as_people_have_them: tuple(SETS),
}
FAMILY_OF = {kind: family for family, kinds in FAMILIES.items() for kind in kinds}
KINDS = tuple(FAMILY_OF)


def data(kind, m, n, k):
    """Operands in float32."""
    rng = np.random.default_rng([m, n, k, KINDS.index(kind)])
    a, b = rng.standard_normal((m, k)), rng.standard_normal((k, n))
    a, b = FAMILY_OF[kind](kind, rng, a, b)
    return np.ascontiguousarray(a, np.float32), np.ascontiguousarray(b, np.float32)
