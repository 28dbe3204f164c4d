"""Operands that end, or begin, where a page does whose neighbour may not be touched: a vector load beside them ends the
process, where a sanitizer may not see it."""

from __future__ import annotations

import pytest

PROGRAM = """
import ctypes, faulthandler, mmap, sys
import numpy as np, fastlinalg as fl
faulthandler.enable()
PAGE, PAGES, libc = mmap.PAGESIZE, 20, ctypes.CDLL(None)
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]

def room():
    block = mmap.mmap(-1, (PAGES + 2) * PAGE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(block))
    assert all(libc.mprotect(start + page * PAGE, PAGE, 0) == 0 for page in (0, PAGES + 1))
    return np.frombuffer(block, np.float32, PAGES * PAGE // 4, PAGE)

rooms, rng, op = [room() for _ in range(3)], np.random.default_rng(0), sys.argv[1]

def place(room, values):
    part = room[-values.size :] if rng.integers(2) else room[: values.size]
    part = part.reshape(values.T.shape).T if rng.integers(2) else part.reshape(values.shape)
    part[...] = values
    return part

for row in fl.kernels(op):
    for turn in range(150 if row.device == "cpu" and row.available else 0):
        m, n, k = rng.choice((1, 2, 3, 5, 7, 8, 9, 15, 17, 31, 33, 65, 100), 3)
        a, b = rng.integers(-9, 9, (m, k)).astype("f4"), rng.integers(-9, 9, (k, n)).astype("f4")
        operands = {"sgemm": (a, b), "sgemv": (a, b[:, 0]), "transpose": (a,)}[op]
        want = a.T if op == "transpose" else np.matmul(*operands)
        operands = [place(*pair) for pair in zip(rooms, operands)]
        out = place(rooms[2], np.ones_like(want))
        addend = [] if op == "transpose" else [out]
        getattr(fl, op)(*operands, *addend, out=out, kernel=row.name, **({"beta": 2.0} if addend else {}))
        assert (out == want + 2 * len(addend)).all(), (row.name, m, n, k)
"""


@pytest.mark.parametrize("op", ["sgemm", "sgemv", "transpose"])
def test_nothing_beside_the_operands_is_touched(op, python):
    python(PROGRAM, op)
