"""Weights whose splits stay from call to call: which they are, and whether they have changed.

A weight has changed when its version counter has moved, an optimizer has made a step with it (fused ones leave the
counters alone), or its memory is another. Of views and of what autograd has saved the counter cannot be trusted to be
the same one (``x.data`` has its own), so an operand is known by the memory it lies in, and the counter is asked of the
weight itself. A weight and its storage are kept alive or recognised by a weak reference, so no address is taken for
what was there before.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.optim.optimizer import register_optimizer_step_post_hook

from .. import _core
from .._sizes import LARGEST, parse_bytes

_owners = itertools.count()
_PLAIN = (torch.Tensor, torch.nn.Parameter)


class _Weight:
    """A tensor in the memory it has now."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor, self.owner, self.steps = tensor, next(_owners), 0
        self._storage = StorageWeakRef(tensor.untyped_storage())  # so long its address is nobody else's
        self.begin, self._bytes = tensor.data_ptr(), tensor.untyped_storage().nbytes()
        strides = zip(tensor.shape, tensor.stride(), strict=True)
        self.end = self.begin + 4 * (1 + sum((size - 1) * stride for size, stride in strides))

    def is_there(self) -> bool:
        """The tensor still has this memory."""
        storage = self.tensor.untyped_storage()
        return (
            storage._cdata == self._storage.cdata
            and self.tensor.data_ptr() == self.begin
            and storage.nbytes() == self._bytes
        )

    def stamp(self) -> int | None:
        """Another number whenever the values may be others; None for memory that is not the tensor's."""
        return self.tensor._version + (self.steps << 32) if self.is_there() else None


def _tensors(given: Iterable[Tensor]) -> list[Tensor]:
    tensors = [given] if isinstance(given, torch.Tensor) or not isinstance(given, Iterable) else list(given)
    for x in tensors:
        if not isinstance(x, torch.Tensor):
            raise TypeError(f"keep_weights must be a Module or tensors, got {type(x).__name__}")
    return tensors


def _can_be_kept(tensor: Tensor) -> bool:
    return (
        type(tensor) in _PLAIN  # what a subclass does with its memory is its own affair
        and tensor.layout is torch.strided
        and tensor.dtype is torch.float32
        and not tensor.is_inference()  # those have no version counter
        and tensor.numel() > 0
        and tensor.data_ptr() != 0
    )


class Weights(_core.Weights):
    """The weights that a caller has named, and the splits of them that stay, up to `limit` bytes.

    Parameters
    ----------
    given : Module or iterable of Tensor
        Of a module all parameters, those it has when a mode is entered.
    limit : int, float, str or None
        A size; None is no limit.
    """

    def __init__(self, given: torch.nn.Module | Iterable[Tensor], limit: int | float | str | None) -> None:
        super().__init__(LARGEST if limit is None else parse_bytes("use", "keep_bytes", limit))
        self._given = given if isinstance(given, torch.nn.Module) else _tensors(given)
        self._lock = threading.Lock()
        self._by_tensor: dict[int, _Weight] = {}
        self._by_owner: dict[int, _Weight] = {}
        weakly = weakref.ref(self)

        def after_step(optimizer: Any, *_: Any) -> None:
            weights = weakly()
            if weights is not None:
                weights._note_step(optimizer)

        hook = register_optimizer_step_post_hook(after_step)
        weakref.finalize(self, hook.remove)

    def refresh(self) -> None:
        """See which tensors there are now, and where."""
        given = self._given.parameters() if isinstance(self._given, torch.nn.Module) else self._given
        with self._lock:
            before, self._by_tensor = self._by_tensor, {}
            for tensor in filter(_can_be_kept, given):
                known = before.get(id(tensor))
                self._by_tensor[id(tensor)] = known if known is not None and known.is_there() else _Weight(tensor)
            alone = _that_share_no_memory(list(self._by_tensor.values()))
            self._by_owner = {weight.owner: weight for weight in alone}
            self.watch([(weight.begin, weight.end, weight.owner) for weight in alone])

    def _stamp(self, owner: int) -> int | None:
        weight = self._by_owner.get(owner)
        return None if weight is None else weight.stamp()

    def _note_step(self, optimizer: Any) -> None:
        for group in optimizer.param_groups:
            for tensor in group["params"]:
                weight = self._by_tensor.get(id(tensor))
                if weight is not None:
                    weight.steps += 1


def _that_share_no_memory(weights: list[_Weight]) -> list[_Weight]:
    """Of tensors that do, each may have a counter of its own."""
    weights = sorted(weights, key=lambda weight: weight.begin)
    shared, end, last = set(), 0, None
    for weight in weights:
        if last is not None and weight.begin < end:
            shared |= {last.owner, weight.owner}
        if weight.end >= end:
            end, last = weight.end, weight
    return [weight for weight in weights if weight.owner not in shared]
