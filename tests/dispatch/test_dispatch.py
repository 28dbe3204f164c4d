"""Which row answers a call: what dispatch remembers is what the rules say."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import fastlinalg as fl
from fastlinalg import _core
from support.operands import normal

F32 = np.float32


def operands_of_many_kinds(rng):
    for m, n, k in ((1, 1, 1), (4, 5, 6), (33, 1, 40), (1, 33, 40), (64, 64, 64), (200, 10, 300), (300, 280, 260)):
        for order in "CF":
            for offset in (0, 1, 4):
                flat = normal(rng, m * k + offset)[offset:]
                yield flat.reshape(m, k, order=order), np.array(normal(rng, k, n), order=order)


def test_tensor_cores_of_every_gpu_are_taken_where_they_pay():
    assert [cc for cc in (75, 80, 86, 87, 89, 90, 100, 103, 110, 120, 121) if _core.tensor_cores_pay(cc)] == [
        80,
        100,
        103,
    ]


@pytest.mark.gpu
def test_a_row_that_does_not_pay_runs_by_name_alone(rng, caplog):
    if fl.devices()[0]["compute_capability"] != "9.0":
        pytest.skip("other devices may take it")
    a, b = normal(rng, 300, 280), normal(rng, 280, 260)
    with caplog.at_level("DEBUG", logger="fastlinalg"):
        got = fl.matmul(a, b, device="cuda")
    assert "fp16x2_mma: not known to gain anything on this device" in caplog.text
    named = fl.sgemm(a, b, kernel="fp16x2_mma", device="cuda")
    np.testing.assert_allclose(named, got, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_remembered_choices_are_those_of_the_rules(rng, device):
    """A thread remembers its last choices; a new thread has none to remember."""

    def chosen(a, b, **keywords):
        with fl.Matmul(a, b, device=device, **keywords) as plan:
            plan.plan()
            return plan.kernel

    def in_a_new_thread(*args, **keywords):
        answer = []
        thread = threading.Thread(target=lambda: answer.append(chosen(*args, **keywords)))
        thread.start()
        thread.join()
        return answer[0]

    kinds = list(operands_of_many_kinds(rng))
    variants = [{}, {"precision": "strict"}, {"c": None, "alpha": 0.0}]
    want = []
    for threads in (1, 2):
        with fl.num_threads(threads):
            want += [(threads, a, b, v, in_a_new_thread(a, b, **v)) for a, b in kinds for v in variants]
    assert len({name for *_, name in want}) > 2, "the operands take several kernels"
    for i in [*rng.permutation(len(want)), 0, 0, 1, 0, 1, 1]:
        threads, a, b, keywords, name = want[i]
        with fl.num_threads(threads):
            assert chosen(a, b, **keywords) == name, f"{a.shape} @ {b.shape}, {keywords}, {threads} threads"
