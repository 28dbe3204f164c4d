"""Why operands are refused, in the words of the function that was called: its names, and shapes as they were given.

Asked only where a call has failed, so that a call which succeeds checks nothing twice.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def unmatched(function: str, axis: int, **operands: Tensor) -> str:
    """Of operands whose product is over the last axis of the first and `axis` of the second."""
    (a_name, a), (b_name, b) = operands.items()
    return (
        f"{function}: operands with shapes {tuple(a.shape)} and {tuple(b.shape)} do not match: the sum is over axis -1 "
        f"of {a_name}, of size {a.shape[-1]}, and axis {axis} of {b_name}, of size {b.shape[axis]}"
    )


def _torch_reads(x: Any) -> bool:
    try:
        torch.as_tensor(x)
    except Exception:  # an AssertionError where it has no CUDA, or whatever an object raises
        return False
    return True


def refuse_operands(function: str, converts: bool | None = None, **operands: Any) -> None:
    """Raise what is wrong with one of them by itself, or with their places.

    `converts`: the caller has agreed to other real types; None: there is no way to agree.
    """
    for name, x in operands.items():
        if not isinstance(x, Tensor):
            advice = f"; use torch.as_tensor({name})" if _torch_reads(x) else ""
            raise TypeError(f"{function}: {name} must be a tensor, got {type(x).__name__}{advice}") from None
        if x.is_nested or x.layout is not torch.strided:
            kind = "a nested tensor" if x.is_nested else str(x.layout)
            raise TypeError(f"{function}: {name} must be a strided tensor, got {kind}") from None
        if x.dtype != torch.float32 and (x.is_complex() or not converts):
            real = f"{name}.real" if x.is_complex() else name
            offer = ", or dtype=torch.float32 to have it converted" if converts is False and real == name else ""
            raise TypeError(
                f"{function}: {name} must have dtype float32, got {x.dtype}; nothing is cast silently, use "
                f"{real}.to(torch.float32){offer}"
            ) from None
    if len({x.device for x in operands.values()}) > 1:
        places = ", ".join(f"{name} on {x.device}" for name, x in operands.items())
        raise ValueError(f"{function}: operands must lie in one place, got {places}") from None


def refuse_product(function: str, a: Any, b: Any, converts: bool | None = None) -> None:
    """Raise what is wrong with the operands of ``a @ b``, if it is that."""
    refuse_operands(function, converts, a=a, b=b)
    axis = -1 if b.ndim == 1 else -2
    if a.ndim and b.ndim and a.shape[-1] != b.shape[axis]:
        raise ValueError(unmatched(function, axis, a=a, b=b)) from None


def refuse_linear(function: str, x: Any, weight: Any, bias: Any, converts: bool | None = None) -> None:
    """Raise what is wrong with the operands of ``x @ weight.T + bias``, if it is that."""
    refuse_operands(function, converts, x=x, weight=weight, **({} if bias is None else {"bias": bias}))
    if x.ndim == 0 or weight.ndim != 2:
        wrong = f"weight must have 2 dimensions, got shape {tuple(weight.shape)}" if x.ndim else "x has no dimensions"
        raise ValueError(f"{function}: {wrong}") from None
    n, k = weight.shape
    if x.shape[-1] != k:
        said = unmatched(function, -1, x=x, weight=weight)
        raise ValueError(f"{said}; weight must have shape (n, {x.shape[-1]})") from None
    if bias is not None and (bias.ndim > 2 or bias.shape[-1:] not in ((), (1,), (n,))):
        raise ValueError(f"{function}: bias must have shape ({n},), got {tuple(bias.shape)}") from None
