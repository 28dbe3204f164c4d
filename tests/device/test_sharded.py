"""matmul of matrices in parts on several devices: the bits of each part's own product, in any order of the streams."""

from __future__ import annotations

import gc
import re

import numpy as np
import pytest

import fastlinalg as fl
from support.accuracy import assert_product, assert_same_bits
from support.device_libraries import view
from support.operands import normal_of as normal

pytestmark = [pytest.mark.gpu, pytest.mark.gpu2]
BOTH = ["cuda:0", "cuda:1"]


@pytest.fixture(autouse=True)
def nothing_is_left():
    gc.collect()
    before = [fl.cuda.memory_info(i)["used"] for i in (0, 1)]
    yield
    fl.cuda.trim(0)  # operands of libraries whose streams are not known
    gc.collect()
    assert [fl.cuda.memory_info(i)["used"] for i in (0, 1)] == before


def put(array, device=0):
    return fl.DeviceArray.from_numpy(array, f"cuda:{device}")


def with_shape(x, select):
    """A view, as lists of parts have to say their shapes."""
    part = view(x, select)
    part.shape = part.changes["shape"]
    return part


def parts(array, cut, devices=(0, 1)):
    return [put(array[:cut], devices[0]), put(array[cut:], devices[1])]


def whole(blocks):
    assert isinstance(blocks, list) and [block.device for block in blocks] == BOTH
    return np.concatenate([block.numpy() for block in blocks])


@pytest.mark.parametrize("precision", ("strict", "accurate"))
@pytest.mark.parametrize(
    "m, cut, k, n", [(40, 15, 30, 20), (900, 450, 800, 700), (513, 1, 70, 300), (300, 300, 77, 65)]
)
def test_the_bits_of_each_part(m, cut, k, n, precision):
    """Of B in one place, on either device, or in parts, cut elsewhere and in another order of devices."""
    a, b = normal(m, k), normal(k, n, seed=1)
    want = [
        fl.matmul(put(block, i), put(b, i), precision=precision).numpy() for i, block in enumerate((a[:cut], a[cut:]))
    ]
    assert_product(np.concatenate(want), a, b)
    shared = parts(a, cut)
    for name, other in {
        "on the first": put(b),
        "on the second": put(b, 1),
        "a list of one": [put(b, 1)],
        "in parts": parts(b, k // 3),
        "the other way round": parts(b, k // 3, (1, 0)),
        "an empty part": [*parts(b, k // 2), put(b[:0])],
    }.items():
        for device in ("auto", "cuda", "cuda:all", BOTH) if len(fl.devices()) == 2 else ("auto", BOTH):
            got = fl.matmul(shared, other, precision=precision, device=device)
            assert_same_bits(whole(got), np.concatenate(want), f"{name} {device}")
    assert all(fl.cuda.memory_info(i)["used"] > 0 for i in (0, 1))


def test_a_result_is_an_operand_of_the_next():
    a, b, c = normal(500, 400), normal(400, 300, seed=1), normal(300, 200, seed=2)
    product = fl.matmul(parts(a, 200), parts(b, 100))
    assert_product(whole(fl.matmul(product, parts(c, 250))), whole(product), c)
    back = fl.matmul(tuple(parts(normal(250, 500), 130)), product)
    assert_product(whole(back), normal(250, 500), whole(product))
    one = fl.matmul(put(normal(60, 500), 1), product)  # a is one array: so is the result
    assert_same_bits(one.numpy(), fl.matmul(put(normal(60, 500), 1), put(whole(product), 1)).numpy(), "one array")


def test_views():
    """Every second row, every third column, F order: packed on their device before they are passed on."""
    a, b = normal(300, 260), normal(260, 210, seed=1)
    left, right = put(np.repeat(b[:120], 2, axis=0), 0), put(np.ascontiguousarray(b[120:].T), 1)
    b_parts = [with_shape(left, lambda x: x[::2]), with_shape(right, np.transpose)]
    a_parts = [with_shape(put(a), lambda x: x[:100]), with_shape(put(np.ascontiguousarray(a[100:].T), 1), np.transpose)]
    got = fl.matmul(a_parts, b_parts)
    assert_product(whole(got), a, b)
    strided = with_shape(put(np.repeat(b, 3, axis=1)), lambda x: x[:, ::3])
    assert_product(whole(fl.matmul(a_parts, strided)), a, b)
    few, two = normal(70, 2), normal(2, 50, seed=1)
    apart = with_shape(put(np.repeat(two, 2, axis=0), 1), lambda x: x[::2])
    assert_product(whole(fl.matmul(parts(few, 30), apart)), few, two)


def test_out_and_what_it_overlaps():
    """As if the operands had been copied first: out may be parts of a, or of b that the other device still fetches."""
    n = 40
    a, b = normal(n, n), normal(n, n, seed=1)
    want, square = whole(fl.matmul(parts(a, 20), parts(b, 20))), whole(fl.matmul(parts(a, 20), parts(a, 20)))
    for _ in range(40):
        into = parts(np.full((n, n), np.nan, np.float32), 20)
        assert fl.matmul(parts(a, 20), parts(b, 20), into) is into
        assert_same_bits(whole(into), want, "out")
        for which in "ab":
            shared = {"a": parts(a, 20), "b": parts(b, 20)}
            got = fl.matmul(shared["a"], shared["b"], shared[which], device=BOTH)
            assert got is shared[which]
            assert_same_bits(whole(got), want, f"out is {which}")
        both = parts(a, 20)
        assert_same_bits(whole(fl.matmul(both, both, both)), square, "all three")
        x, y = put(a), put(b)
        assert_same_bits(fl.matmul(x, [y], y).numpy(), fl.matmul(put(a), put(b)).numpy(), "b is no list, and out")


@pytest.mark.parametrize("which", (0, 1))
def test_operands_may_be_written_and_dropped_on_the_next_line(which):
    a, b = normal(70, 60), normal(60, 50, seed=1)
    nothing, other = put(np.zeros((30, 60), np.float32), which), put(normal(60, 50, seed=2), which)
    want = whole(fl.matmul(parts(a, 35), parts(b, 30)))
    for _ in range(500):
        a_parts, b_parts = parts(a, 35), parts(b, 30)
        with fl.Matmul(nothing, other, out=b_parts[which]) as zeros:
            got = fl.matmul(a_parts, b_parts)
            zeros.execute()  # where the other device has just read
        del a_parts, b_parts
        assert_same_bits(whole(got), want, "again")
    used = [fl.cuda.memory_info(i)["used"] for i in (0, 1)]
    del got
    assert all(fl.cuda.memory_info(i)["used"] < used[i] for i in (0, 1))


def test_empty_ones():
    a, b = normal(30, 20), normal(20, 10)
    assert_product(whole(fl.matmul([put(a), put(a[:0], 1)], parts(b, 7))), a, b)
    nothing = fl.matmul([put(a[:, :0]), put(a[:5, :0], 1)], [put(b[:0], 1)])
    assert (whole(nothing) == 0).all() and nothing[1].shape == (5, 10)
    assert [block.shape for block in fl.matmul(parts(a, 15), put(b[:, :0]))] == [(15, 0), (15, 0)]


def test_without_memory_for_a_copy_the_next_call_works(limit):
    a, b = parts(normal(600, 600), 300), parts(normal(600, 600, seed=1), 300)
    into = parts(np.full((600, 600), 7, np.float32), 300)
    limit(fl.cuda.memory_info(1)["used"] + (1 << 20), 1)
    with pytest.raises(MemoryError, match="the memory limit of cuda:1"):
        fl.matmul(a, b, into)
    assert (whole(into) == 7).all()
    limit(0, 1)
    assert_same_bits(whole(fl.matmul(a, b, into)), whole(fl.matmul(a, b)), "the next call")


def wrong():
    a, b, host = parts(normal(8, 6), 4), parts(normal(6, 5), 3), normal(8, 6)
    narrow, square, low = put(normal(4, 5), 1), put(normal(3, 4), 1), put(normal(4, 5))
    swapped = parts(normal(8, 5), 4, (1, 0))
    both, two_asked = "a is on cuda:0, cuda:1 and", "device='cuda:0,cuda:1' was asked"
    return {
        "an empty list": (lambda: fl.matmul([], b), "a is an empty list; a list of arrays is the rows of one matrix"),
        "an empty b": (lambda: fl.matmul(a, ()), "b is an empty list"),
        "host memory": (lambda: fl.matmul([host, host], b), r"a\[0\] is in host memory, .*; use device='cuda:all'"),
        "host memory in b": (lambda: fl.matmul(a, host[:, :5]), "b is in host memory"),
        "the same device": (lambda: fl.matmul([a[0], a[0]], b), r"a\[0\] and a\[1\] are both on cuda:0"),
        "no matrix": (lambda: fl.matmul(a, put(normal(6))), r"b must be a matrix, got shape \(6,?\)"),
        "unequal k": (lambda: fl.matmul([a[0], narrow], b), r"a\[1\] has shape \(4, 5\) and a\[0\] \(4, 6\)"),
        "unequal n": (lambda: fl.matmul(a, [b[0], square]), r"b\[1\] has shape \(3, 4\) and b\[0\] \(3, 5\)"),
        "another k": (lambda: fl.matmul(a, [b[0]]), "a has 6 columns and b has 3 rows"),
        "out is no list": (lambda: fl.matmul(a, b, low), "out must be a list of arrays, one for each of a"),
        "out is a list": (lambda: fl.matmul(a[0], b, [low]), "out must be an array, as a is one"),
        "out is short": (lambda: fl.matmul(a, b, [low]), "out has 1 arrays and a has 2"),
        "the shape of out": (lambda: fl.matmul(a, b, parts(normal(8, 5), 3)), r"out has shape \(3, 5\), .* \(4, 5\)"),
        "out elsewhere": (lambda: fl.matmul(a, b, swapped), r"a\[0\] is in cuda:0 and out in cuda:1"),
        "another device": (lambda: fl.matmul(a, b, device="cuda:1"), f"{both} device='cuda:1' was asked"),
        "fewer devices": (lambda: fl.matmul(a[:1], b, device=BOTH), f"a is on cuda:0 and {two_asked}"),
        "the CPU": (lambda: fl.matmul(a, b, device="cpu"), "device='cpu' was asked for"),
        "a stream": (lambda: fl.matmul(a, b, stream=2), "a stream is on one device"),
    }


def test_errors():
    for name, (call, words) in wrong().items():
        with pytest.raises(ValueError) as caught:
            call()
        assert re.search(words, str(caught.value)), (name, str(caught.value))


def test_other_types_are_refused_by_name():
    class Integers:
        shape = (4, 6)
        __cuda_array_interface__ = put(normal(4, 6)).__cuda_array_interface__ | {"typestr": "<i4"}

    with pytest.raises(TypeError, match=re.escape("a[1] must have dtype float32, got")):
        fl.matmul([put(normal(4, 6), 1), Integers()], put(normal(6, 5)))
    for numbers in ([[1.0, 2.0]], [1.0, 2.0]):
        with pytest.raises(TypeError, match=r"use np\.asarray"):
            fl.matmul(numbers, numbers)
