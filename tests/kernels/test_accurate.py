"""Rows that serve ``precision="accurate"`` alone: the bound of docs/accuracy.md on data made to break it."""

from __future__ import annotations

import functools
import logging
from itertools import product

import numpy as np
import pytest

import fastlinalg as fl
from support.accuracy import assert_product, assert_same_bits
from support.device import on_device
from support.device_libraries import Placed
from support.hard_products import KINDS, TILED, data, signs
from support.operands import dtype_of
from support.rows import rows

gpu = pytest.mark.gpu
accurate_row = pytest.mark.parametrize("row", rows("sgemm", strict=False))
gpu_row = pytest.mark.parametrize("row", rows("sgemm", "cuda", strict=False))
SHAPES = ((70, 66, 256), (129, 200, 512), (33, 140, 1100), (260, 140, 2049))
TRANSPOSITIONS = tuple(product((False, True), repeat=2))


def is_model(row) -> bool:
    return row.name.endswith("_model")


def shapes(row, *large):
    """A model of instructions takes a second for what a GPU does in a microsecond."""
    if row and row.device == "cpu":
        return SHAPES[:3] if is_model(row) else SHAPES
    return (*SHAPES, *large)


def transpositions(row, shape):
    return TRANSPOSITIONS[::3] if is_model(row) and shape != SHAPES[0] else TRANSPOSITIONS


@accurate_row
@pytest.mark.parametrize("kind", KINDS)
def test_the_bound_holds_on_any_finite_data(row, kind):
    for shape in shapes(row):
        a, b = data(kind, *shape)
        for trans_a, trans_b in transpositions(row, shape):
            check_transposed(row, a, b, trans_a, trans_b, f"{kind} {shape}")


def check_transposed(row, a, b, trans_a, trans_b, context):
    sgemm = functools.partial(fl.sgemm, trans_a=trans_a, trans_b=trans_b, kernel=row.name)
    left, right = np.ascontiguousarray(a.T) if trans_a else a, np.ascontiguousarray(b.T) if trans_b else b
    got = sgemm(left, right)
    assert_product(got, a, b, context=f"{context} {trans_a}, {trans_b}")
    if not is_model(row):
        assert_same_bits(sgemm(left, right), got, f"{context}: a second run")


LARGE = (2048, 2052, 4096)  # from here on three terms are the fallback of two
DISPATCHED = (1040, 1156, 1300)  # dispatch takes two terms for this


@gpu
@pytest.mark.parametrize("kind", KINDS)
def test_the_bound_holds_for_what_dispatch_takes(kind, caplog):
    caplog.set_level(logging.DEBUG, "fastlinalg")
    a, b = data(kind, *DISPATCHED)
    got = fl.sgemm(*on_device(a, b)).numpy()
    chosen = [message for message in caplog.messages if "1040x1156x1300" in message]
    assert all("-> cuda:0 fp16x2" in message for message in chosen), chosen  # once a shape: there may be none
    assert_product(got, a, b, context=kind)
    assert_same_bits(fl.matmul(*on_device(a, b)).numpy(), got, kind)


def host(result):
    return result if isinstance(result, np.ndarray) else result.numpy()


def assert_special_as_strict(row, left, right, context, **options):
    """NaN, Inf and -Inf in the same places as a strict product has them, and only there."""
    there = on_device if row is None or row.device == "cuda" else lambda *arrays: arrays
    operands = there(left, right)
    if options.get("c") is not None:
        (options["c"],) = there(options["c"])
    where = {"device": "cpu"} if there is not on_device else {}
    want = host(fl.sgemm(*operands, precision="strict", **where, **options))
    got = host(fl.sgemm(*operands, kernel=row and row.name, **where, **options))
    special = ~np.isfinite(want)
    np.testing.assert_array_equal(got[special], want[special], err_msg=context)
    assert np.isfinite(got[~special]).all(), context
    return special


accurate_choice = pytest.mark.parametrize(
    "row", [pytest.param(None, marks=gpu, id="dispatch"), *rows("sgemm", strict=False)]
)


@accurate_choice
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_special_values_are_where_strict_puts_them(row, value, rng):
    for m, n, k in shapes(row, DISPATCHED, LARGE):
        a, b = rng.standard_normal((m, k), np.float32), rng.standard_normal((k, n), np.float32)
        a[m // 2, k - 1], b[k // 3, n - 1], b[k // 3, 0] = value, value, 0.0
        special = assert_special_as_strict(row, a, b, f"{(m, n, k)}")
        assert special[m // 2].all() and special[:, n - 1].all()
        assert special.sum() == m + n - 1


@accurate_choice
def test_many_special_values(row, rng):
    """Inf times zero, Inf less Inf, and NaN, in either operand."""
    values = np.array([np.nan, np.inf, -np.inf], np.float32)
    for m, n, k in shapes(row, DISPATCHED):
        a, b = rng.standard_normal((m, k), np.float32), rng.standard_normal((k, n), np.float32)
        a[rng.random(a.shape) < 0.1], b[rng.random(b.shape) < 0.1] = 0.0, 0.0
        for x in (a, b):
            where = rng.integers(0, x.shape[0], 6), rng.integers(0, x.shape[1], 6)
            x[where] = rng.choice(values, 6)
        assert assert_special_as_strict(row, a, b, f"{(m, n, k)}").any()


@accurate_choice
def test_sums_beyond_the_largest_float(row, rng):
    """Finite operands whose products overflow, in every order of summation, in some rows and columns."""
    for m, n, k in shapes(row, DISPATCHED):
        a, b = rng.random((m, k), np.float32) + 0.5, rng.random((k, n), np.float32) + 0.5
        a[::3] *= np.float32(2.0**70)
        a[::6] *= np.float32(-1.0)
        b[:, 1::2] *= np.float32(2.0**60)
        special = assert_special_as_strict(row, a, b, f"{(m, n, k)}")
        assert special[::3, 1::2].all() and special.sum() == special[::3, 1::2].size


@accurate_choice
def test_special_alpha_and_beta(row, rng):
    m, n, k = SHAPES[1]
    a, b = rng.standard_normal((m, k), np.float32), rng.standard_normal((k, n), np.float32)
    c = rng.standard_normal((m, n), np.float32)
    c[0, 0], c[1, 1], c[2, 2] = np.nan, np.inf, 0.0
    for alpha, beta in ((np.nan, 0.0), (np.inf, 1.0), (-np.inf, 0.0), (1.0, np.nan), (1.0, np.inf), (0.0, 2.0)):
        old = c if beta else None
        assert_special_as_strict(row, a, b, f"{alpha}, {beta}", c=old, alpha=alpha, beta=beta)
    a[3, 4] = np.inf
    for old, beta in ((None, 0.0), (c, -1.0)):
        assert_special_as_strict(row, a, b, f"{beta}", c=old, alpha=2.0, beta=beta)


@accurate_row
def test_finite_data_after_special_values(row, rng):
    """The workspace of a call that fell back is the next one's."""
    a, b = rng.standard_normal((150, 300), np.float32), rng.standard_normal((300, 170), np.float32)
    bad = a.copy()
    bad[3, 4] = np.nan
    fl.sgemm(bad, b, kernel=row.name)
    assert_product(fl.sgemm(a, b, kernel=row.name), a, b)


@accurate_row
def test_strict_is_refused(row):
    one = np.ones((4, 4), np.float32)
    with pytest.raises(ValueError, match="needs the precision 'accurate'; leave its name out"):
        fl.sgemm(one, one, kernel=row.name, precision="strict")


@gpu
@pytest.mark.parametrize("values", ["normal", "uniform", "graded", "twelve_decades", "tiny_lines", "subnormal"])
@pytest.mark.parametrize("k", [256, 1000, 1300])
@pytest.mark.parametrize("kernel", ["bf16x6", "bf16x6_mma"])
def test_three_terms_are_exact_for_the_identity(values, k, kernel):
    a, _ = data(values, 200, 8, k)
    eye = np.eye(k, dtype=np.float32)
    np.testing.assert_array_equal(fl.sgemm(a, eye, kernel=kernel), a)
    np.testing.assert_array_equal(fl.sgemm(eye, np.ascontiguousarray(a.T), kernel=kernel), a.T)


@gpu
@pytest.mark.parametrize(
    ("kind", "answers"),
    [
        *((kind, "fp16x2") for kind in ("normal", "uniform", "integers", "the_largest", "cancelling")),
        *((kind, "fp16x2") for kind in ("late_start", "late_start_of_b", "one_late_line", "late_and_huge")),
        *((kind, "fp16x2") for kind in ("tiny_lines", "level_products", "logits", "outliers", "fft")),
        *((kind, "bf16x6") for kind in ("graded", "twelve_decades", "hundred_octaves", "growing")),
        *((kind, "bf16x6") for kind in ("kernel_matrix", "cholesky", "vandermonde")),
        ("many_octaves", "strict"),
    ],
)
def test_which_terms_answer_is_decided_by_the_data(kind, answers):
    """Each scheme has bits of its own: who answered shows in the result."""
    a, b = data(kind, *LARGE)
    whole = on_device(a, b)
    got = {name: fl.sgemm(*whole, kernel=name).numpy() for name in ("fp16x2", "bf16x6")}
    if answers == "fp16x2":
        assert (got["fp16x2"] != got["bf16x6"]).any()
    else:
        assert_same_bits(got["fp16x2"], got["bf16x6"], kind)
    assert_product(got["fp16x2"], a, b, context=kind)
    assert_product(got["bf16x6"], a, b, context=kind)


# Kind of data, kernel, m, who computes. Each m is another one, since a shape is logged once in a row.
FALL_BACKS = [
    ("normal", "fp16x2", 2055, "two fp16 terms"),
    ("graded", "fp16x2", 2049, "three bf16 terms because of the range of the operands"),
    ("many_octaves", "fp16x2", 2050, "plain float32 because of the range of the operands"),
    ("nan", "fp16x2", 2051, "plain float32 because of NaN or infinite numbers"),
    ("kernel_matrix", "fp16x2", 2063, "three bf16 terms because of the range of the operands"),
    ("tall", "fp16x2", 2064, "plain float32 because of the range of the operands"),
    ("graded", "fp16x2", 200, "three bf16 terms because of the range of the operands"),  # in the launch of two
    ("normal", "fp16x2_mma", 2058, "two fp16 terms"),
    ("graded", "fp16x2_mma", 2056, "three bf16 terms because of the range of the operands"),
    ("graded", "fp16x2_mma", 201, "plain float32 because of the range of the operands"),
    ("nan", "fp16x2_mma", 2057, "plain float32 because of NaN or infinite numbers"),
    ("normal", "fp16x2_mma_k8", 2061, "two fp16 terms"),
    ("graded", "fp16x2_mma_k8", 2062, "plain float32 because of the range of the operands"),
    ("graded", "bf16x6_mma", 2059, "three bf16 terms"),
    ("nan", "bf16x6_mma", 2060, "plain float32 because of NaN or infinite numbers"),
    ("graded", "bf16x6", 2052, "three bf16 terms"),
    ("many_octaves", "bf16x6", 2053, "plain float32 because of the range of the operands"),
    ("nan", "bf16x6", 2054, "plain float32 because of NaN or infinite numbers"),
]


@gpu
@pytest.mark.parametrize(("kind", "kernel", "m", "who"), FALL_BACKS)
def test_the_log_says_who_computed(kind, kernel, m, who, caplog):
    _, n, k = LARGE
    a, b = data({"nan": "normal", "tall": "kernel_matrix"}.get(kind, kind), m, n, k)
    if kind == "nan":
        a[3, 5] = np.nan
    if kind == "tall":  # what is lost of small numbers beside 2^10 and more is no underflow
        a *= 2.0**12
    operands = on_device(a, b)
    caplog.set_level(logging.DEBUG, "fastlinalg")
    got = fl.sgemm(*operands, kernel=kernel)
    (line,) = [message for message in caplog.messages if "computed by" in message]
    assert line == f"sgemm {m}x{n}x{k} -> cuda:0 {kernel}, computed by {who}"
    assert np.isfinite(got.numpy()[4:]).all()


@gpu_row
@pytest.mark.parametrize("pad", [0, 1])
def test_many_tiles_with_beta_in_place(row, pad):
    """More tiles than multiprocessors: the old C of one is read while the one before is stored."""
    rng = np.random.default_rng(pad)
    m, n, k = 2100, 4200 + pad, 300
    a, b, c = (rng.standard_normal(shape, np.float32) for shape in ((m, k), (k, n), (m, n)))
    got = fl.sgemm(*on_device(a, b, c), alpha=-1.5, beta=0.5, kernel=row.name).numpy()
    assert_product(got, a, b, c, -1.5, 0.5, context=row.name)


@gpu_row
@pytest.mark.parametrize("shape", TILED, ids=lambda shape: "x".join(map(str, shape)))
@pytest.mark.parametrize("pad", [0, 1])
def test_every_tile(row, shape, pad):
    """With old values of C or without, in rows that start at multiples of 16 bytes or do not."""
    m, n, k = shape
    rng = np.random.default_rng(n + pad)
    a, b, c = (rng.standard_normal(size, np.float32) for size in ((m, k), (k, n + pad), (m, n + pad)))
    rows = np.unique(np.append(rng.integers(0, m, 60), [0, m - 1]))
    for beta in (0.0, 0.5):
        operands = on_device(a, b, c) if beta else on_device(a, b)
        got = fl.sgemm(*operands, alpha=-1.5, beta=beta, kernel=row.name).numpy()
        assert_product(got[rows], a[rows], b, c[rows], -1.5, beta, context=f"{row.name} {shape} beta {beta}")
        again = fl.sgemm(*operands, alpha=-1.5, beta=beta, kernel=row.name).numpy()
        assert_same_bits(again, got, f"{row.name} {shape}: a second run")


@gpu_row
@pytest.mark.parametrize("shape", TILED[:-1], ids=lambda shape: "x".join(map(str, shape)))
@pytest.mark.parametrize("trans", list(product((False, True), repeat=2)), ids=str)
@pytest.mark.parametrize("kind", ["many_octaves", "twelve_decades"])
def test_what_stands_by_for_every_tile(row, kind, shape, trans):
    """Data that no terms can hold, and data that three can."""
    m, n, k = shape
    a, b = data(kind, m, n, k)
    left, right = np.ascontiguousarray(a.T) if trans[0] else a, np.ascontiguousarray(b.T) if trans[1] else b
    got = fl.sgemm(*on_device(left, right), trans_a=trans[0], trans_b=trans[1], kernel=row.name).numpy()
    rows = np.arange(0, m, 17)
    assert_product(got[rows], a[rows], b, context=f"{row.name} {shape}")


# Summed up in parts by three terms, the last two by two terms as well.
LONG = ((500, 510, 2500), (760, 1000, 4100), (1400, 1300, 3000), (250, 260, 5000), (700, 650, 9000))


def far_below_the_largest(m, n, k):
    """As small as two terms hold beside the largest number of each line, which meets zeros."""
    rng = np.random.default_rng(k)
    a, b = (
        2.0 ** (-29 if k <= 1024 else -27) * signs(rng, size) * rng.uniform(1, 1.5, size) for size in ((m, k), (k, n))
    )
    a[:, 0], b[0] = 1, 0
    a[:, 1], b[1] = 0, 1
    return a.astype(np.float32), b.astype(np.float32)


SCALED_UP = ("far_below", "softmax", "lognormal", "fft")


@gpu
@pytest.mark.parametrize("shape", [*TILED[:2], (690, 700, 1024), (500, 510, 2500)], ids=str)
@pytest.mark.parametrize("kind", SCALED_UP)
def test_small_products_hold_more_in_two_terms(kind, shape, caplog):
    """Their second terms are scaled up, and have sums of their own."""
    m, n, k = shape[0] + SCALED_UP.index(kind), *shape[1:]  # logged once
    a, b = far_below_the_largest(m, n, k) if kind == "far_below" else data(kind, m, n, k)
    caplog.set_level(logging.DEBUG, "fastlinalg")
    got = fl.sgemm(*on_device(a, b), kernel="fp16x2").numpy()
    assert f"sgemm {m}x{n}x{k} -> cuda:0 fp16x2, computed by two fp16 terms" in caplog.text
    assert_product(got, a, b, context=kind)


@gpu
@pytest.mark.parametrize("shape", [(m + 3, n, k) for m, n, k in (*TILED[:-1], *LONG)], ids=str)  # logged once
def test_three_terms_are_in_the_launch_that_rejects_two(shape, caplog):
    """In the second call they come first, with the same bits."""
    caplog.set_level(logging.DEBUG, "fastlinalg")
    a, b = data("twelve_decades", *shape)
    operands = on_device(a, b)
    got = fl.sgemm(*operands, kernel="fp16x2").numpy()
    assert "computed by three bf16 terms because of the range of the operands" in caplog.text
    rows = np.arange(0, shape[0], 17)
    assert_product(got[rows], a[rows], b, context=str(shape))
    assert_same_bits(fl.sgemm(*operands, kernel="fp16x2").numpy(), got, str(shape))


# Three terms by two blocks for a tile of 64x64 and of 192x64, by one, by persistent blocks, and over parts of k.
IN_TURNS = ((500, 510, 700), (380, 390, 3100), (760, 750, 1100), (1000, 1010, 600), (1290, 1270, 260), (700, 650, 9000))


@gpu
@pytest.mark.parametrize("beta", [0.0, -0.5])
@pytest.mark.parametrize("shape", IN_TURNS, ids=str)
def test_bits_do_not_depend_on_what_came_before(shape, beta):
    """Data that two terms can hold, three, or neither, in the same memory: the last product decides what is launched
    first, and no more."""
    m, n, k = shape
    c = np.random.default_rng(k).standard_normal((m, n), np.float32)
    sets = {kind: data(kind, *shape) for kind in ("normal", "twelve_decades", "kernel_matrix", "many_octaves")}
    sets["nan"] = sets["normal"][0].copy(), sets["normal"][1]
    sets["nan"][0][3, 5] = np.nan

    def product(a, b, old):
        return fl.sgemm(a, b, *([old] if beta else []), beta=beta, kernel="fp16x2").numpy()

    want = {kind: product(*on_device(*operands, c)) for kind, operands in sets.items()}
    rows = np.append(np.arange(4, m, 17), m - 1)
    for kind, (a, b) in sets.items():
        assert_product(want[kind][rows], a[rows], b, c[rows], 1.0, beta, context=kind)
    left, right, old = on_device(*sets["normal"], c)
    for kind in np.repeat([*sets, "twelve_decades", "nan", "many_octaves", "normal"], 2):
        for to, values in zip((left, right), sets[kind], strict=True):
            fl.transpose(*on_device(np.ascontiguousarray(values.T)), out=to)
        assert_same_bits(product(left, right, old), want[kind], f"{shape} {kind}")


@gpu
@pytest.mark.parametrize("shape", [(760, 750, 520), (760, 746, 1100), (1530, 1500, 260), (1536, 1488, 1400)], ids=str)
def test_strips_of_as_many_columns_as_a_tile_has(shape):
    """Tiles of 96 columns: the split pass lays B out for them, in one piece of k or several. Terms, and so bits, do not
    depend on the order of the operands."""
    a, b = data("normal", *shape)
    rows = np.arange(0, shape[0], 37)
    want = fl.sgemm(*on_device(a, b), kernel="fp16x2").numpy()
    assert_product(want[rows], a[rows], b, context=str(shape))
    for trans_a, trans_b in product((False, True), repeat=2):
        left, right = np.ascontiguousarray(a.T) if trans_a else a, np.ascontiguousarray(b.T) if trans_b else b
        got = fl.sgemm(*on_device(left, right), trans_a=trans_a, trans_b=trans_b, kernel="fp16x2").numpy()
        assert_same_bits(got, want, f"{shape} {trans_a}, {trans_b}")


# One tile to a block: 64x64 by two blocks and by one, 64x96, 128x64. Persistent blocks: 128x128 in one round and in
# several, 192x96, 128x64, 192x128, 256x128.
IN_16_BITS = (
    *((500, 510, 520), (630, 650, 700), (770, 760, 600), (1020, 1010, 600)),
    *((1030, 1050, 1010), (2000, 2040, 300), (1530, 1520, 300), (1780, 1790, 300), (1900, 1490, 256)),
    (3680, 4060, 2500),
)
IN_PARTS = (300, 200, 20_000)  # of k
REJECTED = ("many_octaves", "the_largest")  # there the float32 fallback of 16 bits adds up in another order


def in_16_bits(kind, shape, types):
    with np.errstate(over="ignore"):
        return [x.astype(dtype_of(name)) for x, name in zip(data(kind, *shape), types, strict=True)]


def order(x, transposed):
    return np.ascontiguousarray(x.T if transposed else x)


@gpu
@pytest.mark.parametrize("types", [("f4", "bfloat16"), ("f2", "f4"), ("bfloat16", "f2")], ids="-".join)
@pytest.mark.parametrize("shape", [*IN_16_BITS, IN_PARTS], ids=lambda shape: "x".join(map(str, shape)))
def test_operands_in_16_bits_have_the_bits_of_converting_first(shape, types):
    """One term holds such numbers, and products with the second are left out. With C or without, in rows that begin at
    multiples of 16 bytes or do not; where terms cannot hold the data too."""
    for kind, beta, trans_a, trans_b, pad in (
        ("normal", 0.0, False, False, 0),
        ("late_start", 0.5, True, False, 0),
        ("one_late_line_of_b", 0.0, False, True, 1),
        ("many_octaves", 0.5, True, True, 0),
        ("the_largest", 0.0, False, False, 1),
    ):
        m, n, k = shape
        if shape == IN_PARTS and kind in REJECTED:
            continue
        a, b = in_16_bits(kind, (m, n + pad, k), types)
        c = np.random.default_rng(n).standard_normal((m, n + pad), np.float32)
        options = {"alpha": -1.5, "beta": beta, "trans_a": trans_a, "trans_b": trans_b, "kernel": "fp16x2"}
        left, right, old = order(a, trans_a), order(b, trans_b), [Placed(c)] if beta else []
        got = fl.sgemm(Placed(left, pad), Placed(right, pad), *old, dtype=np.float32, **options).numpy()
        want = fl.sgemm(*on_device(left.astype(np.float32), right.astype(np.float32)), *old, **options).numpy()
        np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
        assert_same_bits(np.nan_to_num(got, nan=0.0), np.nan_to_num(want, nan=0.0), f"{kind} {shape} {types}")
