"""``matmul``, ``grouped_matmul`` and ``linear`` of tensors.

On plain tensors they call the library at once, with a node of autograd where a gradient is recorded; wherever else
PyTorch has to see a call (``torch.compile``, ``torch.func``, tangents, Python modes, subclasses) they call operators.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from .. import _core
from ._operators import ops, rows
from ._refusals import refuse_linear, refuse_product

if TYPE_CHECKING:
    from ..typing import Precision

_PLAIN = (torch.Tensor, torch.nn.Parameter)
_READ_AS_THEY_LIE = (torch.float32, torch.float16, torch.bfloat16)
# A gradient by `torch.autograd.grad(is_grads_batched=True)`, which has a vmap of its own.
_is_batched = getattr(torch._C._functorch, "is_legacy_batchedtensor", lambda x: False)


def matmul(a: Tensor, b: Tensor, *, precision: Precision = "accurate", dtype: torch.dtype | None = None) -> Tensor:
    """``torch.matmul(a, b)`` of float32 tensors, computed by fastlinalg, and its gradients too.

    Parameters
    ----------
    a, b : Tensor of float32
        Matrices ``(..., m, k)`` and ``(..., k, n)``, on the CPU or on one CUDA device. Leading dimensions broadcast. A
        1-D `a` counts as a row and a 1-D `b` as a column, and that dimension is removed from the result.
    precision : {"accurate", "strict", "reproducible"}
        As for `fastlinalg.matmul`; the backward pass uses it too.
    dtype : torch.float32, optional
        Consent to operands of other real dtypes, with the values and gradients of ``x.to(torch.float32)``: so a
        gradient has its operand's dtype. float16 and bfloat16 are read as they lie, forward and backward; the rest,
        under `torch.compile` and `torch.func` too, is converted first.

    Returns
    -------
    Tensor of float32

    Raises
    ------
    ValueError
        Shapes that do not match, tensors in different places.
    TypeError
        What is no tensor, or of another dtype without `dtype`. Nothing is cast silently, also under autocast.

    Examples
    --------
    >>> import torch, fastlinalg.torch  # doctest: +SKIP
    >>> w = torch.ones(3, 2, requires_grad=True)  # doctest: +SKIP
    >>> fastlinalg.torch.matmul(torch.ones(2, 3), w).sum().backward()  # doctest: +SKIP
    >>> w.grad[0]  # doctest: +SKIP
    tensor([2., 2.])
    """
    try:
        if _is_plain(a, b) and b.ndim == 2 and not _records_gradient(a, b) and dtype in (None, torch.float32):
            return _core.tensor_rows_product(a, b, None, False, precision, dtype is not None)
        left, right = _agreed("matmul", dtype, a, b)
        return _matmul(left, right, precision)
    except Exception:
        refuse_product("matmul", a, b, dtype is not None)
        raise


def _agreed(function: str, dtype: Any, *tensors: Tensor) -> tuple[Tensor, ...]:
    """The tensors in dtypes that products read."""
    for x in tensors:
        if x.is_complex() or (dtype is None and x.dtype is not torch.float32):
            raise TypeError(f"{function}: operands must have dtype float32, got {x.dtype}")
    if dtype is None:
        return tensors
    if dtype is not torch.float32:
        wanted = "dtype must be None or torch.float32, in which everything is computed"
        raise TypeError(f"{function}: {wanted}, got {dtype}")
    plain = _is_plain(*tensors)
    return tuple(x if plain and x.dtype in _READ_AS_THEY_LIE else x.to(torch.float32) for x in tensors)


def _matmul(a: Tensor, b: Tensor, precision: Precision) -> Tensor:
    if a.ndim == 0 or b.ndim == 0:
        raise ValueError(f"matmul: operands need at least 1 dimension, got shapes {tuple(a.shape)}, {tuple(b.shape)}")
    if a.ndim == b.ndim == 2:
        return _product(a, b, precision)
    if a.ndim == 1:
        return _matmul(a.unsqueeze(0), b, precision).squeeze(-2 if b.ndim > 1 else 0)
    if b.ndim == 1:
        return _matmul(a, b.unsqueeze(1), precision).squeeze(-1)
    if b.ndim == 2:  # one product of all rows
        return _product(rows(a), b, precision).reshape(*a.shape[:-1], b.shape[-1])
    return _stacked(a, b, precision)


def _stacked(a: Tensor, b: Tensor, precision: Precision) -> Tensor:
    leading, dims = [], max(a.ndim, b.ndim) - 2
    for x, y in zip(_leading(a, dims), _leading(b, dims), strict=True):
        if x != y and 1 not in (x, y):
            raise ValueError(f"matmul: shapes {tuple(a.shape)} and {tuple(b.shape)} cannot be broadcast together")
        leading.append(y if x == 1 else x)
    a, b = (x.expand(*leading, *x.shape[-2:]).flatten(end_dim=-3) for x in (a, b))
    return _product(a, b, precision).reshape(*leading, a.shape[-2], b.shape[-1])


def _leading(x: Tensor, dims: int) -> list[int]:
    return [1] * (dims + 2 - x.ndim) + list(x.shape[:-2])


def grouped_matmul(a: Iterable[Tensor], b: Iterable[Tensor], *, precision: Precision = "accurate") -> list[Tensor]:
    """``[matmul(x, y) for x, y in zip(a, b)]`` in one call, and its gradients in one.

    Parameters
    ----------
    a, b : list of Tensor of float32
        As many as there are products, of equal or unequal shapes, on the CPU or all on one CUDA device. Pairs that are
        not two matrices are products by themselves, and so is every pair in `torch.compile` and `torch.func`.
    precision : {"accurate", "strict", "reproducible"}
        As for `fastlinalg.matmul`; the backward pass uses it too.

    Returns
    -------
    list of Tensor

    Raises
    ------
    ValueError
        Lists of different lengths, and as for `matmul`, with the number of the product.
    TypeError
        As for `matmul`.

    Examples
    --------
    >>> import torch, fastlinalg.torch  # doctest: +SKIP
    >>> x, w = torch.ones(2, 3), torch.ones(3, 1)  # doctest: +SKIP
    >>> fastlinalg.torch.grouped_matmul([x, x[:1]], [w, w])  # doctest: +SKIP
    [tensor([[3.],
            [3.]]), tensor([[3.]])]
    """
    a, b = list(a), list(b)
    if len(a) != len(b):
        raise ValueError(f"grouped_matmul: a has {len(a)} tensors and b has {len(b)}; they are multiplied pair by pair")
    try:
        return _grouped(a, b, precision)
    except Exception:
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            refuse_product(f"grouped_matmul, member {i}", x, y)
        raise


def _grouped(a: list[Tensor], b: list[Tensor], precision: Precision) -> list[Tensor]:
    if not _is_plain(*a, *b):
        return [matmul(x, y, precision=precision) for x, y in zip(a, b, strict=True)]
    matrices = [i for i, (x, y) in enumerate(zip(a, b, strict=True)) if x.ndim == y.ndim == 2]
    pairs = [a[i] for i in matrices], [b[i] for i in matrices]
    if _records_gradient(*pairs[0], *pairs[1]):
        products = _Group.apply(precision, *pairs[0], *pairs[1])
    else:
        products = _core.tensor_products(*pairs, precision)
    found = dict(zip(matrices, products, strict=True))
    return [found[i] if i in found else matmul(a[i], b[i], precision=precision) for i in range(len(a))]


def linear(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    precision: Precision = "accurate",
    dtype: torch.dtype | None = None,
) -> Tensor:
    """``torch.nn.functional.linear(x, weight, bias)`` of float32 tensors, computed by fastlinalg.

    Parameters
    ----------
    x : Tensor of float32
        ``(..., k)``.
    weight : Tensor of float32
        ``(n, k)``.
    bias : Tensor of float32, optional
        ``(n,)``.
    precision : {"accurate", "strict", "reproducible"}
        As for `fastlinalg.matmul`; the backward pass uses it too.
    dtype : torch.float32, optional
        As for `matmul`; a `bias` of another dtype is converted.

    Returns
    -------
    Tensor of float32
        ``(..., n)``.

    Raises
    ------
    ValueError, TypeError
        As for `matmul`.

    Examples
    --------
    >>> import torch, fastlinalg.torch  # doctest: +SKIP
    >>> fastlinalg.torch.linear(torch.ones(1, 3), torch.ones(2, 3), torch.ones(2))  # doctest: +SKIP
    tensor([[4., 4.]])
    """
    try:
        given = (x, weight) if bias is None else (x, weight, bias)
        if _is_plain(*given) and not _records_gradient(*given) and dtype in (None, torch.float32):
            return _core.tensor_rows_product(x, weight, bias, True, precision, dtype is not None)
        x, weight, *biases = _agreed("linear", dtype, *given)
        return _linear(x, weight, biases[0].float() if biases else None, precision)
    except Exception:
        refuse_linear("linear", x, weight, bias, dtype is not None)
        raise


def _linear(x: Tensor, weight: Tensor, bias: Tensor | None, precision: Precision) -> Tensor:
    if weight.ndim != 2:
        raise ValueError("weight must have 2 dimensions")
    if bias is None:
        return _matmul(x, weight.mT, precision)
    if not _is_plain(x, weight, bias):
        return ops.linear(x, weight, bias, precision=precision)
    sums = _Product.apply(rows(x), weight.mT, bias, precision)
    return sums.reshape(*x.shape[:-1], weight.shape[0])


# ---------------------------------------------------------------- with gradients
def _is_plain(*tensors: Tensor) -> bool:
    """Nobody but autograd looks on, and what is in memory are the values: not their negatives, and no tangents too."""
    for x in tensors:
        if type(x) not in _PLAIN:
            return False
    return not (
        torch.compiler.is_compiling()
        or forward_ad._current_level >= 0
        or torch._C._len_torch_dispatch_stack()
        or torch._C._are_functorch_transforms_active()
        or any(map(Tensor.is_neg, tensors))
    )


def _records_gradient(*tensors: Tensor) -> bool:
    return torch.is_grad_enabled() and any(x.requires_grad for x in tensors)


def _product(a: Tensor, b: Tensor, precision: str) -> Tensor:
    """Of matrices, or of stacks of as many."""
    if not _is_plain(a, b) or _is_batched(a) or _is_batched(b):
        return (ops.mm if a.ndim == 2 else ops.bmm)(a.float(), b.float(), precision=precision)
    if _records_gradient(a, b):
        return _Product.apply(a, b, None, precision)  # without what `torch.func` needs
    return _core.tensor_product(a, b, None, None, 1.0, 0.0, precision, True)


class _Product(torch.autograd.function._SingleLevelFunction):
    """``a @ b`` of matrices or equal stacks, and of matrices ``a @ b + c`` with a row that is added to each."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor, c: Tensor | None, precision: str) -> Tensor:
        ctx.save_for_backward(a, b)
        ctx.shape, ctx.precision = None if c is None else c.shape, precision
        return _core.tensor_product(a, b, c, None, 1.0, 0.0 if c is None else 1.0, precision, True)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        a, b = ctx.saved_tensors
        grad_a = _product(grad, b.mT, ctx.precision).to(a.dtype) if ctx.needs_input_grad[0] else None
        grad_b = _product(a.mT, grad, ctx.precision).to(b.dtype) if ctx.needs_input_grad[1] else None
        return grad_a, grad_b, grad.sum_to_size(ctx.shape) if ctx.needs_input_grad[2] else None, None


class _Group(torch.autograd.function._SingleLevelFunction):
    """``a @ b`` of each pair of matrices, all of `a` first."""

    @staticmethod
    def forward(precision: str, *given: Tensor) -> tuple[Tensor, ...]:
        half = len(given) // 2
        return tuple(_core.tensor_products(given[:half], given[half:], precision))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.save_for_backward(*inputs[1:])
        ctx.precision = inputs[0]
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        given, half = ctx.saved_tensors, len(grads)
        wanted: dict[int, tuple[Tensor, Tensor]] = {}
        for i, grad in enumerate(grads):
            if grad is not None and ctx.needs_input_grad[1 + i]:
                wanted[i] = grad, given[half + i].mT
            if grad is not None and ctx.needs_input_grad[1 + half + i]:
                wanted[half + i] = given[i].mT, grad
        left, right = ([pair[side] for pair in wanted.values()] for side in (0, 1))
        if any(map(_is_batched, left + right)):
            products = [_product(x, y, ctx.precision) for x, y in wanted.values()]
        else:
            products = grouped_matmul(left, right, precision=ctx.precision)
        found = dict(zip(wanted, products, strict=True))
        return None, *(found.get(i) for i in range(2 * half))
