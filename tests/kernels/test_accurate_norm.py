"""The norm of the error of rows that serve ``precision="accurate"`` alone, where the bound has room for more."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

import fastlinalg as fl
from fastlinalg._check import UNIT
from support.accuracy import assert_product
from support.device import on_device
from support.hard_products import TILED, data
from support.rows import rows
from support.source_tree import ROOT, needs_source_tree

pytestmark = pytest.mark.gpu
accurate_row = pytest.mark.parametrize("row", rows("sgemm", "cuda", strict=False))


def norms_of_errors(row, a, b):
    """Of the row, and of one chain of float32."""
    exact = a.astype(np.float64) @ b.astype(np.float64)
    return (
        np.linalg.norm(fl.sgemm(a, b, kernel=name, device="cuda", precision=precision) - exact)
        for name, precision in ((row.name, "accurate"), ("naive", "strict"))
    )


@accurate_row
@pytest.mark.parametrize("k", [256, 1024, 8192])
@pytest.mark.parametrize("kind", ["normal", "uniform", "exp_normal", "twelve_decades"])
def test_no_less_accurate_in_norm_than_a_chain_of_float32(row, kind, k):
    accurate, chain = norms_of_errors(row, *data(kind, 256, 256, k))
    assert accurate <= 1.01 * chain


ERRORS = ROOT / "benchmarks" / "accuracy.py"


@needs_source_tree
@pytest.mark.parametrize("k", [64, 1024, 8192, 65536])
def test_no_less_accurate_in_norm_than_cublas(k):
    """What dispatch takes, on normal, uniform, log-uniform and exp-normal data."""
    pytest.importorskip("torch")
    spec = importlib.util.spec_from_file_location("errors", ERRORS)
    errors = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(errors)
    rows = list(errors.measure([(size, k) for size in (256, 384, 512, 768, 1024, 2048)]))
    assert errors.worse_than_cublas({"rows": rows}) == []
    assert max(row["errors"][name]["largest"] for row in rows for name in errors.OURS) <= k


@accurate_row
@pytest.mark.parametrize("k", [1024, 4096, 20000])
def test_what_stands_by_cuts_long_sums(row, k):
    """cuBLAS does so where there are few tiles: 512 x 512 x 1024 has a third of the error of one chain there."""
    accurate, chain = norms_of_errors(row, *data("positive_twelve_decades", 200, 136, k))
    assert accurate <= 0.5 * chain


@accurate_row
@pytest.mark.parametrize("kind", ["normal", "uniform"])
@pytest.mark.parametrize("shape", TILED, ids=lambda shape: "x".join(map(str, shape)))
def test_every_tile_is_no_less_accurate_than_a_chain_of_float32(row, shape, kind):
    """The bound leaves room for a tile that sums up all of k where the tensor cores truncate; the norm does not."""
    a, b = data(kind, *shape)
    rows = np.unique(np.linspace(0, shape[0] - 1, 60).astype(int))
    exact = a[rows].astype(np.float64) @ b.astype(np.float64)
    accurate, chain = (
        np.linalg.norm(fl.sgemm(*on_device(a, b), kernel=name, precision=precision).numpy()[rows] - exact)
        for name, precision in ((row.name, "accurate"), ("naive", "strict"))
    )
    assert accurate <= 1.01 * chain


def test_little_is_lost_on_average(rng):
    """The tensor cores truncate; two terms compensate for most of it, but not in what may be exact."""
    a, b = rng.random((400, 1024), np.float32), rng.random((1024, 400), np.float32)
    exact = a.astype(np.float64) @ b
    assert -1.5 < np.mean((fl.sgemm(a, b, kernel="fp16x2") - exact) / exact) / UNIT < 0.5
    eye = np.eye(1024, dtype=np.float32)
    assert np.abs(fl.sgemm(a, eye, kernel="fp16x2") - a).max() <= 2 * UNIT
    small = rng.integers(-2047, 2048, a.shape).astype(np.float32), rng.integers(-4, 5, b.shape).astype(np.float32)
    np.testing.assert_array_equal(fl.sgemm(*small, kernel="fp16x2"), small[0].astype(np.float64) @ small[1])


@accurate_row
def test_a_million_positive_terms(row):
    rng = np.random.default_rng(6)
    a, b = rng.random((20, 10**6), np.float32), rng.random((10**6, 24), np.float32)
    got, chain = fl.sgemm(a, b, kernel=row.name), fl.sgemm(a, b, kernel="naive")
    assert_product(got, a, b)
    want = a.astype(np.float64) @ b.astype(np.float64)
    assert np.linalg.norm(got - want) <= min(5e-6 * np.linalg.norm(want), np.linalg.norm(chain - want))
