"""The products. Arguments are checked once, in the extension; here are signatures and documentation.

Types are in _api.pyi: they depend on each other, which takes overloads.
"""

import inspect
from typing import Any

from . import _core

_OF_SGEMM = ("kernel", "alpha", "beta", "c", "trans_a", "trans_b", "trans")


def _refuse_arguments(given: dict[str, Any]) -> None:
    name = next(iter(given))
    if name not in _OF_SGEMM:
        raise TypeError(f"matmul() got an unexpected keyword argument {name!r}")
    wanted = "trans_a= and trans_b= are arguments" if name == "trans" else f"{name}= is an argument"
    raise TypeError(f"matmul() takes no {name}=: {wanted} of sgemm, as in fl.sgemm(a, b, ...)")


def matmul(a, b, /, out=None, *, precision="accurate", device="auto", stream=None, dtype=None, **other):
    """Matrix product of two arrays, with the shape rules of ``numpy.matmul``.

    Parameters
    ----------
    a, b : array of float32
        Matrices ``(..., m, k)`` and ``(..., k, n)``. Leading dimensions broadcast. A 1-D `a` counts as a row and a 1-D
        `b` as a column, and that dimension is removed from the result. Any strides are accepted; C order, F order and
        row slices are not copied. Arrays of NumPy, or of any library with DLPack or ``__cuda_array_interface__``, in
        host memory or all on one CUDA device. Or on several: a list of device arrays is the matrix of their rows, one
        array below the other, those of `a` on a device each.
    out : array of float32, optional
        Where to write the result, of shape ``(..., m, n)``; it is returned. It may overlap `a` and `b`: the result is
        then as if they had been copied first. A list if `a` is one.
    precision : {"accurate", "strict", "reproducible"}
        "accurate": each element is within ``k * 2**-24 * (|a| @ |b|)`` of the true product, by tensor cores of a GPU,
        or tile registers of a CPU, where these are faster. "strict": the same bound by plain float32 arithmetic, exact
        wherever float32 is exact. "reproducible": the bits of an element depend on its row of `a`, its column of `b`,
        alpha, beta and k alone, and are the same on every CPU and GPU, for any shape, slice, batch, layout and number
        of threads (``docs/reproducible.md``).
    device : str or list of str
        "auto" takes the faster for operands in host memory, the CPU or one GPU, transfers included; "cpu"; "cuda";
        "cuda:1". "cuda:all" and lists as ``["cuda:0", "cuda:2"]`` spread a call on operands in host memory over GPUs of
        one kind, with the bits that one of them gives. The environment variable ``FASTLINALG_DEVICE`` replaces "auto".
        Device arrays are computed where they are, and for lists of them `device` may name these devices.
    stream : int or object with ``__cuda_stream__``, optional
        CUDA stream to use on a GPU; 0 and 1 are the legacy default stream, 2 the per-thread one. Without it device
        arrays are computed on the stream that is current in their library. A call on device arrays only queues work,
        in the order of the program: after what computes the operands, and before what uses the result. A call on host
        arrays returns when the result is there.
    dtype : np.float32, optional
        Consent to convert operands of another real type, each number rounded to the nearest float32 as by
        ``astype``: float64, float16, bfloat16, integers, booleans. ``docs/guide/memory.md`` says where that takes a
        copy. `out` has to be float32 all the same.

    Returns
    -------
    array of float32
        `out`, or a new array of the library of the first operand, a `DeviceArray` if that cannot make one; a
        ``numpy.float32`` for two 1-D NumPy operands without `out`; for a list `a` a list of such arrays, each on the
        device of its rows.

    Raises
    ------
    ValueError
        Shapes that do not match, a 0-d operand, an `out` that is read-only or has another shape or overlaps itself,
        operands in different places.
    TypeError
        An operand that is not a float32 array, and cannot or may not be converted to one. Without `dtype` nothing is
        cast.
    MemoryError
        Not enough host or device memory; the next call works.
    CudaError
        A GPU was asked for and cannot be used, or a CUDA call failed.

    Notes
    -----
    A product of a matrix and its own transpose, ``a @ a.T`` or ``a.T @ a``, takes about half of the time on the CPU
    and, of large ones in device memory, on an H100 or H200: one triangle is computed and mirrored, so that the result
    is symmetric (``fl.explain`` says where).

    Examples
    --------
    >>> import numpy as np, fastlinalg as fl
    >>> a = np.arange(6, dtype=np.float32).reshape(2, 3)
    >>> fl.matmul(a, a.T)
    array([[ 5., 14.],
           [14., 50.]], dtype=float32)
    """
    if other:
        _refuse_arguments(other)
    return _core.matmul(a, b, out, precision, device, stream, dtype)


_shown = inspect.signature(matmul)
matmul.__signature__ = _shown.replace(parameters=list(_shown.parameters.values())[:-1])  # without those it refuses


def grouped_matmul(a, b, /, out=None, *, precision="accurate", device="auto", stream=None, dtype=None):
    """The products of two lists, pair by pair: ``[matmul(x, y) for x, y in zip(a, b)]`` in one call.

    The shapes may differ. Each product has the bits that `matmul` gives it alone, with the same arguments. They are
    computed beside each other: on the CPU short ones by a thread each, on a GPU on several streams.

    Parameters
    ----------
    a, b : list of array of float32
        As many as there are products, in any iterable but an array. Each pair is what `matmul` takes, vectors and
        stacks of matrices too; all of them are in host memory, or on one CUDA device.
    out : list of array of float32, optional
        Where to write the results, one for each product; None in the place of an array is a new one. They may overlap
        operands, of any product: the results are then as if all operands had been copied first. Two of them may be
        blocks of one matrix, but have no element in common.
    precision, device, stream
        As for `matmul`, for each of the products.
    dtype : np.float32, optional
        As for `matmul`; operands of other types are converted before the products.

    Returns
    -------
    list of array of float32
        The arrays of `out`, or new ones as `matmul` makes them, all of the library of ``a[0]``.

    Raises
    ------
    ValueError
        Lists of different lengths, arrays of `out` that share memory, and as for `matmul`. Names the member, as
        ``a[3]``; nothing has been written then.
    TypeError
        An argument that is not a list of arrays, and as for `matmul`.
    MemoryError, CudaError
        As for `matmul`.

    Notes
    -----
    Many products of one shape are better one stack of matrices, which `matmul` takes. Which kernel a product takes,
    ``fl.explain`` says of each pair.

    Examples
    --------
    >>> import numpy as np, fastlinalg as fl
    >>> a = [np.ones((2, 3), np.float32), np.ones((1, 5), np.float32)]
    >>> b = [np.ones((3, 1), np.float32), np.ones((5, 2), np.float32)]
    >>> fl.grouped_matmul(a, b)
    [array([[3.],
           [3.]], dtype=float32), array([[5., 5.]], dtype=float32)]
    """
    return _core.grouped_matmul(a, b, out, precision, device, stream, dtype)


def sgemm(
    a,
    b,
    c=None,
    *,
    alpha=1.0,
    beta=0.0,
    trans_a=False,
    trans_b=False,
    out=None,
    kernel=None,
    precision="accurate",
    device="auto",
    stream=None,
    dtype=None,
):
    """``alpha * op(a) @ op(b) + beta * c``, the SGEMM of the BLAS.

    The arguments have the names of the BLAS [1]_, but for matrices by rows.

    Parameters
    ----------
    a, b : array of float32
        ``op(a)`` is ``(..., m, k)`` and ``op(b)`` is ``(..., k, n)``; leading dimensions broadcast.
    c : array of float32, optional
        The addend, ``(..., m, n)`` or what broadcasts to it: a row, a column, a scalar. Given if and only if
        ``beta != 0``. It is not changed unless it is `out` too. In device memory the kernels whose
        `traits.addend` is true read it where it lies; elsewhere it is copied to the result first.
    alpha, beta : float
        With ``alpha == 0`` neither `a` nor `b` is read.
    trans_a, trans_b : bool
        Whether op swaps the last two dimensions. No copy is made.
    out : array of float32, optional
        Where to write the result; may be `c`, and may overlap any operand.
    kernel : str, optional
        A name from ``fastlinalg.kernels("sgemm")`` to use instead of the dispatched one. It decides the device if
        `device` is "auto".
    precision, device, stream, dtype
        As for `matmul`.

    Returns
    -------
    array of float32
        `out`, or a new array of shape ``(..., m, n)``.

    Raises
    ------
    ValueError
        As for `matmul`; also an unknown kernel name, a kernel that cannot take these operands, ``beta != 0`` without
        `c`, and `c` with ``beta == 0``, which would not be read.
    TypeError, MemoryError, CudaError
        As for `matmul`.

    References
    ----------
    .. [1] Dongarra, J. J., et al., "A set of level 3 basic linear algebra subprograms", ACM TOMS 16(1), 1990.

    Examples
    --------
    >>> import numpy as np, fastlinalg as fl
    >>> a = np.arange(6, dtype=np.float32).reshape(2, 3)
    >>> c = np.ones((2, 2), np.float32)
    >>> fl.sgemm(a, a, c, alpha=0.5, beta=1.0, trans_b=True, out=c)
    array([[ 3.5,  8. ],
           [ 8. , 26. ]], dtype=float32)
    """
    return _core.sgemm(a, b, c, alpha, beta, trans_a, trans_b, out, kernel, precision, device, stream, dtype)


def ssyrk(
    a,
    c=None,
    *,
    alpha=1.0,
    beta=0.0,
    trans=False,
    uplo=None,
    out=None,
    kernel=None,
    precision="accurate",
    device="auto",
    stream=None,
    dtype=None,
):
    """``alpha * a @ a.T + beta * c``, or with ``a.T @ a``: the SSYRK of the BLAS.

    The arguments have the names of the BLAS [1]_.

    Parameters
    ----------
    a : array of float32
        Matrices ``(..., n, k)``, or ``(..., k, n)`` with ``trans=True``.
    c : array of float32, optional
        The addend, ``(..., n, n)`` or what broadcasts to it. Given if and only if ``beta != 0``. It need not be
        symmetric, and is not changed unless it is `out` too.
    alpha, beta : float
        With ``alpha == 0`` `a` is not read.
    trans : bool
        False: ``a @ a.T``; True: ``a.T @ a``. The transpose is never formed.
    uplo : {None, "L", "U"}
        None: the whole result. "L" and "U": only the lower or the upper triangle, with the diagonal, is computed, and
        read from `c`. In `out` the other one stays as it is; in a new array it is zero.
    out : array of float32, optional
        Where to write the result; may be `c`, and may overlap any operand.
    kernel : str, optional
        A name from ``fastlinalg.kernels("sgemm")``. With `uplo` it computes the whole result, of which a triangle is
        kept.
    precision, device, stream, dtype
        As for `matmul`.

    Returns
    -------
    array of float32
        `out`, or a new array of shape ``(..., n, n)``.

    Raises
    ------
    ValueError, TypeError, MemoryError, CudaError
        As for `sgemm`.

    Notes
    -----
    The CPU computes half of the products if ``beta == 0``, or with `uplo`. With the whole result and ``beta != 0`` it
    computes all of them. So does a GPU with `uplo`, into memory of its own, ``n * n`` elements for each problem, of
    which it copies a triangle.

    References
    ----------
    .. [1] Dongarra, J. J., et al., "A set of level 3 basic linear algebra subprograms", ACM TOMS 16(1), 1990.

    Examples
    --------
    >>> import numpy as np, fastlinalg as fl
    >>> a = np.arange(6, dtype=np.float32).reshape(2, 3)
    >>> fl.ssyrk(a, uplo="L")
    array([[ 5.,  0.],
           [14., 50.]], dtype=float32)
    """
    return _core.ssyrk(a, c, alpha, beta, trans, uplo, out, kernel, precision, device, stream, dtype)


def sgemv(
    a, x, y=None, *, alpha=1.0, beta=0.0, trans=False, out=None, kernel=None, device="auto", stream=None, dtype=None
):
    """``alpha * op(a) @ x + beta * y``, the SGEMV of the BLAS.

    The arguments have the names of the BLAS [1]_, but for matrices by rows.

    Parameters
    ----------
    a : array of float32
        ``op(a)`` is ``(..., m, n)``.
    x : array of float32
        Vectors ``(..., n)``; leading dimensions broadcast with those of `a`.
    y : array of float32, optional
        The addend, ``(..., m)`` or what broadcasts to it. Given if and only if ``beta != 0``.
    alpha, beta : float
        With ``alpha == 0`` neither `a` nor `x` is read.
    trans : bool
        Whether op swaps the last two dimensions. The transpose is never formed.
    out : array of float32, optional
        Where to write the result; may be `y`, and may overlap any operand.
    kernel : str, optional
        A name from ``fastlinalg.kernels("sgemv")``.
    device, stream, dtype
        As for `matmul`.

    Returns
    -------
    array of float32
        `out`, or a new array of shape ``(..., m)``.

    Raises
    ------
    ValueError, TypeError, MemoryError, CudaError
        As for `sgemm`.

    References
    ----------
    .. [1] Dongarra, J. J., et al., "An extended set of FORTRAN basic linear algebra subprograms", ACM TOMS 14(1), 1988.

    Examples
    --------
    >>> import numpy as np, fastlinalg as fl
    >>> a = np.arange(6, dtype=np.float32).reshape(2, 3)
    >>> fl.sgemv(a, np.ones(3, np.float32))
    array([ 3., 12.], dtype=float32)
    >>> fl.sgemv(a, np.ones(2, np.float32), trans=True)
    array([3., 5., 7.], dtype=float32)
    """
    return _core.sgemv(a, x, y, alpha, beta, trans, out, kernel, device, stream, dtype)


def transpose(a, out=None, *, kernel=None, device="auto", stream=None, dtype=None):
    """A copy of `a` with its last two dimensions swapped.

    Unlike ``a.swapaxes(-1, -2)``, which is a view, the result has its elements in the new order in memory.

    Parameters
    ----------
    a : array of float32
        Matrices ``(..., m, n)``.
    out : array of float32, optional
        Where to write the result, ``(..., n, m)``; may overlap `a`. Square matrices may be `a` itself: they are
        exchanged in place, without a copy, where the kernels run on the memory that `a` lies in.
    kernel : str, optional
        A name from ``fastlinalg.kernels("transpose")``.
    device, stream, dtype
        As for `matmul`.

    Returns
    -------
    array of float32
        `out`, or a new C-ordered array of shape ``(..., n, m)``.

    Raises
    ------
    ValueError, TypeError, MemoryError, CudaError
        As for `sgemm`.

    Examples
    --------
    >>> import numpy as np, fastlinalg as fl
    >>> fl.transpose(np.arange(6, dtype=np.float32).reshape(2, 3))
    array([[0., 3.],
           [1., 4.],
           [2., 5.]], dtype=float32)
    """
    return _core.transpose(a, out, kernel, device, stream, dtype)
