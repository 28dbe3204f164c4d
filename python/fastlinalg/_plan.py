"""Products that are planned once and executed many times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, Literal, NoReturn, TypeVar

from . import _core

if TYPE_CHECKING:
    from collections.abc import Iterable

    from typing_extensions import Self

    from .typing import Device, DeviceArrayLike, Float32, Float32Array, Precision, Stream

_Array = TypeVar("_Array", bound="Float32Array | DeviceArrayLike")


class _Plan:
    """What every plan is to Python: a block frees it, and it stays in its process."""

    def __enter__(self) -> Self:
        """Return the plan itself, which is freed at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        self.free()

    def free(self) -> None:
        """Give back the workspace and the operands; the plan cannot be used any more."""
        super().free()  # type: ignore[misc]

    def __reduce__(self) -> NoReturn:
        name = type(self).__name__
        raise TypeError(
            f"a {name} is bound to memory of this process and can be neither pickled nor copied; send its operands, "
            f"and make it anew where they arrive: fl.{name}(a, b, ...)"
        )


class Matmul(_Plan, _core.MatmulPlan, Generic[_Array]):
    """``alpha * op(a) @ op(b) + beta * c`` of operands that are bound to it, for many executions.

    A call of `fastlinalg.matmul` checks its operands, chooses a kernel and gets its workspace; a plan does so once,
    when it is made. It reads the operands anew at every execution, ``plan.execute()`` or ``plan()``, so their values
    may change in place.

    Parameters
    ----------
    a, b : array of float32
        As for `fastlinalg.matmul`: 1-D operands are vectors, leading dimensions broadcast. A plan reads their memory
        at every execution, so none is copied: misaligned elements are refused, and other types but for `dtype`.
    c : array of float32, optional
        The addend, of the shape of the result. Given if and only if ``beta != 0``.
    out : array of float32, optional
        Where each execution writes its result; may be `c`, and may overlap any operand. Without it each execution makes
        a new array.
    alpha, beta : float
    trans_a, trans_b : bool
        Whether op swaps the last two dimensions of `a` or `b`, which then has to have two.
    kernel : str, optional
        A name from ``fastlinalg.kernels("sgemm")``, or, if `a` or `b` is 1-D, from ``fastlinalg.kernels("sgemv")``.
    precision, device, stream
        As for `fastlinalg.matmul`. "auto" is answered once: a plan of operands in host memory makes a CUDA context only
        if it is to run on a GPU.
    constant : {"a", "b"}, optional
        An operand whose values stay the same from one execution to the next, so that what can be prepared of it is
        kept: its terms, where an accurate product on the device splits its operands. Whoever changes them says so
        with ``reset_operands(b=b)``; an `out` that overlaps it is refused.
    dtype : np.float32, optional
        Consent to `a` and `b` of float16 and bfloat16, each number the float32 of its value.

    Attributes
    ----------
    kernel : str or None
        The chosen kernel; None where nothing is computed because the operands are empty, and after `free`.
    device : str or None
        Where it runs: "cpu", "cuda:0", "cuda:0,cuda:2"; None as for `kernel`.
    workspace_bytes : int
        Scratch memory that the kernel uses, and what is kept of a constant operand; the plan has it until `free`.

    Notes
    -----
    On arrays in device memory an execution is a call like `fastlinalg.matmul`: asynchronous, on `stream` or on the
    stream that is current in the library of the operands at that moment, and in order with what their libraries have
    queued. After some executions on the same operands the plan records a CUDA graph and starts that, which takes the
    host less time than a launch.

    Executions of one plan, from any threads and on any streams, follow one another wherever they share a workspace.
    Only executions captured in a CUDA graph of the caller are not ordered with others. Such a graph must not outlive
    the plan, and contains what was kept of a constant operand when it was captured: capture it anew when the operand
    changes. On the CPU the kernel is chosen again if the number of threads has changed.

    Examples
    --------
    >>> import numpy as np, fastlinalg as fl
    >>> a, b, c = (np.ones((4, 4), np.float32) for _ in range(3))
    >>> with fl.Matmul(a, b, out=c) as product:
    ...     for step in range(3):
    ...         a[...] = step
    ...         c is product.execute(), c[0, 0]
    (True, np.float32(0.0))
    (True, np.float32(4.0))
    (True, np.float32(8.0))
    """

    def __init__(
        self,
        a: _Array,
        b: _Array,
        /,
        c: _Array | None = None,
        *,
        out: _Array | None = None,
        alpha: float = 1.0,
        beta: float = 0.0,
        trans_a: bool = False,
        trans_b: bool = False,
        kernel: str | None = None,
        precision: Precision = "accurate",
        device: Device = "auto",
        stream: Stream | None = None,
        constant: Literal["a", "b"] | None = None,
        dtype: Float32 | None = None,
    ) -> None:
        super().__init__(
            a, b, c, out, alpha, beta, trans_a, trans_b, kernel, precision, device, stream, constant, dtype
        )

    def plan(self) -> Matmul[_Array]:
        """Return the plan, which has been planned since it was made; if an execution has failed, it is planned anew."""
        super().plan()
        return self

    if TYPE_CHECKING:

        def execute(self, *, stream: Stream | None = None) -> _Array: ...
        def __call__(self, *, stream: Stream | None = None) -> _Array: ...

    else:
        __call__ = _core.MatmulPlan.execute

    def reset_operands(
        self,
        a: _Array | None = None,
        b: _Array | None = None,
        c: _Array | None = None,
        out: _Array | None = None,
    ) -> None:
        """Bind other operands; those that are not given stay.

        The kernel stays too, unless the addresses of the new operands rule it out.

        Parameters
        ----------
        a, b : array of float32, optional
            With the shape and the strides of the ones they replace. The constant operand itself, if its values have
            changed.
        c, out : array of float32, optional
            With the shape of the result.

        Raises
        ------
        ValueError
            An operand of another shape or other strides, or an `out` that is read-only or overlaps itself; nothing has
            changed then. The plan has been freed.
        TypeError
            An operand that is not a float32 array.
        """
        self._reset_operands(a, b, c, out)


class GroupedMatmul(_Plan, _core.GroupedPlan, Generic[_Array]):
    """The products of two lists that are planned once and executed many times.

    As `fastlinalg.grouped_matmul` of the same arguments, whose operands are read anew at every execution,
    ``plan.execute()`` or ``plan()``. On arrays in device memory all products become one CUDA graph after some
    executions.

    Parameters
    ----------
    a, b : list of array of float32
        As for `fastlinalg.grouped_matmul`, in memory that a plan can be bound to: arrays of NumPy, PyTorch, CuPy, and
        `DeviceArray`. Nothing is converted.
    out : list of array of float32, optional
        Where each execution writes the results; apart from all operands. Without it the plan makes them, and each
        execution writes to the same ones.
    precision, device, stream
        As for `fastlinalg.matmul`.

    Raises
    ------
    ValueError, TypeError, MemoryError, CudaError
        As for `fastlinalg.grouped_matmul`; also operands and results that a plan cannot be bound to.

    Examples
    --------
    >>> import numpy as np, fastlinalg as fl
    >>> a, b = [np.ones((2, 3), np.float32)], [np.ones((3, 1), np.float32)]
    >>> with fl.GroupedMatmul(a, b) as products:
    ...     a[0][...] = 2
    ...     products()
    [array([[6.],
           [6.]], dtype=float32)]
    """

    def __init__(
        self,
        a: Iterable[_Array],
        b: Iterable[_Array],
        /,
        *,
        out: Iterable[_Array | None] | None = None,
        precision: Precision = "accurate",
        device: Device = "auto",
        stream: Stream | None = None,
    ) -> None:
        super().__init__(a, b, out, precision, device, stream)

    def execute(self, *, stream: Stream | None = None) -> list[_Array]:
        """Compute the products of the bound operands as they are now; a call of the plan, ``plan()``, is the same.

        Parameters
        ----------
        stream : int or object with ``__cuda_stream__``, optional
            Instead of the stream that the plan was made with.

        Returns
        -------
        list of array of float32
            The results, the same arrays each time.
        """
        results: list[_Array] = self._execute(stream)
        return results

    __call__ = execute
