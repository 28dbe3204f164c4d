"""PyTorch for the tests of fastlinalg.torch, or a skip with the reason; and the mode on any device."""

from __future__ import annotations

from support.requirements import missing

OLDEST = (2, 10)  # with the table of C functions of DLPack

try:
    import torch
except ImportError as error:
    missing("torch", f"no PyTorch: {error}")
if tuple(int(part) for part in torch.__version__.split(".")[:2]) < OLDEST:
    missing("torch", f"PyTorch {torch.__version__} is older than {'.'.join(map(str, OLDEST))}")

import fastlinalg.torch as flt  # noqa: E402  torch has to be there

F32 = torch.float32


def everywhere(precision="accurate", **options):
    """The mode, on CPU tensors too and whatever the estimates say."""
    return flt.use(precision, _anywhere=True, **options)


def is_outside() -> bool:
    """Nothing is left of the mode in this thread."""
    return flt._mode._current() is None and not flt._mode._included(flt._mode._key)


def ours(products) -> dict[str, int]:
    return {name: count for (name, why), count in products.calls.items() if not why}


def theirs(products) -> dict[tuple[str, str], int]:
    return {(name, why): count for (name, why), count in products.calls.items() if why}


def close(got, want, k: int = 1) -> bool:
    """Against a reference in float64, elementwise: sums of `k` products of normal numbers."""
    return torch.allclose(got.double(), want.double(), rtol=1e-5, atol=2e-6 * max(k, 1))
