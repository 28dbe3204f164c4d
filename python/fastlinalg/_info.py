"""What the library is and what it found on this machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import _core

# Not the folder of this file, which an editable install leaves in the source tree.
_INSTALLED = Path(_core.__file__).parent

OPERATIONS = _core.operations()


@dataclass(frozen=True)
class Kernel:
    """One row of the kernel table.

    Attributes
    ----------
    op : str
        "sgemm", "sgemv" or "transpose".
    name : str
        What the ``kernel=`` argument takes.
    device : str
        "cpu" or "cuda".
    needs : str
        The hardware it needs: "baseline", "avx2_fma", "avx512f", "cuda", "sm_80", "sm_90a".
    available : bool
        Whether this machine has it, and this build code for it.
    reason : str
        Why not; empty if available.
    blurb : str
        One line of text.
    strict : bool
        Whether it serves ``precision="strict"``, and so is exact wherever float32 is. The others answer to
        ``precision="accurate"`` alone.
    """

    op: str
    name: str
    device: str
    needs: str
    available: bool
    reason: str
    blurb: str
    strict: bool

    def __str__(self) -> str:
        return self.name


def kernels(op: str) -> list[Kernel]:
    """The kernels of one operation, in the order of the kernel table.

    Parameters
    ----------
    op : {"sgemm", "sgemv", "transpose"}

    Returns
    -------
    list of Kernel
        Those that cannot run here too, with the reason.

    Raises
    ------
    ValueError
        An unknown operation.
    """
    return [Kernel(op=op, **row) for row in _core.kernels(op)]


def info() -> dict[str, Any]:
    """What was built and what was found.

    Returns
    -------
    dict
        ``version``; ``cuda_built`` and ``architectures`` of the build; ``cpu`` with the instruction set in use, the
        thread setting and the most threads allowed here; ``cuda`` with ``available`` and, if not, the code, name and
        message of the reason, the CUDA versions of driver and runtime (13000 is 13.0, 0 is none), and ``missing_code``:
        why a device lacks kernels that its hardware could run, empty if it has them all.
    """
    return _core.info()


def devices() -> list[dict[str, Any]]:
    """The CUDA devices.

    Returns
    -------
    list of dict
        ``ordinal``, ``name``, ``compute_capability``, ``sm_count``, ``clock_khz``, ``memory`` and ``l2_cache`` in
        bytes, ``peak_gflops`` (float32 FMA pipes at the highest clock). Empty without a device: a normal state, whose
        reason is in ``info()["cuda"]["message"]``.
    """
    return _core.devices()


def get_include() -> str:
    """The folder with the C and C++ headers, ``<fastlinalg/fastlinalg.h>`` and ``<fastlinalg/fastlinalg.hpp>``."""
    return str(_INSTALLED / "include")


def get_cmake_dir() -> str:
    """The folder to pass as ``-Dfastlinalg_DIR`` for ``find_package(fastlinalg CONFIG)``."""
    return str(_INSTALLED / "lib" / "cmake" / "fastlinalg")
