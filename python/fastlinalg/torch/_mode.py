"""The mode in which PyTorch's own float32 products on CUDA devices are computed by fastlinalg.

The operators that it covers have a second kernel under a dispatch key of PyTorch that no tensor carries and that comes
after autograd, autocast and functorch. A thread in the mode has this key in the set that its dispatches include. So the
mode costs nothing outside and nothing for any other operator, whose entry for the key is a fall-through, which dispatch
leaves out; and PyTorch carries it to the threads of a backward pass with the rest of the thread's state. A
``TorchDispatchMode`` would see every operator, at several microseconds each.

Python modes and subclasses are to see a call first. In PyTorch 2.13 their key comes before ours. Before, ours came
first, and what a Python mode calls in turn was dispatched without it: there the kernels stand under one more key, of
the backends, that is included while Python has a product. PyTorch 2.11 runs what it has just compiled in such a mode.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import reprlib
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from .. import _core, cuda
from ._weights import Weights

if TYPE_CHECKING:
    from ..typing import Precision


# Of an extension that PyTorch knew once; nothing is registered for it. It is no backend's, so that composite operators
# have no kernel for it either.
_KEY = "Fake"
# Of random numbers; nothing is registered for it. Composite operators have it too: eleven that have kernels for devices
# beside that would not use them.
_KEY_BEHIND_PYTHON = "CustomRNGKeyId"
_key: Any = torch._C._parse_dispatch_key(_KEY)
_behind_python: Any = torch._C._parse_dispatch_key(_KEY_BEHIND_PYTHON)
_python = torch._C.DispatchKey.Python
_comes_before_python = torch._C._dispatch_keyset_full_after(_key).has(_python)
_after = torch._C._dispatch_keyset_full_after(_key).remove(_behind_python)
_NAME = "fastlinalg"
_FLOAT32 = torch.float32
_include = torch._C._dispatch_tls_set_dispatch_key_included
_included = torch._C._dispatch_tls_is_dispatch_key_included
_logger = logging.getLogger("fastlinalg")
KEEP_BYTES = 2 << 30


class Products:
    """What a thread is to do with PyTorch's float32 products, and what it has done.

    Attributes
    ----------
    precision : str
        As for `fastlinalg.matmul`.
    calls : dict
        How often ``(operator, why)``: `why` is "" for products by fastlinalg, else the reason why PyTorch computed it:
        "dtype", "device", "faster" (PyTorch is expected to be), "empty", "shape" (what PyTorch refuses or resizes),
        "scalar", "no memory" (of a tensor without elements).
    """

    def __init__(self, precision: Precision, weights: Weights | None = None, *, _anywhere: bool = False) -> None:
        if precision not in ("accurate", "strict", "reproducible"):
            raise ValueError(f"precision must be 'strict', 'accurate' or 'reproducible', got {reprlib.repr(precision)}")
        self.precision = precision
        self.calls: dict[tuple[str, str], int] = {}
        self._weights = weights
        self._anywhere = _anywhere  # for tests: on the CPU too

    def __repr__(self) -> str:
        return f"<fastlinalg.torch.Products, {self.precision}, {self}>"

    def __str__(self) -> str:
        ours = [f"{count} {name}" for (name, why), count in sorted(self.calls.items()) if not why]
        theirs = [f"{count} {name} ({why})" for (name, why), count in sorted(self.calls.items()) if why]
        return f"by fastlinalg: {', '.join(ours) or 'none'}; by PyTorch: {', '.join(theirs) or 'none'}"


# ---------------------------------------------------------------- the second kernels
_get = torch._C._get_obj_in_tls


class _Operator:
    """An overload that has a kernel here, and the name that its calls are counted under."""

    __slots__ = ("call", "name", "redispatch")

    def __init__(self, name: str, overload: Any) -> None:
        self.name, self.call, self.redispatch = name, overload, overload._handle.redispatch_boxed


class _Rests(dict[int, Any]):
    """By the set of keys of a dispatch what is left of it after the kernels, None where Python is to see the call."""

    def __missing__(self, bits: int) -> Any:
        keys = torch._C.DispatchKeySet.from_raw_repr(bits)
        rest = self[bits] = None if keys.has(_python) else keys & _after
        return rest


_rests = _Rests()


def _leave_to_tracing(op: _Operator, given: tuple[Any, ...], options: dict[str, Any]) -> Tensor:
    """What traces a tensor without memory in Python has to begin before all keys."""
    with _inclusion(_key, False), _inclusion(_behind_python, False):
        return op.call(*given, **options)


def _leave_to_python(keys: Any, op: _Operator, given: tuple[Any, ...], options: dict[str, Any]) -> Tensor:
    """To a Python mode or a subclass. What it calls in turn comes to the kernels again."""
    with _inclusion(_behind_python, True):
        return op.redispatch(keys & _after, *given, **options)


def _is_traced(*given: Tensor) -> bool:
    """Whether these are PyTorch's tensors without memory. What is included then changes how it finds their shapes:
    PyTorch 2.11 would decompose a product with an addend into itself without end."""
    module = sys.modules.get("torch._subclasses.fake_tensor")
    return module is not None and any(isinstance(x, module.FakeTensor) for x in given)


@contextlib.contextmanager
def _inclusion(key: Any, wanted: bool) -> Iterator[None]:
    before = _included(key)
    _include(key, wanted)
    try:
        yield
    finally:
        _include(key, before)


def _rest_of_other(keys: Any, a: Tensor, counted: tuple[str, str]) -> Any:
    """What is left of the dispatch of a product of another dtype, which is counted; None if `_product` has to see it.

    Each microsecond here is one more of all products in float64 and in autocast.
    """
    if a.dtype is _FLOAT32 or type(a) is not Tensor:
        return None
    rest, products = _rests[keys.raw_repr()], _get(_NAME)
    if rest is not None and products is not None:
        calls = products.calls
        calls[counted] = calls.get(counted, 0) + 1
    return rest


def _product(
    keys: Any,
    op: _Operator,
    a: Tensor,
    b: Tensor,
    c: Tensor | None,
    out: Tensor | None,
    given: tuple[Any, ...],
    options: dict[str, Any],
) -> Tensor:
    """``alpha * a @ b + beta * c`` into `out`, or what PyTorch makes of ``op.call(*given, **options)``."""
    products = _get(_NAME)
    if products is None:  # functorch may bring the key back in a function that has left the mode
        return op.redispatch(keys & _after, *given, **options)
    rest = _rests[keys.raw_repr()]
    if rest is None:
        if _is_traced(a, b):
            return _leave_to_tracing(op, given, options)
        return _leave_to_python(keys, op, given, options)
    alpha, beta = options.get("alpha", 1), options.get("beta", 0 if c is None else 1)
    how = products.precision, products._anywhere, products._weights
    result = _core.tensor_product_if_faster(a, b, c, out, alpha, beta, *how)
    why, calls = "", products.calls
    if type(result) is str:
        why = result
        traced = why == "no memory"
        result = _leave_to_tracing(op, given, options) if traced else op.redispatch(rest, *given, **options)
    calls[op.name, why] = calls.get((op.name, why), 0) + 1
    return result


def _make_kernels(name: str, packet: Any, *, has_addend: bool) -> dict[str, Any]:
    """By overload: of ``name(a, b)``, or of ``name(c, a, b, *, beta, alpha)``.

    PyTorch passes the options that are not the default. Nothing is packed up for calls that stay with it.
    """
    new, into, other = _Operator(name, packet.default), _Operator(name, packet.out), (name, "dtype")
    redispatch, redispatch_into = new.redispatch, into.redispatch
    if not has_addend:

        def product(keys: Any, a: Tensor, b: Tensor) -> Tensor:
            if (rest := _rest_of_other(keys, a, other)) is not None:
                return redispatch(rest, a, b)
            return _product(keys, new, a, b, None, None, (a, b), {})

        def product_into(keys: Any, a: Tensor, b: Tensor, *, out: Tensor) -> Tensor:
            if (rest := _rest_of_other(keys, a, other)) is not None:
                return redispatch_into(rest, a, b, out=out)
            return _product(keys, into, a, b, None, out, (a, b), {"out": out})

        return {name: product, f"{name}.out": product_into}

    def addition(op: _Operator, result: Callable[[Tensor, dict[str, Any]], Tensor | None]) -> Any:
        redispatch = op.redispatch

        def add(keys: Any, c: Tensor, a: Tensor, b: Tensor, **options: Any) -> Tensor:
            if (rest := _rest_of_other(keys, a, other)) is not None:
                return redispatch(rest, c, a, b, **options)
            return _product(keys, op, a, b, c, result(c, options), (c, a, b), options)

        return add

    in_place = _Operator(name, getattr(torch.ops.aten, f"{name}_").default)
    return {
        name: addition(new, lambda c, options: None),
        f"{name}.out": addition(into, lambda c, options: options["out"]),
        f"{name}_": addition(in_place, lambda c, options: c),
    }


class _Kernels:
    """Registered at the first use of the mode, and kept: without the key in a thread's set nothing reaches them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._libraries: list[Any] = []

    def register(self) -> None:
        with self._lock:
            if self._libraries:
                return
            for key in (_KEY, _KEY_BEHIND_PYTHON) if _comes_before_python else (_KEY,):
                self._register(key)

    def _register(self, key: str) -> None:
        others = torch.library.Library("_", "IMPL", key)
        others.fallback(torch.library.fallthrough_kernel, key)
        aten = torch.library.Library("aten", "IMPL", key)
        for name, has_addend in (("mm", False), ("bmm", False), ("addmm", True), ("baddbmm", True), ("addmv", True)):
            kernels = _make_kernels(name, getattr(torch.ops.aten, name), has_addend=has_addend)
            for overload, kernel in kernels.items():
                aten.impl(overload, kernel, with_keyset=True)
        self._libraries += [others, aten]


_kernels = _Kernels()


# ---------------------------------------------------------------- the mode
def _stash_takes_a_reference() -> bool:
    """PyTorch before 2.13 gives up a reference that it has not got, for each object that it has kept."""
    probe = object()
    before = sys.getrefcount(probe)
    torch._C._stash_obj_in_tls(_NAME, probe)
    takes = sys.getrefcount(probe) > before
    if not takes:
        _core.add_reference(probe)
    return takes


_takes_a_reference = _stash_takes_a_reference()


def _current() -> Products | None:
    """That of this thread."""
    return _get(_NAME) if _included(_key) else None


@functools.cache
def _warn_without_device() -> None:
    """Once in a process."""
    if not cuda.is_available():
        reason = _core.info()["cuda"]["message"]
        _logger.warning("torch products: PyTorch computes all of them, as there is no CUDA device: %s", reason)


def _set(products: Products | None) -> None:
    _kernels.register()
    if products is not None and not products._anywhere:
        _warn_without_device()
    if products is not None and products._weights is not None:
        products._weights.refresh()
    if not _takes_a_reference:
        _core.add_reference(products)
    torch._C._stash_obj_in_tls(_NAME, products)
    _include(_key, products is not None)


def _report(products: Products | None) -> None:
    if products is not None and products.calls:
        _logger.info("torch products, %s, %s", products.precision, products)


class use(contextlib.ContextDecorator):
    """Have PyTorch's float32 products on CUDA devices computed by fastlinalg, in a ``with`` block or a function.

    ``mm``, ``addmm``, ``bmm``, ``baddbmm``, ``mv`` and ``addmv``, with ``out=`` and in place, and what PyTorch makes of
    them: ``matmul``, ``@``, ``linear``, ``einsum``, ``tensordot``, their gradients. Other dtypes and devices are left
    alone, and so are products that PyTorch is expected to compute faster.

    It holds for the thread that enters it and for the backward passes which that thread starts inside; blocks nest, the
    innermost counts, and leaving one, by an exception too, restores what was before. A CUDA graph repeats what was
    captured.

    Parameters
    ----------
    precision : {"accurate", "strict", "reproducible"}
        As for `fastlinalg.matmul`. With "strict" and "reproducible" every product goes to fastlinalg, for its order of
        the sums.
    keep_weights : Module or iterable of Tensor, optional
        Tensors whose splits are kept from their second product on until they change, as long as the object that `use`
        returns is there: make it once, and enter it as often as you like. ``docs/torch.md`` says which changes are
        seen, and which are not.
    keep_bytes : int, float, str or None
        The most memory for them, as a whole number of bytes or as in "2 GiB"; None is no limit. What was used least
        recently goes first.

    Examples
    --------
    >>> import torch, fastlinalg.torch  # doctest: +SKIP
    >>> with fastlinalg.torch.use() as products:  # doctest: +SKIP
    ...     y = torch.ones(2, 3) @ torch.ones(3, 2)
    >>> products.calls  # doctest: +SKIP
    {('mm', 'device'): 1}
    """

    def __init__(
        self,
        precision: Precision = "accurate",
        *,
        keep_weights: torch.nn.Module | Iterable[Tensor] | None = None,
        keep_bytes: int | float | str | None = KEEP_BYTES,
        _anywhere: bool = False,
    ) -> None:
        Products(precision)  # refuses a precision that there is not
        weights = None if keep_weights is None else Weights(keep_weights, keep_bytes)
        self._make = lambda: Products(precision, weights, _anywhere=_anywhere)
        self._repr = f"fastlinalg.torch.use({precision!r}{', keep_weights=...' if weights else ''})"
        self._entered: list[tuple[Products, Products | None]] = []

    def _recreate_cm(self) -> use:
        again = use.__new__(use)  # of a function that is called by several threads, or by itself
        again._make, again._repr, again._entered = self._make, self._repr, []
        return again

    def __repr__(self) -> str:
        return self._repr

    def __enter__(self) -> Products:
        products, before = self._make(), _current()
        _set(products)
        self._entered.append((products, before))
        return products

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        products, before = self._entered.pop()
        _set(before)
        _report(products)


def enable(
    precision: Precision = "accurate",
    *,
    keep_weights: torch.nn.Module | Iterable[Tensor] | None = None,
    keep_bytes: int | float | str | None = KEEP_BYTES,
) -> Products:
    """Enter the mode of `use` for the rest of this thread, or until `disable` or the end of the block it is called in.

    Parameters
    ----------
    precision, keep_weights, keep_bytes
        As for `use`; what is kept goes with the mode and the object that is returned.

    Returns
    -------
    Products
        Which calls went where, from now on.

    Examples
    --------
    >>> products = fastlinalg.torch.enable()  # doctest: +SKIP
    """
    weights = None if keep_weights is None else Weights(keep_weights, keep_bytes)
    products = Products(precision, weights)
    _set(products)
    return products


def disable() -> None:
    """Leave the mode in this thread; inside a block of `use` until its end.

    Examples
    --------
    >>> fastlinalg.torch.disable()  # doctest: +SKIP
    """
    _report(_current())
    _set(None)
