"""fl.Matmul with a constant operand, which accurate products prepack."""

from __future__ import annotations

import numpy as np
import pytest

import fastlinalg as fl
from support.accuracy import assert_product, assert_same_bits
from support.device import assign
from support.device_libraries import ENOUGH, Announced, Placed, view
from support.operands import normal
from support.rows import rows

F32 = np.float32
put = fl.DeviceArray.from_numpy


def zeros(*shape):
    return put(np.zeros(shape, F32))


# 64x64 tiles with k shared; 128x64; 192x96, where B lies in strips of another kind; 192x128; k beyond one piece of the
# split; sizes that no tile divides.
SHAPES = [(256, 256, 256), (400, 130, 300), (700, 520, 1030), (900, 1000, 256), (1536, 1500, 264), (321, 2000, 1500)]


@pytest.mark.parametrize("row", rows("sgemm", "cuda", strict=False))
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_bits_are_those_of_a_call(row, shape, rng):
    m, n, k = shape
    a, b, c = (put(normal(rng, *size)) for size in ((m, k), (k, n), (m, n)))
    for constant in ("a", "b"):
        for beta in (0.0, 2.0):
            added = c if beta else None
            want = fl.sgemm(a, b, added, alpha=0.5, beta=beta, kernel=row.name).numpy()
            keywords = {"c": added, "alpha": 0.5, "beta": beta, "kernel": row.name, "constant": constant}
            with fl.Matmul(a, b, out=zeros(m, n), **keywords) as plan, fl.Matmul(a, b, **keywords) as fresh:
                for turn in range(ENOUGH if m < 800 else 3):
                    assert_same_bits(plan.execute().numpy(), want, f"{constant}, beta {beta}, turn {turn}")
                    assert_same_bits(fresh.execute().numpy(), want, f"{constant}, beta {beta}, turn {turn}, fresh")


@pytest.mark.gpu
@pytest.mark.parametrize("types", [("f2", "f2"), ("f4", "f2"), ("f2", "f4")], ids="-".join)
@pytest.mark.parametrize("shape", [(1040, 1000, 1050), (1530, 1500, 300), (300, 200, 20_000)], ids=str)
def test_operands_in_16_bits(shape, types, rng):
    """Large enough to be read so."""
    m, n, k = shape
    a, b = Placed(normal(rng, m, k).astype(types[0])), Placed(normal(rng, k, n).astype(types[1]))
    want = fl.sgemm(a, b, dtype=F32).numpy()
    for constant in ("a", "b"):
        with fl.Matmul(a, b, dtype=F32, constant=constant) as plan:
            for _ in range(2):
                assert_same_bits(plan.execute().numpy(), want, constant)


@pytest.mark.parametrize("row", rows("sgemm", "cuda", strict=False))
@pytest.mark.parametrize("constant", ["a", "b"])
def test_orders_and_transposes(row, constant, rng):
    """A result in column order makes A of B."""
    m, n, k = 300, 420, 310
    hosts = {"a": normal(rng, m, k), "b": normal(rng, k, n)}
    for trans in ("", "a", "b"):
        for column_order in (False, True):
            a, b = (put(np.ascontiguousarray(x.T if name == trans else x)) for name, x in hosts.items())
            flags = {"trans_a": trans == "a", "trans_b": trans == "b", "kernel": row.name}
            out = zeros(n, m)
            result = view(out, np.transpose) if column_order else zeros(m, n)
            want = fl.sgemm(a, b, **flags).numpy()
            with fl.Matmul(a, b, out=result, constant=constant, **flags) as plan:
                changing = "b" if constant == "a" else "a"
                for turn in range(3):
                    plan.execute()
                    got = out.numpy().T if column_order else result.numpy()
                    if column_order:
                        assert_product(got, hosts["a"], hosts["b"])
                    else:
                        assert_same_bits(got, want, f"turn {turn}, trans {trans}")
                other = hosts | {changing: hosts[changing] * F32(3)}
                moved = put(np.ascontiguousarray(other[changing].T if trans == changing else other[changing]))
                plan.reset_operands(**{changing: moved})
                plan.execute()
                got = out.numpy().T if column_order else result.numpy()
                assert_product(got, other["a"], other["b"])


@pytest.mark.parametrize("row", rows("sgemm", "cuda", strict=False))
@pytest.mark.parametrize("constant", ["a", "b"])
def test_batches(row, constant, rng):
    """Problems that share the constant operand, and problems of which each has its own."""
    for sizes in (((3, 200, 256), (256, 130)), ((200, 256), (3, 256, 130)), ((3, 200, 256), (3, 256, 130))):
        a, b = (put(normal(rng, *size)) for size in sizes)
        with fl.Matmul(a, b, kernel=row.name) as plain:
            want = plain.execute().numpy()
        with fl.Matmul(a, b, kernel=row.name, constant=constant) as plan:
            for _ in range(ENOUGH):
                assert_same_bits(plan.execute().numpy(), want)
        assert_product(want, a.numpy(), b.numpy())


@pytest.mark.parametrize("row", rows("sgemm", "cuda", strict=False))
@pytest.mark.parametrize("constant", ["a", "b"])
@pytest.mark.parametrize("fresh", [False, True], ids=["out", "fresh"])
def test_who_changes_the_operand_says_so(row, constant, fresh, rng):
    """Until then the split of the old values counts, which is how this test knows that it is kept."""
    n = 384
    hosts = {"a": normal(rng, n, n), "b": normal(rng, n, n)}
    arrays = {name: put(x) for name, x in hosts.items()}
    changing = "b" if constant == "a" else "a"
    with fl.Matmul(*arrays.values(), out=None if fresh else zeros(n, n), kernel=row.name, constant=constant) as plan:
        for turn in range(ENOUGH):
            assert_product(plan.execute().numpy(), *hosts.values())
            hosts[changing] = normal(rng, n, n)
            assign(arrays[changing], hosts[changing])  # the other operand is read each time
            assert_product(plan.execute().numpy(), *hosts.values())
            assign(arrays[constant], normal(rng, n, n))
            assert_product(plan.execute().numpy(), *hosts.values())
            hosts[constant] = arrays[constant].numpy()
            plan.reset_operands(**{constant: arrays[constant]})
            assert_product(plan.execute().numpy(), *hosts.values())
            if turn == 3:  # another array
                hosts[constant] = normal(rng, n, n)
                arrays[constant] = put(hosts[constant])
                plan.reset_operands(**{constant: arrays[constant]})
            if turn == 5:  # no word about it: what is kept stays
                plan.reset_operands(**{changing: arrays[changing]}, out=None if fresh else zeros(n, n))


@pytest.mark.gpu
@pytest.mark.parametrize("constant", ["a", "b"])
def test_a_foreign_operand_that_lies_elsewhere(constant, rng):
    n = 320
    hosts = {"a": normal(rng, n, n), "b": normal(rng, n, n)}
    arrays = {name: Announced(put(x)) for name, x in hosts.items()}
    with fl.Matmul(*arrays.values(), kernel="fp16x2", constant=constant) as plan:
        for _ in range(3):
            assert_product(plan.execute().numpy(), *hosts.values())
        hosts[constant] = normal(rng, n, n)
        arrays[constant].owner = put(hosts[constant])
        assert_product(plan.execute().numpy(), *hosts.values())


def hard(kind, rng, k, n):
    x = normal(rng, k, n)
    if kind == "NaN":
        x[k // 2, n // 2] = np.nan
    if kind == "infinite":
        x[3, 5] = np.inf
    if kind == "wide":  # two terms cannot hold it
        x *= 2.0 ** rng.integers(-60, 61, (k, 1)).astype(F32)
    return x


@pytest.mark.parametrize("row", rows("sgemm", "cuda", strict=False))
@pytest.mark.parametrize("sizes", [(256, 256, 320), (2048, 2048, 4096)], ids=["small", "bf16x6 as fallback"])
def test_the_guard_asks_both_operands_each_time(row, sizes, rng):
    """What the terms cannot hold may be in the prepacked operand or in the other, and go again."""
    m, n, k = sizes
    a, b, out = zeros(m, k), zeros(k, n), zeros(m, n)
    kinds = ["normal", "wide", "NaN", "normal"] + (["infinite", "wide", "normal"] if m < 1000 else [])
    for constant in ("a", "b"):
        with fl.Matmul(a, b, out=out, kernel=row.name, constant=constant) as plan:
            for kept in ("normal", "wide", "NaN"):
                (assign(a, hard(kept, rng, k, m).T) if constant == "a" else assign(b, hard(kept, rng, k, n)))
                plan.reset_operands(**{constant: a if constant == "a" else b})
                for kind in kinds:
                    (assign(b, hard(kind, rng, k, n)) if constant == "a" else assign(a, hard(kind, rng, k, m).T))
                    want = fl.sgemm(a, b, kernel=row.name).numpy()
                    assert_same_bits(plan.execute().numpy(), want, f"constant {constant} {kept}, other {kind}")


@pytest.mark.gpu
def test_streams_and_the_first_execution(torch, rng):
    """The split is made on the stream of one execution and read on those of others."""
    n = 1024
    hosts = [normal(rng, n, n) for _ in range(2)]
    a, b = (torch.from_numpy(x).cuda() for x in hosts)
    want = fl.sgemm(a, b, kernel="fp16x2")
    streams = [torch.cuda.Stream() for _ in range(3)]
    torch.cuda.synchronize()
    for turn in range(4):
        with fl.Matmul(a, b, kernel="fp16x2", constant="b") as plan:
            got = [plan.execute(stream=streams[(i + turn) % 3].cuda_stream) for i in range(6)]
        torch.cuda.synchronize()
        assert all(torch.equal(x, want) for x in got)


@pytest.mark.gpu
@pytest.mark.parametrize("before", [0, 1, ENOUGH])
def test_graphs_of_the_caller(before, torch, rng):
    """One that is captured first splits in every launch, one captured later has in it what was kept."""
    n = 512
    hosts = [normal(rng, n, n) for _ in range(3)]
    a, b, out = (torch.from_numpy(x).cuda() for x in hosts)
    with fl.Matmul(a, b, out=out, kernel="fp16x2", constant="b") as plan:
        plan.plan()
        for _ in range(before):
            plan.execute()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            plan.execute()
        for turn in range(3):
            hosts[0] = normal(rng, n, n)
            a.copy_(torch.from_numpy(hosts[0]))
            out.fill_(float("nan"))
            graph.replay()
            assert_product(out.cpu().numpy(), *hosts[:2])
            out.fill_(float("nan"))
            plan.execute()  # and what the graph does leaves alone what the plan keeps
            assert_product(out.cpu().numpy(), *hosts[:2])
            if before == 0 and turn == 1:
                hosts[1] = normal(rng, n, n)
                b.copy_(torch.from_numpy(hosts[1]))
                plan.reset_operands(b=b)
        del graph


@pytest.mark.gpu
def test_memory(rng, caplog, limit):
    """What is kept is counted, given back, and done without where there is no room for it: with the same bits."""
    n = 1024
    a, b, out = put(normal(rng, n, n)), put(normal(rng, n, n)), zeros(n, n)
    want = fl.sgemm(a, b, kernel="fp16x2").numpy()
    fl.cuda.trim()
    used = fl.cuda.memory_info()["used"]

    def used_by(**keywords):
        with fl.Matmul(a, b, out=out, kernel="fp16x2", **keywords) as plan:
            for _ in range(ENOUGH):
                assert_same_bits(plan.execute().numpy(), want)
            more = fl.cuda.memory_info()["used"] - used
            assert more == plan.workspace_bytes
        return more

    plain, kept = used_by(), used_by(constant="b")
    assert 4 * n * n <= kept - plain <= 7 * n * n  # tiles of 96 columns leave room
    assert fl.cuda.memory_info()["used"] == used
    limit(used + kept - 1)
    with caplog.at_level("DEBUG", logger="fastlinalg"):
        assert used_by(constant="b") == plain
    assert f"no {kept - plain} bytes to prepack the constant operand" in caplog.text
    limit(0)
    assert used_by(constant="b") == kept


@pytest.mark.gpu
def test_rows_that_keep_nothing(rng):
    """Strict products, vectors, and views that are packed first read the operands anew."""
    n = 300
    hosts = [normal(rng, n, n) for _ in range(2)]
    a, b = (put(x) for x in hosts)
    every = view(b, lambda x: x[::2, ::2])
    for x, y, host_x, host_y in (
        (a, b, *hosts),
        (a, put(hosts[1][0]), hosts[0], hosts[1][0]),
        (put(hosts[0][: n // 2, : n // 2]), every, hosts[0][: n // 2, : n // 2], hosts[1][::2, ::2]),
    ):
        for constant in ("a", "b"):
            with fl.Matmul(x, y, precision="strict", constant=constant) as plan:
                for _ in range(ENOUGH):
                    assert_product(plan.execute().numpy(), host_x, host_y)


@pytest.mark.gpu
def test_a_result_over_the_constant_operand_is_refused(rng):
    a, b = put(normal(rng, 64, 64)), put(normal(rng, 64, 64))
    with pytest.raises(ValueError, match="Matmul: out overlaps b, which is said to be constant"):
        fl.Matmul(a, b, out=b, constant="b")
    with fl.Matmul(a, b, out=a, constant="b") as plan:
        with pytest.raises(ValueError, match=r"Matmul.reset_operands: out overlaps b, which is said to be constant"):
            plan.reset_operands(out=b)
        plan.execute()


@pytest.mark.parametrize("kernel", ["amx_bf16x6_model", None, pytest.param("fp16x2", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("constant", ["a", "b"])
def test_arrays_in_host_memory(kernel, constant, rng):
    """The model of AMX keeps its terms on every CPU."""
    hosts = {"a": normal(rng, 90, 300), "b": normal(rng, 300, 70)}
    options = {"kernel": kernel, "device": "cuda" if kernel == "fp16x2" else "cpu"}
    with fl.Matmul(*hosts.values(), **options, constant=constant) as plan:
        for _ in range(3):
            assert_same_bits(plan.execute(), fl.sgemm(*hosts.values(), **options))
            hosts["a"][...] = normal(rng, 90, 300)
            hosts["b"][...] = normal(rng, 300, 70)
            plan.reset_operands(**{constant: hosts[constant]})


@pytest.mark.parametrize("constant", ["c", "", "ab", 1, ["a"]])
def test_what_can_be_constant(constant, rng):
    a = normal(rng, 4, 4)
    with pytest.raises(ValueError, match="Matmul: constant must be 'a', 'b' or None, got "):
        fl.Matmul(a, a, constant=constant)


def test_a_result_in_host_memory_over_the_constant_operand(rng):
    a, b = normal(rng, 4, 4), normal(rng, 4, 4)
    with pytest.raises(ValueError, match="out overlaps a, which is said to be constant"):
        fl.Matmul(a, b, out=a, constant="a")
