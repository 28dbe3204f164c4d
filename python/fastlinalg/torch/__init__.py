"""float32 products of PyTorch tensors: operators with gradients, and a mode for unchanged models.

``fastlinalg.torch.matmul``, ``grouped_matmul`` and ``linear`` are differentiable, compile without graph breaks and take
part in ``torch.func``. ``with fastlinalg.torch.use():`` sends the float32 products that PyTorch itself computes on CUDA
devices to fastlinalg. Nothing else in the package imports torch; this does.
"""

try:
    import torch  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"fastlinalg.torch needs PyTorch 2.10 or newer ({error}): pip install 'torch>=2.10'", name=error.name
    ) from None

from ._functions import grouped_matmul, linear, matmul
from ._mode import Products, disable, enable, use

__all__ = ["Products", "disable", "enable", "grouped_matmul", "linear", "matmul", "use"]
