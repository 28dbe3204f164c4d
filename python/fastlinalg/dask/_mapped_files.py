"""Files that tasks map, which stay mapped for a moment after a task, for the next one.

To fault in the pages of 1 GiB takes 45 ms of one core and to unmap them 22 (Zen 1, Linux 6.18): more than the product
that reads them takes on a GPU.
"""

from __future__ import annotations

import dataclasses
import os
import threading
import time
from typing import Any, Literal

import numpy as np

KEEP_S = 1.0  # after the last use; no longer, since a file that is removed keeps its place on the disk while mapped


@dataclasses.dataclass(frozen=True)
class MemoryMap:
    """A ``numpy.memmap`` by its file, since pickling one sends its contents."""

    filename: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    offset: int
    order: Literal["C", "F"]

    def __getitem__(self, index: Any) -> Any:
        return _mapped.get(self)[index]

    def open(self) -> Any:
        return np.memmap(self.filename, self.dtype, "r", self.offset, self.shape, self.order)


@dataclasses.dataclass
class _Kept:
    array: Any
    file: tuple[int, int, int]  # what tells it from another one of its name
    used: float


class _MappedFiles:
    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards what follows
        self._kept: dict[MemoryMap, _Kept] = {}
        self._will_drop = False

    def get(self, wanted: MemoryMap) -> Any:
        found = os.stat(wanted.filename)
        file = (found.st_dev, found.st_ino, found.st_size)
        with self._lock:
            kept = self._kept.get(wanted)
            if kept is None or kept.file != file:
                kept = self._kept[wanted] = _Kept(wanted.open(), file, 0.0)
            kept.used = time.monotonic()
            self._drop_later()
            return kept.array

    def _drop_later(self) -> None:
        if self._will_drop:
            return
        self._will_drop = True
        timer = threading.Timer(KEEP_S, self._drop)
        timer.daemon = True
        timer.start()

    def _drop(self) -> None:
        with self._lock:
            idle_since = time.monotonic() - KEEP_S
            dropped = [self._kept.pop(key) for key, kept in list(self._kept.items()) if kept.used <= idle_since]
            self._will_drop = False
            if self._kept:
                self._drop_later()
        del dropped  # unmaps those that no task reads, with the lock free


_mapped = _MappedFiles()
