"""The operators ``fastlinalg::mm``, ``bmm``, ``addmm`` and ``linear`` of ``torch.library``.

Each has a kernel for the CPU and for CUDA devices, a fake kernel, gradients and tangents made of the same operators,
and a rule for ``torch.vmap``.
"""

from __future__ import annotations

import math
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
    return x if x.ndim == 2 else x.reshape(math.prod(x.shape[:-1]), x.shape[-1])


def _require_dims(name: str, dims: int, **operands: Tensor) -> None:
    for operand, x in operands.items():
        if x.ndim != dims:
            raise ValueError(f"fastlinalg::{name}: {operand} must have {dims} dimensions, got shape {tuple(x.shape)}")


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


# ---------------------------------------------------------------- their derivatives
class _Recorded(torch.autograd.function._SingleLevelFunction):
    """A `result` and what its derivatives need. PyTorch's `register_autograd` loses tangents without a word, and its
    `Function` begins with the outermost of nested transforms again."""

    @staticmethod
    def forward(
        ctx: Any, op: Any, gradients: Any, options: dict[str, Any], result: list[Tensor], *given: Any
    ) -> Tensor:
        ctx.save_for_backward(*given)
        ctx.save_for_forward(*given)
        ctx.set_materialize_grads(False)  # zeros would be multiplied
        ctx.op, ctx.gradients, ctx.options, ctx.shape = op, gradients, options, result[0].shape
        return result[0]

    @staticmethod
    def backward(ctx: Any, grad: Tensor | None) -> tuple[Any, ...]:
        if grad is None:
            return (None,) * len(ctx.needs_input_grad)
        return *[None] * 4, *ctx.gradients(grad, *ctx.saved_tensors, wanted=ctx.needs_input_grad[4:], **ctx.options)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Tensor:
        op, given, tangents, options = ctx.op, ctx.saved_tensors, tangents[4:], dict(ctx.options)
        alpha, beta = options.pop("alpha", 1), options.pop("beta", 1)
        if op is ops.addmm.default:
            op, given, tangents = ops.mm, given[1:], (*tangents[1:], tangents[0])
        with forward_ad._set_fwd_grad_enabled(True):  # PyTorch has disabled it, for outer levels of `torch.func` too
            a, b = (forward_ad.unpack_dual(x, level=0).primal for x in given[:2])
            factors = (tangents[0], b), (a, tangents[1])
            terms = [op(x, y, **options) * alpha for x, y in factors if x is not None and y is not None]
            terms += [(x * beta).expand(ctx.shape) for x in tangents[2:] if x is not None]
            return sum(terms[1:], terms[0])


def _recorded(op: Any, gradients: Any) -> Any:
    """The kernel under the key of autograd."""

    def kernel(keys: Any, *given: Tensor | None, **options: Any) -> Tensor:
        with torch._C._AutoDispatchBelowAutograd():
            result = op.redispatch(keys & torch._C._after_autograd_keyset, *given, **options)
        given = op, gradients, options, [result], *given
        if not torch._C._are_functorch_transforms_active():
            return _Recorded.apply(*given)
        with torch._functorch.utils.enable_single_level_autograd_function():
            return _Recorded.apply(*given)

    return kernel


def _product_gradients(grad: Tensor, a: Tensor, b: Tensor, *, wanted: Any, **options: Any) -> tuple[Any, Any]:
    product = ops.mm if a.ndim == 2 else ops.bmm
    grad_a = product(grad, b.mT, **options) if wanted[0] else None
    return grad_a, product(a.mT, grad, **options) if wanted[1] else None


def _addmm_gradients(
    grad: Tensor, c: Tensor, a: Tensor, b: Tensor, *, wanted: Any, beta: float = 1, alpha: float = 1, **options: Any
) -> tuple[Any, ...]:
    grad_c = grad.sum_to_size(c.shape) * beta if wanted[0] else None
    gradients = _product_gradients(grad, a, b, wanted=wanted[1:], **options)
    return (grad_c, *(x * alpha if x is not None and alpha != 1 else x for x in gradients))


def _linear_gradients(
    grad: Tensor, x: Tensor, weight: Tensor, bias: Tensor | None = None, *, wanted: Any, **options: Any
) -> tuple[Any, ...]:
    grad_rows = rows(grad)
    grad_x = ops.mm(grad_rows, weight, **options).reshape(x.shape) if wanted[0] else None
    grad_weight = ops.mm(grad_rows.mT, rows(x), **options) if wanted[1] else None
    return grad_x, grad_weight, grad_rows.sum_to_size(bias.shape) if bias is not None and wanted[2] else None


# ---------------------------------------------------------------- under vmap
def front(x: Tensor, dim: int | None, size: int) -> Tensor:
    """With the mapped dimension first; one that is not mapped is repeated without a copy."""
    return x.unsqueeze(0).expand(size, *x.shape) if dim is None else x.movedim(dim, 0)


def _addend_in_front(c: Tensor, dim: int | None, size: int) -> Tensor:
    """Of matrices: what has fewer dimensions than they is broadcast to each."""
    c = front(c, dim, size)
    return c.reshape(size, *[1] * (3 - c.ndim), *c.shape[1:])


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
    c = _addend_in_front(c, in_dims[0], info.batch_size)
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
        product = product + _addend_in_front(bias, in_dims[2], size)
    return product.reshape(*x.shape[:-1], product.shape[-1]), 0


# ----------------------------------------------------------------
for _name, _kernel, _fake, _gradients, _vmap in (
    ("mm", _product_of("mm", 2), _fake_mm, _product_gradients, _vmap_mm),
    ("bmm", _product_of("bmm", 3), _fake_mm, _product_gradients, _vmap_bmm),
    ("addmm", _addmm, _fake_addmm, _addmm_gradients, _vmap_addmm),
    ("linear", _linear, _fake_linear, _linear_gradients, _vmap_linear),
):
    for _device in ("CPU", "CUDA"):
        _library.impl(_name, _kernel, _device)
    torch.library.register_fake(f"fastlinalg::{_name}", _fake, lib=_library)
    _library.impl(_name, _recorded(getattr(ops, _name).default, _gradients), "Autograd", with_keyset=True)
    torch.library.register_vmap(f"fastlinalg::{_name}", _vmap, lib=_library)
