"""Fixtures, and the rule for hardware that is not there: its cases are left out and counted, unless FASTLINALG_REQUIRE
lists it."""

from __future__ import annotations

import functools
import logging
import os
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings as hypothesis_settings

os.environ["FASTLINALG_TUNE"] = "off"  # a table of this user's would change which kernels answer
os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"  # else JAX takes three quarters of the device's memory

if "FASTLINALG_SIMULATED_SEED" in os.environ:  # on a device that other libraries do not know
    sys.modules.update(dict.fromkeys(("torch", "cupy", "jax", "numba")))

import fastlinalg as fl
from support.device_libraries import LIBRARIES, WRITABLE, Cupy, Torch
from support.programs import completed
from support.requirements import demanded, known, missing, required

hypothesis_settings.register_profile("short", max_examples=150, deadline=None, derandomize=True, database=None)
hypothesis_settings.register_profile("long", max_examples=20_000, deadline=None, print_blob=True)
hypothesis_settings.load_profile("short")

HUGE_DEVICE_MEMORY = 40 * 2**30
READ = ("FASTLINALG_", "OMP_NUM_THREADS", "XDG_CACHE_HOME", "CUDA_")  # by the library
LEFT_OUT = pytest.StashKey[Counter[str]]()  # how many cases, by why they cannot run here


def pytest_addoption(parser):
    parser.addoption("--exhaustive", action="store_true", help="run the second tier of tests too (tests/README.md)")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config):
    """On all cores, unless files are named, which are few, or the command line says otherwise."""
    option = config.option
    if not config.pluginmanager.hasplugin("xdist") or "PYTEST_XDIST_WORKER" in os.environ:
        return
    folders = all(Path(argument).is_dir() for argument in config.args)
    if option.numprocesses is None and not option.tx and folders and not option.usepdb:
        option.numprocesses = "logical"
    if option.numprocesses and option.dist == "no":
        option.dist, option.loadscopereorder = "loadgroup", False
    if option.numprocesses:  # processes whose NumPy has a thread for each core wait for one another most of the time
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def pytest_configure(config):
    if unknown := required() - known():
        raise pytest.UsageError(f"FASTLINALG_REQUIRE lists {sorted(unknown)}; known are {sorted(known())}")


def pytest_report_header(config):
    info = fl.info()
    cpu, cuda = info["cpu"], info["cuda"]
    return [
        f"fastlinalg {fl.__version__} from {Path(fl.__file__).parent}; cpu {cpu['isa']}, {cpu['threads']} threads",
        f"cuda: {'available' if cuda['available'] else cuda['message']}; required: {', '.join(required()) or 'none'}",
    ]


@functools.cache
def no_device() -> str | None:
    return None if fl.cuda.is_available() else f"no CUDA device: {fl.info()['cuda']['message']}"


def lacks(item) -> tuple[str, str] | None:
    """What a case needs that this machine has not, and a sentence about it."""
    marks = {mark.name for mark in item.iter_markers()}
    if marks & {"gpu", "gpu2", "huge"} and (reason := no_device()):
        return "cuda", reason
    if "gpu2" in marks and len(fl.devices()) < 2:
        return "cuda2", f"needs two CUDA devices, there are {len(fl.devices())}"
    row = getattr(item, "callspec", None) and item.callspec.params.get("row")
    if row is not None and not row.available:
        return row.needs, f"needs {row.needs}: {row.reason}"
    return None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Before plugins that shuffle: what waits for the simulated device comes first, for it takes longest. Behind -k and
    -m: leave out what cannot run here and was not required, and the second tier unless it is asked for."""
    items.sort(key=lambda item: "simulated" not in item.path.parts)
    yield
    left_out = {item: reason for item in items if (reason := why_not(item))}
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=list(left_out))
    config.stash[LEFT_OUT] = counts = Counter(left_out.values())
    if hasattr(config, "workeroutput"):  # of pytest-xdist, whose workers all have the same lists
        config.workeroutput["left_out"] = dict(counts)


def why_not(item) -> str | None:
    if (lack := lacks(item)) and not demanded(lack[0]):
        return lack[1]
    both_tiers = item.config.option.exhaustive or "exhaustive" in item.config.option.markexpr
    return "exhaustive (--exhaustive adds them)" if item.get_closest_marker("exhaustive") and not both_tiers else None


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    if left_out := getattr(node, "workeroutput", {}).get("left_out"):
        node.config.stash[LEFT_OUT] = Counter(left_out)


def pytest_terminal_summary(terminalreporter, config):
    for reason, count in sorted(config.stash.get(LEFT_OUT, Counter()).items()):
        terminalreporter.write_line(f"not run: {count} cases, {reason}")


def pytest_runtest_setup(item):
    if lack := lacks(item):
        missing(*lack)
    if item.get_closest_marker("huge") and fl.cuda.memory_info()["free"] < HUGE_DEVICE_MEMORY:
        pytest.skip("needs 40 GiB of free device memory")


def settings() -> dict[str, object]:
    """What a test could change for those behind it, in whatever order they come."""
    logger = logging.getLogger("fastlinalg")
    return {
        "environment": {key: value for key, value in os.environ.items() if key.startswith(READ)},
        "working directory": os.getcwd(),
        "threads": fl.get_num_threads(),
        "log": (logger.level, list(logger.handlers), list(logger.filters)),
        "errors of NumPy": np.geterr(),
        "places of modules": [path for path in sys.path if path.startswith(str(Path(__file__).parents[1]))],
    }


@pytest.fixture(autouse=True)
def left_as_it_was():
    before = settings()
    yield
    after = settings()
    changed = {name: (value, after[name]) for name, value in before.items() if after[name] != value}
    assert not changed, f"the test has left these changed: {changed}"


@pytest.fixture(autouse=True)
def products_of_torch_in_float32():
    """Results are compared with them, and an earlier test may have allowed TF32."""
    if torch := sys.modules.get("torch"):
        torch.set_float32_matmul_precision("highest")


@pytest.fixture
def rng():
    return np.random.default_rng(20240229)


@pytest.fixture
def python():
    """Run a program in a fresh interpreter; the caller may ask for another environment or exit status."""

    def run(program: str, *args: str, status: int = 0, timeout: float = 120, **environment: str) -> str:
        env = {key: value for key, value in os.environ.items() if not key.startswith("FASTLINALG_")}
        env["FASTLINALG_TUNE"] = "off"
        options = {"env": env | environment, "seconds": timeout}
        return completed(sys.executable, "-c", program, *args, status=status, **options).stdout

    return run


@pytest.fixture
def environment(tmp_path, monkeypatch):
    """The variables of a process with a cache folder of its own, and where its tuning table would be."""
    monkeypatch.delenv("FASTLINALG_TUNE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "fastlinalg").mkdir()
    return dict(os.environ), tmp_path / "fastlinalg" / "tuning.txt"


# ---------------------------------------------------------------- on the device
@pytest.fixture
def limit():
    """Set the memory limit of a device for one test, with pools that hold nothing from earlier calls."""

    def set_limit(nbytes: int, device: int = 0) -> None:
        fl.cuda.trim(device)
        fl.cuda.set_memory_limit(nbytes, device)

    yield set_limit
    for device in range(len(fl.devices())):
        fl.cuda.set_memory_limit(0, device)


@pytest.fixture(params=LIBRARIES)
def library(request):
    """Every library whose arrays lie in device memory."""
    return LIBRARIES[request.param]()


@pytest.fixture(params=[name for name in LIBRARIES if name != "jax"])
def writable(request):
    """Those whose arrays can be results."""
    return LIBRARIES[request.param]()


@pytest.fixture(params=WRITABLE)
def producer(request):
    """The same and two made-up ones, whose arrays are known by an interface alone."""
    return WRITABLE[request.param]()


@pytest.fixture(params=["torch", "cupy"])
def views(request):
    """A library whose arrays can be views of others."""
    return LIBRARIES[request.param]()


@pytest.fixture
def torch():
    return Torch().lib


@pytest.fixture
def cupy():
    return Cupy().lib
