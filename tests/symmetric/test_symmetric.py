"""A matrix times its own transpose: the bits of the general product, exactly symmetric, in every layout.

The general product is that of a copy of the operand, which is not recognised. `symmetric_products.cpp` counts what is
computed.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fastlinalg as fl
from support.accuracy import assert_product, assert_same_bits, bits
from support.cpp_program import assert_noticed, assert_right, built_with_faults
from support.layouts import BROADCAST_LAYOUTS, MATRIX_LAYOUTS, matrix_input, result
from support.operands import normal
from support.rows import SLOW, rows
from support.source_tree import ROOT

F32 = np.float32
HERE = Path(__file__).parent
SOURCES = ROOT / "cpp"

# Around a strip, a panel, a square and a few of them, of every instruction set; k around a chain and a block of k.
SHAPES = ((2, 1), (2, 3), (5, 256), (15, 7), (17, 33), (31, 5), (33, 257), (47, 64), (49, 255), (64, 20), (95, 3),
          (97, 65), (128, 40), (191, 9), (193, 31), (289, 17), (50, 513), (37, 1025), (100, 2050))  # fmt: skip
CPU_ROWS = rows("sgemm", "cpu", strict=True)
CPU = {"device": "cpu", "precision": "strict"}  # one order of sums; accurate ones on AMX may have another


def general(a, b, **options):
    """The product with a copy of `a`, in its own order."""
    return fl.sgemm(a.copy(order="K"), b, device="cpu", **options)


def recognised(a, b, **options) -> bool:
    return "symmetric" in str(fl.explain(a, b, device="cpu", **options))


@pytest.mark.parametrize("row", CPU_ROWS)
def test_bits_of_the_general_product(row, rng):
    triangle = row.traits.triangle  # the others compute what they always do
    for threads in (1, 2, 5) if triangle and row.name not in SLOW else (2,):
        with fl.num_threads(threads):
            for n, k in SHAPES if triangle else SHAPES[:12]:
                a = normal(rng, n, k)
                for x in (a, np.asfortranarray(a)):
                    assert recognised(x, x.T, kernel=row.name) == triangle
                    for alpha in (1.0, -0.75):
                        options = {"alpha": alpha, "kernel": row.name}
                        got = fl.sgemm(x, x.T, **options)
                        context = f"{n}x{k}, {threads} threads, alpha {alpha}"
                        assert_same_bits(got, general(x, x.T, **options), context)
                        assert_same_bits(got, got.T, context)
                        assert_same_bits(fl.sgemm(x, x, trans_b=True, **options), got, context)
                assert_same_bits(fl.sgemm(a, a, trans_a=True, kernel=row.name), general(a.T, a, kernel=row.name))


@pytest.mark.parametrize("row", rows("sgemm", "cpu", strict=False))
def test_what_has_no_symmetric_sums_takes_float32(row, rng):
    for n, k in SHAPES[:12]:
        a = normal(rng, n, k)
        got = fl.sgemm(a, a.T, kernel=row.name)
        assert_product(got, a, a.T, context=f"{row.name} {n}x{k}")
        assert_same_bits(got, got.T, f"{row.name} {n}x{k}")


@pytest.mark.parametrize("row", [row for row in CPU_ROWS if row.values[0].traits.triangle])
def test_every_layout(row, rng):
    values = normal(rng, 67, 41)
    for name in (*MATRIX_LAYOUTS, *BROADCAST_LAYOUTS):
        a = matrix_input(values, name)
        options = {"kernel": row.name, "alpha": 1.5}
        for x in (a, a.T):
            want = general(x, x.T, **options)
            assert_product(want, x, x.T, alpha=1.5)
            for out_layout in MATRIX_LAYOUTS:
                out = result(want.shape, out_layout)
                fl.sgemm(x, x.T, out=out.array, **options)
                assert_same_bits(out.array, want, f"{name}, out {out_layout}")
                out.assert_intact(f"{name}, out {out_layout}")


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_large_products(rng, threads):
    """Several squares for each thread, groups of columns, and sums whose B is not kept."""
    with fl.num_threads(threads):
        for n, k in ((700, 300), (1100, 20), (260, 9000)):
            a = normal(rng, n, k)
            got = fl.matmul(a, a.T, **CPU)
            assert_same_bits(got, fl.matmul(a, a.copy().T, **CPU), f"{n}x{k}")
            f = np.asfortranarray(a)
            assert_same_bits(fl.matmul(f, f.T, **CPU), got, f"{n}x{k}, F order")


def test_batches(rng):
    for shape in ((3, 70, 50), (40, 33, 20), (2, 3, 130, 40), (1, 150, 90)):
        a = normal(rng, *shape)
        b = a.swapaxes(-1, -2)
        assert_same_bits(fl.matmul(a, b, **CPU), fl.matmul(a.copy(), b, **CPU), str(shape))
        assert_same_bits(fl.matmul(b, a, **CPU), fl.matmul(b.copy(), a, **CPU), str(shape))
        reversed_batch = a[::-1]  # the same memory from the other end: no product with its own transpose
        want = fl.matmul(reversed_batch.copy(), b, **CPU)
        assert_same_bits(fl.matmul(reversed_batch, b, **CPU), want, str(shape))
    one = np.broadcast_to(normal(rng, 60, 70), (5, 60, 70))
    assert_same_bits(fl.matmul(one, one.swapaxes(1, 2), **CPU), fl.matmul(one.copy(), one.swapaxes(1, 2), **CPU))


def test_what_only_looks_alike(rng):
    """Operands in the same memory that are not one matrix and its transpose."""
    memory = normal(rng, 400, 400)
    a = memory[:200, :200]
    pairs = {
        "not transposed": (a, a),
        "next row": (a, memory[1:201, :200].T),
        "reversed": (a, a[::-1].T),
        "reversed k": (a, a[:, ::-1].T),
        "other stride": (a, memory[:400:2, :200].T),
        "other stride along k": (a, memory[:200, :400:2].T),
        "fewer columns": (a, memory[:100, :200].T),
        "one row again": (a, np.broadcast_to(a[0], (200, 200)).T),
    }
    for name, (x, y) in pairs.items():
        assert not recognised(x, y), name
        assert_same_bits(fl.matmul(x, y, **CPU), fl.matmul(x.copy(), y.copy(), **CPU), name)
    c = normal(rng, 200, 200)
    options = {"c": c, "alpha": 2.0, "beta": 0.5, **CPU}
    got = fl.sgemm(a, a.T, **options)
    assert_same_bits(got, fl.sgemm(a.copy(), a.T, **options))
    assert_product(got, a, a.T, c, 2.0, 0.5)


def test_out_may_overlap_the_operand(rng):
    values = normal(rng, 260, 260)
    for n in (40, 130, 250):
        here, beside, backwards = np.s_[:n, :n], np.s_[3 : n + 3, 5 : n + 5], np.s_[n - 1 :: -1, :n]
        want = fl.matmul(values[here].copy(), values[here].T, **CPU)
        for place in (here, beside, backwards):
            for transposed in (False, True):
                memory = values.copy()
                out = memory[place].T if transposed else memory[place]
                fl.matmul(memory[here], memory[here].T, out=out, **CPU)
                assert_same_bits(out, want, f"{n} {place} {transposed}")


def test_nan_and_infinity_are_mirrored(rng):
    a = normal(rng, 150, 60)
    a[3, 5], a[70, 6], a[149, 0], a[40] = np.nan, np.inf, -np.inf, 0.0
    a.view(np.uint32)[100, 10] = 0x7FC12345
    got, want = fl.matmul(a, a.T, **CPU), fl.matmul(a.copy(), a.T, **CPU)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    assert_same_bits(np.where(np.isnan(got), F32(0), got), np.where(np.isnan(want), F32(0), want))
    assert_same_bits(got, got.T)
    assert (bits(got) == bits(got).T).all()  # the payloads of NaN too


def test_plans_follow_their_operands(rng):
    """What a plan was made for is not taken for what it is executed on."""
    a, b = normal(rng, 190, 75), normal(rng, 190, 75)
    product = fl.matmul(a.copy(), b.T, **CPU)
    with fl.Matmul(a, a.T, **CPU) as plan:
        assert_same_bits(plan.execute(), fl.matmul(a.copy(), a.T, **CPU))
        plan.reset_operands(a, b.T)
        assert_same_bits(plan.execute(), product)
        plan.reset_operands(b, b.T)
        assert_same_bits(plan.execute(), fl.matmul(b.copy(), b.T, **CPU))


def test_short_calls_follow_their_operands(rng):
    """Calls of a few microseconds are remembered."""
    for n, k in ((8, 8), (24, 60), (60, 6), (56, 12)):
        a, b = normal(rng, n, k), normal(rng, n, k)
        want = {id(x): fl.matmul(a.copy(), x.T, **CPU) for x in (a, b)}
        for x in (a, b, a, a, b, b, a):
            assert_same_bits(fl.matmul(a, x.T, **CPU), want[id(x)], f"{n}x{k}")


# ---------------------------------------------------------------- what is computed
KERNELS, PLAN = "cpp/kernels", "cpp/plan"
PACKED, PRODUCT, CUT = f"{KERNELS}/packed_sgemm.h", f"{KERNELS}/triangle_product.h", f"{PLAN}/triangle_cut.cpp"
SQUARE = "run_square(Block{i, m, j, smaller(n, i + m - j)}, k, b, packed);"
ON_THE_DIAGONAL = "run_square(Block{i, m, i, m}, k, b + (i - j) * smaller(blocking.KC, this->p_.k - k), true);"
LAST = "last = k + depth == this->p_.k;"
FAULTS = {
    "both triangles computed": (PACKED, "if (p.symmetric) return", "if (SEEDED ? p.m < 0 : p.symmetric) return"),
    "an edge tile lost": (PRODUCT, "c < block.n; c +=", "(SEEDED ? c + NR <= block.n : c < block.n); c +="),
    "mirrored into the computed triangle": (PRODUCT, "*at(q, r) = *at(r, q);", "*at(r, q) = *at(q, r);"),
    "the square on the diagonal twice": (PRODUCT, SQUARE, f"{SQUARE} if (i < j + n) {ON_THE_DIAGONAL}"),
    "mirrored too early": (PRODUCT, LAST, "last = SEEDED ? k == 0 : k + depth == this->p_.k;"),
    "columns of the last group lost": (CUT, "return squares;", "return squares - (groups > 1);"),
}


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> Path:
    """symmetric_products.cpp with all faults."""
    main = HERE / "symmetric_products.cpp"
    parts = [f"{part}/{x.name}" for part in (KERNELS, PLAN) for x in (ROOT / part).iterdir() if x.is_file()]
    options = ("-O0", "-pthread", SOURCES / "plan/cpu_blocking.cpp", SOURCES / "core/element.cpp")
    return built_with_faults(tmp_path_factory, main, parts, FAULTS, *options, seconds=200, compiled=[CUT])


def test_half_of_the_products_are_computed(program):
    assert_right(program, 100)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_noticed(fault, program):
    assert_noticed(program, 100, fault, FAULTS)
