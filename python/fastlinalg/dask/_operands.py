"""Operands of any kind as chunks that tasks can name."""

from __future__ import annotations

import dataclasses
import math
import mmap
import os
import uuid
from collections.abc import Sequence
from typing import Any

import dask.array as da
import numpy as np

from ._mapped_files import MemoryMap
from ._tasks import Part

Dimension = tuple[int, ...]  # the sizes of the chunks along one dimension


@dataclasses.dataclass
class Operand:
    """An operand: a Dask array, or an array whose parts tasks read by themselves."""

    name: str  # in messages: "a"
    array: Any
    chunks: tuple[Dimension, ...] | None  # None: not cut yet
    core: int = 0  # dimensions that are not leading ones, of which there are batches
    summed: int = -1  # the axis that the sum is over, counted from the end
    free: int | None = None  # the axis that is one of the result's
    offsets: list[list[int]] = dataclasses.field(default_factory=list)

    def axes(self, *, core: int, summed: int, free: int | None) -> None:
        self.core, self.summed, self.free = core, summed, free

    @property
    def is_dask(self) -> bool:
        return isinstance(self.array, da.Array)

    @property
    def token(self) -> str:
        """What names the numbers. What tasks read themselves may be written between two calls."""
        return self.array.name if self.is_dask else uuid.uuid4().hex

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.array.shape)

    @property
    def leading(self) -> tuple[int, ...]:
        return self.shape[: len(self.shape) - self.core]

    @property
    def sizes(self) -> tuple[Dimension, ...]:
        """The chunks of an operand that is cut."""
        assert self.chunks is not None
        return self.chunks

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(self.array.dtype)

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    def meta(self) -> Any:
        """An empty array of the kind that the chunks are."""
        empty = (0,) * len(self.shape)
        return self.array._meta.reshape(empty) if self.is_dask else np.empty(empty, self.dtype)

    def cut(self, chunks: Sequence[Dimension]) -> None:
        chunks = tuple(chunks)
        if chunks == self.chunks:
            return
        if self.is_dask:
            self.array = self.array.rechunk(chunks)
        elif isinstance(self.array, np.ndarray):
            self.array = da.from_array(self.array, chunks)
        self.chunks = chunks
        self.offsets = [np.cumsum((0, *sizes)).tolist() for sizes in chunks]

    def index(self, batch: tuple[int, ...], free: int, summed: int) -> tuple[int, ...]:
        """The chunk that a chunk of the result has for its `summed`-th product."""
        own = batch[len(batch) - len(self.leading) :]
        core = [summed] * self.core
        if self.free is not None:
            core[self.free] = free
        broadcast = (0 if size == 1 else i for size, i in zip(self.leading, own, strict=True))
        return (*broadcast, *core)

    def chunk(self, index: tuple[int, ...]) -> Any:
        """What stands for this chunk in a task."""
        if self.is_dask:
            return (self.array.name, *index)
        bounds = zip(self.offsets, index, strict=True)
        return Part(self.array, tuple(slice(at[i], at[i + 1]) for at, i in bounds))

    def held_bytes(self, index: tuple[int, ...]) -> int:
        """What a task that has this chunk as an input finds in memory before it begins."""
        if not self.is_dask:
            return 0
        return math.prod(sizes[i] for sizes, i in zip(self.sizes, index, strict=True)) * self.dtype.itemsize


def operand(name: str, x: Any) -> Operand:
    """`x` as an operand, or a TypeError or ValueError that says what is wanted."""
    if isinstance(x, da.Array):
        _check_sizes_known(name, x)
        whole = {axis: 1 for axis, sizes in enumerate(x.chunks) if sum(sizes) == 1}  # broadcasting takes chunk 0
        x = x.rechunk(whole) if whole else x
        return Operand(name, x, x.chunks)
    if isinstance(x, np.memmap) and (mapped := _by_its_file(x)):
        return Operand(name, mapped, None)
    if isinstance(x, np.ndarray):
        return Operand(name, x, None)
    if hasattr(x, "__array_function__") and hasattr(x, "shape"):  # CuPy's and others in memory, as Dask takes them
        return operand(name, da.from_array(x, chunks=-1))
    if all(hasattr(x, attribute) for attribute in ("shape", "dtype", "__getitem__")):
        try:
            np.dtype(x.dtype)
        except TypeError:
            pass
        else:
            return Operand(name, x, None)
    raise TypeError(
        f"{name} must be a Dask array, a NumPy array, or an array that is read by slices and has `shape` and NumPy's "
        f"`dtype`, as those of Zarr and h5py; got {type(x).__name__}"
    )


def _check_sizes_known(name: str, x: da.Array) -> None:
    unknown = [axis for axis, sizes in enumerate(x.chunks) if any(np.isnan(sizes))]
    if unknown:
        raise ValueError(
            f"{name} must have chunks of known sizes, got shape {x.shape}, chunks {x.chunks}: those of axis "
            f"{', '.join(map(str, unknown))} are unknown until they are computed; call {name}.compute_chunk_sizes() "
            "first"
        )


def _by_its_file(x: np.memmap[Any, Any]) -> MemoryMap | None:
    """None for what is not the whole of a map: a view of one keeps its file's name, and not where it begins. None for
    numbers that are in no file: of a map that is copied where it is written, or whose file is gone."""
    whole = isinstance(x.base, mmap.mmap) and (x.flags.c_contiguous or x.flags.f_contiguous)
    if not whole or x.mode == "c" or x.filename is None or not os.path.exists(x.filename):
        return None
    x.flush()  # what was written is in the file when a worker reads it
    return MemoryMap(str(x.filename), x.dtype, x.shape, x.offset, "C" if x.flags.c_contiguous else "F")
