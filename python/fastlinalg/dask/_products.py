"""The functions: operands are checked and cut, and the graph is made. Nothing is computed."""

from __future__ import annotations

import re
import reprlib
from numbers import Integral
from typing import Any

import dask.array as da
import numpy as np
from dask.array.utils import meta_from_array
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph

import fastlinalg as fl
from fastlinalg.typing import Device, Float32, Precision

from ._cuts import batch_chunks, cut_alike, free_chunks
from ._graph import Graph
from ._operands import Operand, operand
from ._tasks import Call, transposed

REPRODUCIBLE_BLOCK = 256  # of k: docs/reproducible.md


def matmul(
    a: Any,
    b: Any,
    /,
    *,
    alpha: float = 1.0,
    precision: Precision = "accurate",
    device: Device = "auto",
    dtype: Float32 | None = None,
    chunks: Any = None,
    split_k: int | None = None,
) -> da.Array:
    """``alpha * a @ b`` as a Dask array, with the shape rules of ``numpy.matmul``.

    Parameters
    ----------
    a, b : dask.array.Array, numpy.ndarray, or array read by slices
        float32 matrices ``(..., m, k)`` and ``(..., k, n)``; leading dimensions broadcast, a 1-D `a` counts as a row
        and a 1-D `b` as a column. At least one is no plain NumPy array. What is neither of Dask nor of NumPy but has
        ``shape``, ``dtype`` and slices (arrays of Zarr and h5py), and a whole ``numpy.memmap``, is read by the tasks
        that compute with it, a part at a time, and again by others that need the part: so it may be larger than all
        memory. The chunks of a Dask array are computed once, and kept while a task needs them.
    alpha : float
        Factor of the product.
    precision, device, dtype
        As for `fastlinalg.matmul`, of the calls on the workers. "cuda" is each worker's own GPU. "reproducible" needs
        chunks that begin at multiples of 256 along k, and a `split_k` of 1, which is its default then.
    chunks : Chunks, int, tuple, dict or str, optional
        Where to cut the operands; Dask arrays are rechunked. What `suggest_chunks` gives; an int for m, n and k alike;
        or sizes of the rows and columns of the result as Dask takes them (``(2000, 1000)``, ``file.chunks``, ``{0:
        500}``, ``"128 MiB"``), with k as `suggest_chunks` says, which says all for "auto". By default Dask arrays stay
        as they are, and others are cut as the other operand, and where that does not decide, as `suggest_chunks` says
        for the current client or this process.
    split_k : int, optional
        In how many chains of tasks the sum over the chunks of k is cut for each chunk of the result. By default 1
        where the result has 128 chunks, and otherwise as many as make 128 chains in all, unless there were a partial
        sum for less than 16 times its bytes of operands.

    Returns
    -------
    dask.array.Array
        float32 of shape ``(..., m, n)``, cut along m as `a` and along n as `b`. Where the operands are cut differently
        along k, or along a leading dimension, the smaller one is rechunked as the larger.

    Raises
    ------
    ValueError
        Shapes that do not match, chunks of unknown sizes, 0-d operands, an unknown `precision` or `device`, a `split_k`
        less than 1, `chunks` that do not fit, chunks or a `split_k` that "reproducible" does not allow.
    TypeError
        Operands that are no such arrays or not float32, if `dtype` is no consent to convert them; two plain NumPy
        arrays, which are for `fastlinalg.matmul`.

    Notes
    -----
    All errors of arguments come from this call, before there is a graph. A sum over the chunks of k goes on from link
    to link of a chain by ``beta=1``, so partial products are not kept. Its order depends on the chunks and on `split_k`
    alone: on machines of one kind the bits are the same for any scheduler and any number of workers.

    Examples
    --------
    >>> import dask.array as da, numpy as np, fastlinalg.dask as fld
    >>> x = da.ones((1000, 300), chunks=(250, 100), dtype=np.float32)
    >>> gram = fld.matmul(x.T, x)
    >>> gram.chunks
    ((100, 100, 100), (100, 100, 100))
    >>> gram[0, :2].compute()
    array([1000., 1000.], dtype=float32)
    """
    left, right = _operands("matmul", ("a", a), ("b", b))
    if len(right.shape) > 1:
        right.axes(core=2, summed=-2, free=-1)
    options = {"alpha": alpha, "precision": precision, "device": device, "dtype": dtype}
    here = _device_here(device, left.meta())  # where errors name these operands
    fl.matmul(left.meta(), right.meta(), precision=precision, device=here, dtype=dtype)
    if len(left.shape) > 1 and len(right.shape) > 1:
        return _product("matmul", Call("sgemm", options), left, right, chunks, split_k)
    if precision == "reproducible":
        raise ValueError("matmul: precision='reproducible' is for two matrices; a vector is one with one row or column")
    del options["precision"]  # a product with a vector is as "strict" has it
    if len(left.shape) > 1:
        return _product("matmul", Call("sgemv", options), left, right, chunks, split_k)
    if len(right.shape) > 1:  # a @ b = b.T @ a
        return _product("matmul", Call("sgemv", {**options, "trans": True}), right, left, chunks, split_k)
    return _product("matmul", Call("dot", options), left, right, chunks, split_k)[0]


def matvec(
    a: Any,
    x: Any,
    /,
    *,
    alpha: float = 1.0,
    trans: bool = False,
    device: Device = "auto",
    dtype: Float32 | None = None,
    chunks: Any = None,
    split_k: int | None = None,
) -> da.Array:
    """``alpha * op(a) @ x`` as a Dask array.

    Parameters
    ----------
    a : dask.array.Array, numpy.ndarray, or array read by slices
        ``op(a)`` is float32 ``(..., m, n)``.
    x : dask.array.Array, numpy.ndarray, or array read by slices
        float32 vectors ``(..., n)``; leading dimensions broadcast with those of `a`.
    alpha : float
        Factor of the product.
    trans : bool
        Whether op swaps the last two dimensions. The transpose is never formed.
    device, dtype, chunks, split_k
        As for `matmul`; the sum is over n.

    Returns
    -------
    dask.array.Array
        float32 of shape ``(..., m)``.

    Raises
    ------
    ValueError, TypeError
        As for `matmul`.

    Examples
    --------
    >>> import dask.array as da, numpy as np, fastlinalg.dask as fld
    >>> a = da.ones((1000, 300), chunks=(250, 100), dtype=np.float32)
    >>> fld.matvec(a, np.ones(300, np.float32))[:2].compute()
    array([300., 300.], dtype=float32)
    """
    left, right = _operands("matvec", ("a", a), ("x", x))
    if len(left.shape) < 2:
        raise ValueError(f"matvec: a must have at least 2 dimensions, got shape {left.shape}")
    if trans:
        left.axes(core=2, summed=-2, free=-1)
    options = {"alpha": alpha, "trans": trans, "device": device, "dtype": dtype}
    return _product("matvec", Call("sgemv", options), left, right, chunks, split_k)


def transpose(a: Any, /, *, device: Device = "auto", dtype: Float32 | None = None) -> da.Array:
    """A Dask array of the matrices of `a`, transposed in memory, chunk by chunk.

    ``a.swapaxes(-1, -2)`` gives chunks that are views. Products do as well with these: this is for what reads the
    chunks in the order of their memory, files among it.

    Parameters
    ----------
    a : dask.array.Array
        float32 matrices ``(..., m, n)``.
    device, dtype
        As for `matmul`.

    Returns
    -------
    dask.array.Array
        float32 of shape ``(..., n, m)``, with the chunks of `a`, transposed.

    Raises
    ------
    ValueError, TypeError
        As for `matmul`, and a TypeError if `a` is not a Dask array.

    Examples
    --------
    >>> import dask.array as da, numpy as np, fastlinalg.dask as fld
    >>> fld.transpose(da.ones((1000, 300), chunks=(250, 100), dtype=np.float32)).chunks
    ((100, 100, 100), (250, 250, 250, 250))
    """
    if not isinstance(a, da.Array):
        raise TypeError(f"transpose: a must be a Dask array, got {type(a).__name__}; use da.from_array(a, chunks=...)")
    if a.ndim < 2:
        raise ValueError(f"transpose: a must have at least 2 dimensions, got shape {a.shape}")
    x = operand("a", a)
    options = {"device": device, "dtype": dtype}
    meta = transposed(options | {"device": _device_here(device, x.meta())}, x.meta())
    axes = tuple(range(a.ndim))
    swapped = (*axes[:-2], axes[-1], axes[-2])
    name = f"fastlinalg-transpose-{tokenize(a.name, options)}"
    return da.blockwise(
        transposed, swapped, options, None, x.array, axes, name=name, dtype=np.float32, meta=meta, concatenate=True
    )


# ---------------------------------------------------------------- checks
def _operands(function: str, *named: tuple[str, Any]) -> tuple[Operand, Operand]:
    """Both operands, checked one by one: `a` with rows that are summed, the other a vector."""
    if all(isinstance(x, np.ndarray) and not isinstance(x, np.memmap) for _, x in named):
        raise TypeError(
            f"{function}: one operand at least must be a Dask array or one that is read by slices, got two NumPy "
            f"arrays; use fastlinalg.{'matmul' if function == 'matmul' else 'sgemv'}"
        )
    first, second = (operand(name, x) for name, x in named)
    for x in (first, second):
        if not x.shape:
            raise ValueError(f"{function}: {x.name} must have at least 1 dimension, got shape ()")
        x.axes(core=1, summed=-1, free=None)
    if len(first.shape) > 1:
        first.axes(core=2, summed=-1, free=-2)
    return first, second


def _device_here(device: Device, meta: Any) -> Device:
    """Where an empty product is computed to check its arguments: not on a GPU, which the workers alone may have."""
    names = [device] if isinstance(device, str) else device
    if isinstance(names, (list, tuple)) and all(isinstance(name, str) for name in names):
        known = all(re.fullmatch(r"auto|cpu|cuda(:(\d+|all))?", name) for name in names)
        if names and known:
            return "cpu" if isinstance(meta, np.ndarray) else "auto"
    return device  # the call says what is wrong with it


def _check_call(call: Call, a: Operand, b: Operand) -> Any:
    """The call on empty arrays of these kinds: it raises what calls on workers would; its result is the meta."""
    here = {"device": _device_here(call.options["device"], a.meta())}
    return Call(call.operation, {**call.options, **here})(a.meta(), b.meta())


def _check_shapes(function: str, a: Operand, b: Operand) -> tuple[int, ...]:
    """The leading dimensions of the result."""
    if a.shape[a.summed] != b.shape[b.summed]:
        raise ValueError(
            f"{function}: operands with shapes {a.shape} and {b.shape} do not match: the sum is over axis {a.summed} "
            f"of {a.name}, of size {a.shape[a.summed]}, and axis {b.summed} of {b.name}, of size {b.shape[b.summed]}"
        )
    try:
        return np.broadcast_shapes(a.leading, b.leading)
    except ValueError:
        raise ValueError(
            f"{function}: the leading dimensions of operands with shapes {a.shape} and {b.shape} cannot be broadcast "
            "together"
        ) from None


def _check_split(split_k: Any) -> None:
    if split_k is None:
        return
    if not isinstance(split_k, Integral) or isinstance(split_k, bool):
        raise TypeError(f"split_k must be an integer or None, got {reprlib.repr(split_k)}")
    if split_k < 1:
        raise ValueError(f"split_k must be at least 1, got {split_k}")


def _check_blocks(a: Operand, split_k: int | None) -> int:
    """The order of sums of "reproducible" goes on by beta=1 from one block of k to the next, and in no other way."""
    if split_k not in (None, 1):
        raise ValueError(f"matmul: precision='reproducible' is one chain of sums: split_k must be 1, got {split_k}")
    sizes = [size for size in a.sizes[a.summed] if size]
    if any(size % REPRODUCIBLE_BLOCK for size in sizes[:-1]):
        raise ValueError(
            f"matmul: precision='reproducible' needs chunks that begin at multiples of {REPRODUCIBLE_BLOCK} along k, "
            f"got sizes {tuple(sizes)}; rechunk the operands"
        )
    return 1


# ---------------------------------------------------------------- the graph
def _product(function: str, call: Call, a: Operand, b: Operand, asked: Any, split_k: int | None) -> da.Array:
    _check_split(split_k)
    batch = _check_shapes(function, a, b)
    meta = _check_call(call, a, b)
    in_blocks = call.options.get("precision") == "reproducible"
    cut_alike(a, b, asked, unit=REPRODUCIBLE_BLOCK if in_blocks else 1)
    if in_blocks:
        split_k = _check_blocks(a, split_k)
    chunks = (*batch_chunks(batch, a, b), *free_chunks(a, b))
    token = tokenize(a.token, b.token, call, a.sizes, b.sizes, split_k)
    graph = Graph(f"fastlinalg-{function}", token, call, a, b)
    graph.outputs(chunks, split_k)
    inputs = [x.array for x in (a, b) if x.is_dask]
    layers = HighLevelGraph.from_collections(graph.name, graph.tasks, dependencies=inputs)
    return da.Array(layers, graph.name, chunks, dtype=np.float32, meta=meta_from_array(meta, len(chunks)))
