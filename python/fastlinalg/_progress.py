"""How far a long product is."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from . import _core


class progress:
    """Report how far long products are, in the body of a ``with`` statement, in this thread.

    For operands in host memory, on the CPU or through a GPU: calls on arrays in device memory return before they are
    computed.

    Parameters
    ----------
    callback : callable, optional
        Called with the fraction that is done, from 0 to 1, by the thread that multiplies: every tenth of a second of a
        call, between blocks of its work, and with 1 at the end of a call that was reported. It should return soon;
        calls of its own are not reported. What it raises ends the call, with `out` written in part. By default a line
        on standard error, if that is a terminal.

    Notes
    -----
    Ctrl-C ends a long call in the main thread in the same way, with or without this. A batch whose strides are uneven
    is several products, reported one after the other.

    Examples
    --------
    >>> import numpy as np, fastlinalg as fl
    >>> a = np.ones((100, 100), np.float32)
    >>> with fl.progress():
    ...     c = fl.matmul(a, a)
    """

    def __init__(self, callback: Callable[[float], object] | None = None) -> None:
        if callback is not None and not callable(callback):
            raise TypeError(f"progress: callback must be callable, got {callback!r}")
        self._callback = callback
        if callback is None and sys.stderr and sys.stderr.isatty():  # it is None where it was closed
            self._callback = _Line()

    def __enter__(self) -> progress:
        self._before = _core.set_progress(self._callback)
        return self

    def __repr__(self) -> str:
        return "<fastlinalg.progress: tells of long products in the body of a with statement>"

    def __exit__(self, *error: object) -> None:
        _core.set_progress(self._before)
        if isinstance(self._callback, _Line):
            self._callback.clear()


class _Line:
    """Percent and time left, written over itself."""

    def __init__(self) -> None:
        self._begin, self._reached, self._shown = 0.0, 1.0, False

    def __call__(self, done: float) -> None:
        now = time.monotonic()
        if done < self._reached:  # another call, or the first
            self._begin = now
        passed, self._reached = now - self._begin, done
        if done == 1:
            return self.clear()
        left = f", {passed / done * (1 - done):.0f} s left" if passed > 1 and done > 0 else ""
        print(f"\r\033[Kfastlinalg: {100 * done:.0f} %{left}", end="", file=sys.stderr, flush=True)
        self._shown = True

    def clear(self) -> None:
        if self._shown:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
        self._shown, self._reached = False, 1.0
