"""What a call leaves behind in its process: floating point state, threads, memory. Processes: test_processes.py."""

from __future__ import annotations

import contextlib
import ctypes
import platform
import signal
import sys
import threading

import numpy as np
import pytest

import fastlinalg as fl
from support.accuracy import assert_product, assert_same_bits
from support.operands import normal
from support.programs import resident
from support.threads import in_threads

F32 = np.float32
FE_INVALID, FE_DIVBYZERO, FE_OVERFLOW = 0x01, 0x04, 0x08  # of x86-64
x86_only = pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="reads the registers of x86-64")


def every_cpu_kernel():
    for op in ("sgemm", "sgemv", "transpose"):
        for row in fl.kernels(op):
            if row.device == "cpu" and row.available:
                yield op, row.name


def call_everything(rng):
    """A call of every CPU kernel at sizes with all kinds of edges, on finite data."""
    for op, name in every_cpu_kernel():
        for m, n, k in ((1, 1, 1), (5, 6, 7), (33, 34, 35), (70, 130, 65)):
            a, b = normal(rng, m, k), normal(rng, k, n)
            operands = {"sgemm": (a, b), "sgemv": (a, b[:, 0].copy()), "transpose": (a,)}[op]
            getattr(fl, op)(*operands, kernel=name)
    fl.matmul(normal(rng, 300, 200), normal(rng, 200, 250))


# ---------------------------------------------------------------- floating point state
@x86_only
def test_no_floating_point_exception_is_raised(rng):
    """Rows and columns of padding must not divide, overflow or make NaN: the flags stay clear."""
    libm = ctypes.CDLL(None)
    with np.errstate(all="raise"):
        libm.feclearexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW)
        call_everything(rng)
        assert libm.fetestexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW) == 0
    inf = np.full((3, 3), np.inf, F32)
    fl.matmul(inf, np.zeros((3, 3), F32))
    assert libm.fetestexcept(FE_INVALID), "the flag can be seen at all"
    libm.feclearexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW)


def control_bits():
    """MXCSR without its sticky flags, and the x87 control word, out of the 32 bytes of fegetenv."""
    environment = (ctypes.c_uint8 * 32)()
    assert ctypes.CDLL(None).fegetenv(environment) == 0
    raw = bytes(environment)
    return int.from_bytes(raw[28:32], "little") & ~0x3F, raw[:2]


@x86_only
def test_rounding_and_flush_modes_are_unchanged(rng):
    before = control_bits()
    call_everything(rng)
    assert control_bits() == before
    tiny = F32(2.0**-140)
    assert tiny * F32(0.5) == F32(2.0**-141), "subnormal arithmetic of the caller still works"


@x86_only
def test_a_caller_who_flushes_subnormals_keeps_that_mode(rng):
    libm = ctypes.CDLL(None)
    saved = (ctypes.c_uint8 * 32)()
    libm.fegetenv(saved)
    flushing = (ctypes.c_uint8 * 32).from_buffer_copy(saved)
    flushing[29] |= 0x80  # FZ is bit 15 of MXCSR
    a = normal(rng, 40, 40)
    try:
        libm.fesetenv(flushing)
        mode = control_bits()
        got = fl.matmul(a, a)
        after = control_bits()
    finally:
        libm.fesetenv(saved)
    assert after == mode and mode[0] & 0x8000
    assert_product(got, a, a)


@x86_only
def test_import_does_not_touch_the_floating_point_mode(python):
    python(
        "import ctypes, numpy\n"
        "def mode():\n"
        "    e = (ctypes.c_uint8 * 32)(); ctypes.CDLL(None).fegetenv(e)\n"
        "    return int.from_bytes(bytes(e)[28:32], 'little') & ~0x3F\n"
        "before = mode()\n"
        "import fastlinalg as fl\n"
        "a = numpy.ones((200, 200), 'f4'); fl.matmul(a, a)\n"
        "assert mode() == before"
    )


# ---------------------------------------------------------------- threads of the caller
def mixed_calls(rng):
    """Calls of all functions, layouts and several sizes, so that threads meet in different kernels."""
    calls = []
    for m, n, k in ((3, 4, 5), (33, 65, 17), (128, 96, 64), (200, 150, 100)):
        a, b, c = normal(rng, m, k), normal(rng, k, n), normal(rng, m, n)
        calls += [
            lambda a=a, b=b: fl.matmul(a, b),
            lambda a=a, b=b, c=c: fl.sgemm(a.T.copy(), b, c, alpha=0.5, beta=2.0, trans_a=True),
            lambda a=a, b=b: fl.sgemm(a, np.asfortranarray(b)),
            lambda a=a, b=b: fl.sgemv(a, b[:, 0]),
            lambda a=a, b=b: fl.sgemv(b, b[:, 1], trans=True),
            lambda a=a: fl.transpose(a),
        ]
    calls += [lambda name=name: fl.sgemm(a, b, kernel=name) for op, name in every_cpu_kernel() if op == "sgemm"]
    return calls


def test_eight_threads_get_the_bits_of_one(rng):
    calls = mixed_calls(rng)
    serial = [call() for call in calls]
    barrier = threading.Barrier(8)

    def work(start):
        barrier.wait()
        for turn in range(4):
            for i in range(len(calls)):
                i = (i + start * 3 + turn) % len(calls)
                assert_same_bits(calls[i](), serial[i], f"call {i} of thread {start}")

    in_threads(work, range(8))


def test_short_lived_threads_with_small_stacks(rng):
    a = normal(rng, 120, 120)
    want, got = fl.matmul(a, a), []
    before = threading.stack_size(128 * 1024)
    try:
        for _ in range(50):
            thread = threading.Thread(target=lambda: got.append(fl.matmul(a, a)))
            thread.start()
            thread.join(60)
    finally:
        threading.stack_size(before)
    assert len(got) == 50
    for answer in got:
        assert_same_bits(answer, want)


def test_memory_does_not_grow(rng):
    if not sys.platform.startswith("linux"):
        pytest.skip("reads /proc")
    operands = [normal(rng, n, n) for n in (1, 2, 5, 16, 33, 64, 100)]
    out = np.empty((100, 100), F32)

    def churn(rounds):
        for i in range(rounds):
            a = operands[i % len(operands)]
            fl.matmul(a, a, out=out[: len(a), : len(a)])
            fl.transpose(a)
            with contextlib.suppress(ValueError):
                fl.matmul(a, a, out=out[:1, :3])

    churn(2000)
    before = resident()
    churn(20000)
    assert resident() - before < 8 * 2**20


def test_a_signal_between_calls_leaves_everything_usable(rng):
    a = normal(rng, 150, 150)
    want = fl.matmul(a, a)

    class Alarm(Exception):
        pass

    def ring(*_):
        raise Alarm

    old = signal.signal(signal.SIGALRM, ring)
    try:
        for _ in range(5):
            signal.setitimer(signal.ITIMER_REAL, 0.005)
            with pytest.raises(Alarm):
                while True:
                    fl.matmul(a, a)
            assert_same_bits(fl.matmul(a, a), want)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
