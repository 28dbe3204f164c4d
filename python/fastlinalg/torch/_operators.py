"""The operators ``fastlinalg::mm``, ``bmm``, ``addmm`` and ``linear`` of ``torch.library``.

Each has a kernel for the CPU and for CUDA devices, a fake kernel, a gradient made of the same operators, and a rule for
``torch.vmap``.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from .. import _core
from ._refusals import refuse_linear, unmatched

ops = torch.ops.fastlinalg

_library = torch.library.Library("fastlinalg", "DEF")  # kept alive: with it go the operators
_PRECISION = 'str precision="accurate"'
for _schema in (
    f"mm(Tensor a, Tensor b, *, {_PRECISION}) -> Tensor",
    f"bmm(Tensor a, Tensor b, *, {_PRECISION}) -> Tensor",
    f"addmm(Tensor c, Tensor a, Tensor b, *, Scalar beta=1, Scalar alpha=1, {_PRECISION}) -> Tensor",
    f"linear(Tensor x, Tensor weight, Tensor? bias=None, *, {_PRECISION}) -> Tensor",
):
    _library.define(_schema, tags=(torch.Tag.pt2_compliant_tag,))


# ---------------------------------------------------------------- what they compute
def _product_of(name: str, dims: int) -> Any:
    def product(a: Tensor, b: Tensor, *, precision: str = "accurate") -> Tensor:
        _require_dims(name, dims, a=a, b=b)
        return _core.tensor_product(a, b, None, None, 1.0, 0.0, precision)

    return product


def _addmm(
    c: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1, precision: str = "accurate"
) -> Tensor:
    _require_dims("addmm", 2, a=a, b=b)
    return _core.tensor_product(a, b, c, None, alpha, beta, precision)


def _linear(x: Tensor, weight: Tensor, bias: Tensor | None = None, *, precision: str = "accurate") -> Tensor:
    try:
        return _core.tensor_rows_product(x, weight, bias, True, precision, False)
    except Exception:
        refuse_linear("fastlinalg::linear", x, weight, bias)
        raise


def rows(x: Tensor) -> Tensor:
    """All of them as one matrix."""
    return x.unsqueeze(0) if x.ndim == 1 else x.flatten(end_dim=-2)


def _require_dims(name: str, dims: int, **operands: Tensor) -> None:
    for operand, x in operands.items():
        if x.ndim != dims:
            raise ValueError(f"fastlinalg::{name}: {operand} must have {dims} dimensions, got shape {tuple(x.shape)}")


def _refusing_tangents(name: str, kernel: Any) -> Any:
    """What `register_autograd` makes loses them. Those of `torch.func.jvp` are not seen here."""

    def checked(*given: Tensor | None, **options: Any) -> Tensor:
        if forward_ad._current_level >= 0 and any(
            x is not None and forward_ad.unpack_dual(x).tangent is not None for x in given
        ):
            raise NotImplementedError(f"fastlinalg::{name} has no derivative in forward mode")
        return kernel(*given, **options)

    return checked


# ---------------------------------------------------------------- their results' shapes
def _fake_product(a: Tensor, b: Tensor, c: Tensor | None = None) -> Tensor:
    given = [x for x in (a, b, c) if x is not None]
    for x in given:
        if x.dtype != torch.float32:
            raise TypeError(f"fastlinalg takes float32 tensors, got {x.dtype}; nothing is cast silently")
        if x.device != a.device:
            raise ValueError(f"operands must lie in one place, got {a.device} and {x.device}")
    torch._check(a.shape[-1] == b.shape[-2], lambda: f"shapes {tuple(a.shape)} and {tuple(b.shape)} do not match")
    if a.ndim == 3:
        torch._check(a.shape[0] == b.shape[0], lambda: f"batches of {a.shape[0]} and of {b.shape[0]} do not match")
    return a.new_empty((*a.shape[:-1], b.shape[-1]))


def _fake_mm(a: Tensor, b: Tensor, *, precision: str = "accurate") -> Tensor:
    return _fake_product(a, b)


def _fake_addmm(
    c: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1, precision: str = "accurate"
) -> Tensor:
    return _fake_product(a, b, c)


def _fake_linear(x: Tensor, weight: Tensor, bias: Tensor | None = None, *, precision: str = "accurate") -> Tensor:
    torch._check(x.shape[-1] == weight.shape[-1], lambda: unmatched("fastlinalg::linear", -1, x=x, weight=weight))
    return _fake_product(rows(x), weight.mT, bias).reshape(*x.shape[:-1], weight.shape[0])


# ---------------------------------------------------------------- their gradients
def _save(ctx: Any, inputs: tuple[Any, ...], keyword_only_inputs: dict[str, Any], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)
    ctx.options = keyword_only_inputs


def _product_gradients(ctx: Any, grad: Tensor, a: Tensor, b: Tensor, wanted: Any) -> tuple[Any, Any]:
    """Of ``a @ b``, where they are asked for."""
    product, precision = ops.mm if a.ndim == 2 else ops.bmm, ctx.options.get("precision", "accurate")
    grad_a = product(grad, b.mT, precision=precision) if wanted[0] else None
    return grad_a, product(a.mT, grad, precision=precision) if wanted[1] else None


def _backward_product(ctx: Any, grad: Tensor) -> tuple[Any, Any]:
    a, b = ctx.saved_tensors
    return _product_gradients(ctx, grad, a, b, ctx.needs_input_grad)


def _backward_addmm(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    c, a, b = ctx.saved_tensors
    beta, alpha = ctx.options.get("beta", 1), ctx.options.get("alpha", 1)
    grad_c = grad.sum_to_size(c.shape) * beta if ctx.needs_input_grad[0] else None
    gradients = _product_gradients(ctx, grad, a, b, ctx.needs_input_grad[1:])
    return (grad_c, *(x * alpha if x is not None and alpha != 1 else x for x in gradients))


def _backward_linear(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    x, weight, bias = ctx.saved_tensors
    grad_rows = rows(grad)
    precision = ctx.options.get("precision", "accurate")
    wanted = ctx.needs_input_grad
    grad_x = ops.mm(grad_rows, weight, precision=precision).reshape(x.shape) if wanted[0] else None
    grad_weight = ops.mm(grad_rows.mT, rows(x), precision=precision) if wanted[1] else None
    grad_bias = grad_rows.sum_to_size(bias.shape) if bias is not None and wanted[2] else None
    return grad_x, grad_weight, grad_bias


# ---------------------------------------------------------------- under vmap
def front(x: Tensor, dim: int | None, size: int) -> Tensor:
    """With the mapped dimension first; one that is not mapped is repeated without a copy."""
    return x.unsqueeze(0).expand(size, *x.shape) if dim is None else x.movedim(dim, 0)


def _vmap_mm(info: Any, in_dims: tuple[int | None, ...], a: Tensor, b: Tensor, **options: Any) -> tuple[Tensor, int]:
    size = info.batch_size
    if in_dims[1] is None:  # one product of many rows
        a = front(a, in_dims[0], size)
        return ops.mm(rows(a), b, **options).reshape(*a.shape[:-1], b.shape[-1]), 0
    return ops.bmm(front(a, in_dims[0], size), front(b, in_dims[1], size), **options), 0


def _vmap_bmm(info: Any, in_dims: tuple[int | None, ...], a: Tensor, b: Tensor, **options: Any) -> tuple[Tensor, int]:
    a, b = front(a, in_dims[0], info.batch_size), front(b, in_dims[1], info.batch_size)
    return ops.bmm(a.flatten(0, 1), b.flatten(0, 1), **options).unflatten(0, a.shape[:2]), 0


def _vmap_addmm(
    info: Any,
    in_dims: tuple[int | None, ...],
    c: Tensor,
    a: Tensor,
    b: Tensor,
    *,
    beta: float = 1,
    alpha: float = 1,
    **options: Any,
) -> tuple[Tensor, int]:
    product, _ = _vmap_mm(info, in_dims[1:], a, b, **options)
    shape = c.shape if in_dims[0] is None else c.movedim(in_dims[0], 0).shape[1:]
    c = front(c, in_dims[0], info.batch_size).reshape(info.batch_size, *[1] * (2 - len(shape)), *shape)
    return product * alpha + c * beta if beta != 0 else product * alpha, 0


def _vmap_linear(
    info: Any,
    in_dims: tuple[int | None, ...],
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    **options: Any,
) -> tuple[Tensor, int]:
    size = info.batch_size
    x = front(x, in_dims[0], size)
    if all(dim is None for dim in in_dims[1:]):
        return ops.linear(x, weight, bias, **options), 0
    stack = x.unsqueeze(1) if x.ndim == 2 else x.flatten(1, -2)
    product = ops.bmm(stack, front(weight, in_dims[1], size).mT, **options)
    if bias is not None:
        product = product + front(bias, in_dims[2], size).unsqueeze(1)
    return product.reshape(*x.shape[:-1], product.shape[-1]), 0


# ----------------------------------------------------------------
for _name, _kernel, _fake, _backward, _vmap in (
    ("mm", _product_of("mm", 2), _fake_mm, _backward_product, _vmap_mm),
    ("bmm", _product_of("bmm", 3), _fake_mm, _backward_product, _vmap_bmm),
    ("addmm", _addmm, _fake_addmm, _backward_addmm, _vmap_addmm),
    ("linear", _linear, _fake_linear, _backward_linear, _vmap_linear),
):
    for _device in ("CPU", "CUDA"):
        _library.impl(_name, _refusing_tangents(_name, _kernel), _device)
    torch.library.register_fake(f"fastlinalg::{_name}", _fake, lib=_library)
    torch.library.register_autograd(f"fastlinalg::{_name}", _backward, setup_context=_save, lib=_library)
    torch.library.register_vmap(f"fastlinalg::{_name}", _vmap, lib=_library)
