"""The GPU side: whether there is one, and the memory the library holds on it."""

from __future__ import annotations

from . import _core
from ._sizes import parse_bytes

__all__ = ["is_available", "memory_info", "set_memory_limit", "trim"]


def is_available() -> bool:
    """Whether a CUDA device can be used. Creates no CUDA context; the reason for a no is in ``fastlinalg.info()``.

    Returns
    -------
    bool

    Examples
    --------
    >>> import fastlinalg as fl
    >>> fl.cuda.is_available() == fl.info()["cuda"]["available"]
    True
    """
    return _core.cuda_is_available()


def memory_info(device: int = 0) -> dict[str, int]:
    """Memory of one device, in bytes.

    Parameters
    ----------
    device : int
        Its ordinal.

    Returns
    -------
    dict
        ``used`` (live buffers of the library), ``reserved`` (held by its pool), ``limit`` (0 for none), ``free`` and
        ``total`` (of the device), ``pinned`` (staging memory on the host), ``splits`` (of ``used``: of weights that
        `fastlinalg.torch.use` keeps), ``results`` (memory of freed results on the host, kept for later ones; the system
        may take it back when it runs short).

    Raises
    ------
    CudaError
        No such device.

    Examples
    --------
    >>> import fastlinalg as fl
    >>> if fl.cuda.is_available():
    ...     assert fl.cuda.memory_info()["used"] <= fl.cuda.memory_info()["reserved"]
    """
    return _core.cuda_memory_info(device)


def trim(device: int = 0) -> None:
    """Free the memory that the library keeps for later calls: on the device, pinned, and of freed results.

    So are operands that were kept until their calls were done (``docs/guide/streams.md``), the graphs of calls that
    repeat, and the splits of weights that `fastlinalg.torch.use` keeps. Without a CUDA device it frees the memory of
    freed results alone.

    Parameters
    ----------
    device : int
        Its ordinal.

    Raises
    ------
    CudaError
        No such device, although there are others.

    Examples
    --------
    >>> import fastlinalg as fl
    >>> fl.cuda.trim()
    """
    _core.cuda_trim(device)


def set_memory_limit(nbytes: int | float | str | None, device: int = 0) -> None:
    """Limit the device memory of the library. Without a CUDA device only the argument is checked.

    A call on host arrays that needs more is computed part by part; the parts, and so the last bits of a result,
    depend on the limit. What cannot be cut up that far, or is in device memory, raises MemoryError.

    Parameters
    ----------
    nbytes : int, float, str or None
        The limit in bytes, as a whole number or as in ``"2 GiB"``; None or 0 removes it.
    device : int
        Its ordinal.

    Raises
    ------
    ValueError
        A negative limit, or text that is no size.
    TypeError
        Something else, or a number that is not whole.
    CudaError
        No such device, although there are others.

    Examples
    --------
    >>> import fastlinalg as fl
    >>> fl.cuda.set_memory_limit("2 GiB")
    >>> fl.cuda.set_memory_limit(None)
    """
    limit = 0 if nbytes is None else parse_bytes("set_memory_limit", "nbytes", nbytes)
    _core.cuda_set_memory_limit(limit, device)
