"""What docs/accuracy.md says that tensor cores lose, on a software model of each generation of them."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import fastlinalg as fl
from fastlinalg._check import UNIT
from support.device import on_device
from support.rows import rows
from support.source_tree import ROOT
from support.tensor_cores import TENSOR_CORES, accumulate, fp16x2_product

every_generation = pytest.mark.parametrize("capability", TENSOR_CORES)


def block(capability):
    """Of k, what is promoted to float32 at a time: fp16x2_mma_k8 computes on 7.5."""
    return 64 if capability >= 80 else 32


def constant(name):
    return int(re.search(rf"\b{name} = (\d+)", (ROOT / "cpp/plan/accurate/range_bound.h").read_text())[1])


def promised(capability, k):
    """Units of u = 2^-24 of the sum of magnitudes that a product by two fp16 terms may be off: docs/accuracy.md."""
    return constant("MMA_ERROR" if capability >= 80 else "MMA_K8_ERROR") + k / block(capability)


def worst(core, k, every):
    """A row and a column of which every addition but the first loses nearly all that it can: one number in `every` is
    2^14, and products of the others are just below what is kept beside 2^28, but for one that sets the bit behind the
    last."""
    unit = 2.0 ** (28 - 23 - core.extra)
    below, odd = unit * (1 - 2.0**-9), 2.0 ** (28 - 23) * (1 - 2.0**-9)
    products = np.full(k, below)
    products[core.products - 1 :: core.products] = odd
    a, b = np.full(k, 2.0**14), np.full(k, 2.0**14)
    a[np.arange(k) % every != 0] = 2.0**-2
    b[np.arange(k) % every != 0] = (products * 4)[np.arange(k) % every != 0]
    return a[None, :], b[:, None]


def loss(got, a, b):
    """In units of u of the sum of magnitudes."""
    return float(np.max(np.abs(got - a @ b) / (np.abs(a) @ np.abs(b))) / UNIT)


@every_generation
def test_truncation_is_as_large_as_reckoned_and_no_larger(capability):
    core, k = TENSOR_CORES[capability], block(capability)
    a, b = worst(core, k, k)
    lost = loss(accumulate(core, np.zeros((1, 1)), a, b), a, b)
    assert 0.6 * core.truncation(k) < lost < core.truncation(k)


@every_generation
def test_one_bit_less_would_break_the_bound_of_a_block(capability):
    core, k = TENSOR_CORES[capability], block(capability)
    fewer = replace(core, extra=core.extra - 1)
    a, b = worst(fewer, k, k)
    assert loss(accumulate(fewer, np.zeros((1, 1)), a, b), a, b) > core.truncation(k)


@every_generation
def test_the_error_that_the_range_check_reckons_with_has_room_for_truncation(capability):
    """Two terms hold 22 bits and a half, and one product is left out: 4 u each; and the small products, 2^-11 as large,
    are summed twice as often."""
    needed = 8 + TENSOR_CORES[capability].truncation(block(capability)) * (1 + 2 * 2.0**-11)
    assert needed <= promised(capability, 0)
    assert capability >= 90 or promised(capability, 0) < needed + 1, "of 9.0 on as before it"


DATA = {
    "worst": lambda core, rng, k, every: worst(core, k, every),
    "positive": lambda core, rng, k, every: [rng.random(shape) * 2**14 for shape in ((6, k), (k, 5))],
    "normal": lambda core, rng, k, every: [rng.standard_normal(shape) * 2**12 for shape in ((6, k), (k, 5))],
    "integers": lambda core, rng, k, every: [rng.integers(-999, 999, shape) * 8.0 for shape in ((6, k), (k, 5))],
}


@every_generation
@pytest.mark.parametrize("kind", DATA)
@pytest.mark.parametrize("k", [256, 1024, 4096])
def test_products_of_two_terms_keep_to_the_bound(capability, kind, k, rng):
    core, every = TENSOR_CORES[capability], block(capability)
    a, b = (x.astype(np.float32).astype(np.float64) for x in DATA[kind](core, rng, k, every))
    assert loss(fp16x2_product(core, a, b, every), a, b) < promised(capability, k) < k


@every_generation
def test_without_promotion_the_bound_breaks(capability):
    """One number of 2^14 in all of k, and every addition after it truncates."""
    core, k, every = TENSOR_CORES[capability], 8192, block(capability)
    a, b = worst(core, k, every)
    first = np.arange(k) % every == 0
    a[:, first], b[first] = 2.0**-2, b[1]
    a[0, 0] = b[0, 0] = 2.0**14
    never = loss(fp16x2_product(core, a, b, k), a, b)
    assert never > promised(capability, k)
    assert loss(fp16x2_product(core, a, b, every), a, b) < promised(capability, k)
    if capability < 90:
        assert never > k, "not even the bound of float32"


@pytest.mark.gpu
@pytest.mark.parametrize("row", rows("sgemm", "cuda", strict=False))
def test_the_device_keeps_to_what_is_promised(row):
    """Those data again, in so many tiles that k is not cut: without promotion some thousand units are lost."""
    k, every = 8192, 64
    a, b = worst(TENSOR_CORES[90], k, every)
    first = np.arange(k) % every == 0
    for once in (True, False):
        left, right = a.copy(), b.copy()
        if once:
            left[:, first], right[first] = 2.0**-2, b[1]
            left[0, 0] = right[0, 0] = 2.0**14
        operands = np.tile(left, (1500, 1)).astype(np.float32), np.tile(right, (1, 1500)).astype(np.float32)
        got = fl.sgemm(*on_device(*operands), kernel=row.name).numpy()[::131, ::77]
        assert loss(got, left, right) < constant("MMA_K8_ERROR") + k / 32, once
