"""Whole processes: import, exit, first calls at once, memory limits, and what a GPU adds to each."""

from __future__ import annotations

import os
import re
import struct
import sys
from pathlib import Path

import pytest

import fastlinalg as fl
from support.command import SETUP
from support.programs import completed, patient
from support.source_tree import ROOT, needs_source_tree


@pytest.mark.parametrize("called", ["nothing", "log", "callback", "producer"])
def test_exit_while_daemon_threads_are_in_calls(python, called):
    """A thread that takes the GIL back, for itself or for what it calls in Python, must not end the process either."""
    python(
        SETUP + "import threading, time, logging\n"
        f"called = {called!r}\n"
        "class Slow(logging.Handler):\n"
        "    def emit(self, record): time.sleep(0.001)\n"
        "class Producer:\n"
        "    def __init__(self, array): self.array = array\n"
        "    def __dlpack_device__(self): return (1, 0)\n"
        "    def __dlpack__(self, **asked): return time.sleep(0.001) or self.array.__dlpack__(**asked)\n"
        "    def __array_namespace__(self): return np\n"
        "if called == 'log': logging.basicConfig(level='DEBUG', handlers=[Slow()])\n"
        "fl._core.testing.set_watch_interval(100)\n"
        "plan, large = fl.Matmul(a, a), np.ones((400, 400), 'f4')\n"
        "def work(i):\n"
        "    for n in range(1, 10**6):\n"
        "        plan.execute(), fl.matmul(a, a)\n"
        "        x = np.ones((n % 1000 + i, 3), 'f4')\n"
        "        fl.Matmul(x.T, Producer(x) if called == 'producer' else x).execute()\n"
        "        if called == 'callback':\n"
        "            with fl.progress(lambda done: time.sleep(0.001)): fl.matmul(large, large)\n"
        "for i in range(3): threading.Thread(target=work, args=(i,), daemon=True).start()\n"
        "time.sleep(0.05)\n"
    )


def test_exit_while_calls_are_computed(python):
    """They end when the static objects of the library have gone: what waits was asked for before it was loaded."""
    python(
        "import ctypes, threading, time, numpy as np\n"
        "libc = ctypes.CDLL(None)\n"
        "libc.__cxa_atexit(libc.usleep, ctypes.c_void_p(1_500_000), None)\n"
        "import fastlinalg as fl\n"
        "for n in (1500, 2000, 3000):\n"
        "    a = np.ones((n, n), 'f4')\n"
        "    threading.Thread(target=fl.Matmul(a, a, device='cpu').execute, daemon=True).start()\n"
        "time.sleep(0.05)\n"
    )


SUBINTERPRETER = """
import sys, signal
signal.alarm(60)
try: import _interpreters as interpreters
except ImportError: import _xxsubinterpreters as interpreters
if "alone" not in sys.argv: import fastlinalg
options = {} if "own" in sys.argv else {"isolated": False} if sys.version_info < (3, 13) else {"config": "legacy"}
interpreters.run_string(interpreters.create(**options), '''
try: import fastlinalg
except ImportError as error: print(error)
''')
"""


@pytest.mark.parametrize("lock", ["own", "shared"])
@pytest.mark.parametrize("first", ["alone", "after the main interpreter"])
def test_subinterpreters_are_refused(python, lock, first):
    assert python(SUBINTERPRETER, lock, first).startswith("fastlinalg cannot be imported in a subinterpreter: use thr")


def test_import_and_exit_are_silent(python):
    assert python("import fastlinalg") == ""
    assert python(SETUP + "fl.sgemv(a, a[0]); fl.transpose(a); fl.info(); fl.devices(); fl.kernels('sgemm')") == ""


@needs_source_tree
def test_the_sources_say_that_they_are_not_installed(tmp_path):
    """As in a Python that is run in their folder; without site-packages an editable install is not found either."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = (sys.executable, "-S", "-c", "import fastlinalg")
    done = completed(*command, status=1, cwd=ROOT / "python", env=environment)
    assert re.search(r"ImportError: .* has the sources of fastlinalg alone, .* pip install -e \.", done.stderr)
    assert "partially initialized" not in done.stderr


def test_import_is_quick_and_loads_no_extras(python):
    program = (
        "import sys, time, numpy\n"
        "before, begin = set(sys.modules), time.process_time()\n"
        "import fastlinalg\n"
        "elapsed = time.process_time() - begin\n"
        "extras = {'rich', 'matplotlib', 'cupy', 'torch', 'scipy', 'cuda', 'fastlinalg.cli'}\n"
        "print(elapsed, *sorted(extras & (set(sys.modules) - before)))\n"
    )
    answers = [python(program).split() for _ in range(5)]
    assert min(float(answer[0]) for answer in answers) < patient(0.150)
    assert answers[0][1:] == []


def test_out_of_memory_is_a_memory_error(python):
    python(
        SETUP + "import resource\n"
        "with open('/proc/self/statm') as file: used = int(file.read().split()[0]) * 4096\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used + 2**28, resource.RLIM_INFINITY))\n"
        "column = np.ones((20000, 1), 'f4')\n"
        "for call in (lambda: fl.matmul(column, column.T, device='cpu'),\n"
        "             lambda: fl.transpose(np.broadcast_to(column, (20000, 20000)), device='cpu')):\n"
        "    try: call()\n"
        "    except MemoryError: pass\n"
        "    else: sys.exit('no MemoryError')\n"
        "    assert np.array_equal(fl.matmul(a, a, device='cpu'), want)\n"
    )


def test_out_of_workspace_is_a_memory_error(python):
    """Little memory and many threads: each kernel gives the product or MemoryError, and works again with one thread."""
    python(
        SETUP + "import resource\n"
        "b = np.random.default_rng(1).standard_normal((600, 600), dtype='f4')\n"
        "out, right, off = np.empty_like(b), b.astype(float) @ b, np.empty(b.shape)\n"
        "def error(): return np.abs(np.subtract(out, right, out=off), out=off).max()  # allocates nothing\n"
        "names = [row.name for row in fl.kernels('sgemm') if row.available and row.device == 'cpu']\n"
        "error()\n"
        "with open('/proc/self/statm') as file: used = int(file.read().split()[0]) * 4096\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used + 64 * 2**20, resource.RLIM_INFINITY))\n"
        "for name in names:\n"
        "    for threads in (64, 1):\n"
        "        fl.set_num_threads(threads)\n"
        "        try: fl.sgemm(b, b, out=out, kernel=name, device='cpu')\n"
        "        except MemoryError:\n"
        "            assert threads > 1, name\n"
        "        else: assert error() < 1e-3, (name, threads)\n"
    )


# A thread whose import sleeps gives the GIL to others that make their first call too.
SLOW_IMPORTS = (
    "import signal; signal.alarm(60)\n"
    "import builtins, threading, time, numpy as np, fastlinalg as fl\n"
    "real = builtins.__import__\n"
    "def slow(*args, **keywords): time.sleep(0.05); return real(*args, **keywords)\n"
    "builtins.__import__ = slow\n"
    "class Foreign:\n"
    "    def __dlpack_device__(self): return (1, 0)\n"
    "    def __dlpack__(self, **keywords): return np.ones((3, 3), 'f4').__dlpack__()\n"
    "results = []\n"
    "def work(): results.append(np.asarray(fl.matmul(OPERAND, OPERAND)))\n"
    "threads = [threading.Thread(target=work) for _ in range(4)]\n"
    "for thread in threads: thread.start()\n"
    "for thread in threads: thread.join()\n"
    "assert len(results) == 4 and all((result == 3).all() for result in results)\n"
)


@pytest.mark.parametrize("operand", ["np.ones((3, 3), 'f4')", "Foreign()"])
def test_first_calls_of_several_threads(python, operand):
    python(SLOW_IMPORTS.replace("OPERAND", operand))


CLOSED = """
import ctypes, _ctypes, sys, time
library = ctypes.CDLL(sys.argv[1])
library.fl_sgemm.argtypes = [ctypes.c_int] * 2 + [ctypes.c_int64] * 3 + [
    t for _ in "abc" for t in (*([ctypes.c_float] if _ != "b" else []), ctypes.c_void_p, ctypes.c_int64)
] + [ctypes.c_void_p]
n = 300
a, c = (ctypes.c_float * (n * n))(*[1] * (n * n)), (ctypes.c_float * (n * n))()
library.fl_set_num_threads(4)
assert library.fl_sgemm(0, 0, n, n, n, 1, a, n, a, n, 0, c, n, None) == 0 and c[n] == n
_ctypes.dlclose(library._handle)
time.sleep(0.1)
print(sys.argv[1] in open("/proc/self/maps").read())
"""


def dynamic_section(path):
    """The tags of a 64-bit ELF file and their values."""
    data = path.read_bytes()
    (headers,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    for header in range(headers, headers + size * count, size):
        kind, _, offset, _, _, length = struct.unpack_from("<IIQQQQ", data, header)
        if kind == 2:
            return dict(struct.iter_unpack("<QQ", data[offset : offset + length // 16 * 16]))
    return {}


def test_the_library_stays_after_dlclose(python):
    """Its threads run on, and would do so on freed code. What else would keep it is up to the linker."""
    path = Path(fl.get_cmake_dir()).parents[1] / "libfastlinalg.so"
    if not path.exists():
        pytest.skip("fastlinalg is imported from its source tree")
    assert python(CLOSED, str(path.resolve())).strip() == "True"
    assert dynamic_section(path).get(0x6FFFFFFB, 0) & 0x8, "DT_FLAGS_1 lacks DF_1_NODELETE"


# ---------------------------------------------------------------- with a GPU
CONTEXT = (
    "import ctypes\n"
    "def has_context():\n"
    "    cuda, flags, active = ctypes.CDLL('libcuda.so.1'), ctypes.c_uint(), ctypes.c_int()\n"
    "    assert cuda.cuInit(0) == 0\n"
    "    assert cuda.cuDevicePrimaryCtxGetState(0, ctypes.byref(flags), ctypes.byref(active)) == 0\n"
    "    return bool(active.value)\n"
)


@pytest.mark.gpu
def test_only_a_gpu_call_creates_a_context(python):
    python(
        CONTEXT + SETUP + "assert fl.cuda.is_available() and fl.devices() and fl.info() and fl.kernels('sgemm')\n"
        "assert not has_context()\n"
        "fl.matmul(a, a, device='cuda')\n"
        "assert has_context()\n"
    )


def test_the_module_imported_again(python):
    """Classes and errors are those of before, and objects of before go on."""
    said = python(
        "import os; os.dup2(1, 2)\n" + SETUP + "plan, before = fl.Matmul(a, a, device='cpu'), fl\n"
        "for name in [name for name in sys.modules if name.startswith('fastlinalg')]: del sys.modules[name]\n"
        "import fastlinalg as fl\n"
        "assert fl is not before and fl.CudaError is before.CudaError and fl.DeviceArray is before.DeviceArray\n"
        "with fl.Matmul(a, a, device='cpu') as again:\n"
        "    for got in (fl.matmul(a, a, device='cpu'), plan.execute(), again.execute()):\n"
        "        assert np.array_equal(got, want)\n"
        "try: fl.matmul(a, a[:3])\n"
        "except ValueError: pass\n"
    )
    assert said == "", "no warning"


def test_exit_says_nothing_of_what_still_lives(python):
    """A daemon thread and an unreachable cycle keep plans to the end: no fault, and nothing to report."""
    said = python(
        "import os; os.dup2(1, 2)\n" + SETUP + "import threading\n"
        "class Array(np.ndarray): pass\n"
        "cycle = a.view(Array); cycle.plan = fl.Matmul(cycle, a)\n"
        "held, begun = fl.Matmul(a, a), threading.Event()\n"
        "def work(plan): begun.set(); threading.Event().wait()\n"
        "threading.Thread(target=work, args=(held,), daemon=True).start(); begun.wait()\n"
    )
    assert said == ""
