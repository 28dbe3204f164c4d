"""Operands in pinned host memory, whoever has pinned it."""

from __future__ import annotations

import numpy as np

import fastlinalg as fl
from support.accuracy import assert_product, assert_within, oracle
from support.operands import normal


def check_products_of_pinned_operands(pinned, k, rng):
    """Whole arrays, slices and the inside of a frame; `pinned` gives a copy of an array in such memory."""
    a, b, c = normal(rng, 1200, k), normal(rng, k, 1300), normal(rng, 1200, 1300)
    out, part = pinned(c), k - 100
    assert_product(fl.sgemm(pinned(a), pinned(b), out=out, device="cuda"), a, b)
    assert_product(fl.sgemm(pinned(a)[:, 5 : 5 + part], b[:part], device="cuda"), a[:, 5 : 5 + part], b[:part])
    frame = pinned(np.full((1210, 1310), 7, np.float32))
    fl.sgemm(a, pinned(np.asfortranarray(b).T).T, out=frame[3:1203, 4:1304], device="cuda")
    assert_product(frame[3:1203, 4:1304], a, b)
    frame[3:1203, 4:1304] = 7
    assert (frame == 7).all()
    out[...] = c
    assert_product(fl.sgemm(pinned(a), b, out, beta=0.5, out=out, device="cuda"), a, b, c, beta=0.5)
    check_parts_of_lines(pinned, rng)


def check_parts_of_lines(pinned, rng):
    """Of B and of the result, whose columns come in panels."""
    a, b = normal(rng, 3000, 100), normal(rng, 100, 2900)
    expected = oracle(a, b)
    for threads in (2, 8):  # with more of them short parts of lines go through the library's own pinned memory
        frame = pinned(np.full((3002, 2910), 7, np.float32))
        inside = frame[1:-1, 6:-4]
        with fl.num_threads(threads):
            fl.sgemm(pinned(a), pinned(b), out=inside, device="cuda")
        assert_within(inside, *expected)
        inside[...] = 7
        assert (frame == 7).all()
