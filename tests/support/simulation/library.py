"""A library with the simulated device (../../simulated/scheduler.h), and processes that use it."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from pathlib import Path

import fastlinalg as fl

from ..programs import completed
from ..requirements import missing
from ..source_tree import IS_THERE, ROOT, TESTS

SOURCE = TESTS / "simulated"


def headers() -> Path | None:
    """Where cuda_runtime_api.h is: the Python packages, then a toolkit."""
    try:
        package = importlib.util.find_spec("nvidia.cu13")
    except ModuleNotFoundError:
        package = None
    roots = [*(package.submodule_search_locations or () if package else ())]
    roots += [os.environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    if nvcc := shutil.which("nvcc"):
        roots.append(str(Path(nvcc).resolve().parent.parent))
    wanted = ("cuda.h", "cuda_runtime_api.h", "crt/host_defines.h")
    for folder in (Path(root) / "include" for root in [*roots, "/usr/local/cuda"]):
        if all((folder / name).exists() for name in wanted):
            return folder
    return None


def build_library(build: Path, jobs: int = 2) -> Path:
    """Make a libfastlinalg.so with the simulated device in a folder, which is returned: again costs nothing."""
    if not IS_THERE:
        missing("simulated", "needs the source tree")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    tools = {tool: shutil.which(tool, path=path) for tool in ("cmake", "ninja", os.environ.get("CXX", "c++"))}
    include = headers()
    if not include or not all(tools.values()):
        missing("simulated", f"needs a C++ compiler, CMake, Ninja and CUDA's headers: {tools}, headers in {include}")
    options = {"CUDA_INCLUDE": include, "FASTLINALG_VERSION": fl.__version__, "CMAKE_MAKE_PROGRAM": tools["ninja"]}
    if ccache := shutil.which("ccache"):
        options["CMAKE_CXX_COMPILER_LAUNCHER"] = ccache
    configure = [tools["cmake"], "-S", SOURCE, "-B", build, "-G", "Ninja", *(f"-D{k}={v}" for k, v in options.items())]
    for command in (configure, [tools["cmake"], "--build", build, f"-j{jobs}"]):
        completed(*command, seconds=600)
    for name in (".0", ".0.1"):  # what the module asks for depends on how it was built
        link = build / f"libfastlinalg.so{name}"
        if not link.is_symlink():
            link.symlink_to("libfastlinalg.so")
    return build


def run(library: Path, arguments: list[str], seed: int = 1, **variables: str) -> str:
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("FASTLINALG_", "PYTEST_"))}
    environment |= {
        "LD_LIBRARY_PATH": str(library),
        "PYTHONPATH": os.pathsep.join([str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])]),
        "FASTLINALG_SIMULATED_SEED": str(seed),
        "FASTLINALG_REQUIRE": "cuda,sm_90a",
        "FASTLINALG_TUNE": "off",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # the import of all that is installed is most of a short run
    } | variables
    done = completed(sys.executable, *arguments, env=environment, cwd=ROOT, seconds=300)
    return done.stdout + done.stderr
