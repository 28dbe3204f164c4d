"""What type checkers have to accept, and the types they have to find. Never run."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

import fastlinalg as fl
from fastlinalg.typing import Float32Array, Stream

if TYPE_CHECKING:
    from typing_extensions import assert_type


class Kind(enum.IntEnum):
    cuda = 2


class Tensor:
    """As PyTorch and JAX declare theirs."""

    def __dlpack__(self, *, stream: Any = None, max_version: tuple[int, int] | None = None) -> Any: ...

    def __dlpack_device__(self) -> tuple[Kind, int]:
        return Kind.cuda, 0


class OnDevice:
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {}


class CudaStream:
    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, 1


def numpy_arrays(a: npt.NDArray[np.float32], b: npt.NDArray[np.float32], stream: Stream) -> None:
    assert_type(fl.matmul(a, b), npt.NDArray[np.float32])
    assert_type(fl.matmul(a, b, a, precision="strict", device="cuda:1", stream=stream), Float32Array)
    assert_type(fl.sgemm(a, b, a, alpha=2, beta=0.5, trans_b=True, kernel="naive", out=b), Float32Array)
    assert_type(fl.ssyrk(a, b, beta=1, trans=True, uplo="U", out=b), Float32Array)
    assert_type(fl.sgemv(a, b, b, beta=1.0, trans=True, stream=0), Float32Array)
    assert_type(fl.transpose(a, out=b), Float32Array)
    assert_type(fl.matmul(np.zeros((2, 3), np.float32), np.ones((3, 4), np.float32)), Float32Array)


def with_consent(a: npt.NDArray[np.float64], b: npt.NDArray[np.int8], c: npt.NDArray[np.float32]) -> None:
    assert_type(fl.matmul(a, b, dtype=np.float32), Float32Array)
    assert_type(fl.matmul(c, c, dtype=np.float32), Float32Array)
    assert_type(fl.sgemm(a, c, b, beta=1.0, out=c, dtype="float32"), Float32Array)
    assert_type(fl.ssyrk(a, b, beta=1.0, dtype=np.float32), Float32Array)
    assert_type(fl.sgemv(a, b, dtype=np.dtype(np.float32)), Float32Array)
    assert_type(fl.transpose(b > 0, dtype=np.float32), Float32Array)


def device_arrays(x: Tensor, y: OnDevice, z: fl.DeviceArray, stream: CudaStream) -> None:
    assert_type(fl.matmul(x, x, stream=stream), Tensor)
    assert_type(fl.matmul([x, x], [y, z]), list[Tensor])
    assert_type(fl.matmul((z, z), x, [z, z], device=["cuda:0", "cuda:1"]), list[fl.DeviceArray])
    assert_type(fl.matmul(z, [x, x]), fl.DeviceArray)
    assert_type(fl.matmul(x, z, out=x), Tensor)
    assert_type(fl.sgemm(y, y, y, beta=1.0, dtype=np.float32), OnDevice)
    assert_type(fl.ssyrk(x, z, beta=1.0), Tensor)
    assert_type(fl.sgemv(z, y), fl.DeviceArray)
    assert_type(fl.transpose(x), Tensor)
    assert_type(z.numpy(), Float32Array)
    assert_type(fl.DeviceArray.from_numpy(np.zeros(3, np.float32)), fl.DeviceArray)


def plans(a: npt.NDArray[np.float32], x: Tensor) -> None:
    with fl.Matmul(a, a, out=a, constant="b") as product:
        assert_type(product.execute(), Float32Array)
        product.reset_operands(a=a)
        assert_type(product.kernel, str | None)
    assert_type(fl.Matmul(x, x).execute(stream=0), Tensor)


def about(a: npt.NDArray[np.float64], x: Tensor) -> None:
    assert_type(fl.explain(a, a).others, dict[str, float | str])
    fl.explain((3, 4), (4, 5))
    fl.explain(x, precision="reproducible")
    assert_type(fl.kernels("sgemm")[0].traits.tile, str)
    assert_type(fl.get_num_threads(), int)
    assert_type(fl.show_versions(), None)
    assert_type(fl.get_include(), str)
    assert_type(fl.cuda.is_available(), bool)
    with fl.num_threads(2):
        pass
