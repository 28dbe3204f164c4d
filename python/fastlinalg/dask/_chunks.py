"""How large chunks may be, and should be."""

from __future__ import annotations

import os
import reprlib
import warnings
from numbers import Integral
from typing import Any, NamedTuple

from .._sizes import parse_bytes
from ._graph import FLOAT32, automatic_split

SHARE = 0.5  # of a worker's memory for one task: Dask spills from 0.6 on, and reading and writing need buffers
SUMS = 2  # output chunks in memory while one is computed: the sum so far, and the new one
TASKS_A_SLOT = 2  # so that the last round of tasks leaves few of the workers without one
SMALLEST = 1024  # below, overheads of a task are no longer small: 2 * 1024**3 operations take 10 ms at 200 GFLOP/s
MOST_PRODUCTS = 100_000  # of two chunks, each a task in the worst case, which takes Dask's scheduler a millisecond


class Chunks(NamedTuple):
    """Sizes of the chunks of a product: (rows, columns) of `a`, `b` and the result `c`."""

    a: tuple[int, int]
    b: tuple[int, int]
    c: tuple[int, int]


def suggest_chunks(
    m: int,
    n: int,
    k: int,
    *,
    memory: int | float | str | None = None,
    workers: int | None = None,
    threads: int | None = None,
) -> Chunks:
    """Chunk sizes for the product of an m x k and a k x n matrix.

    They are the largest squares, or what is left of them where a dimension is shorter, with which one task needs no
    more than half of its memory, counted as a chunk of `a`, one of `b` and two of the result, and with which there are
    at least two chains of tasks for each of those that run at once (`workers` times `threads`), unless these were
    smaller than 1024. Along a dimension all chunks have one size but for the last. Large squares are what moves the
    fewest bytes for each operation: an operand is read once for each chunk of the result in its row or column.

    Parameters
    ----------
    m, n, k : int
        Rows of the result, its columns, and the length of the sums.
    memory : int, float or str, optional
        Bytes that one worker may use, as a number or as in ``"4 GiB"``. By default that of the smallest worker of the
        current ``distributed.Client``, and without one the memory that this process may use.
    workers : int, optional
        Worker processes. By default those of the current client, else 1: this process.
    threads : int, optional
        Tasks that a worker runs at once, which share its memory. By default those of the current client, else the
        number of CPUs if `workers` is not given, as of Dask's threaded scheduler, and 1 if it is.

    Returns
    -------
    Chunks
        A named tuple of the sizes ``a``, ``b`` and ``c``, each (rows, columns), to be used as ``x.rechunk(chunks.a)``
        and as ``chunks=`` of `matmul`.

    Raises
    ------
    ValueError
        A negative dimension, workers or threads less than 1, or memory that does not hold one element of each.
    TypeError
        Dimensions or counts that are not integers.

    Warns
    -----
    UserWarning
        The memory is so little that there are more than 100 000 products of two chunks.

    Examples
    --------
    >>> import fastlinalg.dask as fld
    >>> fld.suggest_chunks(30_000, 30_000, 30_000, memory="2 GiB", workers=2, threads=1)
    Chunks(a=(7500, 7500), b=(7500, 7500), c=(7500, 7500))
    """
    sizes = {"m": m, "n": n, "k": k}
    for name, value in sizes.items():
        _check_integer(name, value, least=0)
    for name, count in {"workers": workers, "threads": threads}.items():
        if count is not None:
            _check_integer(name, count, least=1)
    found_memory, found_workers, found_threads = _cluster(workers is None)
    given = found_memory if memory is None else parse_bytes("suggest_chunks", "memory", memory)
    budget = int(SHARE * given) // (threads or found_threads)
    slots = (workers or found_workers) * (threads or found_threads)
    side = _largest(lambda s: _task_bytes(s, m, n, k) <= budget, max(m, n, k, 1))
    if side == 0:
        raise ValueError(f"memory={memory!r} is too little: a task may use {budget} bytes of it, and needs 16 at least")
    if side > SMALLEST:
        side = _largest(lambda s: s <= SMALLEST or _chains(s, m, n, k) >= TASKS_A_SLOT * slots, side)
    rows, columns, depth = (_even(size, side) for size in sizes.values())
    products = -(-m // rows) * -(-n // columns) * -(-k // depth)
    if products > MOST_PRODUCTS:
        warnings.warn(
            f"suggest_chunks: {budget} bytes for a task make {products} products of two chunks, about "
            f"{products // 1000} s of Dask's scheduler alone; give the workers more memory, or fewer threads each",
            stacklevel=2,
        )
    return Chunks((rows, depth), (depth, columns), (rows, columns))


def _check_integer(name: str, value: Any, least: int) -> None:
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise TypeError(f"suggest_chunks: {name} must be an integer, got {reprlib.repr(value)}")
    if value < least:
        raise ValueError(f"suggest_chunks: {name} must be at least {least}, got {value}")


def _cluster(use_client: bool) -> tuple[int, int, int]:
    """Memory of a worker, workers, and threads of each: of the current client, or of this process."""
    from distributed import get_client
    from distributed.system import MEMORY_LIMIT

    if not use_client:
        return MEMORY_LIMIT, 1, 1
    try:
        found = get_client().scheduler_info(n_workers=-1)["workers"].values()
    except ValueError:  # there is none
        found = ()
    if not found:
        return MEMORY_LIMIT, 1, os.cpu_count() or 1
    limits = [worker["memory_limit"] or MEMORY_LIMIT for worker in found]
    return min(limits), len(limits), max(worker["nthreads"] for worker in found)


def _largest(allowed: Any, most: int) -> int:
    """The largest side up to `most` that is allowed, where all smaller ones are too; 0 if none is."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if allowed(middle) else (low, middle - 1)
    return low


def _task_bytes(side: int, m: int, n: int, k: int) -> int:
    rows, columns, depth = (max(1, min(side, size)) for size in (m, n, k))
    return FLOAT32 * (rows * depth + depth * columns + SUMS * rows * columns)


def _chains(side: int, m: int, n: int, k: int) -> int:
    rows, columns, depth = (max(1, min(side, size)) for size in (m, n, k))
    outputs, pairs = -(-m // rows) * -(-n // columns), -(-k // depth)
    operand_bytes = FLOAT32 * k * (rows + columns)
    return outputs * automatic_split(outputs, pairs, operand_bytes, FLOAT32 * rows * columns)


def _even(size: int, side: int) -> int:
    """The size of chunks of at most `side`, as few as possible and alike."""
    count = -(-size // side)
    return -(-size // count) if count else 1
