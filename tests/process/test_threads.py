"""The number of CPU threads: the setting, the context manager, the environment, and what else the environment sets."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from itertools import product

import numpy as np
import pytest

import fastlinalg as fl
from fastlinalg import _core
from support.accuracy import assert_product
from support.programs import completed
from support.rows import SLOW


@pytest.fixture(autouse=True)
def restored():
    before = fl.get_num_threads()
    yield
    fl.set_num_threads(before)


def test_set_and_get():
    for n in (1, 2, 5, 64):
        fl.set_num_threads(n)
        assert fl.get_num_threads() == n and fl.info()["cpu"]["threads"] == n


def test_wrong_numbers():
    fl.set_num_threads(2)
    wrong = {0: "at least 1, got 0", -1: "at least 1, got -1", 257: "at most 256, got 257"}
    wrong[2**40] = f"at most 256, got {2**40}"
    for set_to in (fl.set_num_threads, fl.num_threads):  # both when they are called
        for n, words in wrong.items():
            with pytest.raises(ValueError, match=words):
                set_to(n)
        for n in (1.5, "2", None):
            with pytest.raises(TypeError):
                set_to(n)
    assert fl.get_num_threads() == 2


def test_context_manager():
    fl.set_num_threads(2)
    with fl.num_threads(3):
        assert fl.get_num_threads() == 3
        with fl.num_threads(1):
            assert fl.get_num_threads() == 1
        assert fl.get_num_threads() == 3
    with pytest.raises(KeyError), fl.num_threads(4):
        raise KeyError
    assert fl.get_num_threads() == 2
    limit = fl.num_threads(5)  # acts without with, and goes back at the end of one
    assert fl.get_num_threads() == 5 and repr(limit) == "<fastlinalg.num_threads(5), before that 2>"
    with limit as same:
        assert same is limit and fl.get_num_threads() == 5
    assert fl.get_num_threads() == 2


@pytest.mark.parametrize("threads", [1, 2, 3, 16, 64])
def test_products_with_any_number_of_threads(threads, rng):
    with fl.num_threads(threads):
        for m, n, k in ((1, 1, 1), (2, 300, 40), (300, 2, 40), (257, 255, 129), (5, 7, 20000)):
            a, b = rng.standard_normal((m, k), np.float32), rng.standard_normal((k, n), np.float32)
            assert_product(fl.matmul(a, b), a, b, context=f"{threads} threads, {(m, n, k)}")
            assert_product(fl.sgemv(a, b[:, 0].copy())[:, None], a, b[:, :1], context=f"sgemv, {threads} threads")
            assert np.array_equal(fl.transpose(a), a.T)


def test_dispatched_results_do_not_depend_on_the_thread_count(rng):
    """The choice of a kernel may not change with the threads, unless both give the same bits."""
    different = []
    for m, n, k in product((1, 4, 16, 33, 100, 256), (8, 33, 129, 400), (16, 129, 300, 700)):
        a, b = rng.standard_normal((m, k), np.float32), rng.standard_normal((k, n), np.float32)
        answers = set()
        for count in (1, 2, 16):
            with fl.num_threads(count):
                answers.add((fl.matmul(a, b, device="cpu").tobytes(), fl.matmul(a, b[:, 0], device="cpu").tobytes()))
        if len(answers) > 1:
            different.append((m, n, k))
    assert not different


# rows and columns shared, B kept packed or not, groups of columns for less and for more than one thread, batches
SHARED = [(257, 700, 300), (1001, 70, 900), (40, 3000, 500), (130, 66, 20000), (3, 90, 130, 257), (40, 33, 70, 65)]


@pytest.mark.parametrize("name", [k.name for k in fl.kernels("sgemm") if k.device == "cpu" and k.available])
@pytest.mark.parametrize("shape", SHARED, ids=str)
def test_bits_do_not_depend_on_how_threads_share_the_work(name, shape, rng):
    *batch, m, n, k = shape
    if name in SLOW:
        k = min(k, 3 * 10**6 // (m * n))
    a, b = rng.standard_normal((*batch, m, k), np.float32), rng.standard_normal((*batch, k, n), np.float32)
    c = rng.standard_normal((*batch, m, n), np.float32)
    for transposed in (False, True):
        right = np.ascontiguousarray(b.swapaxes(-1, -2)).swapaxes(-1, -2) if transposed else b
        with fl.num_threads(1):
            want = fl.sgemm(a, right, c, alpha=0.5, beta=2.0, kernel=name)
        for threads in (2, 3, 7, 16, 40):
            with fl.num_threads(threads):
                got = fl.sgemm(a, right, c, alpha=0.5, beta=2.0, kernel=name)
            assert got.tobytes() == want.tobytes(), f"{threads} threads"


def test_calls_after_pauses(rng):
    """Workers look for work for a while, then sleep: calls that meet them anywhere between give the same bits."""
    a, b = rng.standard_normal((90, 300), np.float32), rng.standard_normal((300, 140), np.float32)
    want = fl.matmul(a, b, device="cpu").tobytes()
    for turn in range(150):
        time.sleep(turn % 5 * 25e-6)
        with fl.num_threads(2 + turn % 6):
            assert fl.matmul(a, b, device="cpu").tobytes() == want


def test_the_setting_may_change_during_calls(rng):
    """Buffers are sized for a number of threads: a call keeps the one it began with."""
    a, b = rng.standard_normal((300, 200), np.float32), rng.standard_normal((200, 310), np.float32)
    names = [row.name for row in fl.kernels("sgemm") if row.device == "cpu" and row.available and row.name not in SLOW]
    want = {name: fl.sgemm(a, b, kernel=name) for name in names}
    stop = threading.Event()

    def toggle():
        while not stop.is_set():
            for n in (1, 16, 2, 64):
                fl.set_num_threads(n)

    thread = threading.Thread(target=toggle)
    thread.start()
    try:
        for turn in range(60):
            name = names[turn % len(names)]
            np.testing.assert_array_equal(fl.sgemm(a, b, kernel=name), want[name], name)
    finally:
        stop.set()
        thread.join()


PRINT = "import fastlinalg as fl; print(fl.get_num_threads())"


EACH_SETTING = """
import json, os, sys, fastlinalg as fl
for settings in json.loads(sys.argv[1]):
    if os.fork() == 0:
        for name, text in zip(("FASTLINALG_NUM_THREADS", "OMP_NUM_THREADS"), settings):
            os.environ.pop(name, None) if text is None else os.environ.update({name: text})
        print(fl.get_num_threads(), flush=True)
        os._exit(0)
    os.wait()
"""
NONSENSE = ("", "many", "-2", "0", "3abc", "1e9", "0x10", "4294967297", "99999999999999")
# FASTLINALG_NUM_THREADS, OMP_NUM_THREADS, and how many these are.
SETTINGS = [("3", None, 3), (None, "5", 5), ("3", "5", 3), ("1000", None, 256), (None, "1000", 256)]
# What OpenMP has for nested regions: the first is that of the outermost.
SETTINGS += [(None, text, 4) for text in ("4,2", " 4", "4 ", "+4")]


def test_environment(python):
    """What is no number is ignored."""
    asked = [(None, ""), *((text, "") for text in NONSENSE), *(pair[:2] for pair in SETTINGS)]
    allowed, *found = map(int, python(EACH_SETTING, json.dumps(asked)).split())
    assert found == [allowed] * len(NONSENSE) + [count for *_, count in SETTINGS]


def test_far_more_threads_than_a_call_can_use(rng):
    """They have no workspaces, and there is nothing to measure with them."""
    a = rng.standard_normal((300, 300), np.float32)
    want = fl.matmul(a, a, device="cpu"), fl.sgemv(a, a[0], device="cpu"), fl.transpose(a, device="cpu")
    with fl.num_threads(256):
        got = fl.matmul(a, a, device="cpu"), fl.sgemv(a, a[0], device="cpu"), fl.transpose(a, device="cpu")
        with fl.Matmul(a, a, device="cpu") as plan:
            assert plan.execute().tobytes() == want[0].tobytes()
    assert all(x.tobytes() == y.tobytes() for x, y in zip(got, want, strict=True))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"FASTLINALG_NUM_THREADS": "many"}, "FASTLINALG_NUM_THREADS=many is ignored: it must be a number of threads"),
        ({"FASTLINALG_CPU": "sse"}, "FASTLINALG_CPU=sse is ignored: it must be baseline, avx2, avx512, amx or neon"),
        ({"FASTLINALG_NUM_THREADS": "257"}, "FASTLINALG_NUM_THREADS=257 is too many: 256 threads are the most"),
        (
            {"FASTLINALG_COMPUTE_CAPABILITY": "abc"},
            "FASTLINALG_COMPUTE_CAPABILITY=abc is ignored: it must be a compute",
        ),
        ({"FASTLINALG_NUM_THREADS": "2", "FASTLINALG_CPU": "avx2", "OMP_NUM_THREADS": "some"}, ""),
    ],
)
def test_settings_that_cannot_be_read_are_told_once(settings, words):
    """By the logger at WARNING, which reaches stderr where nobody has set up logging."""
    program = "import numpy as np, fastlinalg as fl; a = np.ones((2, 2), 'f4'); fl.matmul(a, a); fl.transpose(a)"
    done = completed(sys.executable, "-c", program, env=os.environ | settings)
    assert done.stderr.startswith(words) and done.stderr.count("\n") == bool(words), done.stderr
    # And by whom one asks for settings, without a call.
    asked = "import fastlinalg as fl; print(*fl.info()['unusable_settings'])"
    said = completed(sys.executable, "-c", asked, env=os.environ | settings).stdout
    assert said.startswith(words) and bool(said.strip()) == bool(words)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity masks here")
def test_default_is_what_the_affinity_mask_allows(python):
    program = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); " + PRINT
    assert python(program, OMP_NUM_THREADS="").strip() == "1"


BOUND_CALLER = """
import os, threading
import numpy as np
import fastlinalg as fl

allowed = os.sched_getaffinity(0)
a = np.ones((1200, 1200), np.float32)
def first_call():
    os.sched_setaffinity(0, {min(allowed)})
    fl.matmul(a, a, device="cpu")
thread = threading.Thread(target=first_call)
thread.start()
thread.join()
assert fl.get_num_threads() == fl.info()["cpu"]["threads"]
fl.set_num_threads(3)
before = set(os.listdir("/proc/self/task"))
fl.matmul(a, a, device="cpu")
for task in os.listdir("/proc/self/task"):
    if int(task) != os.getpid():
        # a worker that sleeps has left the CPU of its last caller to that one
        assert len(allowed) < 3 or len(os.sched_getaffinity(int(task))) > 1, task
print(fl.get_num_threads())
"""


WORKERS = """
import os, numpy as np, fastlinalg as fl
a = np.ones((1200, 1200), np.float32)
fl.set_num_threads(2)
fl.matmul(a, a, device="cpu")  # with the first thread a sanitizer begins one of its own
before = len(os.listdir("/proc/self/task"))
fl.set_num_threads(3)
fl.matmul(a, a, device="cpu")
assert len(os.listdir("/proc/self/task")) <= before + 1, os.listdir("/proc/self/task")
"""


def test_there_are_no_more_workers_than_threads(python):
    python(WORKERS)


def test_a_bound_first_caller_binds_nobody_else(python):
    python(BOUND_CALLER)
    program = BOUND_CALLER.split("fl.set_num_threads(3)")[0] + "print(fl.get_num_threads())"
    assert int(python(program, OMP_NUM_THREADS="")) == len(os.sched_getaffinity(0))


CPU_V2, MEMORY_V2 = "sys/fs/cgroup{}/cpu.max", "sys/fs/cgroup{}/memory.max"
CPU_V1, MEMORY_V1 = "sys/fs/cgroup/cpu{}/cpu.cfs_", "sys/fs/cgroup/memory{}/memory.limit_in_bytes"


@pytest.mark.parametrize(
    ("groups", "files", "limits"),
    [
        ("0::/", {CPU_V2.format(""): "max 100000", MEMORY_V2.format(""): "max"}, (0, 0)),
        ("0::/", {CPU_V2.format(""): "150000 100000", MEMORY_V2.format(""): "1048576"}, (2, 1 << 20)),
        ("0::/a/b", {CPU_V2.format("/a"): "400000 100000", CPU_V2.format("/a/b"): "max 100000"}, (4, 0)),
        ("0::/a/b", {CPU_V2.format("/a"): "400000 100000", CPU_V2.format("/a/b"): "600000 100000"}, (4, 0)),
        ("0::/docker/of/the/host", {CPU_V2.format(""): "300000 100000", MEMORY_V2.format(""): "4096"}, (3, 4096)),
        ("0::/../../x", {CPU_V2.format(""): "100000 100000"}, (1, 0)),
        ("0::/", {CPU_V2.format(""): "1 100000"}, (1, 0)),
        ("0::/", {CPU_V2.format(""): f"{2**62} 1"}, (2**31 - 1, 0)),
        ("0::/", {CPU_V2.format(""): f"{10**30} 100000"}, (2**31 - 1, 0)),
        ("0::/", {CPU_V2.format(""): "100000 0"}, (0, 0)),
        ("0::/", {CPU_V2.format(""): "-1 100000"}, (0, 0)),
        ("0::/", {CPU_V2.format(""): "many"}, (0, 0)),
        ("0::/", {CPU_V2.format(""): ""}, (0, 0)),
        (
            "4:cpu,cpuacct:/a\n5:memory:/a",
            {CPU_V1.format("/a") + "quota_us": "250000", CPU_V1.format("/a") + "period_us": "100000"},
            (3, 0),
        ),
        (
            "4:cpuacct,cpu:/\n5:memory:/a",
            {
                CPU_V1.format("") + "quota_us": "-1",
                CPU_V1.format("") + "period_us": "100000",
                MEMORY_V1.format("/a"): "8192",
            },
            (0, 8192),
        ),
        ("5:memory:/", {MEMORY_V1.format(""): str(2**63 - 4096)}, (0, 2**63 - 4096)),
        ("", {}, (0, 0)),
        ("nothing of the kind", {}, (0, 0)),
    ],
)
def test_what_control_groups_leave(groups, files, limits, tmp_path):
    for name, text in {"proc/self/cgroup": groups, **files}.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n")
    assert _core.testing.cgroup_limits(str(tmp_path)) == limits


# ---------------------------------------------------------------- other settings of the environment
@pytest.mark.parametrize(
    "cap, forbidden",
    [
        ("baseline", {"avx2_fma", "avx512f", "amx_bf16", "neon"}),
        ("avx2", {"avx512f", "amx_bf16"}),
        ("avx512", {"amx_bf16"}),
    ],
)
def test_instruction_sets_can_be_capped(python, cap, forbidden):
    program = (
        "import fastlinalg as fl, numpy as np\n"
        "for op in ('sgemm', 'sgemv', 'transpose'):\n"
        "    for row in fl.kernels(op):\n"
        "        if row.available: print(row.needs)\n"
        "        else: assert row.reason\n"
        "a = np.random.default_rng(0).standard_normal((70, 70)).astype('f4')\n"
        "np.testing.assert_allclose(fl.matmul(a, a), a.astype(float) @ a, atol=1e-4)\n"
        "print(fl.info()['cpu']['isa'])\n"
    )
    assert not set(python(program, FASTLINALG_CPU=cap).split()) & forbidden


def test_forced_device(python):
    program = (
        "import fastlinalg as fl, numpy as np\n"
        "a = np.ones((3, 3), 'f4')\n"
        "print(*fl.info()['unusable_settings'])\n"
        "try: print(fl.matmul(a, a)[0, 0])\n"
        "except fl.CudaError: print('CudaError')\n"
        "except ValueError as error: print(error)\n"
    )
    assert python(program, FASTLINALG_DEVICE="cpu").strip() == "3.0"
    assert python(program, FASTLINALG_DEVICE="cuda").strip() == ("3.0" if fl.cuda.is_available() else "CudaError")
    for text in ("tpu", "CPU", "cpu ", "\udcff"):
        told, message = python(program, FASTLINALG_DEVICE=text).splitlines()
        assert message.startswith("FASTLINALG_DEVICE: device must be") and "'cuda:N'" in message
        assert told == message


def test_no_visible_device_is_a_normal_state(python):
    program = (
        "import fastlinalg as fl, numpy as np\n"
        "a = np.ones((3, 3), 'f4')\n"
        "assert not fl.cuda.is_available() and fl.devices() == [] and fl.info()['cuda']['message']\n"
        "print(fl.matmul(a, a)[0, 0])\n"
    )
    assert python(program, CUDA_VISIBLE_DEVICES="").strip() == "3.0"


# ---------------------------------------------------------------- threadpoolctl
LIMITS = """
from threadpoolctl import threadpool_info, threadpool_limits
def ours():
    return [x for x in threadpool_info() if x["internal_api"] == "fastlinalg"]
fl.set_num_threads(3)
(found,) = ours()
assert found["user_api"] == "blas" and found["num_threads"] == 3 and found["version"] == fl.__version__, found
for limits in (1, {"libfastlinalg": 1}, {"blas": 1}):
    user_api = None if isinstance(limits, dict) else "blas"
    with threadpool_limits(limits, user_api=user_api):
        assert fl.get_num_threads() == 1 and ours()[0]["num_threads"] == 1, limits
    assert fl.get_num_threads() == 3, limits
with threadpool_limits(1, user_api="openmp"):
    assert fl.get_num_threads() == 3
with threadpool_limits(2):
    assert fl.get_num_threads() == 2
print("governed")
"""


@pytest.mark.parametrize("imports", ["threadpoolctl, fastlinalg as fl", "fastlinalg as fl, fastlinalg.threadpoolctl"])
def test_threadpoolctl_governs_the_threads(python, imports):
    pytest.importorskip("threadpoolctl")
    assert python(f"import {imports}\n{LIMITS}").strip() == "governed"


def test_an_old_threadpoolctl_is_left_alone(python):
    for module in ("types.ModuleType('threadpoolctl')", "None"):
        python(f"import sys, types; sys.modules['threadpoolctl'] = {module}; import fastlinalg")


def test_threadpoolctl_is_no_dependency(python):
    assert python("import sys, fastlinalg; print('threadpoolctl' in sys.modules)").strip() == "False"
