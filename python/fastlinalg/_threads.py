"""How many CPU threads a call may use."""

from __future__ import annotations

from . import _core


def get_num_threads() -> int:
    """The number of CPU threads a call may use.

    Set by `set_num_threads` or `num_threads`, else by ``FASTLINALG_NUM_THREADS``, else by ``OMP_NUM_THREADS``, else
    what the affinity mask and the cgroup quota of the process allow. Never more than 256.

    Returns
    -------
    int

    Examples
    --------
    >>> import fastlinalg as fl
    >>> 1 <= fl.get_num_threads() <= 256
    True
    """
    return _core.get_num_threads()


def set_num_threads(n: int) -> None:
    """Set the number of CPU threads a call may use.

    Parameters
    ----------
    n : int
        From 1 to 256.

    Raises
    ------
    ValueError
        If `n` is less than 1 or more than 256.
    TypeError
        If `n` is no integer.

    Examples
    --------
    >>> import fastlinalg as fl
    >>> fl.set_num_threads(fl.get_num_threads())
    """
    _core.set_num_threads(n)


class num_threads:
    """Set the number of CPU threads a call may use, and set it back at the end of a ``with`` statement.

    It is set when this is called, for the whole process, with or without ``with``.

    Parameters
    ----------
    n : int
        From 1 to 256.

    Raises
    ------
    ValueError, TypeError
        As `set_num_threads`.

    Examples
    --------
    >>> import fastlinalg as fl
    >>> with fl.num_threads(1):
    ...     fl.get_num_threads()
    1
    """

    def __init__(self, n: int) -> None:
        self._before, self._set = _core.get_num_threads(), n
        _core.set_num_threads(n)

    def __enter__(self) -> num_threads:
        return self

    def __exit__(self, *error: object) -> None:
        _core.set_num_threads(self._before)

    def __repr__(self) -> str:
        return f"<fastlinalg.num_threads({self._set}), before that {self._before}>"
