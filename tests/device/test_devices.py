"""Which device a call uses, and what it leaves current."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import fastlinalg as fl
from fastlinalg import _core
from support.accuracy import assert_product, assert_same_bits
from support.operands import normal
from support.threads import in_threads

F32 = np.float32


def current_context() -> int:
    """Of the calling thread, 0 for none: what a library that uses the driver sees."""
    context = ctypes.c_void_p()
    assert ctypes.CDLL("libcuda.so.1").cuCtxGetCurrent(ctypes.byref(context)) == 0
    return context.value or 0


def in_a_new_thread(work):
    return in_threads(lambda _: work(), [None])[0]


def plan_whose_result_moves(x):
    """Executed often enough for a graph, which goes when the result lies elsewhere."""
    y, z = fl.matmul(x, x), fl.matmul(x, x)
    with fl.Matmul(x, x, out=y) as plan:
        for _ in range(6):
            plan.execute()
        plan.reset_operands(out=z)
        plan.execute()


def calls(device: int):
    a = np.ones((40, 40), F32)
    name = f"cuda:{device}"
    yield lambda: fl.matmul(a, a, device=name)
    yield lambda: fl.sgemv(a, a[0], device=name)
    yield lambda: fl.transpose(a, device=name)
    yield fl.Matmul(a, a, device=name).execute
    yield lambda: fl.cuda.memory_info(device)
    yield lambda: fl.cuda.trim(device)
    yield lambda: _core.DeviceBuffer(1000, device).upload(a[0])
    x = fl.DeviceArray.from_numpy(a, device=name)
    yield lambda: fl.matmul(x, x).numpy()
    yield lambda: [fl.matmul(x, x, out=x) for _ in range(3)]
    y = fl.matmul(x, x)
    yield lambda: [fl.matmul(x, x, out=y) for _ in range(6)]
    yield lambda: plan_whose_result_moves(x)
    yield lambda: fl.DeviceArray.from_numpy(a, device=name)


@pytest.mark.gpu
def test_a_thread_without_a_context_stays_without():
    for call in calls(0):

        def work(call=call):
            call()
            return current_context()

        assert in_a_new_thread(work) == 0


@pytest.mark.gpu
def test_the_callers_context_stays_current(python):
    """A context that is not the device's primary one, as programs of the driver API make them."""
    python(
        "import ctypes, numpy as np, fastlinalg as fl\n"
        "a = np.ones((40, 40), 'f4'); cuda = ctypes.CDLL('libcuda.so.1')\n"
        "own, now, device = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int()\n"
        "assert cuda.cuInit(0) == 0 and cuda.cuDeviceGet(ctypes.byref(device), 0) == 0\n"
        "make = getattr(cuda, 'cuCtxCreate_v2', None) or cuda.cuCtxCreate\n"
        "assert make(ctypes.byref(own), 0, device) == 0\n"
        "for _ in range(3):\n"
        "    assert fl.matmul(a, a, device='cuda')[0, 0] == 40\n"
        "    assert cuda.cuCtxGetCurrent(ctypes.byref(now)) == 0 and now.value == own.value\n"
    )


FIRST_USE = """
import threading, numpy as np, fastlinalg as fl
a = np.random.default_rng(0).standard_normal((150, 150), dtype=np.float32)
want, faults, barrier = a.astype(float) @ a, [], threading.Barrier(16)
def work(i):
    try:
        barrier.wait()
        got = fl.matmul(a, a, device=f"cuda:{i % DEVICES}")
        assert np.allclose(got, want, atol=1e-3)
        fl.cuda.memory_info(i % DEVICES)
    except BaseException as error:
        faults.append(error)
threads = [threading.Thread(target=work, args=(i,)) for i in range(16)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
assert not faults, faults
"""


@pytest.mark.gpu
def test_first_use_from_many_threads(python):
    python(FIRST_USE.replace("DEVICES", "1"))


# ---------------------------------------------------------------- two devices
@pytest.mark.gpu
@pytest.mark.gpu2
def test_first_use_of_two_devices_from_many_threads(python):
    python(FIRST_USE.replace("DEVICES", "2"))


@pytest.mark.gpu
@pytest.mark.gpu2
@pytest.mark.parametrize("precision", ["strict", "accurate"])
def test_devices_of_one_kind_give_the_same_bits(rng, precision):
    for m, n, k in ((33, 40, 50), (900, 800, 1000)):
        a, b = normal(rng, m, k), normal(rng, k, n)
        got = [fl.matmul(a, b, device=f"cuda:{i}", precision=precision) for i in (0, 1)]
        assert_product(got[1], a, b)
        if fl.devices()[0]["name"] == fl.devices()[1]["name"]:
            assert_same_bits(*got)


@pytest.mark.gpu
@pytest.mark.gpu2
def test_the_current_device_of_the_caller_stays(rng):
    runtime = in_a_new_thread(current_context)
    assert runtime == 0
    torch = pytest.importorskip("torch")
    for current in (0, 1):
        torch.cuda.set_device(current)
        torch.zeros(1, device="cuda")
        before = current_context()
        for device in (0, 1):
            for call in calls(device):
                call()
                assert torch.cuda.current_device() == current and current_context() == before
    torch.cuda.set_device(0)


@pytest.mark.gpu
@pytest.mark.gpu2
def test_memory_is_counted_and_limited_per_device(limit):
    before = [fl.cuda.memory_info(i)["used"] for i in (0, 1)]
    buffer = _core.DeviceBuffer(2**20, 1)
    assert [fl.cuda.memory_info(i)["used"] for i in (0, 1)] == [before[0], before[1] + 2**20]
    del buffer
    limit(2**20, 1)
    with pytest.raises(MemoryError, match="cuda:1"):
        _core.DeviceBuffer(2**22, 1)
    assert _core.DeviceBuffer(2**22, 0).nbytes == 2**22


@pytest.mark.gpu
@pytest.mark.gpu2
def test_two_devices_at_once(rng):
    a, b = normal(rng, 700, 600), normal(rng, 600, 650)
    want = fl.matmul(a, b, device="cuda:0", precision="strict")

    def work(device):
        for _ in range(10):
            got = fl.matmul(a, b, device=f"cuda:{device}", precision="strict")
            assert_product(got, a, b)
            if device == 0:
                assert_same_bits(got, want)

    in_threads(work, [i % 2 for i in range(6)])
