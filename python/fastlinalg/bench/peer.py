"""What a library to compare with has to offer, and the operands in device memory that it is given."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

from .._check import Array
from .problems import Problem
from .timing import DeviceCall, HostCall, once

COPY = "copy"  # beside the transposes: the same bytes in the same order, the limit of what a transpose can reach


class MissingPeer(Exception):
    """A peer was asked for that cannot take part; the message says which and why."""


@dataclass(frozen=True)
class DeviceOperand:
    """An operand in device memory of ours, row-major, and as other libraries read it."""

    buffer: Any
    offset: int  # floats from the beginning of the buffer
    ld: int
    shape: tuple[int, ...]

    @property
    def ptr(self) -> int:
        return int(self.buffer.ptr) + 4 * self.offset

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        strides = [4, 4 * self.ld][: len(self.shape)]
        if len(self.shape) == 3:
            strides.append(4 * self.ld * self.shape[1])
        return {
            "shape": self.shape,
            "typestr": "<f4",
            "data": (self.ptr, False),
            "strides": tuple(reversed(strides)),
            "version": 3,
        }


def swapped(matrix: Any, swap: bool) -> Any:
    """The matrix, or a view with its last two axes swapped, of any library's array."""
    return matrix.swapaxes(-1, -2) if swap else matrix


class Peer:
    """One library.

    Attributes
    ----------
    name, version : str
    devices : tuple of str
        Where it can run: "cpu", "cuda".
    """

    name = ""
    module = ""
    devices: tuple[str, ...] = ()
    on_gpu = False  # whether `multiply` goes to the GPU and back

    def __init__(self) -> None:
        self.library: Any = importlib.import_module(self.module or self.name)
        self.version = str(importlib.import_module((self.module or self.name).split(".")[0]).__version__)

    def set_threads(self, threads: int) -> None:
        """How many CPU threads to use."""
        try:
            import threadpoolctl
        except ImportError:
            raise MissingPeer(
                f"--threads needs threadpoolctl for {self.name}; install it with: pip install threadpoolctl"
            ) from None
        threadpoolctl.threadpool_limits(threads, user_api="blas")

    def multiply(self, a: Array, b: Array, out: Array | None) -> Array:
        """``a @ b`` of NumPy arrays as users of the library write it, in a new array or in `out`."""
        raise NotImplementedError

    def host_calls(self, problem: Problem, a: Array, b: Array | None, out: Array) -> dict[str, HostCall]:
        """Calls by name of contender; empty if the library has no such operation."""
        raise NotImplementedError


class DevicePeer(Peer):
    """One that also, or only, runs on a CUDA device."""

    _stream: Any = None  # one of the library's own, made at its first use

    def device_calls(
        self, problem: Problem, a: DeviceOperand, b: DeviceOperand | None, out: DeviceOperand
    ) -> dict[str, DeviceCall]:
        """As `host_calls`, for operands in device memory."""
        raise NotImplementedError

    def stream(self) -> int:
        """The address of a stream of the library's own."""
        raise NotImplementedError

    def synchronize(self) -> None:
        """Wait for everything on the device."""
        raise NotImplementedError

    def loop(self, call: DeviceCall, launches: int, replays: int) -> list[float]:
        """Microseconds per call of plain launches and the wait for them, after a warm-up."""
        address = self.stream()

        def block() -> None:
            for _ in range(launches):
                call(address)
            self.synchronize()

        block()
        return [once(block) / launches for _ in range(replays)]
