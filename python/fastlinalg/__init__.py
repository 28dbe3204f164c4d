"""float32 matrix products, matrix-vector products and transposes, on the CPU and on NVIDIA GPUs."""

import logging as _logging
import sys as _sys

from . import _main_interpreter as _main_interpreter  # before _core, whose import hangs elsewhere

try:
    from . import _core
except ImportError as error:
    if error.name != __name__:  # it is there, and cannot be loaded
        raise
    raise ImportError(
        f"{__path__[0]} has the sources of fastlinalg alone, and was found before any package that is installed: run "
        "Python in another folder, or install it, by pip install -e . in the folder of pyproject.toml"
    ) from None
from . import cuda
from ._api import grouped_matmul, matmul, sgemm, sgemv, ssyrk, transpose
from ._core import CudaError, DeviceArray
from ._explain import Explanation, explain
from ._info import (
    Kernel,
    KernelTable,
    Traits,
    devices,
    get_cmake_dir,
    get_include,
    info,
    kernels,
    load_library,
    show_versions,
)
from ._plan import GroupedMatmul, Matmul
from ._progress import progress
from ._threads import get_num_threads, num_threads, set_num_threads

__version__: str = _core.__version__
__all__ = [
    "CudaError",
    "DeviceArray",
    "Explanation",
    "GroupedMatmul",
    "Kernel",
    "KernelTable",
    "Matmul",
    "Traits",
    "cuda",
    "devices",
    "explain",
    "get_cmake_dir",
    "get_include",
    "get_num_threads",
    "grouped_matmul",
    "info",
    "kernels",
    "load_library",
    "matmul",
    "num_threads",
    "progress",
    "set_num_threads",
    "sgemm",
    "sgemv",
    "show_versions",
    "ssyrk",
    "transpose",
]

# At DEBUG the logger names the kernel chosen for each new shape, and why the others were not. It has no handler of its
# own: what it says at WARNING, of an environment variable that means nothing say, reaches stderr without one.
_core.set_logger(_logging.getLogger("fastlinalg"))

# No dependency: who has not imported threadpoolctl does not want its limits, or imports fastlinalg.threadpoolctl.
# One before 3.2 has nothing to register with.
if hasattr(_sys.modules.get("threadpoolctl"), "register"):
    from . import threadpoolctl as threadpoolctl
