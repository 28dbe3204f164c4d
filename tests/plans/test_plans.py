"""fl.Matmul: planned once, executed many times."""

from __future__ import annotations

import copy
import gc
import inspect
import pickle
import sys
import weakref

import numpy as np
import pytest

import fastlinalg as fl
from support.accuracy import assert_product, assert_same_bits
from support.operands import normal
from support.threads import in_threads

F32 = np.float32
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


SHAPES = {
    "matrix @ matrix": ((33, 20), (20, 47)),
    "matrix @ vector": ((33, 20), (20,)),
    "vector @ matrix": ((20,), (20, 47)),
    "vector @ vector": ((20,), (20,)),
    "batch @ batch": ((5, 7, 9), (5, 9, 4)),
    "broadcast": ((3, 1, 7, 9), (4, 9, 5)),
    "batch @ vector": ((5, 7, 9), (9,)),
    "empty result": ((0, 5), (5, 6)),
    "empty sum": ((4, 0), (0, 6)),
    "empty batch": ((0, 4, 3), (3, 6)),
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("shapes", SHAPES.values(), ids=SHAPES)
def test_execute_gives_what_matmul_gives(rng, shapes, device):
    a, b = (normal(rng, *shape) for shape in shapes)
    want = fl.matmul(a, b, device=device)
    with fl.Matmul(a, b, device=device) as plan:
        got = plan.execute()
        again = plan.execute()
    assert type(got) is type(want)
    assert_same_bits(got, want)
    assert_same_bits(again, want)
    if want.ndim:
        assert not np.shares_memory(got, again)
        out = np.full_like(want, np.nan)
        with fl.Matmul(a, b, out=out, device=device) as plan:
            assert plan.execute() is out
        assert_same_bits(out, want)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("trans_a", [False, True])
@pytest.mark.parametrize("trans_b", [False, True])
def test_all_that_sgemm_can(rng, order, trans_a, trans_b, device):
    a, b, c = normal(rng, 13, 21), normal(rng, 21, 17), normal(rng, 13, 17)
    a, b = (np.array(x.T if t else x, order=order) for x, t in ((a, trans_a), (b, trans_b)))
    out = np.empty((13, 17), F32, order=order)
    keywords = {"alpha": 0.5, "beta": -2.0, "trans_a": trans_a, "trans_b": trans_b, "device": device}
    want = fl.sgemm(a, b, c, **keywords)
    with fl.Matmul(a, b, c, out=out, **keywords) as plan:
        for _ in range(3):
            plan.execute()
            assert_same_bits(out, want)


def test_beta_of_products_with_vectors(rng):
    a, x, y = normal(rng, 13, 21), normal(rng, 21), normal(rng, 13)
    with fl.Matmul(a, x, y, alpha=0.5, beta=3.0) as plan:
        assert_same_bits(plan.execute(), fl.sgemv(a, x, y, alpha=0.5, beta=3.0))
    with fl.Matmul(x, a, y, trans_b=True, beta=3.0) as plan:
        assert_same_bits(plan.execute(), fl.sgemv(a, x, y, beta=3.0))
    with fl.Matmul(x, x, np.array(1, F32), alpha=2.0, beta=3.0) as plan:
        assert np.isclose(plan.execute(), 2 * np.dot(x, x) + 3, rtol=1e-5)


@pytest.mark.parametrize("device", DEVICES)
def test_values_are_read_at_each_execution(rng, device):
    a, b, c = normal(rng, 40, 30), normal(rng, 30, 20), normal(rng, 40, 20)
    with fl.Matmul(a, b, c, beta=1.0, device=device) as plan:
        plan.plan()
        for _ in range(3):
            a[...], b[...], c[...] = normal(rng, 40, 30), normal(rng, 30, 20), normal(rng, 40, 20)
            assert_same_bits(plan.execute(), fl.sgemm(a, b, c, beta=1.0, device=device))


def test_out_may_be_c_and_accumulates(rng):
    a, b, c = normal(rng, 8, 8), normal(rng, 8, 8), np.zeros((8, 8), F32)
    want = c.copy()
    with fl.Matmul(a, b, c, beta=1.0, out=c) as plan:
        for _ in range(4):
            plan.execute()
            fl.sgemm(a, b, want, beta=1.0, out=want)
    assert_same_bits(c, want)


def test_out_that_overlaps_an_operand(rng):
    a = normal(rng, 16, 16)
    before = a.copy()
    with fl.Matmul(a, a, out=a) as plan:
        plan.execute()
        assert_same_bits(a, fl.matmul(before, before))
        squared = a.copy()
        plan.execute()
    assert_same_bits(a, fl.matmul(squared, squared))


@pytest.mark.parametrize("device", DEVICES)
def test_reset_operands(rng, device):
    a, b, out = normal(rng, 30, 20), normal(rng, 20, 10), np.empty((30, 10), F32)
    with fl.Matmul(a, b, out=out, device=device) as plan:
        plan.execute()
        a2, b2, out2 = normal(rng, 30, 20), normal(rng, 20, 10), np.empty((30, 10), F32)
        plan.reset_operands(a2)
        assert_same_bits(plan.execute(), fl.matmul(a2, b, device=device))
        plan.reset_operands(b=b2)
        plan.execute()
        assert_same_bits(out, fl.matmul(a2, b2, device=device))
        out[...] = 7
        plan.reset_operands(out=out2)
        assert plan.execute() is out2
        assert_same_bits(out2, fl.matmul(a2, b2, device=device))
        assert (out == 7).all(), "the first result belongs to the caller again"
        plan.reset_operands(out=a2[:, :10].copy().T.copy().T)  # another layout
        assert_same_bits(plan.execute(), out2)


def test_reset_operands_of_a_column_major_result(rng):
    """A column-major result is a product with the operands exchanged: each address has to find its side again."""
    a, b, out = normal(rng, 30, 20), normal(rng, 20, 10), np.empty((30, 10), F32, order="F")
    a2, b2, c2 = normal(rng, 30, 20), normal(rng, 20, 10), normal(rng, 30, 10)
    with fl.Matmul(a, b, np.zeros((30, 10), F32), beta=1.0, out=out) as plan:
        plan.execute()
        plan.reset_operands(a2, b2, c2, np.empty((30, 10), F32, order="F"))
        assert_product(plan.execute(), a2, b2, c0=c2, beta=1.0)


def test_reset_operands_refuses_and_keeps(rng):
    a, b = normal(rng, 6, 5), normal(rng, 5, 4)
    out, read_only = np.empty((6, 4), F32), np.empty((6, 4), F32)
    read_only.flags.writeable = False
    with fl.Matmul(a, b, out=out) as plan:
        plan.execute()
        for keywords, error, says in (
            ({"a": normal(rng, 5, 6)}, ValueError, r"a has shape \(5, 6\).*plan is for shape \(6, 5\)"),
            ({"a": np.asfortranarray(a)}, ValueError, r"strides \(1, 6\).*strides \(5, 1\)"),
            ({"b": b.astype(np.float64)}, TypeError, "float64"),
            ({"c": normal(rng, 6, 4)}, ValueError, "c was given, but beta is 0"),
            ({"out": np.empty((4, 6), F32)}, ValueError, r"out has shape \(4, 6\)"),
            ({"out": read_only}, ValueError, "read-only"),
            ({"a": a + 1, "out": read_only}, ValueError, "read-only"),
        ):
            with pytest.raises(error, match=says):
                plan.reset_operands(**keywords)
            assert_same_bits(plan.execute(), fl.matmul(a, b), f"after a refusal of {keywords.keys()}")


@pytest.mark.parametrize(
    ("keywords", "error", "says"),
    [
        ({"a": np.ones((3, 4), F32)}, ValueError, "do not match"),
        ({"b": np.float32(1)}, TypeError, "b must be a float32 array"),
        ({"b": np.array(1, F32)}, ValueError, "at least 1 dimension"),
        ({"a": np.ones((2, 2))}, TypeError, "float64"),
        ({"beta": 1.0}, ValueError, "needs c"),
        ({"c": np.ones(3, F32), "beta": 1.0}, ValueError, "c has shape"),
        ({"c": np.ones((2, 2), F32)}, ValueError, "Matmul: c was given, but beta is 0"),
        ({"out": np.ones((3, 3), F32)}, ValueError, "out has shape"),
        ({"b": np.ones(2, F32), "trans_b": True}, ValueError, r"trans_b needs a matrix, but b has shape \(2,\)"),
        ({"precision": "exact"}, ValueError, "precision must be"),
        ({"device": "gpu"}, ValueError, "device must be"),
    ],
)
def test_the_constructor_refuses(keywords, error, says):
    operands = {"a": np.ones((2, 2), F32), "b": np.ones((2, 2), F32)} | keywords
    a, b = operands.pop("a"), operands.pop("b")
    with pytest.raises(error, match=says):
        fl.Matmul(a, b, **operands)


def test_misaligned_operands_are_refused():
    raw = np.zeros(4 * 9 + 1, np.uint8)[1:].view(F32).reshape(3, 3)
    with pytest.raises(ValueError, match="not aligned"):
        fl.Matmul(raw, np.ones((3, 3), F32))
    out = fl.Matmul(np.ones((3, 3), F32), np.ones((3, 3), F32), out=raw).execute()
    assert out is raw and (raw == 3).all()


def test_kernels_by_name():
    a = np.ones((8, 8), F32)
    with fl.Matmul(a, a, kernel="portable") as plan:
        plan.plan()
        assert plan.kernel == "portable" and plan.device == "cpu"
    with fl.Matmul(a, a[0], kernel="reference") as plan:
        assert plan.execute()[0] == 8 and plan.kernel == "reference"
    with pytest.raises(ValueError, match="unknown sgemm kernel 'nothing'"):
        fl.Matmul(a, a, kernel="nothing")


def test_life(rng):
    a, b = normal(rng, 5, 6), normal(rng, 6, 7)
    plan = fl.Matmul(a, b)
    assert plan.kernel in {row.name for row in fl.kernels("sgemm")}
    shown = f"kernel={plan.kernel!r}, device={plan.device!r}"
    assert repr(plan) == f"fastlinalg.Matmul((5, 6) @ (6, 7) -> (5, 7), {shown})"
    assert plan.plan() is plan
    assert_same_bits(plan(), plan.execute())
    assert_same_bits(plan(stream=None), plan.execute())
    with plan as same:
        assert same is plan
    plan.free()
    for use in (plan.plan, plan.execute, plan.reset_operands):
        with pytest.raises(ValueError, match=rf"{use.__name__}\(\) after free\(\)"):
            use()
    assert repr(plan) == "fastlinalg.Matmul(freed)" and plan.kernel is None


def test_wrong_executions_are_answered_in_the_library_s_words(rng):
    a = normal(rng, 5, 5)
    plan = fl.Matmul(a, a)
    bound = r"execute\(\) takes no operands, got 2: the plan is bound to its own; reset_operands\(a, b\) binds others"
    for call in (plan.execute, plan):
        with pytest.raises(TypeError, match=bound):
            call(a, a)
        with pytest.raises(TypeError, match=r"execute\(\) takes stream= alone, got out="):
            call(out=a)
        with pytest.raises(TypeError, match="stream must be None, an int"):
            call(stream="x")
    assert inspect.isroutine(plan.execute) and str(inspect.signature(plan.execute)) == "(*, stream=None)"
    assert inspect.getdoc(plan.execute).startswith("Compute the product of the bound operands")
    with pytest.raises(TypeError, match="that was not made"):
        fl.Matmul.__new__(fl.Matmul).execute()


def test_a_plan_belongs_to_its_process(rng):
    plan = fl.Matmul(normal(rng, 5, 5), normal(rng, 5, 5))
    for send in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match=r"make it anew where they arrive: fl\.Matmul\(a, b, \.\.\.\)"):
            send(plan)


def test_the_operands_live_as_long_as_the_plan_is_bound_to_them(rng):
    class Array(np.ndarray):
        pass

    a, b = (normal(rng, 5, 5).view(Array) for _ in range(2))
    alive = [weakref.ref(a), weakref.ref(b)]
    want = fl.matmul(a, b)
    plan = fl.Matmul(a, b)
    del a, b
    gc.collect()
    assert_same_bits(plan.execute(), want)
    plan.reset_operands(b=np.zeros((5, 5), F32))
    gc.collect()
    assert alive[0]() is not None and alive[1]() is None
    plan.free()
    gc.collect()
    assert alive[0]() is None


def test_nothing_is_lost_in_many_executions(rng):
    a, b, c = normal(rng, 9, 9), normal(rng, 9, 9), normal(rng, 9, 9)
    plan = fl.Matmul(a, b, c, beta=1.0)
    plan.execute()
    counts = [sys.getrefcount(x) for x in (a, b, c, None)]
    for _ in range(1000):
        plan.execute()
        plan.reset_operands(a, b, c)
    assert all(abs(sys.getrefcount(x) - n) < 20 for x, n in zip((a, b, c, None), counts, strict=True))


@pytest.mark.parametrize("fresh", [True, False])
def test_a_change_of_the_thread_count_is_followed(rng, fresh):
    """A packed kernel's workspace is made for a number of threads: more of them must not run past it."""
    a, b = normal(rng, 600, 300), normal(rng, 300, 400)
    with fl.num_threads(1):
        want = fl.sgemm(a, b, kernel="portable")
        plan = fl.Matmul(a, b, kernel="portable", out=None if fresh else np.empty_like(want))
        plan.plan()
        small = plan.workspace_bytes
    with fl.num_threads(4):
        assert_product(plan.execute(), a, b)
        assert plan.workspace_bytes > small
    with fl.num_threads(1):
        assert_same_bits(plan.execute(), want)


def test_one_plan_from_many_threads(rng):
    a, b = normal(rng, 150, 120), normal(rng, 120, 130)
    plan = fl.Matmul(a, b)
    want = fl.matmul(a, b)

    def work(_):
        for _ in range(20):
            assert_same_bits(plan.execute(), want)

    in_threads(work, range(6))


@pytest.mark.parametrize("kind", [np.ndarray, np.memmap])
def test_out_that_is_made_read_only_later(rng, kind, tmp_path):
    a = normal(rng, 3, 3)
    out = np.zeros((3, 3), F32) if kind is np.ndarray else np.memmap(tmp_path / "out", F32, "w+", shape=(3, 3))
    with fl.Matmul(a, a, out=out, device="cpu") as plan:
        plan.execute()
        out[...] = 7
        out.flags.writeable = False
        with pytest.raises(ValueError, match="out is read-only"):
            plan.execute()
        assert (out == 7).all()
        out.flags.writeable = True
        assert plan.execute() is out and (out != 7).all()
