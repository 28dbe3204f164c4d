"""fl.Matmul on arrays in device memory: libraries, streams, graphs, the memory that a plan keeps."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import fastlinalg as fl
from support.accuracy import assert_product, assert_same_bits
from support.device_libraries import ENOUGH, WITH_WORKSPACE, Announced, Exported, Foreign, view
from support.operands import normal

pytestmark = pytest.mark.gpu
F32 = np.float32


SHAPES = {
    "matrix @ matrix": ((33, 20), (20, 47)),
    "aligned": ((64, 64), (64, 64)),
    "matrix @ vector": ((33, 20), (20,)),
    "vector @ matrix": ((20,), (20, 47)),
    "batch": ((3, 2, 7, 9), (2, 9, 5)),
    "empty": ((0, 5), (5, 6)),
}


@pytest.mark.parametrize("shapes", SHAPES.values(), ids=SHAPES)
def test_executions_are_what_matmul_gives(producer, shapes, rng):
    a, b = (producer.put(normal(rng, *shape)) for shape in shapes)
    want = producer.get(fl.matmul(a, b))
    out = producer.put(np.full(want.shape, np.nan, F32))
    with fl.Matmul(a, b, out=out) as plan, fl.Matmul(a, b) as fresh:
        for turn in range(ENOUGH):
            assert plan.execute() is out
            assert_same_bits(producer.get(out), want, f"turn {turn}")
            got = fresh.execute()
            assert type(got) is type(fl.matmul(a, b))
            assert_same_bits(producer.get(got), want, f"turn {turn}, fresh")
        assert plan.device == ("cuda:0" if plan.kernel else None)


@pytest.mark.parametrize("shape", [(700, 20000), (150000, 100), (60000, 250), (60, 210000)], ids=str)
@pytest.mark.parametrize("trans", [False, True])
def test_part_of_a_large_matrix_stays_in_the_cache(shape, trans, rng):
    """Which part is a hint to the hardware: the bits are those of a call."""
    a, x = fl.DeviceArray.from_numpy(normal(rng, *shape)), fl.DeviceArray.from_numpy(normal(rng, shape[not trans]))
    want, out = fl.sgemv(a, x, trans=trans).numpy(), fl.DeviceArray.from_numpy(normal(rng, shape[trans]))
    with fl.Matmul(a, x, out=out, trans_a=trans) as plan:
        for turn in range(ENOUGH):
            plan.execute()
            assert_same_bits(out.numpy(), want, f"turn {turn}")


def test_an_addend_and_its_place(producer, rng):
    """The addend is the result itself, or another array."""
    host = [normal(rng, 30, 30) / 8 for _ in range(3)]
    a, b, c = (producer.put(x) for x in host)
    out = producer.put(host[2])
    want = host[2].astype(np.float64)
    with fl.Matmul(a, b, out, beta=1.0, out=out) as plan, fl.Matmul(a, b, c, alpha=0.5, beta=-2.0) as other:
        for _ in range(ENOUGH):
            plan.execute()
            want = want + host[0].astype(np.float64) @ host[1]
            assert_product(producer.get(other.execute()), host[0], host[1], host[2], alpha=0.5, beta=-2.0)
    np.testing.assert_allclose(producer.get(out), want, rtol=1e-3, atol=1e-3)


def test_an_addend_that_overlaps_the_result_in_part(rng):
    """Then a temporary is loaded with the addend, and takes the place of the result."""
    host = [normal(rng, 30, 30) / 8 for _ in range(2)]
    a, b = (fl.DeviceArray.from_numpy(x) for x in host)
    rows = normal(rng, 31, 30)
    memory = fl.DeviceArray.from_numpy(rows)
    out, c = view(memory, lambda x: x[:30]), view(memory, lambda x: x[1:])
    with fl.Matmul(a, b, c, beta=1.0, out=out) as plan:
        for _ in range(ENOUGH):
            plan.execute()
            rows[:30] = rows[1:] + host[0] @ host[1]
            np.testing.assert_allclose(memory.numpy(), rows, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("n", [48, WITH_WORKSPACE])
def test_values_are_read_at_each_execution(n, torch, rng):
    a, b, c, out = (torch.zeros((n, n), device="cuda") for _ in range(4))
    with fl.Matmul(a, b, c, out=out, beta=2.0) as plan:
        for turn in range(ENOUGH if n < WITH_WORKSPACE else 3):
            hosts = [normal(rng, n, n) for _ in range(3)]
            for x, host in zip((a, b, c), hosts, strict=True):
                x.copy_(torch.from_numpy(host))
            plan.execute()
            assert_same_bits(out.cpu().numpy(), fl.sgemm(a, b, c, beta=2.0).cpu().numpy(), f"turn {turn}")
    assert_product(out.cpu().numpy(), *hosts[:2], hosts[2], beta=2.0)


def test_reset_operands(producer, rng):
    hosts = [normal(rng, 40, 40) for _ in range(4)]
    a, b, a2, b2 = (producer.put(x) for x in hosts)
    out, out2 = producer.put(np.zeros((40, 40), F32)), producer.put(np.zeros((40, 40), F32))
    with fl.Matmul(a, b, out=out) as plan:
        for x, y, to, host_x, host_y in (
            (a, b, out, hosts[0], hosts[1]),
            (a2, None, None, hosts[2], hosts[1]),
            (None, b2, out2, hosts[2], hosts[3]),
        ):
            plan.reset_operands(x, y, out=to)
            for _ in range(ENOUGH):
                assert_product(producer.get(plan.execute()), host_x, host_y)


@pytest.mark.parametrize("shift", [1, 2, 4])
def test_reset_to_another_alignment(shift, torch, rng):
    """A kernel that needs aligned operands gives way to one that does not."""
    flat = torch.from_numpy(normal(rng, 128 * 128 + 8)).cuda()
    a, moved = flat[: 128 * 128].view(128, 128), flat[shift : 128 * 128 + shift].view(128, 128)
    out = torch.empty_like(a)
    for kernel in (None, "double_buffered"):
        with fl.Matmul(a, a, out=out, kernel=kernel) as plan:
            plan.execute()
            if kernel and shift % 4:
                with pytest.raises(ValueError, match="16-byte aligned"):
                    plan.reset_operands(moved)
            else:
                plan.reset_operands(moved)
                plan.execute()
                assert_product(out.cpu().numpy(), moved.cpu().numpy(), a.cpu().numpy())


def test_layouts_that_are_packed_first_and_column_order(torch, rng):
    host = normal(rng, 120, 130)
    x = torch.from_numpy(host).cuda()
    for a, b in ((x.T, x), (x[:, ::2], x[:, ::2].T), (x[::3].flip(0), x.T)):
        out = torch.empty((b.shape[1], a.shape[0]), device="cuda").T
        with fl.Matmul(a, b, out=out) as plan:
            for _ in range(ENOUGH):
                out.fill_(float("nan"))
                assert_product(plan.execute().cpu().numpy(), a.cpu().numpy(), b.cpu().numpy())


def test_operands_must_lie_in_one_place(rng):
    host = normal(rng, 5, 5)
    x = fl.DeviceArray.from_numpy(host)
    with pytest.raises(ValueError, match="one place"):
        fl.Matmul(x, host)
    with fl.Matmul(x, x) as plan:
        with pytest.raises(ValueError, match="one place"):
            plan.reset_operands(host)
        assert_product(plan.execute().numpy(), host, host)
    with pytest.raises(ValueError, match="device='cpu'"):
        fl.Matmul(x, x, device="cpu")
    with fl.Matmul(host, host) as plan:
        for operands in ({"a": x}, {"a": x, "b": x}, {"out": x}):
            with pytest.raises(ValueError, match="one place: the plan's a is in host memory"):
                plan.reset_operands(**operands)


@pytest.mark.parametrize("n", [32, WITH_WORKSPACE])
def test_plans_give_their_memory_back(n, rng):
    a = fl.DeviceArray.from_numpy(normal(rng, n, n))
    out = fl.DeviceArray.from_numpy(np.zeros((n, n), F32))
    used = fl.cuda.memory_info()["used"]
    for turn in range(12 if n < WITH_WORKSPACE else 4):
        plan = fl.Matmul(a, a, out=out)
        for _ in range(ENOUGH if turn < 2 else 1):
            plan.execute()
        assert (fl.cuda.memory_info()["used"] > used) == (n == WITH_WORKSPACE)
        if turn % 2:
            plan.free()
    del plan
    gc.collect()
    assert fl.cuda.memory_info()["used"] == used


def test_many_plans_leave_no_memory_behind(torch, rng):
    a = torch.from_numpy(normal(rng, 32, 32)).cuda()
    out = torch.empty_like(a)
    for turn in range(2000):
        with fl.Matmul(a, a, out=out) as plan:
            for _ in range(ENOUGH):
                plan.execute()
        if turn == 500:
            torch.cuda.synchronize()
            middle = fl.cuda.memory_info()["free"]
    torch.cuda.synchronize()
    assert fl.cuda.memory_info()["free"] >= middle - 32 * 2**20


def test_a_workspace_that_does_not_fit(rng, caplog, limit):
    n = WITH_WORKSPACE
    host = [normal(rng, n, n) for _ in range(2)]
    a, b = (fl.DeviceArray.from_numpy(x) for x in host)
    out = fl.DeviceArray.from_numpy(np.zeros((n, n), F32))
    strict = fl.matmul(a, b, precision="strict").numpy()
    limit(3 * 4 * n * n + 2**20)
    with caplog.at_level("DEBUG", logger="fastlinalg"), fl.Matmul(a, b, out=out) as plan:
        assert plan.execute() is out
        assert_same_bits(out.numpy(), strict)
        assert plan.workspace_bytes == 0
    assert "strict precision instead" in caplog.text
    with pytest.raises(MemoryError, match="limit of cuda:0"):
        fl.Matmul(a, b, kernel="fp16x2").plan()


def test_an_execution_without_room_for_its_workspace(rng, limit):
    """It is strict, the next one accurate again: with packed operands each execution gets memory of its own."""
    n = WITH_WORKSPACE
    hosts = [normal(rng, 2 * n, 2 * n) for _ in range(2)]
    views = [view(fl.DeviceArray.from_numpy(host), lambda x: x[::2, ::2]) for host in hosts]
    out = fl.DeviceArray.from_numpy(np.zeros((n, n), F32))
    accurate, strict = (fl.matmul(*views, precision=x).numpy() for x in ("accurate", "strict"))
    assert (accurate != strict).any()
    with fl.Matmul(*views, out=out) as plan:
        for room, want in ((0, accurate), (2 * 4 * n * n + 2**20, strict), (0, accurate)):
            limit(0)
            limit(room and fl.cuda.memory_info()["used"] + room)
            plan.execute()
            assert_same_bits(out.numpy(), want)


def test_after_an_execution_without_memory(rng, limit):
    """The next one writes `out` again."""
    host = normal(rng, 600, 600)
    a, b = (fl.DeviceArray.from_numpy(x) for x in (host, np.eye(600, dtype=F32)))
    with fl.Matmul(a, b, out=a, precision="strict") as plan:  # through a temporary
        plan.execute()
        limit(2 * 4 * 600 * 600 + 2**16)
        for method in (plan.execute, plan.plan):
            with pytest.raises(MemoryError):
                method()
        limit(0)
        assert plan.execute() is a
    assert_same_bits(a.numpy(), host)


def test_other_operands_may_need_more_memory(rng):
    """Without the alignment of those that were planned k is cut here, for which there was no workspace."""
    host = normal(rng, 24, 561), normal(rng, 560, 161)
    a, b = (
        fl.DeviceArray.from_numpy(x) for x in (np.pad(host[0], ((0, 0), (0, 3))), np.pad(host[1], ((0, 0), (0, 3))))
    )
    aligned, moved = (
        [view(x, lambda values, at=at, n=n: values[:, at : at + n]) for x, n in ((a, 560), (b, 160))] for at in (0, 1)
    )
    options = {"out": fl.DeviceArray.from_numpy(np.zeros((24, 160), F32)), "kernel": "strict_split_columns"}
    with fl.Matmul(*aligned, **options) as plan, fl.Matmul(*moved, **options) as fresh:
        plan.reset_operands(*moved)
        assert plan.workspace_bytes >= fresh.workspace_bytes
        assert_product(plan.execute().numpy(), host[0][:, 1:], host[1][:, 1:])


@pytest.mark.parametrize("kind", [Announced, Exported])
def test_other_libraries_are_asked_at_each_execution(kind, rng):
    producer = Foreign(kind)
    host = [normal(rng, 20, 20) for _ in range(2)]
    a, b, out = (producer.put(x) for x in (*host, np.zeros((20, 20), F32)))
    with fl.Matmul(a, b, out=out) as plan:
        plan.plan()
        before = [x.asked for x in (a, b, out)]
        for _ in range(ENOUGH):
            plan.execute()
        assert all(x.asked >= n + ENOUGH for x, n in zip((a, b, out), before, strict=True))
        a.owner = fl.DeviceArray.from_numpy(host[1])  # it lies elsewhere now
        plan.execute()
        assert_product(producer.get(out), host[1], host[1])
        out.owner = a.owner
        plan.execute()
        assert_product(producer.get(out), host[1], host[1])
        b.owner = fl.DeviceArray.from_numpy(normal(rng, 20, 10))
        with pytest.raises(ValueError, match=r"Matmul.execute: b has shape \(20, 10\)"):
            plan.execute()
    kept, b = (fl.DeviceArray.from_numpy(x) for x in host)
    with fl.Matmul(a, b, out=kept) as plan:
        plan.execute()
        before, a.owner = kept.numpy(), kept  # it overlaps the result now
        plan.execute()
        assert_product(kept.numpy(), before, host[1])


@pytest.mark.parametrize("where", ["cuda", "cpu"])
def test_a_tensor_that_is_given_other_memory(where, torch, rng):
    """The plan is bound to the memory that the tensor had."""
    host = normal(rng, 64, 64)
    a, b = (torch.from_numpy(x.copy()).to(where) for x in (host, np.eye(64, dtype=F32)))
    out = torch.empty_like(a)
    with fl.Matmul(a, b, out=out) as plan:
        plan.execute()
        a.data, b.data = (torch.full_like(a, float("nan")) for _ in range(2))
        more = [torch.full_like(a, float("nan")) for _ in range(20)]
        for _ in range(ENOUGH):
            plan.execute()
        del more
    assert_same_bits(out.cpu().numpy(), host)
