"""Blocks of operands, as plans for host operands name them: problem, problems, row, rows, column, columns."""

from __future__ import annotations

import numpy as np

A, B, C = range(3)


def covered(blocks, rows, cols):
    """How often each element of one problem is in the blocks."""
    count = np.zeros((rows, cols), np.uint8)
    for _, _, row, height, col, width in blocks:
        assert row >= 0 and col >= 0 and row + height <= rows and col + width <= cols
        count[row : row + height, col : col + width] += 1
    return count


def of_problem(parts, operand, problem):
    """The blocks of an operand that have the problem, of pairs of an operand and a block."""
    return [block for which, block in parts if which == operand and block[0] <= problem < block[0] + block[1]]
