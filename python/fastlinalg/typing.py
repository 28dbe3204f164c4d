"""Types of what calls take and return, for annotations and type checkers.

Arrays of NumPy have to hold float32, or any real type where ``dtype=np.float32`` says that they are converted. Type
checkers know no element types of other libraries: what their arrays hold is checked by the call.
"""

from __future__ import annotations

import enum
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = [
    "Device",
    "DeviceArrayLike",
    "Float32",
    "Float32Array",
    "Precision",
    "RealArray",
    "Stream",
    "SupportsCudaArrayInterface",
    "SupportsCudaStream",
    "SupportsDLPack",
    "Uplo",
]


class SupportsDLPack(Protocol):
    """An array that exports itself as the array API standard says: of PyTorch or JAX, say.

    NumPy's arrays name their device by a number where the standard has an ``Enum``, so that those of another type than
    float32 are no such arrays to a type checker.
    """

    def __dlpack__(self, *, stream: Any = ...) -> Any: ...
    def __dlpack_device__(self) -> tuple[enum.Enum, int]: ...


class SupportsCudaArrayInterface(Protocol):
    """An array in device memory that says where: of CuPy or numba, say, or a `fastlinalg.DeviceArray`."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...


class SupportsCudaStream(Protocol):
    """A stream object of cuda.core and others."""

    def __cuda_stream__(self) -> tuple[int, int]: ...


Float32Array: TypeAlias = npt.NDArray[np.float32]
RealArray: TypeAlias = npt.NDArray[np.floating[Any] | np.integer[Any] | np.bool_]
DeviceArrayLike: TypeAlias = SupportsDLPack | SupportsCudaArrayInterface
Float32: TypeAlias = type[np.float32] | np.dtype[np.float32] | Literal["float32", "f4"]
Device: TypeAlias = str | list[str] | tuple[str, ...]
Precision: TypeAlias = Literal["strict", "accurate", "reproducible"]
Stream: TypeAlias = int | SupportsCudaStream
Uplo: TypeAlias = Literal["L", "U"]
