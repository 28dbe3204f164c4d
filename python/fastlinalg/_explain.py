"""Which kernel a call takes, and why, in words."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from . import _core

if TYPE_CHECKING:
    from .typing import Device, DeviceArrayLike, Float32, Precision, RealArray

    Operand = RealArray | DeviceArrayLike | tuple[int, ...]


@dataclass(frozen=True)
class Explanation:
    """The answer of `explain`; prints as text.

    Attributes
    ----------
    op : str
        "sgemm", "sgemv" or "transpose", of which the kernel is one: a product with one row or one column is "sgemv".
    device : str
        Where the call runs: "cpu", "cuda:0", "cuda:0,cuda:2".
    kernel : str or None
        What computes it, of operands in host memory on a GPU the largest part of it; None if there is nothing to
        compute.
    estimated_us : float
        Microseconds it is expected to take, copies of operands in host memory included.
    others : dict
        For each other kernel for that device the expected microseconds, of the largest part where there are several,
        or why it was out of the question.
    text : str
        All of it in sentences.
    """

    op: str
    device: str
    kernel: str | None
    estimated_us: float
    others: dict[str, float | str] = field(repr=False)
    text: str = field(repr=False)

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__


def explain(
    a: Operand,
    b: Operand | None = None,
    /,
    *,
    trans_a: bool = False,
    trans_b: bool = False,
    kernel: str | None = None,
    precision: Precision = "accurate",
    device: Device = "auto",
    dtype: Float32 | None = None,
) -> Explanation:
    """Which kernel a call takes and why. Nothing is computed.

    Parameters
    ----------
    a, b : array or tuple of int
        The operands of `matmul`, `sgemm` or `sgemv`; `a` alone is that of `transpose`. A tuple is the shape of a NumPy
        array of float32 in C order.
    trans_a, trans_b, kernel, precision, device, dtype
        As for `sgemm`.

    Returns
    -------
    Explanation
        Prints as text; its attributes say the same to programs.

    Raises
    ------
    ValueError, TypeError, CudaError
        What the call itself would raise of its operands and options.

    Examples
    --------
    >>> import fastlinalg as fl
    >>> answer = fl.explain((1000, 500), (500, 2000), device="cpu")
    >>> print(answer.text.splitlines()[0])
    sgemm 1000x2000x500 on the CPU, because device='cpu' says so
    >>> answer.op, answer.device
    ('sgemm', 'cpu')
    """
    return Explanation(**_core.explain(a, b, trans_a, trans_b, kernel, precision, device, dtype))
