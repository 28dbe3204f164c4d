"""``grouped_matmul``: each product of a list is what ``matmul`` gives alone, bit for bit, wherever it is computed."""

from __future__ import annotations

import logging
import pickle

import numpy as np
import pytest

import fastlinalg as fl
from support.accuracy import assert_product, assert_same_bits
from support.layouts import MATRIX_LAYOUTS, place, result
from support.operands import normal
from support.shapes import SGEMM_FEW

F32 = np.float32
PRECISIONS = ("accurate", "strict", "reproducible")


class Host:
    def __init__(self, device):
        self.options = {"device": device}

    def put(self, x):
        return x

    def get(self, x):
        return x.copy()

    def set(self, x, values):
        x[...] = values


class Device:
    options: dict[str, str] = {}  # noqa: RUF012

    def put(self, x):
        return fl.DeviceArray.from_numpy(np.ascontiguousarray(x))

    def get(self, x):
        return x.numpy()

    def set(self, x, values):
        fl.transpose(self.put(values.T), out=x)


@pytest.fixture(params=["cpu", *(pytest.param(x, marks=pytest.mark.gpu) for x in ("cuda", "device memory"))])
def way(request):
    return Device() if request.param == "device memory" else Host(request.param)


def alone(way, a, b, **options):
    return [way.get(fl.matmul(x, y, **way.options, **options)) for x, y in zip(a, b, strict=True)]


def assert_alike(got, want):
    for i, (x, y) in enumerate(zip(got, want, strict=True)):
        assert x.shape == y.shape and type(x) is type(y), (i, x.shape, y.shape)
        assert_same_bits(np.asarray(x), np.asarray(y), f"member {i}, {x.shape}")


def operands(rng, shapes):
    return [normal(rng, m, k) for m, _, k in shapes], [normal(rng, k, n) for _, n, k in shapes]


# ---------------------------------------------------------------- the bits of each product alone
@pytest.mark.parametrize("precision", PRECISIONS)
def test_members_have_the_bits_that_they_have_alone(way, precision, rng):
    short = [*rng.integers(1, 90, (40, 3)), *rng.integers(90, 250, (40, 3))]  # more of a kernel than one launch takes
    shapes = (*SGEMM_FEW, *((int(m), int(n), int(k)) for m, n, k in short), (400, 300, 500))
    a, b = ([way.put(x) for x in lists] for lists in operands(rng, shapes))
    got = fl.grouped_matmul(a, b, precision=precision, **way.options)
    assert_alike([way.get(x) for x in got], alone(way, a, b, precision=precision))


SHAPES = (((3,), (3,)), ((3,), (3, 4)), ((2, 3), (3,)), ((5, 2, 3), (3, 4)), ((2, 1, 3, 4), (3, 4, 5)), ((0,), (0,)),
          ((2, 0), (0, 4)), ((0, 3, 4), (4, 5)), ((7, 1), (1, 9)), ((1, 500), (500, 1)))  # fmt: skip


@pytest.mark.parametrize("precision", PRECISIONS)
def test_members_follow_the_rules_of_matmul(way, precision, rng):
    a = [way.put(normal(rng, *shape)) for shape, _ in SHAPES]
    b = [way.put(normal(rng, *shape)) for _, shape in SHAPES]
    got = fl.grouped_matmul(a, b, precision=precision, **way.options)
    assert_alike([way.get(x) for x in got], alone(way, a, b, precision=precision))


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_every_layout_and_result(device, rng):
    """Operands between NaN, results between canaries."""
    layouts = list(MATRIX_LAYOUTS)
    a = [place(normal(rng, 13, 9), layout) for layout in layouts]
    b = [place(normal(rng, 9, 17), layout) for layout in reversed(layouts)]
    out = [result((13, 17), layouts[(i + 3) % len(layouts)]) for i in range(len(layouts))]
    lists = [[x.array for x in guarded] for guarded in (a, b, out)]
    got = fl.grouped_matmul(*lists, device=device)
    assert all(x is y for x, y in zip(got, lists[2], strict=True))
    for i, guarded in enumerate(out):
        guarded.assert_intact()
        assert_same_bits(np.array(got[i]), fl.matmul(lists[0][i], lists[1][i], device=device), layouts[i])


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_any_number_of_threads_gives_the_same_bits(threads, rng):
    """Some members are shared out among all threads, others are one thread's, which packs them in memory of its own."""
    short = [(60 + i % 7, 60 - i % 9, 200) for i in range(60)]
    a, b = operands(rng, [(300, 400, 350), *short, (1, 2000, 900), (800, 1, 900)])
    packed = a, [np.asfortranarray(x) for x in b]
    gathered = [normal(rng, 40, 500) for _ in range(80)], [normal(rng, 1000)[::2] for _ in range(80)]  # below a page
    for lists in (packed, gathered):
        want = alone(Host("cpu"), *lists, precision="strict")
        with fl.num_threads(threads):
            for _ in range(8):
                assert_alike(fl.grouped_matmul(*lists, device="cpu", precision="strict"), want)


def test_lists_are_whatever_gives_arrays(way, rng):
    a, b = ([way.put(x) for x in lists] for lists in operands(rng, [(3, 5, 4), (6, 2, 7)]))
    want = alone(way, a, b)
    for got in (
        fl.grouped_matmul((x for x in a), tuple(b), **way.options),
        fl.grouped_matmul(dict(enumerate(a)).values(), b, out=iter([None, None]), **way.options),
    ):
        assert type(got) is list
        assert_alike([way.get(x) for x in got], want)
    assert fl.grouped_matmul([], [], **way.options) == fl.grouped_matmul((), [], out=[], **way.options) == []


def test_other_types_are_converted(rng):
    a = [np.arange(6).reshape(2, 3), normal(rng, 4, 5).astype(np.float16)]
    b = [normal(rng, 3, 2), normal(rng, 5, 3).astype(np.float64)]
    assert_alike(fl.grouped_matmul(a, b, dtype=F32), alone(Host("auto"), a, b, dtype=F32))
    with pytest.warns(RuntimeWarning, match="overflow"):
        fl.grouped_matmul([np.full((2, 2), 1e300)], [np.ones((2, 2), F32)], dtype=F32)


# ---------------------------------------------------------------- results in the memory of others
def test_results_may_lie_in_operands_of_any_member(way, rng):
    x, y, z = (normal(rng, 33, 33) for _ in range(3))
    a, b, c = way.put(x.copy()), way.put(y.copy()), way.put(z.copy())
    first, second, third = alone(way, [way.put(x), way.put(y), way.put(z)], [way.put(y), way.put(z), way.put(x)])
    got = fl.grouped_matmul([a, b, c], [b, c, a], out=[c, a, None], **way.options)
    assert got[0] is c and got[1] is a
    assert_alike([way.get(r) for r in got], [first, second, third])


def test_a_result_may_begin_with_the_last_element_of_an_operand(rng):
    memory = normal(rng, 2 * 33 * 33 - 1)
    a, out = memory[: 33 * 33].reshape(33, 33), memory[33 * 33 - 1 :].reshape(33, 33)
    left = normal(rng, 33, 33)
    want = fl.matmul(left, a)
    assert_alike(fl.grouped_matmul([left, left], [a, a], out=[out, None]), [want, want])


def test_an_operand_within_another_hides_none_of_it(rng):
    """A result in the end of the larger one."""
    memory, b = normal(rng, 33 * 300), normal(rng, 300, 33)
    wide, within, out = memory.reshape(33, 300), memory[6:15].reshape(3, 3), memory[-33 * 33 :].reshape(33, 33)
    want = [fl.matmul(wide, b), fl.matmul(within, within)]
    assert_alike(fl.grouped_matmul([wide, within], [b, within], out=[out, None]), want)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_results_may_be_blocks_of_one_matrix(order, device, rng):
    a, b = [normal(rng, m, 8) for m in (20, 1, 9)], [normal(rng, 8, n) for n in (13, 1, 30)]
    whole = np.zeros((30, 44), F32, order)
    rows, columns = np.cumsum([0, 20, 1, 9]), np.cumsum([0, 13, 1, 30])
    pairs = [(i, j) for i in range(3) for j in range(3)]
    out = [whole[rows[i] : rows[i + 1], columns[j] : columns[j + 1]] for i, j in pairs]
    fl.grouped_matmul([a[i] for i, _ in pairs], [b[j] for _, j in pairs], out, device=device)
    assert_product(whole, np.vstack(a), np.hstack(b))
    every_other = np.zeros((8, 12), F32, order)
    fl.grouped_matmul([a[0][:4]] * 2, [b[0][:, :12]] * 2, [every_other[::2], every_other[1::2]], device=device)
    assert_same_bits(every_other[::2], every_other[1::2])


def ones(*shape):
    return np.ones(shape, F32)


C = ones(4, 9)
ERRORS = {
    "lengths": (ValueError, lambda f: f([ones(2, 2)], []), ["a has 1 arrays and b has 0", "in its place in b"]),
    "length of out": (ValueError, lambda f: f([ones(2, 2)], [ones(2, 2)], []), ["out has 0 arrays", "1 products"]),
    "an array": (TypeError, lambda f: f(ones(3, 2, 2), [ones(2, 2)]), ["a must be a list", "(3, 2, 2)", "list(a)"]),
    "a number": (TypeError, lambda f: f([ones(2, 2)], 3), ["b must be a list of arrays, got 3"]),
    "None": (TypeError, lambda f: f([ones(2, 2), None], [ones(2, 2)] * 2), ["a[1] must be a float32 array, got None"]),
    "shapes": (
        ValueError,
        lambda f: f([ones(2, 3), ones(2, 3)], [ones(3, 4), ones(4, 3)]),
        ["grouped_matmul, member 1: ", "(2, 3)", "(4, 3)"],
    ),
    "0-d": (ValueError, lambda f: f([ones(2, 2)], [ones()]), ["member 0: b must have at least 1 dimension"]),
    "dtype": (
        TypeError,
        lambda f: f([ones(2, 2)] * 2, [ones(2, 2), ones(2, 2).astype(float)]),
        ["b[1] must have dtype float32, got float64", "b[1].astype(np.float32)", "dtype=np.float32"],
    ),
    "shape of out": (
        ValueError,
        lambda f: f([ones(4, 2)], [ones(2, 3)], [C]),
        ["grouped_matmul: out[0] has shape (4, 9), the result needs (4, 3)"],
    ),
    "dtype of out": (
        TypeError,
        lambda f: f([ones(4, 2)], [ones(2, 9)], [C.astype(float)]),
        ["out[0] must have dtype float32", "allocate it as float32"],
    ),
    "masked out": (TypeError, lambda f: f([ones(4, 2)], [ones(2, 9)], [np.ma.array(C)]), ["pass out[0].data"]),
    "a result twice": (
        ValueError,
        lambda f: f([ones(4, 2)] * 3, [ones(2, 9), ones(2, 3), ones(2, 9)], [C, None, C]),
        ["out[0] and out[2] share memory", "a result of its own"],
    ),
    "results that overlap": (
        ValueError,
        lambda f: f([ones(4, 2)] * 2, [ones(2, 5)] * 2, [C[:, 4:], C[:, :5]]),
        ["out[0] and out[1] share memory"],
    ),
    "results that overlap beyond the ends of rows": (
        ValueError,
        lambda f: f(
            [ones(3, 2)] * 2,
            [ones(2, 3)] * 2,
            [C[:3, :3], np.lib.stride_tricks.as_strided(C[:, 7:], (3, 3), (36, 4))],
        ),
        ["out[0] and out[1] share memory"],
    ),
    "results that overlap by three bytes": (
        ValueError,
        lambda f: f(
            [ones(1, 2)] * 2,
            [ones(2, 3)] * 2,
            [C[:1, :6:2], np.ndarray((1, 3), F32, buffer=C, offset=5, strides=(36, 8))],
        ),
        ["out[0] and out[1] share memory"],
    ),
    "out that overlaps itself": (
        ValueError,
        lambda f: f([ones(4, 2)], [ones(2, 9)], [np.lib.stride_tricks.as_strided(C, (4, 9), (4, 4))]),
        ["elements of out[0] share memory"],
    ),
    "precision": (ValueError, lambda f: f([], [], precision="double"), ["precision must be 'strict'"]),
}


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_names_the_member_and_nothing_is_written(name):
    kind, call, words = ERRORS[name]
    with pytest.raises(kind) as caught:
        call(fl.grouped_matmul)
    for word in words:
        assert word in str(caught.value), str(caught.value)
    assert (C == 1).all()


def test_what_an_iterator_raises_is_raised():
    def broken():
        yield ones(2, 2)
        raise TypeError("of its own")

    with pytest.raises(TypeError, match="of its own"):
        fl.grouped_matmul(broken(), [ones(2, 2)])


@pytest.mark.gpu
def test_all_members_lie_in_one_place(rng):
    a, b = ones(2, 2), fl.DeviceArray.from_numpy(ones(2, 2))
    with pytest.raises(ValueError, match=r"a\[0\] is in host memory and b\[1\] in cuda:0"):
        fl.grouped_matmul([a, a], [a, b])
    with pytest.raises(ValueError, match=r"a\[0\] is in cuda:0 and out\[0\] in host memory"):
        fl.grouped_matmul([b], [b], out=[a])


@pytest.mark.gpu
def test_results_in_device_memory_may_be_given(rng):
    a, b = operands(rng, [(70, 50, 60), (512, 700, 600), (5, 5, 5)])
    a, b = ([Device().put(x) for x in lists] for lists in (a, b))
    out = [Device().put(np.full((x.shape[0], y.shape[1]), np.nan, F32)) for x, y in zip(a, b, strict=True)]
    got = fl.grouped_matmul(a, b, out)
    assert all(x is y for x, y in zip(got, out, strict=True))
    assert_alike([x.numpy() for x in got], alone(Device(), a, b))


@pytest.mark.gpu
def test_without_room_for_all_workspaces_each_has_its_own(limit, rng):
    """Accurate products of this size split their operands into a workspace."""
    a, b = ([Device().put(x) for x in lists] for lists in operands(rng, [(1024, 1024, 1024)] * 4))
    want = alone(Device(), a, b)
    used = fl.cuda.memory_info()["used"]
    limit(used + 4 * 4 * 1024 * 1024 + (30 << 20))
    assert_alike([x.numpy() for x in fl.grouped_matmul(a, b)], want)


def test_the_log_names_the_kernel_of_each_shape(caplog):
    caplog.set_level(logging.DEBUG, "fastlinalg")
    fl.grouped_matmul([ones(3, 61), ones(7, 67)], [ones(61, 5), ones(67)], device="cpu")
    said = [record.message for record in caplog.records]
    assert any(line.startswith("sgemm 3x5x61 -> cpu ") for line in said), said
    assert any(line.startswith("sgemv 7x67 -> cpu ") for line in said), said


# ---------------------------------------------------------------- plans
@pytest.mark.parametrize("given", [False, True])
def test_a_plan_computes_what_its_operands_have_by_then(way, given, rng):
    """The first executions on a device are launches, a later one records a graph, and the last start it."""
    shapes = [(70, 50, 60), (512, 300, 400), (5, 5, 5), (0, 3, 2), (3, 3, 0), (1, 40, 30)]
    a, b = ([way.put(x) for x in lists] for lists in operands(rng, shapes))
    out = [way.put(np.zeros((m, n), F32)) for m, n, _ in shapes] if given else None
    with fl.GroupedMatmul(a, b, out=out, precision="strict", **way.options) as plan:
        first = plan.execute()
        for threads in (1, 1, 2, 2, 2, 2, 1):
            for x, (m, _, k) in zip(a, shapes, strict=True):
                way.set(x, normal(rng, m, k))
            with fl.num_threads(threads):
                got = plan()
            assert all(x is y for x, y in zip(got, out or first, strict=True))
            assert_alike([way.get(x) for x in got], alone(way, a, b, precision="strict"))
    assert repr(plan) == "fastlinalg.GroupedMatmul(freed)"
    with pytest.raises(ValueError, match=r"GroupedMatmul.execute\(\) after free"):
        plan()
    with fl.GroupedMatmul([], [], **way.options) as plan:
        assert plan() == [] and repr(plan) == "fastlinalg.GroupedMatmul(0 products)"


def test_what_a_plan_cannot_be_bound_to():
    x = ones(4, 4)
    with pytest.raises(ValueError, match=r"GroupedMatmul: out\[0\] overlaps an operand"):
        fl.GroupedMatmul([x, x], [x, x], out=[x, None])
    unaligned = np.frombuffer(b"." + x.tobytes(), np.uint8)[1:].view(F32).reshape(4, 4)
    with pytest.raises(ValueError, match=r"the elements of b\[1\] are not aligned"):
        fl.GroupedMatmul([x, x], [x, unaligned])
    with pytest.raises(ValueError, match=r"GroupedMatmul, member 0: operands with shapes"):
        fl.GroupedMatmul([x], [ones(3, 4)])
    with pytest.raises(TypeError, match="neither pickled nor copied"):
        pickle.dumps(fl.GroupedMatmul([x], [x]))
