"""What a task does on a worker. It changes nothing that other tasks may see, so that it may run twice or elsewhere."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

import fastlinalg as fl


@dataclasses.dataclass(frozen=True)
class Part:
    """A part of an array that tasks read where and when they need it, a Zarr array say."""

    source: Any
    index: tuple[slice, ...]

    def read(self) -> Any:
        return np.asarray(self.source[self.index])


@dataclasses.dataclass(frozen=True)
class Call:
    """A product of two chunks, with the arguments that all tasks of one graph share."""

    operation: str  # "sgemm", "sgemv", or "dot" of two vectors, whose result has the shape (1,)
    options: dict[str, Any]

    def __call__(self, a: Any, b: Any, c: Any = None, out: Any = None) -> Any:
        beta = 0.0 if c is None else 1.0
        if self.operation == "sgemm":
            return fl.sgemm(a, b, c, beta=beta, out=out, **self.options)
        matrix = a[None] if self.operation == "dot" else a
        return fl.sgemv(matrix, b, c, beta=beta, out=out, **self.options)


def _read(chunk: Any) -> Any:
    return chunk.read() if isinstance(chunk, Part) else chunk


def accumulate(call: Call, c: Any, a_chunks: Sequence[Any], b_chunks: Sequence[Any]) -> Any:
    """``c`` plus the products of the pairs, in their order, in an array of this task: `c` is another's, and stays."""
    ours = False
    for a, b in zip(a_chunks, b_chunks, strict=True):
        c = call(_read(a), _read(b), c, c if ours else None)
        ours = True
    return c


def add(parts: Sequence[Any]) -> Any:
    """The sum of partial sums, from the first to the last."""
    total = parts[0] + parts[1]
    for part in parts[2:]:
        total += part
    return total


def transposed(options: dict[str, Any], a: Any) -> Any:
    return fl.transpose(a, **options)
