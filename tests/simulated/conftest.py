"""The simulated device that these tests run on."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

import pytest

from support.cpp_program import common_folder
from support.simulation.library import build_library


@pytest.fixture(scope="session")
def device():
    """The functions of control.cpp, from the library that the package uses."""
    library = ctypes.CDLL(os.path.join(os.environ["LD_LIBRARY_PATH"], "libfastlinalg.so.0.1"))
    library.simulated_stream.restype = library.simulated_end_capture.restype = ctypes.c_void_p
    for name in ("begin_capture", "end_capture", "destroy_stream"):
        getattr(library, f"simulated_{name}").argtypes = [ctypes.c_void_p]
    library.simulated_launch.argtypes = [ctypes.c_void_p] * 2
    library.simulated_pinned.restype = ctypes.POINTER(ctypes.c_float)
    library.simulated_pinned.argtypes = [ctypes.c_size_t]
    return library


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    """The folder of a library with the simulated device; FASTLINALG_SIMULATED_LIBRARY is one that is built already."""
    if built := os.environ.get("FASTLINALG_SIMULATED_LIBRARY"):
        return Path(built)
    with common_folder(tmp_path_factory, "simulated") as folder:
        return build_library(folder)
