"""Costs as data: models, coefficients, what carries over to another chip, and the fit."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import json
import math
import sys
from dataclasses import replace

import numpy as np
import pytest

import fastlinalg as fl
from fastlinalg import _core
from support.chips import H200
from support.programs import completed
from support.rows import OPERATIONS
from support.source_tree import ROOT, needs_source_tree

# Names, not rows: models can be asked where the kernels cannot run.
GPU_KERNELS = [(op, row.name) for op in OPERATIONS for row in fl.kernels(op) if row.device == "cuda"]
every_kernel = pytest.mark.parametrize(("op", "kernel"), GPU_KERNELS)


def shapes(op: str, count: int = 60):
    """Calls of all kinds, as tools/fit_costs hands them over."""
    rng = np.random.default_rng(5)
    found = []
    for i in range(count):
        m, n, k = (int(x) for x in np.exp(rng.uniform(0, math.log(4096), 3)))
        if i % 4 == 3:  # long enough for bytes to count, and few enough rows for kernels of few
            m, n, k = min(m, 8), n + 8192, k + 64
        precision = "strict" if i % 2 else "accurate"
        odd = [int(x) for x in rng.integers(0, 4, 3)] if i % 3 == 0 else [0, 0, 0]
        found.append((m, n, k, 1, bool(i % 5 < 2) and op != "transpose", bool(i % 7 < 3), odd, odd, precision))
    return found


def estimates(op, kernel, device=None, coefficients=(), calls=None):
    return np.array(_core.testing.CostCalls(op, calls or shapes(op), device).estimate_us(kernel, list(coefficients)))


def test_a_gpu_has_no_coefficients_of_kernels_of_the_cpu():
    coefficients = dict(_core.testing.cost_coefficients("sgemm", "portable_small", "zen4")).values()
    assert np.isfinite(estimates("sgemm", "portable_small", coefficients=coefficients)).any()
    with pytest.raises(ValueError, match="portable_small is no GPU kernel"):
        estimates("sgemm", "portable_small")


@every_kernel
def test_every_kernel_has_coefficients_with_names(op, kernel):
    found = dict(_core.testing.cost_coefficients(op, kernel))
    assert found and all(math.isfinite(value) for value in found.values())
    traits = {row.name: row.traits for row in fl.kernels(op)}
    assert "h200" in traits[kernel].measured_on
    np.testing.assert_array_equal(estimates(op, kernel), estimates(op, kernel, H200, found.values()))


@every_kernel
def test_a_chip_without_measurements_takes_scaled_ones(op, kernel):
    """Half of the clock and of the memory's speed: at most twice as long, and never shorter."""
    other = H200 | {"name": "another", "clock_khz": 990000, "memory_bytes_per_us": 2.4e6}
    ratio = estimates(op, kernel, other) / estimates(op, kernel, H200)
    ratio = ratio[~np.isnan(ratio)]
    assert ratio.size and ratio.min() > 0.999 and ratio.max() < 2.2
    assert op != "sgemm" or ratio.max() > 1.2


def test_another_name_alone_changes_nothing():
    for op, kernel in GPU_KERNELS:
        same = estimates(op, kernel, H200 | {"name": "another"})
        np.testing.assert_allclose(same, estimates(op, kernel), rtol=1e-12)


def test_wrong_coefficients_are_an_error():
    with pytest.raises(ValueError, match="has 6 coefficients, got 2"):
        estimates("sgemm", "strict_128x256", coefficients=[1.0, 2.0])


# ---------------------------------------------------------------- tools/fit_costs
@pytest.fixture(scope="module")
def fit_costs():
    pytest.importorskip("scipy")
    path = str(ROOT / "tools" / "fit_costs")
    loader = importlib.machinery.SourceFileLoader("fit_costs", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("fit_costs", loader))
    sys.modules["fit_costs"] = module
    loader.exec_module(module)
    return module


KERNEL, CHANGED = "strict_64x128k4", {"tile_ns": 1.3, "k_ps": 0.8}


def synthetic(tmp_path, fit_costs):
    """Measurements that known coefficients would give."""
    values = [x * CHANGED.get(name, 1.0) for name, x in _core.testing.cost_coefficients("sgemm", KERNEL)]
    calls = shapes("sgemm", 120)
    times = estimates("sgemm", KERNEL, H200, values, calls).tolist()
    keys = ("m", "n", "k", "batch", "trans_a", "trans_b", "pad", "offset", "precision")
    rows = [
        dict(zip(keys, call, strict=True)) | {"op": "sgemm", "us": {KERNEL: us}}
        for call, us in zip(calls, times, strict=True)
    ]
    path = tmp_path / "measured.json"
    path.write_text(json.dumps({"commit": "0123456789", "device": H200, "measured": rows}))
    return path


@needs_source_tree
def test_a_fit_finds_the_coefficients_again(fit_costs, tmp_path):
    measured = fit_costs.load(synthetic(tmp_path, fit_costs))
    table = fit_costs.TABLE.read_text()
    before = fit_costs.measured_lines(table, "h200")
    after = fit_costs.fitted_lines(before, fit_costs.Judge([measured]))
    old, new = (lines[f"sgemm_{KERNEL}"] for lines in (before, after))
    for name, factor in CHANGED.items():
        assert float(new.coefficients[name]) == pytest.approx(float(old.coefficients[name]) * factor, rel=0.05)
    assert float(new.residual) < 0.01 and new.commit == "0123456"
    assert [name for name in after if after[name] != before[name]] == [f"sgemm_{KERNEL}"]  # nothing else was measured
    assert fit_costs.fitted_lines(after, fit_costs.Judge([measured])) == after  # and again
    assert fit_costs.table(table, [measured]) == table  # one kernel alone: no choice on unseen calls gets better


@needs_source_tree
def test_a_device_that_costs_are_carried_over_to_serves_their_fit(fit_costs, tmp_path):
    measured = fit_costs.load(synthetic(tmp_path, fit_costs))
    other = replace(measured, device=H200 | {"name": "NVIDIA H100", "costs_from": "h200"})
    foreign = replace(measured, device=H200 | {"name": "RTX", "costs_from": ""})
    assert [file.chip for file in (measured, other, foreign)] == ["h200", "h200", ""]
    apart = fit_costs.merged([measured, other])  # a call has a time on each
    assert [(file.device["name"], len(file.calls)) for file in apart] == [(H200["name"], 120), ("NVIDIA H100", 120)]


@pytest.mark.exhaustive
@needs_source_tree
def test_the_table_is_what_a_fit_of_the_committed_measurements_gives():
    if not list((ROOT / "benchmarks" / "results" / "costs").glob("*.json")):
        pytest.skip("there are no measurements")
    completed(sys.executable, ROOT / "tools" / "fit_costs", "--check", seconds=600)
