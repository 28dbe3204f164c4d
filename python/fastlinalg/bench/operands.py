"""Random operands, and the check of sampled results that comes before every timing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._check import UNIT, Array, Expected, error_units, expected_product
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


class Operands:
    """The operands of one problem on the host, and the true values of sampled rows of its result."""

    def __init__(self, problem: Problem, seed: int) -> None:
        rng = np.random.default_rng([seed, problem.m, problem.n, problem.k])
        self.problem = problem
        self.a = rng.standard_normal(problem.a_shape(), dtype=np.float32)
        self.b = rng.standard_normal(problem.b_shape(), dtype=np.float32) if problem.b_shape() else None
        self.rows = self._choose_rows(rng)
        self._expected = self._expect()

    def _choose_rows(self, rng: np.random.Generator) -> Array:
        """Rows (or elements, of a vector) of the result to look at: one from each of as many equal strips."""
        problem, size = self.problem, self.problem.out_shape()[0]
        per_row = (problem.n * problem.m) // size if problem.op == "sgemv" else 0
        wanted = max(SAMPLED_ROWS, SAMPLED_WORK // per_row) if per_row else SAMPLED_ROWS
        edges = np.linspace(0, size, min(wanted, size) + 1).astype(np.int64)
        return rng.integers(edges[:-1], edges[1:])

    def _expect(self) -> Expected:
        a, b, rows = self.a, self.b, self.rows
        if b is None:
            value = np.asarray(a[:, rows].T, np.float64)
            return Expected(value, np.zeros(value.shape))
        if self.problem.op == "sgemm":
            return expected_product(a[rows], b)
        column = expected_product(a[:, rows].T if self.problem.trans else a[rows], b[:, None])
        return Expected(column.value[:, 0], column.bound[:, 0])

    def judge(self, got: Array) -> Accuracy:
        """Compare the sampled rows of a result."""
        expected, terms = self._expected, self._terms()
        ok = error_units(got, expected) <= 1.0
        with np.errstate(invalid="ignore", divide="ignore"):
            difference = got - expected.value
            units = abs(difference[expected.bound > 0]) / expected.bound[expected.bound > 0] * terms
            norm = np.linalg.norm(expected.value)
            rel_f = float(np.linalg.norm(difference) / norm) if norm else 0.0
        return Accuracy(ok, float(np.max(units, initial=0.0)), rel_f)

    def _terms(self) -> float:
        """The bound is this many units of ``2**-24 |A| |B|``."""
        problem = self.problem
        k = problem.k if problem.op == "sgemm" else problem.m if problem.trans else problem.n
        return k / (1.0 - k * UNIT)
