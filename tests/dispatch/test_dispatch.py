"""Which row answers a call: what dispatch remembers is what the rules say."""

from __future__ import annotations

import numpy as np
import pytest

import fastlinalg as fl
from fastlinalg import _core
from support.chips import CHIPS, H200, chip
from support.operands import normal
from support.threads import in_threads

F32 = np.float32
has_avx512 = any(row.available and row.name == "avx512_14x32" for row in fl.kernels("sgemm"))
has_few_rows = any(row.available and row.name in ("avx2_rows", "avx512_rows") for row in fl.kernels("sgemm"))


def operands_of_many_kinds(rng):
    for m, n, k in ((1, 1, 1), (4, 5, 6), (33, 1, 40), (1, 33, 40), (64, 64, 64), (200, 10, 300), (300, 280, 260)):
        for order in "CF":
            for offset in (0, 1, 4):
                flat = normal(rng, m * k + offset)[offset:]
                yield flat.reshape(m, k, order=order), np.array(normal(rng, k, n), order=order)


@pytest.mark.parametrize("name", CHIPS)
def test_tensor_cores_are_taken_where_they_pay(name):
    why = _core.testing.passed_over("sgemm", "fp16x2_mma", chip(name))
    assert why == ("" if CHIPS[name][-1] else "not known to gain anything on this device")
    assert not any(_core.testing.passed_over("sgemm", kernel, chip(name)) for kernel in ("naive", "strict_64x128k4"))


def test_hopper_has_kernels_of_its_own():
    hopper = {**chip("NVIDIA A100-SXM4-80GB"), "name": "NVIDIA H100", "compute_capability": "9.0"}
    assert _core.testing.passed_over("sgemm", "fp16x2_mma", hopper) and not _core.testing.passed_over(
        "sgemm", "fp16x2", hopper
    )


def test_geforce_cards_have_half_the_tensor_rate():
    """Only the name tells them from professional cards of their capability; one that says nothing counts as GeForce."""
    shape = (4096, 4096, 4096, 1, False, False, (0, 0, 0), (0, 0, 0), "accurate")

    def us(like, name):
        return _core.testing.CostCalls("sgemm", [shape], {**chip(like), "name": name}).estimate_us("fp16x2_mma")[0]

    for whole, half in (
        ("NVIDIA A40", "NVIDIA GeForce RTX 3080"),
        ("NVIDIA RTX A6000", "NVIDIA A10G"),
        ("Tesla T4", "x"),
    ):
        assert us("NVIDIA A10", half) > 1.5 * us("NVIDIA A10", whole)
    assert us("NVIDIA B200", "x") == us("NVIDIA B200", "NVIDIA B200")  # no GeForce card has that capability


@pytest.mark.parametrize("capability", [75, 80, 86, 87, 88, 89, 90, 100, 103, 107, 110, 120, 121, 130])
def test_what_nobody_has_run_on_a_chip_is_not_chosen(capability):
    text = f"{capability // 10}.{capability % 10}"
    device = {**H200, "compute_capability": text, "hardware_capability": text}
    strict = [row for row in fl.kernels("sgemm", device="cuda") if row.strict]
    reasons = {row.needs: _core.testing.passed_over("sgemm", row.name, device) for row in strict}
    assert reasons["cuda"] == reasons["sm_80"] == ""
    why = reasons["sm_90"]
    assert bool(why) == (capability != 90)
    assert not why or ("not measured on this chip" in why and "fastlinalg tune" in why)


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


@pytest.mark.skipif(not has_few_rows, reason="no kernel for few rows on this processor")
@pytest.mark.parametrize(
    ("a", "b", "kind"),
    [
        ((7513, 6), (6, 494), "packed" if has_avx512 else "small"),  # each sum is soon at its end
        ((4, 4), (4, 4096), "small"),
        ((5, 1414), (1414, 4), "small"),  # columns of B contiguous, and too few for a vector
        ((20000, 4), (4, 4), "rows"),
        ((4096, 1024), (1024, 4), "rows"),
        ((8, 5000), (5000, 5000), "packed"),  # an operand beyond the caches
    ],
)
def test_thin_products_on_the_cpu(a, b, kind):
    kernel = fl.explain(a, b, precision="strict", device="cpu").kernel
    assert kernel.endswith(kind) or (kind == "packed" and not kernel.endswith(("small", "rows"))), kernel


@pytest.mark.skipif(not has_avx512, reason="no AVX-512 on this processor")
@pytest.mark.parametrize("precision", ["strict", "reproducible"])
def test_products_take_the_widest_vectors(rng, precision):
    """Few rows along k are where the costs of one CPU choose AVX2 on another."""
    answer = fl.explain(normal(rng, 2060, 31).T, normal(rng, 2060, 4), precision=precision, device="cpu")
    assert answer.kernel.startswith("avx512")
    assert answer.others["avx2_small"] == answer.others["portable_small"] == "this CPU has wider vectors"


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_remembered_choices_are_those_of_the_rules(rng, device):
    """A thread remembers its last choices; a new thread has none to remember."""

    def chosen(a, b, **keywords):
        with fl.Matmul(a, b, device=device, **keywords) as plan:
            plan.plan()
            return plan.kernel

    def in_a_new_thread(*args, **keywords):
        return in_threads(lambda _: chosen(*args, **keywords), [None])[0]

    kinds = list(operands_of_many_kinds(rng))
    variants = [{}, {"precision": "strict"}, {"c": None, "alpha": 0.0}]
    want = []
    for threads in (1, 2):
        with fl.num_threads(threads):
            want += [(threads, a, b, v, in_a_new_thread(a, b, **v)) for a, b in kinds for v in variants]
    assert len({name for *_, name in want}) > (2 if has_avx512 else 1), "the operands take several kernels"
    for i in [*rng.permutation(len(want)), 0, 0, 1, 0, 1, 1]:
        threads, a, b, keywords, name = want[i]
        with fl.num_threads(threads):
            assert chosen(a, b, **keywords) == name, f"{a.shape} @ {b.shape}, {keywords}, {threads} threads"
