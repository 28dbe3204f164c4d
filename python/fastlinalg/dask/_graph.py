"""The graph of a product: how the chunks along k are summed.

An output chunk is the sum over p of A[i, p] B[p, j]. It is computed by a *chain*: each task of it, a link, takes the
sum so far and adds the next pairs of chunks by ``beta=1``. So of each output chunk there is one sum, not one partial
product for every p, and a pair of chunks is free when its link is done. A link makes one new array and adds all its
pairs to that. It does not write into the sum of the link before: Dask may run a task again after an error or the loss
of a worker, and may have copied or kept its inputs, so a task that changes them gives wrong results now and then. The
price is one more output chunk in memory while a link runs, and its copy, which is little beside the product.

A link takes as many pairs as together hold no more bytes than the output chunk, and at least one. More would have to
be in memory at once; fewer would copy more often. Chunks that tasks read themselves (`Part`) hold nothing before, so
a chain of these is a single link, which reads its pairs by turns.

Chains of different output chunks run side by side. Where those are few and k is long (A^T A of a tall A, or A x), a
chain is cut into several that are summed by a tree (`split_k`). How many depends on the chunks alone, never on the
workers: so do the order of the sums, and the bits.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

from ._operands import Dimension, Operand
from ._tasks import Call, accumulate, add

CHAINS = 128  # what a product is cut into where that costs little memory; `split_k=` is for more workers
BYTES_FOR_A_SPLIT = 16  # of operands for each byte of a partial sum
FAN_IN = 8  # of the tree that sums partial sums
FLOAT32 = 4

Index = tuple[int, ...]
Pair = tuple[Index, Index]  # of a chunk of A and the chunk of B that it is multiplied with


def automatic_split(outputs: int, pairs: int, operand_bytes: int, output_bytes: int) -> int:
    """The number of chains for an output chunk.

    Parameters
    ----------
    outputs : int
        Output chunks of the product.
    pairs : int
        Pairs of chunks that are summed for each.
    operand_bytes, output_bytes : int
        Of all pairs of an output chunk, and of itself.
    """
    wanted = -(-CHAINS // max(outputs, 1))
    affordable = operand_bytes // max(BYTES_FOR_A_SPLIT * output_bytes, 1)
    return max(1, min(pairs, wanted, affordable))


def links(a: Operand, b: Operand, pairs: list[Pair], output_bytes: int) -> Iterator[list[Pair]]:
    """The pairs of a chain, shared out among its tasks."""
    group: list[Pair] = []
    held = 0
    for pair in pairs:
        needed = a.held_bytes(pair[0]) + b.held_bytes(pair[1])
        if group and held + needed > output_bytes:
            yield group
            group, held = [], 0
        group.append(pair)
        held += needed
    yield group


def ranges(count: int, parts: int) -> list[range]:
    """`count` in `parts` ranges, whose sizes differ by one at most."""
    return [range(count * part // parts, count * (part + 1) // parts) for part in range(parts)]


class Graph:
    """The tasks of one product, whose keys are ``(name, *index)`` for the chunks of the result.

    Parameters
    ----------
    prefix, token : str
        Of the names of tasks: what Dask shows of them, and what tells this product from others.
    call : Call
        What multiplies two chunks.
    a, b : Operand
        Cut alike along what is summed.
    """

    def __init__(self, prefix: str, token: str, call: Call, a: Operand, b: Operand):
        self.name = f"{prefix}-{token}"
        self.link_name, self.sum_name = f"{prefix}-link-{token}", f"{prefix}-sum-{token}"
        self.call, self.a, self.b = call, a, b
        self.tasks: dict[Any, Any] = {}

    def outputs(self, chunks: tuple[Dimension, ...], split_k: int | None) -> None:
        """Add the tasks of all chunks of the result."""
        free = 2 - [self.a.free, self.b.free].count(None)
        summed = [p for p, size in enumerate(self.a.sizes[self.a.summed]) if size] or [0]
        split = min(split_k or self._automatic_split(chunks, len(summed)), len(summed))
        for index in itertools.product(*(range(len(sizes)) for sizes in chunks)):
            batch, own = (index[:-free], index[-free:]) if free else ((), ())
            i = own[0] if self.a.free is not None else 0
            j = own[-1] if self.b.free is not None else 0
            pairs = [(self.a.index(batch, i, p), self.b.index(batch, j, p)) for p in summed]
            output_bytes = FLOAT32 * math.prod(sizes[at] for sizes, at in zip(chunks, index, strict=True))
            self._output(index, pairs, output_bytes, split)

    def _automatic_split(self, chunks: tuple[Dimension, ...], pairs: int) -> int:
        """By the largest chunk of the result, for all."""
        batch = math.prod(max(sizes) for sizes in chunks[: len(chunks) - 2])
        rows, columns = (1 if x.free is None else max(x.sizes[x.free]) for x in (self.a, self.b))
        operand_bytes = FLOAT32 * batch * self.a.shape[self.a.summed] * (rows + columns)
        outputs = math.prod(len(sizes) for sizes in chunks)
        return automatic_split(outputs, pairs, operand_bytes, FLOAT32 * batch * rows * columns)

    def _output(self, index: Index, pairs: list[Pair], output_bytes: int, split: int) -> None:
        key = (self.name, *index)
        if split == 1:
            self._chain(key, pairs, output_bytes)
            return
        sums = [(self.sum_name, *index, 0, part) for part in range(split)]
        for part, chosen in zip(sums, ranges(len(pairs), split), strict=True):
            self._chain(part, [pairs[p] for p in chosen], output_bytes)
        self._tree(key, index, sums)

    def _chain(self, key: Any, pairs: list[Pair], output_bytes: int) -> None:
        groups = list(links(self.a, self.b, pairs, output_bytes))
        so_far = None
        for step, group in enumerate(groups, 1):
            done = key if step == len(groups) else (self.link_name, *key, step)
            a_chunks = [self.a.chunk(index) for index, _ in group]
            b_chunks = [self.b.chunk(index) for _, index in group]
            self.tasks[done] = (accumulate, self.call, so_far, a_chunks, b_chunks)
            so_far = done

    def _tree(self, key: Any, index: Index, sums: list[Any]) -> None:
        for level in itertools.count(1):
            if len(sums) <= FAN_IN:
                self.tasks[key] = (add, sums)
                return
            groups = ranges(len(sums), -(-len(sums) // FAN_IN))
            above = [(self.sum_name, *index, level, part) for part in range(len(groups))]
            for done, group in zip(above, groups, strict=True):
                self.tasks[done] = (add, [sums[i] for i in group])
            sums = above
