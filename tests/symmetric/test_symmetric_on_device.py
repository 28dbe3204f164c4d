"""A matrix times its own transpose on a GPU: exactly symmetric where one triangle of tiles is computed.

That triangle has the bits of the general product, which is that of a copy of the operand.
"""

from __future__ import annotations

import copy

import numpy as np
import pytest

import fastlinalg as fl
from support.accuracy import assert_product, assert_same_bits
from support.device import on_device, place, product
from support.device_libraries import view
from support.operands import normal
from support.rows import best_precision, rows

pytestmark = pytest.mark.gpu
F32 = np.float32
TRIANGLES = [row for row in rows("sgemm", "cuda") if row.values[0].traits.triangle]
every_row = pytest.mark.parametrize("row", TRIANGLES)
# n, k, problems: tiles on the diagonal that are whole and that are not, a round of them and several, short and long k.
SHAPES = ((1500, 260, 1), (1793, 321, 1), (2305, 1100, 1), (2561, 300, 2), (3072, 2050, 1), (2600, 4100, 1))


def turned(x):
    """The same memory of a DeviceArray."""
    return view(x, np.transpose)


def transposed(x):
    """The same memory of a DeviceMatrix."""
    other = copy.copy(x)
    other.transposed = not x.transposed
    return other


def halves(row, shape, a, alpha=1.0, placement="aligned"):
    """The product with the operand's own transpose and with that of a copy, of a stack of `a`."""
    n, _, batch = shape
    answers = []
    for by_columns in (False, True):
        x = place(a, placement, by_columns)
        y = place(a.swapaxes(1, 2), placement, not by_columns)
        for b in (transposed(x), y):
            c = place(np.full((batch, n, n), np.nan, F32), placement)
            answers.append(product(row.name, x, b, c, alpha, precision=best_precision(row)))
    return answers


def computes_triangle(row, n, k) -> bool:
    (a,) = on_device(np.zeros((n, k), F32))
    return "symmetric" in str(fl.explain(a, turned(a), kernel=row.name, precision=best_precision(row)))


def assert_mirrored(row, shape, answers, context):
    n, k, _ = shape
    of_rows, general, of_columns, general_of_columns = answers
    assert_same_bits(general_of_columns, general, context)
    assert_same_bits(of_columns, of_rows, context)
    triangle = computes_triangle(row, n, k)
    for got, want in zip(of_rows, general, strict=True):
        assert_same_bits(np.tril(got), np.tril(want), context)
        assert_same_bits(got, np.where(np.tri(n, dtype=bool), want, want.T) if triangle else want, context)


@every_row
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "x".join(map(str, shape)))
def test_bits_of_the_general_product(row, shape, rng):
    n, k, batch = shape
    a = normal(rng, batch, n, k)
    for alpha, placement in ((1.0, "aligned"), (-0.75, "odd_shifted")):
        answers = halves(row, shape, a, alpha, placement)
        assert_mirrored(row, shape, answers, f"{shape}, alpha {alpha}, {placement}")
        assert_product(answers[0][-1], a[-1], a[-1].T, alpha=alpha)


@every_row
def test_where_one_triangle_is_computed(row):
    """Where that is faster alone; and it is not all or nothing."""
    assert computes_triangle(row, 8192, 1024) and computes_triangle(row, 4096, 4096)
    assert row.strict or not computes_triangle(row, 600, 1024)


@every_row
@pytest.mark.parametrize(("n", "k"), [(3100, 1800), (1600, 900)])  # three terms in launches of their own, or not
@pytest.mark.parametrize("kind", ["many octaves", "one small row", "infinite", "nan", "subnormal"])
def test_hard_operands(row, kind, n, k, rng):
    """What two terms cannot hold goes to three, and what is not finite to float32: symmetric too."""
    a = normal(rng, 1, n, k)
    if kind == "many octaves":
        a *= np.exp2(rng.uniform(-60, 30, a.shape)).astype(F32)
    elif kind == "one small row":
        a[0, 700] *= F32(2.0**-80)
    elif kind == "subnormal":
        a *= F32(2.0**-130)
    else:
        a[0, 3, 5] = a[0, n // 2, 6] = np.inf if kind == "infinite" else np.nan
        a[0, n - 1, 0] = -np.inf
    of_rows, general, *_ = halves(row, (n, k, 1), a)
    assert_same_bits(of_rows, of_rows.swapaxes(1, 2), kind)
    low = np.tri(n, dtype=bool)
    np.testing.assert_array_equal(np.isnan(of_rows[0][low]), np.isnan(general[0][low]))
    if row.strict or kind in ("one small row", "infinite", "nan"):
        finite = low & ~np.isnan(general[0])
        assert_same_bits(of_rows[0][finite], general[0][finite], kind)
    if kind in ("many octaves", "one small row"):
        assert_product(of_rows[0], a[0], a[0].T)


@every_row
@pytest.mark.parametrize("octaves", [0, 60])  # where two terms were rejected, the next call begins with three
def test_the_same_bits_again(row, octaves, rng):
    n, k = 2600, 700
    (a,) = on_device(normal(rng, n, k) * np.exp2(rng.uniform(-octaves, 0, (n, k))).astype(F32))
    options = {"kernel": row.name, "precision": best_precision(row)}
    first = fl.sgemm(a, turned(a), **options).numpy()
    for _ in range(20):
        assert_same_bits(fl.sgemm(a, turned(a), **options).numpy(), first)
    assert_same_bits(first, first.T)


@every_row
def test_out_may_be_the_operand(row, rng):
    values = normal(rng, 1800, 1800)
    options = {"kernel": row.name, "precision": best_precision(row)}
    (a,) = on_device(values)
    want = fl.sgemm(a, turned(a), **options).numpy()
    fl.sgemm(a, turned(a), out=a, **options)
    assert_same_bits(a.numpy(), want)


@every_row
def test_plans_and_graphs_follow_their_operands(row, rng):
    a, b = on_device(normal(rng, 1800, 300), normal(rng, 1800, 300))
    options = {"kernel": row.name, "precision": best_precision(row)}
    own, other = fl.sgemm(a, turned(a), **options).numpy(), fl.sgemm(a, turned(b), **options).numpy()
    with fl.Matmul(a, turned(a), **options) as plan:
        for _ in range(3):
            assert_same_bits(plan.execute().numpy(), own)
        plan.reset_operands(a, turned(b))
        assert_same_bits(plan.execute().numpy(), other)
        plan.reset_operands(a, turned(a))
        assert_same_bits(plan.execute().numpy(), own)
