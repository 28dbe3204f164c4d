"""Which kernel a call takes, and why, in words."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from . import _core
from ._info import kernels

if TYPE_CHECKING:
    from .typing import Device, DeviceArrayLike, Precision, RealArray

    Operand = RealArray | DeviceArrayLike | tuple[int, ...]


@dataclass(frozen=True)
class Explanation:
    """The answer of `explain`; prints as text.

    Attributes
    ----------
    op : str
        "sgemm", "sgemv" or "transpose".
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
) -> Explanation:
    """Which kernel a call takes and why. Nothing is computed.

    Parameters
    ----------
    a, b : array or tuple of int
        The operands of `matmul`, `sgemm` or `sgemv`; `a` alone is that of `transpose`. A tuple is the shape of a NumPy
        array in C order. Another real dtype counts as ``dtype=np.float32`` would have it converted.
    trans_a, trans_b, kernel, precision, device
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
    found = _core.explain(a, b, trans_a, trans_b, kernel, precision, device)
    taken = found["taken"]
    others: dict[str, float | str] = {name: reason or us for name, reason, us in taken["others"]}
    lines = [f"{found['call']} {_place(found, kernel, device)}"]
    if taken["kernel"] is None:
        lines = [f"{found['call']}: nothing to compute, so no kernel is called"]
    else:
        lines += _sentences(found, others, kernel)
    return Explanation(found["op"], taken["device"], taken["kernel"], taken["us"], others, "\n".join(lines))


def _time(us: float) -> str:
    if us < 1:
        return f"{us * 1e3:.0f} ns"
    return f"{us:.3g} µs" if us < 1e3 else f"{us / 1e3:.3g} ms" if us < 1e6 else f"{us / 1e6:.3g} s"


def _name(device: str) -> str:
    return "the CPU" if device == "cpu" else device


def _place(found: dict[str, Any], kernel: str | None, device: Device) -> str:
    """On which device, and what decided that."""
    taken, elsewhere = found["taken"], found["elsewhere"]
    where = f"on {_name(taken['device'])}"
    if device != "auto":
        return f"{where}, because device={device!r} says so"
    if kernel is not None:
        return f"{where}, where the kernel that was asked for runs"
    if found["on_device"]:
        return f"{where}, where its operands are"
    if os.environ.get("FASTLINALG_DEVICE"):
        return f"{where}, because FASTLINALG_DEVICE={os.environ['FASTLINALG_DEVICE']} says so"
    if elsewhere is None:
        return f"{where}: there is no CUDA device"
    return f"{where}: {_expected(taken)}; on {_name(elsewhere['device'])} {_expected(elsewhere)}"


def _expected(row: dict[str, Any]) -> str:
    return f"about {_time(row['us'])}" + (" with the copies to the GPU and back" if row["steps"] else "")


def _sentences(found: dict[str, Any], others: dict[str, float | str], asked: str | None) -> list[str]:
    taken = found["taken"]
    blurb = next(row.blurb for row in kernels(found["op"]) if row.name == taken["kernel"])
    possible = sorted((us, name) for name, us in others.items() if not isinstance(us, str))
    reasons: dict[str, list[str]] = {}
    for name, reason in others.items():
        if isinstance(reason, str):
            reasons.setdefault(reason, []).append(name)
    if asked is not None:
        why = "as asked for"
    elif not possible:
        why = "the only kernel that can compute it here"
    else:
        why = f"expected to be the fastest of {len(possible) + 1} kernels that can compute it here"
    lines = [f"  kernel   {taken['kernel']} ({blurb}): {why}"]
    if taken["triangle"]:
        lines.append("  product  symmetric, a matrix times its own transpose: one triangle is computed and mirrored")
    in_parts = f", in {taken['steps']} parts that overlap with them" if taken["steps"] > 1 else ""
    lines.append(f"  time     {_expected(taken)}{in_parts}")
    if found["runs"] > 1:
        lines.append(
            f"  batch    {found['runs']} calls of the kernel, since the strides of the batch are uneven; this is of one"
        )
    if possible:
        part = "for the largest part " if taken["steps"] > 1 else ""
        lines.append(f"  next     {part}" + ", ".join(f"{name} {_time(us)}" for us, name in possible[:4]))
    for reason, names in reasons.items():
        shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        lines.append(f"  not      {shown}: {reason}")
    return lines
