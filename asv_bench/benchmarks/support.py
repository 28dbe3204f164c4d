"""What benchmarks have in common: operands, threads, and what a commit or a machine lacks."""

import functools
import mmap
import os

import numpy as np

import fastlinalg as fl

_ARENA_BYTES = 256 << 20
_LINE = 64


class _Arena:
    """Memory in huge pages for operands, in the same places in every process.

    Where operands lie makes up to a tenth of a difference that stays for as long as a process does.
    """

    def __init__(self):
        self._memory = mmap.mmap(-1, _ARENA_BYTES + (2 << 20))
        if hasattr(mmap, "MADV_HUGEPAGE"):
            self._memory.madvise(mmap.MADV_HUGEPAGE)
        self._bytes = np.frombuffer(self._memory, np.uint8)
        self._start = -self._bytes.ctypes.data % (2 << 20)
        self._used = 0

    def clear(self):
        self._used = 0

    def take(self, shape):
        """An array of zeros, or None where there is no room."""
        size = 4 * int(np.prod(shape, dtype=np.int64))
        if self._used + size > _ARENA_BYTES:
            return None
        first = self._start + self._used
        self._used += -(-size // _LINE) * _LINE + 11 * _LINE  # not as far in its page as the one before
        return self._bytes[first : first + size].view(np.float32).reshape(shape)


_arena = None


def clear():
    """Give all operands back; `setup` begins with it."""
    global _arena
    if _arena is None:
        _arena = _Arena()
    _arena.clear()


def empty(*shape):
    if _arena is None:
        clear()
    found = _arena.take(shape)
    return np.zeros(shape, np.float32) if found is None else found


@functools.cache
def _tile():
    return np.random.default_rng(0).standard_normal(1 << 20, dtype=np.float32)


def random(*shape):
    """Normal numbers, the same in every process."""
    out, tile = empty(*shape), _tile()
    flat = out.reshape(-1)
    for first in range(0, flat.size, tile.size):
        flat[first : first + tile.size] = tile[: flat.size - first]
    return out


def unit(name):
    """What a benchmark returns, as asv reads it."""

    def named(function):
        function.unit = name
        return function

    return named


def sizes(shape):
    """ "12x562x5524" as numbers."""
    return tuple(int(part) for part in shape.split("x"))


def demand(condition, reason):
    """Leave the benchmark out, with the reason, where the condition does not hold."""
    if not condition:
        raise NotImplementedError(reason)


def demand_name(name):
    demand(hasattr(fl, name), f"there is no fastlinalg.{name} at this commit")


def demand_precision(precision):
    """Asked by a call, because no list of precisions is public."""
    one = np.ones((2, 2), np.float32)
    try:
        fl.matmul(one, one, precision=precision, device="cpu")
    except ValueError as error:
        raise NotImplementedError(f'no precision="{precision}" at this commit: {error}') from None


def demand_kernel(op, name):
    rows = [row for row in fl.kernels(op) if row.name == name]
    demand(rows, f'no {op} kernel is called "{name}" at this commit')
    demand(rows[0].available, f"{name}: {rows[0].reason}")


def demand_threads(threads):
    cores = len(os.sched_getaffinity(0))
    demand(threads <= cores, f"{threads} threads were asked for, and this process has {cores} cores")


class Threads:
    """So many threads of ours and of NumPy's BLAS, and what there was before."""

    def __init__(self, threads, peer):
        self._limits = None
        if peer:
            try:
                from threadpoolctl import threadpool_limits
            except ImportError:
                raise NotImplementedError("a ratio to NumPy needs threadpoolctl, to set its threads") from None
            self._limits = threadpool_limits(threads, user_api="blas")
        self._before = fl.get_num_threads()
        fl.set_num_threads(threads)

    def restore(self):
        fl.set_num_threads(self._before)
        if self._limits is not None:
            self._limits.restore_original_limits()


class Limited:
    """A benchmark whose `setup` makes Threads as `limits`, if it comes that far."""

    def teardown(self, *_):
        if hasattr(self, "limits"):
            self.limits.restore()
