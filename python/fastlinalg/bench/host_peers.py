"""How users of other libraries multiply NumPy arrays: on the GPU and back, or on the CPU."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Any

import numpy as np

from .._check import Array
from .peer import MissingPeer


class HostPeer:
    """One library."""

    name = ""
    cpu = True  # whether it has anything to compute with where there is no GPU

    def __init__(self, on_gpu: bool) -> None:
        self.library: Any = importlib.import_module(self.name)
        self.version = str(self.library.__version__)
        self.on_gpu = on_gpu

    def multiply(self, a: Array, b: Array, out: Array | None) -> Array:
        """``a @ b`` in a new array, or in `out`, which was there before."""
        raise NotImplementedError


class NumPy(HostPeer):
    """``numpy.matmul`` on the CPU."""

    name = "numpy"

    def multiply(self, a: Array, b: Array, out: Array | None) -> Array:
        product: Array = np.matmul(a, b, out=out)
        return product


class Torch(HostPeer):
    """``from_numpy``, ``cuda``, ``mm``, ``cpu``, ``numpy``."""

    name = "torch"

    def __init__(self, on_gpu: bool) -> None:
        super().__init__(on_gpu)
        self.library.set_float32_matmul_precision("highest")  # no TF32
        self._device = "cuda" if on_gpu else "cpu"

    def multiply(self, a: Array, b: Array, out: Array | None) -> Array:
        torch = self.library
        product = torch.mm(torch.from_numpy(a).to(self._device), torch.from_numpy(b).to(self._device))
        if out is not None:
            torch.from_numpy(out).copy_(product)
            return out
        result: Array = product.cpu().numpy()
        return result


class CuPy(HostPeer):
    """``asarray``, ``matmul``, ``asnumpy``."""

    name = "cupy"
    cpu = False

    def multiply(self, a: Array, b: Array, out: Array | None) -> Array:
        cupy = self.library
        result: Array = cupy.asnumpy(cupy.matmul(cupy.asarray(a), cupy.asarray(b)), out=out)
        return result


HOST_PEERS: dict[str, type[HostPeer]] = {peer.name: peer for peer in (NumPy, Torch, CuPy)}


def load(names: Iterable[str], on_gpu: bool) -> list[HostPeer]:
    """The peers by name.

    Raises
    ------
    MissingPeer
        One that is unknown, not installed, or has no device to run on.
    """
    peers = []
    for name in names:
        if name not in HOST_PEERS:
            raise MissingPeer(f"--against {name}: unknown to bench host; there are {', '.join(HOST_PEERS)}")
        if not on_gpu and not HOST_PEERS[name].cpu:
            raise MissingPeer(f"--against {name}: needs a CUDA device")
        try:
            peers.append(HOST_PEERS[name](on_gpu))
        except ImportError as error:
            raise MissingPeer(f"--against {name}: not installed ({error})") from None
    return peers
