"""Products of three bf16 terms on the CPU: which blocks are computed by them, the order of their sums, and their
instructions, which a model repeats on machines that have none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fastlinalg as fl
from support.accuracy import assert_product, assert_same_bits
from support.cpp_program import build, run
from support.hard_products import data
from support.rows import rows
from support.source_tree import ROOT

term_row = pytest.mark.parametrize("row", rows("sgemm", "cpu", strict=False))
amx_row = pytest.mark.parametrize(
    "row", [p for p in rows("sgemm", "cpu", strict=False) if p.values[0].needs == "amx_bf16"]
)
BLOCK = 32  # rows and columns of what is left to float32 together


def product(row, a, b, **options):
    return fl.sgemm(a, b, kernel=row.name, device="cpu", **options)


def strict(a, b):
    """The sums of every row with fused multiply-adds, in the order of docs/reproducible.md."""
    return fl.sgemm(a, b, device="cpu", precision="reproducible")


def normal(m, n, k, seed=0):
    rng = np.random.default_rng([seed, m, n, k])
    return rng.standard_normal((m, k), np.float32), rng.standard_normal((k, n), np.float32)


@term_row
@pytest.mark.parametrize("value", [np.nan, np.inf, 1e-42, 2.0**-104, 3e38])
def test_blocks_are_left_to_float32_one_by_one(row, value):
    """What three terms cannot hold decides for its block of rows or columns, and for no other."""
    a, b = normal(70, 100, 256)
    by_terms, by_chains = product(row, a, b), strict(a, b)
    assert (by_terms != by_chains).any(axis=1).all(), "no difference shows who computed"
    a[40, 7] = value
    got, want = product(row, a, b), strict(a, b)
    other = np.r_[:BLOCK, 2 * BLOCK : 70]
    assert_same_bits(got[BLOCK : 2 * BLOCK], want[BLOCK : 2 * BLOCK], "its block")
    assert_same_bits(got[other], by_terms[other], "other blocks")
    a, b = normal(70, 100, 256)
    b[3, 97] = value
    got, want = product(row, a, b), strict(a, b)
    assert_same_bits(got[:, 3 * BLOCK :], want[:, 3 * BLOCK :], "its block")
    assert_same_bits(got[:, : 3 * BLOCK], by_terms[:, : 3 * BLOCK], "other blocks")


# The exponents of the smallest and the largest of A and B, and whether three terms hold them with k = 32.
LIMITS = [
    ((-40, 0), (-40, 0), True),
    ((-41, 0), (-40, 0), False),  # a product of what is left of both may be less than 2^-126
    ((-103, 0), (23, 30), True),
    ((-104, 0), (30, 30), False),  # the last term may be subnormal
    ((0, 60), (0, 59), True),
    ((0, 60), (0, 60), False),  # so may 32 products be too large, and their sum
    ((0, 126), (-10, -10), True),
    ((0, 127), (-10, -10), False),  # rounded to 8 bits it may be infinite
]


@term_row
@pytest.mark.parametrize(("of_a", "of_b", "held"), LIMITS, ids=str)
def test_the_limits_of_three_terms(row, of_a, of_b, held):
    rng = np.random.default_rng(1)
    m, n, k = 16, 16, 32

    def between(shape, exponents):
        x = np.ldexp(rng.uniform(1, 2, shape), rng.integers(exponents[0], exponents[1] + 1, shape)).astype(np.float32)
        x.flat[:2] = np.ldexp(1.5, exponents)
        return x

    a, b = between((m, k), of_a), between((k, n), of_b)
    got = product(row, a, b)
    assert_product(got, a, b)
    assert (got != strict(a, b)).any() == held


@term_row
@pytest.mark.parametrize("values", ["normal", "graded", "twelve_decades", "tiny_lines", "subnormal", "the_largest"])
@pytest.mark.parametrize("k", [32, 300])
def test_the_identity_is_exact(row, values, k):
    a, _ = data(values, 70, 8, k)
    eye = np.eye(k, dtype=np.float32)
    np.testing.assert_array_equal(product(row, a, eye), a)
    np.testing.assert_array_equal(product(row, eye, np.ascontiguousarray(a.T)), a.T)


@term_row
def test_bits_depend_on_no_thread_and_no_neighbour(row):
    a, b = normal(200, 330, 700)
    a[50, 3] = np.nan
    want = product(row, a, b)
    for threads in (1, 2, 3, 5):
        with fl.num_threads(threads):
            assert_same_bits(product(row, a, b), want, f"{threads} threads")
    assert_same_bits(product(row, a[64:], b[:, 128:]), want[64:, 128:], "a part of it")
    assert_same_bits(product(row, np.asfortranarray(a), b.T.copy().T), want, "other layouts")
    out = np.full((200, 660), np.nan, np.float32)[:, ::2]
    assert_same_bits(product(row, a, b, out=out), want, "a result with gaps")


@term_row
@pytest.mark.parametrize("k", [64, 256, 1024])
@pytest.mark.parametrize("kind", ["normal", "uniform", "exp_normal"])
def test_no_less_accurate_in_norm_than_strict(row, kind, k):
    a, b = data(kind, 128, 96, k)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    by_terms, by_chains = (np.linalg.norm(got - exact) for got in (product(row, a, b), strict(a, b)))
    assert by_terms <= by_chains


@term_row
@pytest.mark.parametrize("constant", ["a", "b"])
def test_plans_keep_the_terms_of_what_stays(row, constant):
    """With the bits of a call, until they are told that its values have changed."""
    a, b = normal(70, 100, 600)
    for operands in (
        (a, b),
        (a, b.T.copy().T),
        (np.stack([a, 2 * a]), b),
        (np.stack([a, 3 * a]), np.stack([b, b + 1])),
    ):
        stays = operands[constant == "b"]
        want = product(row, *operands)
        with fl.Matmul(*operands, constant=constant, kernel=row.name, device="cpu") as plan:
            with fl.Matmul(*operands, kernel=row.name, device="cpu") as other:
                assert plan.workspace_bytes >= other.workspace_bytes + 6 * stays.size
            for threads in (3, 1):  # another number of them makes the terms anew
                with fl.num_threads(threads):
                    assert_same_bits(plan.execute(), want)
            assert_same_bits(plan.execute(), want)
            before = stays.copy()
            stays[...] = -before
            assert_same_bits(plan.execute(), want, "what has changed was read")
            plan.reset_operands(**{constant: stays})
            assert_same_bits(plan.execute(), product(row, *operands), "what has changed was not read")
            stays[...] = before


@amx_row
@pytest.mark.parametrize(
    "shape", [(32, 32, 256), (70, 66, 256), (129, 200, 512), (260, 140, 2049), (17, 1, 33)], ids=str
)
def test_the_model_has_the_bits_of_the_instructions(row, shape):
    for kind in ("normal", "twelve_decades", "graded", "subnormal"):
        a, b = data(kind, *shape)
        want = fl.sgemm(a, b, kernel="amx_bf16x6_model", device="cpu")
        assert_same_bits(product(row, a, b), want, kind)


@amx_row
@pytest.mark.parametrize("tiles", [2000, pytest.param(100_000, marks=pytest.mark.exhaustive)])
def test_the_model_is_the_instruction(row, tmp_path, tiles):
    """Tile by tile, with operands that no kernel gives it: so many of each of seven kinds."""
    source = Path(__file__).with_name("tile_products.cpp")
    program = build(tmp_path / "tiles", source, "-O2", "-pthread", "-I", ROOT / "cpp", source, seconds=60)
    done = run(program, 60, str(tiles), str(fl.get_num_threads()))
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 7 and all(line.endswith(" tiles, 0 differ") for line in lines), done.stdout
