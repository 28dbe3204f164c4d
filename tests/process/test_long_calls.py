"""Long calls: who asks hears how far they are, and Ctrl-C ends them; the next call is right."""

from __future__ import annotations

import io
import sys
import threading

import numpy as np
import pytest

import fastlinalg as fl
from fastlinalg import _core
from support.accuracy import assert_product

F32 = np.float32
PLACES = [
    pytest.param("cpu", "reference", id="reference"),
    pytest.param("cpu", "portable_fused", id="packed"),
    pytest.param("cuda", None, id="gpu", marks=pytest.mark.gpu),
]


@pytest.fixture(autouse=True)
def told_at_every_block():
    _core.testing.set_watch_interval(0)
    yield
    _core.testing.set_watch_interval()


@pytest.fixture
def operands(rng):
    """Of blocks and panels enough, and more than 1e7 steps."""
    return rng.standard_normal((1300, 230), F32), rng.standard_normal((230, 170), F32)


def multiply(a, b, device, kernel, **options):
    return fl.sgemm(a, b, device=device, kernel=kernel, **options)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(("device", "kernel"), PLACES)
def test_the_fractions_of_a_call(device, kernel, threads, operands):
    a, b = operands
    told = []
    with fl.num_threads(threads), fl.progress(lambda done: told.append((done, threading.get_ident()))):
        assert_product(multiply(a, b, device, kernel), a, b)
        multiply(a[:2], b, device, kernel)  # short
    fractions = [done for done, _ in told]
    assert len(fractions) > 2 and fractions == sorted(fractions) and fractions[-1] == 1.0
    assert 0 <= fractions[0] < 1 and {thread for _, thread in told} == {threading.get_ident()}
    told.clear()
    multiply(a, b, device, kernel)
    assert told == []


def test_the_fractions_of_other_calls(rng, operands):
    """Symmetric products, triangles, plans, lists, tasks of the thread pool."""
    a, b = operands
    told = []
    square = a[:600]
    calls = {
        "symmetric": lambda: fl.sgemm(square, square.T, kernel="portable_fused"),
        "triangle": lambda: fl.ssyrk(square, uplo="L", kernel="portable_fused"),
        "plan": fl.Matmul(a, b, kernel="portable_fused").execute,
        "list": lambda: fl.grouped_matmul([a] * 3 + [a[:40]] * 9 + [a[:300]], [b] * 12 + [a[:300].T], device="cpu"),
        "batch": lambda: fl.sgemm(np.ones((900, 40, 30), F32), np.ones((900, 30, 20), F32), kernel="portable_small"),
    }
    with fl.progress(told.append), fl.num_threads(1):  # of several threads the others may have done it all
        for name, call in calls.items():
            told.clear()
            call()
            assert told[-1] == 1.0 and told == sorted(told), name
            assert max(told[:-1]) > 0.4, (name, told)


@pytest.mark.parametrize(("device", "kernel"), PLACES)
def test_what_the_callback_raises_ends_the_call(device, kernel, operands):
    a, b = operands
    out = np.full((a.shape[0], b.shape[1]), 7, F32)

    def stop(done):
        raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"), fl.progress(stop):
        multiply(a, b, device, kernel, out=out)
    assert (out[-1] == 7).all(), "the call went on"
    for _ in range(2):
        assert_product(multiply(a, b, device, kernel, out=out), a, b)


def test_progress_is_of_one_thread_and_of_the_block(operands, monkeypatch):
    outer, inner, others = [], [], []
    with fl.progress(outer.append):
        with fl.progress(inner.append):
            multiply(*operands, "cpu", "reference")
        assert inner[-1] == 1.0 and outer == []
        thread = threading.Thread(target=lambda: others.append(multiply(*operands, "cpu", "reference")))
        thread.start()
        thread.join()
        assert outer == [] and len(others) == 1
        multiply(*operands, "cpu", "reference")
    assert outer[-1] == 1.0
    a, b = operands
    with fl.progress(lambda done: outer.append(done) or multiply(a[:300], b, "cpu", "portable")):  # not of its own
        multiply(a[:600], b, "cpu", "reference")
    assert outer.count(1.0) == 2
    with pytest.raises(TypeError, match="callback must be callable, got 3"):
        fl.progress(3)
    monkeypatch.setattr(sys, "stderr", None)  # closed by who started the process
    with fl.progress():
        multiply(*operands, "cpu", "reference")


def test_the_line_on_a_terminal(operands, monkeypatch):
    class Terminal(io.StringIO):
        shown = 0

        def isatty(self):
            return True

        def flush(self):
            self.shown += 1

    monkeypatch.setattr(sys, "stderr", Terminal())
    with fl.progress():
        multiply(*operands, "cpu", "reference")
    written = sys.stderr.getvalue()
    assert "\r\033[Kfastlinalg: 50 %" in written and written.endswith("\r\033[K")
    assert sys.stderr.shown == written.count("\r")
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with fl.progress():
        multiply(*operands, "cpu", "reference")
    assert sys.stderr.getvalue() == ""


INTERRUPTED = """
import os, signal, sys, threading, time
import numpy as np, fastlinalg as fl
from fastlinalg import _core
device, kernel = sys.argv[1], sys.argv[2] or None
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background processes begin without
a, b = np.ones((6000, 1000), np.float32), np.ones((1000, 3000), np.float32)
out = np.full((6000, 3000), 7, np.float32)
if device != "cpu":  # where it may be too fast to be interrupted: a signal that is there already
    _core.testing.set_watch_interval(0)
product = fl.Matmul(a, b, out=out, device=device, kernel=kernel)
def interrupt():
    time.sleep(0.3)
    os.kill(os.getpid(), signal.SIGINT)
for call in (lambda: fl.sgemm(a, b, out=out, device=device, kernel=kernel), product.execute):
    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        while True:
            out[-1] = 7
            call()
    except KeyboardInterrupt:
        print("interrupted", end=" ")
    thread.join()
    assert device != "cpu" or (out[-1] == 7).all(), "the call has gone on to its end"
    small = fl.sgemm(a[:500], b[:, :500], device=device, kernel=kernel)
    assert (small == 1000).all()
# A handler that raises nothing ends nothing.
calls = []
signal.signal(signal.SIGINT, lambda *_: calls.append(1))
_core.testing.set_watch_interval(0)
threading.Timer(0.02, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
end = time.monotonic() + 20
while not calls and time.monotonic() < end:
    assert (fl.sgemm(a[:300], b[:, :300], device=device, kernel=kernel) == 1000).all()
print(len(calls))
"""


@pytest.mark.parametrize(("device", "kernel"), PLACES)
def test_ctrl_c_ends_a_call(device, kernel, python):
    """Of more than ten seconds on a CPU; plans too."""
    assert python(INTERRUPTED, device, kernel or "") == "interrupted interrupted 1\n"
