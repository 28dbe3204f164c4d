"""Calls on several devices: the bits of one device, errors that say what is wanted, and nothing left behind by them."""

from __future__ import annotations

import logging
import os
import threading

import numpy as np
import pytest

import fastlinalg as fl
from support.accuracy import assert_product, assert_same_bits
from support.layouts import MATRIX_LAYOUTS, matrix_input, result
from support.operands import normal_of as normal
from support.threads import in_threads

pytestmark = [pytest.mark.gpu, pytest.mark.gpu2]
BOTH = ["cuda:0", "cuda:1"]
SIZES = (
    (40, 30, 20), (900, 800, 700), (513, 2050, 700), (800, 1540, 70), (6000, 130, 70), (130, 6000, 70), (64, 65, 30_001)
)  # fmt: skip
MiB = 2**20


@pytest.mark.parametrize("precision", ("strict", "accurate"))
@pytest.mark.parametrize("m, n, k", SIZES)
def test_the_bits_of_one_device(m, n, k, precision):
    a, b, c = normal(m, k), normal(k, n, seed=1), normal(m, n, seed=2)
    if precision == "accurate":
        a[m // 2 :, 3] *= np.float32(2.0**40)  # kernels that answer in another way for some blocks
    for alpha, beta in ((1.0, 0.0), (-0.5, 2.0)):
        options = {"alpha": alpha, "beta": beta, "precision": precision}
        added = c if beta else None
        want = fl.sgemm(a, b, added, device="cuda:0", **options)
        assert_product(want, a, b, c, alpha, beta)
        for device in ("cuda:all", BOTH, ("cuda:1", "cuda")):
            assert_same_bits(fl.sgemm(a, b, added, device=device, **options), want, f"{device} {options}")
        out = c.copy()
        assert fl.sgemm(a, b, out if beta else None, out=out, device=BOTH, **options) is out
        assert_same_bits(out, want, f"out {options}")


def test_all_are_taken_where_one_is_expected_to_be_slower():
    """A list is what was asked for, "cuda:all" a choice."""
    every = ",".join(f"cuda:{i}" for i in range(len(fl.devices())))
    for n, taken in ((1536, "cuda:0"), (8192, every)):
        assert fl.explain((n, n), (n, n), device="cuda:all").device == taken
        assert fl.explain((n, n), (n, n), device=BOTH).device == "cuda:0,cuda:1"


@pytest.mark.parametrize("layout", MATRIX_LAYOUTS)
def test_layouts(layout):
    """Views, F order and backwards: the same bits, and nothing written beside the result."""
    m, n, k = 515, 900, 610
    a, b, c = matrix_input(normal(m, k), layout), matrix_input(normal(k, n, seed=1), layout), normal(m, n, seed=2)
    want, out = (result((m, n), layout, c) for _ in range(2))
    for each, device in ((want, "cuda:0"), (out, BOTH)):
        fl.sgemm(a, b, each.array, beta=-1.0, out=each.array, device=device)
    assert_same_bits(out.array, want.array, layout)
    out.assert_intact(layout)


def test_a_matrix_times_its_own_transpose():
    """Devices that share it out compute all of it."""
    a = normal(2050, 70)
    assert_product(fl.matmul(a, a.T, device=BOTH), a, a.T)


def test_batches_and_vectors():
    one, many = normal(90, 170), normal(60, 130, 90, seed=1)
    large = normal(3, 1500, 1400), normal(3, 1400, 1600, seed=1)
    for a, b in ((many, one), (many, normal(60, 90, 170)), large, (many[:, ::2, ::3], one[::3, ::-1])):
        got = fl.matmul(a, b, device=BOTH)
        assert_product(got, a, b)
        assert_same_bits(got, fl.matmul(a, b, device="cuda:0"), f"{a.shape} {b.shape}")
    a, x = normal(1500, 2000), normal(2000, seed=1)
    assert_same_bits(fl.matmul(a, x, device=BOTH), fl.matmul(a, x, device="cuda:0"), "a vector")


def test_operands_of_other_types():
    a, b = normal(900, 800).astype(np.float64), np.arange(800 * 700, dtype=np.int16).reshape(800, 700)
    options = {"dtype": np.float32, "precision": "strict"}
    assert_same_bits(fl.matmul(a, b, device=BOTH, **options), fl.matmul(a, b, device="cuda:0", **options), "converted")


def test_out_and_fresh_results_again_and_again():
    a, b = normal(1200, 1100), normal(1100, 1300, seed=1)
    want, out = fl.matmul(a, b, device="cuda:0"), np.full((1200, 1300), np.nan, np.float32)
    for _ in range(5):
        assert_same_bits(fl.matmul(a, b, device="cuda:all"), want, "fresh")
        assert fl.matmul(a, b, out, device="cuda:all") is out
        assert_same_bits(out, want, "out")
        out.fill(np.nan)
    assert all(fl.cuda.memory_info(i)["used"] == 0 for i in (0, 1))


def test_plans():
    a, b = normal(1200, 1100), normal(1100, 1300, seed=1)
    want = fl.matmul(a, b, device="cuda:0")
    with fl.Matmul(a, b, device=BOTH) as product:
        for _ in range(2):
            assert_same_bits(product.execute(), want, "a plan")
        assert product.device == "cuda:0,cuda:1" and product.kernel
        with pytest.raises(ValueError, match=r"device='cuda:0,cuda:1' is for operands in host memory and no stream"):
            product.execute(stream=2)
        b *= 2
        assert_same_bits(product.execute(), 2 * want, "other values")


@pytest.mark.parametrize("memory", [6 * MiB, 16 * MiB])
def test_more_than_the_memory_of_all(memory, limit):
    """The tiles that one device would compute, under the same limit."""
    m, n, k = 1301, 1203, 2005
    a, b, c = normal(m, k), normal(k, n, seed=1), normal(m, n, seed=2)
    for device in (0, 1):
        limit(memory, device)
    for precision in ("strict", "accurate"):
        for alpha, beta in ((1.0, 0.0), (-1.0, 0.25)):
            options = {"alpha": alpha, "beta": beta, "precision": precision}
            added = c if beta else None
            want = fl.sgemm(a, b, added, device="cuda:1", **options)
            assert_product(want, a, b, c, alpha, beta)
            assert_same_bits(fl.sgemm(a, b, added, device="cuda:all", **options), want, str(options))
    batch = normal(30, 300, 200), normal(200, 310)
    assert_same_bits(fl.matmul(*batch, device="cuda:all"), fl.matmul(*batch, device="cuda:0"), "a batch")


def test_the_least_memory_counts(caplog, limit):
    a, b = normal(1411, 1301), normal(1301, 1207, seed=1)
    caplog.set_level(logging.DEBUG, "fastlinalg")
    limit(6 * MiB, 1)
    got = fl.matmul(a, b, device=BOTH)
    assert_product(got, a, b)
    (line,) = [r.getMessage() for r in caplog.records if " parts " in r.getMessage()]
    assert "cuda:0,cuda:1 in" in line
    limit(1 << 9, 1)
    out = np.full_like(got, 7)
    with pytest.raises(MemoryError, match="cuda:0,cuda:1 cannot hold even a small part"):
        fl.matmul(a, b, out, device=BOTH)
    assert (out == 7).all()
    limit(0, 1)
    assert_product(fl.matmul(a, b, device=BOTH), a, b)


def test_callers_on_one_and_on_all_devices_at_once():
    """Each call waits for the pinned memory of its devices, and none for ever."""
    a, b = normal(1200, 1100), normal(1100, 1300, seed=1)
    want = fl.matmul(a, b, device="cuda:0")

    def caller(device):
        for _ in range(4):
            assert_same_bits(fl.matmul(a, b, device=device), want, str(device))

    in_threads(caller, ["cuda:0", "cuda:1", "cuda:all", BOTH, "cuda:all", "cuda:1"])


def test_a_call_in_the_midst_of_others_on_another_device_has_smaller_rings():
    """Those of all devices share the processor's cache."""
    a, small, pinned = np.ones((4096, 4096), np.float32), normal(1200, 1100), {}
    called = threading.Event()

    def pins(name):
        fl.cuda.trim(0)
        fl.transpose(a, device="cuda:0")
        pinned[name] = fl.cuda.memory_info(0)["pinned"]

    def caller(number):
        if number == 0:
            called.wait(100)
            pins("beside others")
        while "beside others" not in pinned:
            fl.transpose(small, device="cuda:1")
            called.set()

    pins("alone")
    in_threads(caller, range(4))
    assert pinned == {"alone": 96 * MiB, "beside others": 64 * MiB}


def test_bad_devices(monkeypatch):
    a, last = normal(4, 4), len(fl.devices())
    wrong = {
        "an empty list": ([], ["got an empty list", "['cuda:0', 'cuda:2']"]),
        "the CPU among them": (["cpu", "cuda:0"], ["'cpu'", "of CUDA devices"]),
        "auto among them": (["cuda:0", "auto"], ["'auto'", "of CUDA devices"]),
        "all among them": (["cuda:0", "cuda:all"], ["'cuda:all'"]),
        "the same twice": (["cuda:1", "cuda:0", "cuda:1"], ["cuda:1 is there twice"]),
        "the same by two names": (["cuda", "cuda:0"], ["cuda:0 is there twice"]),
        "no device": (["cuda:0", "tpu:1"], ["'tpu:1'", "device must be"]),
        "no number": ("cuda:0,cuda:", ["'cuda:'"]),
        "a large number": (["cuda:0", "cuda:64"], ["goes to cuda:63"]),
    }
    for name, (device, words) in wrong.items():
        with pytest.raises(ValueError) as caught:
            fl.matmul(a, a, device=device)
        for word in words:
            assert word in str(caught.value), (name, str(caught.value))
    with pytest.raises(TypeError, match=r"device must be .*, got 1"):
        fl.matmul(a, a, device=["cuda:0", 1])
    with pytest.raises(fl.CudaError, match=f"no device cuda:{last}"):
        fl.matmul(a, a, device=["cuda:0", f"cuda:{last}"])
    with pytest.raises(ValueError, match=r"a stream is on one device"):
        fl.matmul(a, a, device=BOTH, stream=2)
    for call in (lambda x: fl.matmul(x, x, device=BOTH), lambda x: fl.Matmul(x, x, device="cuda:all")):
        with pytest.raises(ValueError, match="in the memory of cuda:0"):
            call(fl.DeviceArray.from_numpy(a))


def test_explain():
    n = 3000
    one, both = fl.explain((n, n), (n, n), device="cuda:0"), fl.explain((n, n), (n, n), device=BOTH)
    assert both.device == "cuda:0,cuda:1" and both.kernel == one.kernel and both.estimated_us < one.estimated_us
    assert "on cuda:0,cuda:1, because device=['cuda:0', 'cuda:1'] says so" in str(both)


def test_the_environment_can_ask_for_all(python):
    program = """
import logging, numpy as np, fastlinalg as fl
lines = []
class Keep(logging.Handler):
    def emit(self, record): lines.append(record.getMessage())
logging.getLogger("fastlinalg").addHandler(Keep())
logging.getLogger("fastlinalg").setLevel(logging.DEBUG)
fl.matmul(np.ones((4500, 64), np.float32), np.ones((64, 4500), np.float32))
print(lines[0])
"""
    devices = {name: value for name, value in os.environ.items() if name.startswith("FASTLINALG_SIMULATED_")}
    for asked in ("cuda:0,cuda:1", "cuda:all"):
        assert "cuda:0,cuda:1" in python(program, FASTLINALG_DEVICE=asked, **devices)
    assert "cuda:0,cuda:1" not in python(program, **devices)
