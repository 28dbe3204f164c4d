"""How a product of host operands is cut into panels: nothing twice, nothing missing, nothing before its operands."""

from __future__ import annotations

from itertools import product

import pytest

from fastlinalg import _core
from support.panel_blocks import A, B, C, covered, of_problem

SIZES = (
    (1, 1, 1),
    (5, 7, 3),
    (700, 700, 700),
    (1, 300_000, 5),
    (300_000, 1, 5),
    (129, 4097, 1000),
    (4097, 129, 1000),
    (2048, 2048, 2048),
    (2049, 3001, 511),
    (5000, 5000, 30),
    (300, 300, 50_000),
    (4096, 8192, 0),
)


def check(m, n, k, batch=1, **options):
    loads, steps = _core.testing.panel_plan(m, n, k, batch, **options)
    shared = {A: options.get("one_a", False) or batch == 1, B: options.get("one_b", False) or batch == 1, C: batch == 1}
    shapes = {A: (m, k), B: (k, n), C: (m, n)}
    counts = [step[0] for step in steps]
    assert counts == sorted(counts) and counts[-1] == len(loads)
    for problem in range(batch):
        blocks = [block for _, block in steps if block[0] <= problem < block[0] + block[1]]
        assert (covered(blocks, m, n) == 1).all(), "each element of the result is computed once"
        for operand, (rows, cols) in shapes.items():
            at = 0 if shared[operand] else problem
            parts = of_problem(loads, operand, at)
            wanted = operand != C or options.get("beta", 0.0) != 0.0
            assert (covered(parts, rows, cols) == wanted).all(), f"operand {operand} is loaded once"
    for count, (problem, problems, row, height, col, width) in steps:
        there = loads[:count]
        needed = {A: (row, height, 0, k), B: (0, k, col, width)}
        if options.get("beta", 0.0) != 0.0:
            needed[C] = (row, height, col, width)
        for operand, (top, rows, left, cols) in needed.items():
            for each in (problem, problem + problems - 1):
                at = 0 if shared[operand] else each
                parts = of_problem(there, operand, at)
                seen = covered(parts, *shapes[operand])[top : top + rows, left : left + cols]
                assert (seen == 1).all(), f"operand {operand} is there before it is used"
    return loads, steps


@pytest.mark.parametrize("m, n, k", SIZES)
def test_one_problem(m, n, k):
    for beta in (0.0, 0.5):
        check(m, n, k, beta=beta)


@pytest.mark.parametrize("one_a, one_b", list(product((False, True), repeat=2)))
def test_batches(one_a, one_b):
    for m, n, k, batch in ((3, 5, 7, 100), (300, 200, 100, 70), (2500, 2300, 2600, 3)):
        for beta in (0.0, 2.0):
            check(m, n, k, batch, one_a=one_a, one_b=one_b, beta=beta)


def test_small_calls_are_one_step():
    for m, n, k in ((1, 1, 1), (200, 200, 200), (100_000, 1, 1)):
        assert len(_core.testing.panel_plan(m, n, k)[1]) == 1


def test_the_binding_resource_decides_the_order():
    """Where the link binds the small operand comes first and whole; where the arithmetic does both come in turns."""
    for which, (m, n) in ((B, (200_000, 300)), (A, (300, 200_000))):
        operands = [operand for operand, _ in _core.testing.panel_plan(m, n, 300)[0]]
        assert operands.count(which) == 1 and which in operands[:2] and len(operands) > 5
    operands = [operand for operand, _ in _core.testing.panel_plan(8192, 8192, 8192)[0]]
    assert operands.count(A) > 2 and operands.count(B) > 2


def test_lines_are_not_cut_short():
    """Lines of 512 bytes cross the link at two thirds of its speed."""
    for n in (1024, 1536, 2048, 3072, 4096):
        loads, steps = _core.testing.panel_plan(n, n, n, kernel="fp16x2")
        widths = [width for operand, (*_, width) in loads if operand == B] + [width for _, (*_, width) in steps]
        assert min(widths) >= 256, n


def test_cuts_are_aligned_and_depend_on_the_call_alone():
    for m, n, k in SIZES:
        plan = _core.testing.panel_plan(m, n, k)
        assert plan == _core.testing.panel_plan(m, n, k)
        for _, (_, _, row, _, col, _) in plan[1]:
            assert row % 128 == 0 and col % 128 == 0
