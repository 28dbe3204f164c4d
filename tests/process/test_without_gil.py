"""What the module keeps for later calls, used by threads that no lock of Python's keeps apart: a free-threaded Python
has none, and another lets them change places at any moment."""

from __future__ import annotations

import sys
import sysconfig

import numpy as np
import pytest

import fastlinalg as fl
from fastlinalg import _core
from support.threads import in_threads

THREADS = range(6)
FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))


@pytest.fixture(autouse=True)
def turns_at_any_moment():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.skipif(not FREE_THREADED, reason="this Python has the lock")
def test_the_module_does_not_bring_the_lock_back(python):
    assert python("import sys, fastlinalg; print(sys._is_gil_enabled())") == "False\n"


def exporter(x):
    """An array of a type of its own."""
    members = {"__dlpack__": lambda _, **keywords: x.__dlpack__(), "__dlpack_device__": lambda _: x.__dlpack_device__()}
    return type("Exporter", (), members)()


def test_types_that_nobody_has_seen(rng):
    x = rng.standard_normal((30, 40), np.float32)
    want = fl.matmul(x, x.T)

    def work(_):
        for _ in range(100):  # more than are kept
            np.testing.assert_array_equal(fl.matmul(exporter(x), x.T), want)
            with pytest.raises(TypeError, match="must be a float32 array"):
                fl.matmul(type("Nothing", (), {})(), x)

    in_threads(work, THREADS)


def test_one_plan(rng):
    x = rng.standard_normal((30, 40), np.float32)
    want, texts = fl.matmul(x, x.T), set()

    with fl.Matmul(x, x.T) as plan:
        shown = repr(plan).partition(",")[0]

        def work(thread):
            for _ in range(100):
                if thread == 0:
                    plan.reset_operands(a=x.copy())
                elif thread == 1:
                    texts.add(repr(plan).partition(",")[0])
                else:
                    np.testing.assert_array_equal(plan.execute(), want)

        in_threads(work, THREADS)
    assert texts == {shown}


def test_ranges_of_weights():
    weights = _core.Weights(1 << 20)

    def work(thread):
        for turn in range(200):
            weights.watch([(at * 100, at * 100 + 50, at) for at in range(thread + turn % 20)])
            assert weights.nbytes == 0

    in_threads(work, THREADS)
