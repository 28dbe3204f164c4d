"""Memory on the device and pinned memory: nothing is lost, limits hold, running out of it ends no process."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import fastlinalg as fl
from fastlinalg import _core
from support.accuracy import assert_product, assert_same_bits
from support.device import Strided, on_device
from support.operands import normal
from support.programs import resident
from support.threads import in_threads

pytestmark = pytest.mark.gpu

F32 = np.float32
MIB = 2**20


# ---------------------------------------------------------------- nothing is lost
def device_calls(rng):
    """Asynchronous calls of all operations, with a workspace and without, on operands in device memory."""
    values = normal(rng, 64, 64)
    a, b, c = (_core.DeviceBuffer(values.nbytes) for _ in range(3))
    a.upload(values)
    b.upload(values)

    def at(buffer, *shape):
        return Strided(buffer.ptr, shape, (64, 1)[-len(shape) :])

    def sgemm(n, precision, kernel=None):
        fl.sgemm(at(a, n, n), at(b, n, n), out=at(c, n, n), kernel=kernel, precision=precision)

    yield lambda: sgemm(32, "strict")
    yield lambda: sgemm(64, "accurate", "fp16x2")
    yield lambda: fl.sgemv(at(a, 64, 64), at(b, 64), out=at(c, 64))
    yield lambda: fl.transpose(at(a, 64, 64), at(c, 64, 64))


def host_calls(rng):
    a, b, c = normal(rng, 48, 40), normal(rng, 40, 56), normal(rng, 48, 56)
    plan = fl.Matmul(a, b, c, beta=1.0, device="cuda")
    yield lambda: fl.matmul(a, b, device="cuda")
    yield lambda: fl.sgemm(a, b, c, beta=2.0, out=c, device="cuda")
    yield lambda: fl.sgemm(np.asfortranarray(a)[::2], b, precision="strict", device="cuda")
    yield lambda: fl.sgemv(a, b[:, 0], device="cuda")
    yield lambda: fl.transpose(a, device="cuda")
    yield plan.execute
    yield lambda: plan.reset_operands(a, b, c)
    yield lambda: fl.Matmul(a, b, device="cuda").plan()


@pytest.mark.parametrize(("calls", "times"), [(device_calls, 25_000), (host_calls, 2_500)])
def test_nothing_is_lost_in_many_calls(rng, calls, times):
    """With the two parameters, 10^5 calls in device memory and 2 * 10^4 that also stage."""
    for call in calls(rng):
        for _ in range(200):
            call()
        fl.cuda.memory_info()
        gc.collect()
        before, host = fl.cuda.memory_info(), resident()
        for _ in range(times):
            call()
        gc.collect()
        after = fl.cuda.memory_info()
        assert after["used"] == before["used"]
        assert after["pinned"] <= before["pinned"]
        assert after["reserved"] <= before["reserved"] + 4 * MIB
        assert resident() - host < 8 * MIB, f"{(resident() - host) / times:.1f} bytes of host memory a call"


def test_pinned_memory_is_bounded_while_four_threads_call(rng):
    a = normal(rng, 1500, 1400)
    fl.cuda.trim()
    want = fl.matmul(a.T, a, device="cuda", precision="strict")
    one_call = fl.cuda.memory_info()["pinned"]
    most = [one_call]

    def work(_):
        for _ in range(6):
            assert_same_bits(fl.matmul(a.T, a, device="cuda", precision="strict"), want)
            most.append(fl.cuda.memory_info()["pinned"])

    for _ in range(2):
        in_threads(work, range(4))
    assert max(most) <= 4 * one_call
    fl.cuda.trim()
    assert fl.cuda.memory_info()["pinned"] == 0


def test_trim_waits_for_what_is_freed(rng):
    x = fl.DeviceArray.from_numpy(normal(rng, 100, 100))
    fl.cuda.trim()
    before = fl.cuda.memory_info()["reserved"]
    for _ in range(20):
        fl.matmul(x, x)
        fl.cuda.trim()
        assert fl.cuda.memory_info()["reserved"] <= before


def test_trim_gives_everything_back(rng):
    a = normal(rng, 800, 800)
    fl.matmul(a, a, device="cuda")
    assert fl.cuda.memory_info()["reserved"] > 0
    fl.cuda.trim()
    info = fl.cuda.memory_info()
    assert (info["used"], info["pinned"]) == (0, 0) and info["reserved"] <= 2 * MIB
    assert_product(fl.matmul(a, a, device="cuda"), a, a)


OUT_OF_ROOM = """
import resource
import numpy as np, fastlinalg as fl
fl.set_num_threads(1)
operand, other = np.ones((1024, 6144), np.float32), np.ones((2048, 2048), np.float32)
result = fl.transpose(other, device="cuda")
pinned = fl.cuda.memory_info()["pinned"]
assert pinned >= 24 << 20, pinned
with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (8 << 20), resource.RLIM_INFINITY))
assert (fl.transpose(operand, device="cpu") == 1).all()
assert fl.cuda.memory_info()["pinned"] < pinned
"""


def test_pinned_memory_gives_way_where_host_memory_runs_out(python):
    python(OUT_OF_ROOM)


# ---------------------------------------------------------------- limits
def test_the_limit_is_named_and_the_next_call_works(rng, limit):
    limit(8 * MIB)
    assert fl.cuda.memory_info()["limit"] == 8 * MIB
    with pytest.raises(MemoryError, match=rf"limit of cuda:0.*{16 * MIB} bytes.*8\.0 MiB"):
        _core.DeviceBuffer(16 * MIB)
    a = normal(rng, 200, 200)
    assert_product(fl.matmul(a, a, device="cuda"), a, a)
    limit(0)
    assert _core.DeviceBuffer(16 * MIB).nbytes == 16 * MIB


def test_out_of_memory_has_sizes_and_the_next_call_works(rng):
    total = fl.cuda.memory_info()["total"]
    for nbytes in (2 * total, total - MIB):
        with pytest.raises(MemoryError, match=rf"cuda:0 is out of memory: {nbytes} bytes .* asked for.*free"):
            _core.DeviceBuffer(nbytes)
    a = normal(rng, 200, 200)
    assert_product(fl.matmul(a, a, device="cuda"), a, a)


def test_memory_that_the_pool_holds_is_given_back_for_another_allocation():
    """Allocations of this process that the pool does not serve compete with what it keeps."""
    fl.cuda.trim()
    free = fl.cuda.memory_info()["free"]
    if free < 2 * 2**30:
        pytest.skip("needs 2 GiB of free device memory")
    first = _core.DeviceBuffer(int(0.6 * free))
    del first
    second = [_core.DeviceBuffer(int(0.3 * free)) for _ in range(3)]
    del second
    fl.cuda.trim()


def test_accurate_does_without_a_workspace_that_does_not_fit(rng, limit):
    n = 2048
    a, b = normal(rng, n, n), normal(rng, n, n)
    limit(3 * 4 * n * n + 8 * MIB)  # the operands, and half of what two fp16 terms of one of them take
    x, y = on_device(a, b)

    def product(**keywords):
        return fl.sgemm(x, y, **keywords).numpy()

    want = product(precision="strict")
    assert_same_bits(product(), want)
    with pytest.raises(MemoryError, match="limit of cuda:0"):
        product(kernel="fp16x2")
    limit(0)
    assert not np.array_equal(product(), want), "this size takes a kernel with a workspace"


# ---------------------------------------------------------------- results of lists
def test_small_tensors_of_a_list_keep_what_they_share():
    torch = pytest.importorskip("torch")
    a, b = ([torch.ones(shape, device="cuda") for _ in range(9)] for shape in ((40, 30), (30, 50)))
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    kept = fl.grouped_matmul(a, b)[4]
    assert torch.cuda.memory_allocated() - before == 9 * 8192  # each begins at a multiple of 512 bytes
    assert kept.is_contiguous() and kept.untyped_storage().nbytes() == 40 * 50 * 4
    torch.zeros((9, 40, 50), device="cuda")
    assert (kept == 30).all()
    del kept
    assert torch.cuda.memory_allocated() == before


# ---------------------------------------------------------------- errors of others
TORCH_ASSERT = """
import time, numpy as np, torch, fastlinalg as fl
a = np.ones((64, 64), np.float32)
assert fl.matmul(a, a, device="cuda")[0, 0] == 64
x, i = torch.zeros(4, device="cuda"), torch.tensor([1000], device="cuda")
{provoke}
reports, until = 0, time.monotonic() + 20  # the kernel that fails runs beside ours, and may end after the first of them
while reports < 2 and time.monotonic() < until:
    try:
        fl.matmul(a, a, device="cuda")
        assert not reports, "the error was swallowed"
    except fl.CudaError as error:
        reports += 1
        assert error.name == "cudaErrorAssert" and error.code == 710, error
        assert "device-side assert" in str(error) and "has to be restarted" in str(error), error
assert reports == 2, "the error was swallowed"
assert fl.matmul(a, a, device="cpu")[0, 0] == 64
import os; os._exit(7)
"""


@pytest.mark.parametrize("provoke", ["x[i]", "try: x[i]; torch.cuda.synchronize()\nexcept RuntimeError: pass"])
def test_an_error_of_another_library_is_reported(python, provoke):
    pytest.importorskip("torch")
    python(TORCH_ASSERT.format(provoke=provoke), status=7)
