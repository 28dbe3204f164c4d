"""Types of the products. What they do is in _api.py; that names and defaults agree is tested."""

from collections.abc import Iterable, Sequence
from typing import TypeVar, overload

from .typing import Device, DeviceArrayLike, Float32, Float32Array, Precision, RealArray, Stream, Uplo

_DeviceArray = TypeVar("_DeviceArray", bound=DeviceArrayLike)  # of a library whose own arrays are the result

@overload
def matmul(
    a: Float32Array,
    b: Float32Array,
    /,
    out: Float32Array | None = None,
    *,
    precision: Precision = "accurate",
    device: Device = "auto",
    stream: Stream | None = None,
    dtype: Float32 | None = None,
) -> Float32Array: ...
@overload
def matmul(
    a: RealArray,
    b: RealArray,
    /,
    out: Float32Array | None = None,
    *,
    precision: Precision = "accurate",
    device: Device = "auto",
    stream: Stream | None = None,
    dtype: Float32,
) -> Float32Array: ...
@overload
def matmul(
    a: _DeviceArray,
    b: DeviceArrayLike | Sequence[DeviceArrayLike],
    /,
    out: _DeviceArray | None = None,
    *,
    precision: Precision = "accurate",
    device: Device = "auto",
    stream: Stream | None = None,
    dtype: Float32 | None = None,
) -> _DeviceArray: ...
@overload
def matmul(
    a: list[_DeviceArray] | tuple[_DeviceArray, ...],
    b: DeviceArrayLike | Sequence[DeviceArrayLike],
    /,
    out: list[_DeviceArray] | None = None,
    *,
    precision: Precision = "accurate",
    device: Device = "auto",
    stream: Stream | None = None,
    dtype: Float32 | None = None,
) -> list[_DeviceArray]: ...
@overload
def grouped_matmul(
    a: Iterable[Float32Array],
    b: Iterable[Float32Array],
    /,
    out: Iterable[Float32Array | None] | None = None,
    *,
    precision: Precision = "accurate",
    device: Device = "auto",
    stream: Stream | None = None,
    dtype: Float32 | None = None,
) -> list[Float32Array]: ...
@overload
def grouped_matmul(
    a: Iterable[RealArray],
    b: Iterable[RealArray],
    /,
    out: Iterable[Float32Array | None] | None = None,
    *,
    precision: Precision = "accurate",
    device: Device = "auto",
    stream: Stream | None = None,
    dtype: Float32,
) -> list[Float32Array]: ...
@overload
def grouped_matmul(
    a: Iterable[_DeviceArray],
    b: Iterable[DeviceArrayLike],
    /,
    out: Iterable[_DeviceArray | None] | None = None,
    *,
    precision: Precision = "accurate",
    device: Device = "auto",
    stream: Stream | None = None,
    dtype: Float32 | None = None,
) -> list[_DeviceArray]: ...
@overload
def sgemm(
    a: Float32Array,
    b: Float32Array,
    c: Float32Array | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    trans_a: bool = False,
    trans_b: bool = False,
    out: Float32Array | None = None,
    kernel: str | None = None,
    precision: Precision = "accurate",
    device: Device = "auto",
    stream: Stream | None = None,
    dtype: Float32 | None = None,
) -> Float32Array: ...
@overload
def sgemm(
    a: RealArray,
    b: RealArray,
    c: RealArray | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    trans_a: bool = False,
    trans_b: bool = False,
    out: Float32Array | None = None,
    kernel: str | None = None,
    precision: Precision = "accurate",
    device: Device = "auto",
    stream: Stream | None = None,
    dtype: Float32,
) -> Float32Array: ...
@overload
def sgemm(
    a: _DeviceArray,
    b: DeviceArrayLike,
    c: DeviceArrayLike | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    trans_a: bool = False,
    trans_b: bool = False,
    out: _DeviceArray | None = None,
    kernel: str | None = None,
    precision: Precision = "accurate",
    device: Device = "auto",
    stream: Stream | None = None,
    dtype: Float32 | None = None,
) -> _DeviceArray: ...
@overload
def ssyrk(
    a: Float32Array,
    c: Float32Array | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    trans: bool = False,
    uplo: Uplo | None = None,
    out: Float32Array | None = None,
    kernel: str | None = None,
    precision: Precision = "accurate",
    device: Device = "auto",
    stream: Stream | None = None,
    dtype: Float32 | None = None,
) -> Float32Array: ...
@overload
def ssyrk(
    a: RealArray,
    c: RealArray | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    trans: bool = False,
    uplo: Uplo | None = None,
    out: Float32Array | None = None,
    kernel: str | None = None,
    precision: Precision = "accurate",
    device: Device = "auto",
    stream: Stream | None = None,
    dtype: Float32,
) -> Float32Array: ...
@overload
def ssyrk(
    a: _DeviceArray,
    c: DeviceArrayLike | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    trans: bool = False,
    uplo: Uplo | None = None,
    out: _DeviceArray | None = None,
    kernel: str | None = None,
    precision: Precision = "accurate",
    device: Device = "auto",
    stream: Stream | None = None,
    dtype: Float32 | None = None,
) -> _DeviceArray: ...
@overload
def sgemv(
    a: Float32Array,
    x: Float32Array,
    y: Float32Array | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    trans: bool = False,
    out: Float32Array | None = None,
    kernel: str | None = None,
    device: Device = "auto",
    stream: Stream | None = None,
    dtype: Float32 | None = None,
) -> Float32Array: ...
@overload
def sgemv(
    a: RealArray,
    x: RealArray,
    y: RealArray | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    trans: bool = False,
    out: Float32Array | None = None,
    kernel: str | None = None,
    device: Device = "auto",
    stream: Stream | None = None,
    dtype: Float32,
) -> Float32Array: ...
@overload
def sgemv(
    a: _DeviceArray,
    x: DeviceArrayLike,
    y: DeviceArrayLike | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    trans: bool = False,
    out: _DeviceArray | None = None,
    kernel: str | None = None,
    device: Device = "auto",
    stream: Stream | None = None,
    dtype: Float32 | None = None,
) -> _DeviceArray: ...
@overload
def transpose(
    a: Float32Array,
    out: Float32Array | None = None,
    *,
    kernel: str | None = None,
    device: Device = "auto",
    stream: Stream | None = None,
    dtype: Float32 | None = None,
) -> Float32Array: ...
@overload
def transpose(
    a: RealArray,
    out: Float32Array | None = None,
    *,
    kernel: str | None = None,
    device: Device = "auto",
    stream: Stream | None = None,
    dtype: Float32,
) -> Float32Array: ...
@overload
def transpose(
    a: _DeviceArray,
    out: _DeviceArray | None = None,
    *,
    kernel: str | None = None,
    device: Device = "auto",
    stream: Stream | None = None,
    dtype: Float32 | None = None,
) -> _DeviceArray: ...
