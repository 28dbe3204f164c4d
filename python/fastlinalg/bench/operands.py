"""Random operands, and the check of sampled results that comes before every timing."""

from __future__ import annotations

import math
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from .._check import UNIT, Array, Expected, error_units, expected_product
from .data import NORMAL, SETS
from .problems import Problem

SAMPLED_ROWS = 16
SAMPLED_WORK = 2**22  # multiply-adds that a float64 reference of a vector may take


@dataclass(frozen=True)
class Accuracy:
    """How far sampled elements are from float64.

    Attributes
    ----------
    ok : bool
        All are within the componentwise bound (bitwise equal for a transpose).
    max_units : float
        The largest ``|C - R| / (|A| |B|)`` in units of ``2**-24``.
    rel_f : float
        The relative error in the Frobenius norm.
    """

    ok: bool
    max_units: float
    rel_f: float


def fill_normal(flat: Array, seed: int) -> None:
    """Normal random numbers, by all cores: 16384**2 of them take one core seconds."""
    pieces = np.array_split(flat, max(1, min(64, flat.size >> 18)))
    seeds = np.random.SeedSequence(seed).spawn(len(pieces))

    def fill(piece: Array, entropy: np.random.SeedSequence) -> None:
        np.random.default_rng(entropy).standard_normal(piece.size, np.float32, out=piece)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(fill, pieces, seeds))


def strips(size: int, wanted: int, rng: np.random.Generator) -> Array:
    """Indices below `size`, one from each of `wanted` strips of the same length."""
    edges = np.linspace(0, size, min(wanted, size) + 1).astype(np.int64)
    return rng.integers(edges[:-1], edges[1:])


def judge(got: Array, expected: Expected, k: int) -> Accuracy:
    """Compare results with the true values of sums of `k` products."""
    ok = error_units(got, expected) <= 1.0
    terms = k / (1.0 - k * UNIT)  # the bound is so many units of 2**-24 |A| |B|
    with np.errstate(invalid="ignore", divide="ignore"):
        difference = got - expected.value
        units = abs(difference[expected.bound > 0]) / expected.bound[expected.bound > 0] * terms
        norm = np.linalg.norm(expected.value)
        rel_f = float(np.linalg.norm(difference) / norm) if norm else 0.0
    return Accuracy(ok, float(np.max(units, initial=0.0)), rel_f)


Values = np.random.Generator | Array  # of normal numbers, or what there is to hold


class Placed:
    """An operand and the memory it lies in: `array` is a view of `flat`, which begins at an aligned address."""

    def __init__(self, shape: tuple[int, ...], pad: int, offset: int, values: Values | None) -> None:
        self.offset, self.ld = offset, shape[-1] + pad
        size = offset + math.prod(shape[:-1]) * self.ld
        self.flat: Array = _aligned_zeros(size)
        if isinstance(values, np.random.Generator):
            values.standard_normal(size, np.float32, out=self.flat)
        self.array: Array = self.flat[offset:].reshape(*shape[:-1], self.ld)[..., : shape[-1]]
        if isinstance(values, np.ndarray):
            self.array[...] = values


def _aligned_zeros(size: int) -> Array:
    """Written, so that every page is there before a clock runs; at a multiple of 64 bytes, as libraries allocate."""
    memory = np.zeros(size + 16, np.float32)
    memory.fill(0.0)
    first = -memory.__array_interface__["data"][0] % 64 // 4
    return memory[first : first + size]


def _values(problem: Problem, rng: np.random.Generator) -> tuple[Values, Values]:
    """What the operands hold, as they are stored; of a batch each problem the same."""
    if problem.data == NORMAL:
        return rng, rng
    a, b = SETS[problem.data](rng, problem.m, problem.n, problem.k)
    return a.T if problem.trans_a else a, b.T if problem.trans_b else b


class Operands:
    """The operands of one problem on the host, and the true values of sampled rows of its result."""

    def __init__(self, problem: Problem, seed: int) -> None:
        rng = np.random.default_rng([seed, problem.m, problem.n, problem.k])
        pads, offsets = problem.pads, problem.offsets
        self.problem = problem
        a, b = _values(problem, rng)
        self.placed_a = Placed(problem.a_shape(), pads[0], offsets[0], a)
        other = Placed(problem.b_shape(), 0, offsets[1], b) if problem.b_shape() and not problem.own else None
        self.placed_b = self.placed_a if problem.own else other
        self.a = self.placed_a.array
        self.b = self.placed_b.array if self.placed_b else None
        self.rows = self._choose_rows(rng)
        self._expected = self._expect()

    def make_out(self) -> Placed:
        """Memory for the result, as the problem wants it to lie."""
        return Placed(self.problem.out_shape(), self.problem.pads[1], self.problem.offsets[2], None)

    def _choose_rows(self, rng: np.random.Generator) -> Array:
        """Rows (or elements, of a vector) of the result to look at: one from each of as many equal strips.

        The rows of a batch are counted through all its problems.
        """
        problem, size = self.problem, self.problem.out_shape()[0]
        size *= problem.m if problem.batch > 1 else 1
        per_row = (problem.n * problem.m) // size if problem.op == "sgemv" else 0
        wanted = max(SAMPLED_ROWS, SAMPLED_WORK // per_row) if per_row else SAMPLED_ROWS
        return strips(size, wanted, rng)

    def _expect(self) -> Expected:
        a, b, rows = self.a, self.b, self.rows
        if b is None:
            value = np.asarray(a[:, rows].T, np.float64)
            return Expected(value, np.zeros(value.shape))
        if self.problem.op == "sgemm":
            return self._expect_product(a, b)
        column = expected_product(a[:, rows].T if self.problem.trans else a[rows], b[:, None])
        return Expected(column.value[:, 0], column.bound[:, 0])

    def _expect_product(self, a: Array, b: Array) -> Expected:
        problem, rows = self.problem, self.rows
        op_a = a.swapaxes(-1, -2) if problem.trans_a else a
        op_b = b.swapaxes(-1, -2) if problem.trans_b else b
        if problem.batch == 1:
            return expected_product(op_a[rows], op_b)
        which, row = np.divmod(rows, problem.m)
        sampled = expected_product(op_a[which, row, None, :], op_b[which])
        return Expected(sampled.value[:, 0], sampled.bound[:, 0])

    def judge(self, got: Array) -> Accuracy:
        """Compare the sampled rows of a result."""
        problem = self.problem
        return judge(got, self._expected, problem.k if problem.product else problem.m if problem.trans else problem.n)
