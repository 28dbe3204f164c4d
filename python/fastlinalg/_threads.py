"""How many CPU threads a call may use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from . import _core


def get_num_threads() -> int:
    """The number of CPU threads a call may use.

    Set by `set_num_threads`, else by ``FASTLINALG_NUM_THREADS``, else by ``OMP_NUM_THREADS``, else what the affinity
    mask and the cgroup quota of the process allow.
    """
    return _core.get_num_threads()


def set_num_threads(n: int) -> None:
    """Set the number of CPU threads a call may use.

    Parameters
    ----------
    n : int
        At least 1.

    Raises
    ------
    ValueError
        If `n` is less than 1.
    """
    _core.set_num_threads(n)


@contextmanager
def num_threads(n: int) -> Iterator[None]:
    """Set the number of CPU threads for the body of a ``with`` statement, for the whole process."""
    before = _core.get_num_threads()
    _core.set_num_threads(n)
    try:
        yield
    finally:
        _core.set_num_threads(before)
