"""Products of Dask arrays against float64, in irregular chunks; operands of every kind; batches; order and bits."""

from __future__ import annotations

import numpy as np
import pytest

import fastlinalg as fl
from support.accuracy import assert_product, assert_same_bits
from support.dask_arrays import ReadBySlices, da, dask, fld
from support.operands import dtype_of, normal


@pytest.fixture(autouse=True)
def scheduler():
    with dask.config.set(scheduler="sync"):
        yield


def pieces(rng, size, most=9):
    """A dimension cut at random, with an empty chunk now and then."""
    sizes = []
    while sum(sizes) < size:
        sizes.append(int(rng.integers(0, min(most, size - sum(sizes)) + 1)))
    return tuple(sizes) or (0,)


def irregular(rng, x):
    return da.from_array(x, tuple(pieces(rng, size) for size in x.shape))


@pytest.mark.parametrize("split_k", [None, 1, 2, 40])
@pytest.mark.parametrize("shape", [(23, 17, 31), (1, 40, 1), (40, 1, 33), (5, 64, 5)])
def test_irregular_chunks(shape, split_k, rng):
    m, k, n = shape
    a, b = normal(rng, m, k), normal(rng, k, n)
    computed = da.where(da.ones((m, 1), bool), irregular(rng, a), 0)
    product = fld.matmul(computed, irregular(rng, b), alpha=-0.75, split_k=split_k)
    assert product.shape == (m, n) and product.dtype == np.float32
    assert_product(product.compute(), a, b, alpha=-0.75)


def test_many_partial_sums_are_summed_by_a_tree(rng):
    a, b = normal(rng, 4200, 2), normal(rng, 4200, 1)
    product = fld.matmul(da.from_array(a, (30, 2)).T, da.from_array(b, (30, 1)))
    assert sum("sum" in key[0] for key in product.dask if isinstance(key, tuple)) == 128 + 16 + 2
    assert_product(product.compute(), a.T, b)


SHAPES = [
    ((6,), (6,)),
    ((6,), (6, 4)),
    ((5, 6), (6,)),
    ((6,), (3, 6, 4)),
    ((3, 5, 6), (6,)),
    ((3, 5, 6), (6, 4)),
    ((2, 1, 5, 6), (3, 6, 4)),
    ((1, 5, 6), (3, 6, 4)),
    ((0, 6), (6, 4)),
    ((5, 0), (0, 4)),
    ((3, 0, 6), (3, 6, 0)),
    ((0, 5, 6), (6, 4)),
    ((0,), (0,)),
]


@pytest.mark.parametrize("kinds", ["dask dask", "dask numpy", "numpy dask"])
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_the_shapes_of_numpy(shapes, kinds, rng):
    a, b = (normal(rng, *shape) for shape in shapes)
    operands = [irregular(rng, x) if kind == "dask" else x for x, kind in zip((a, b), kinds.split(), strict=True)]
    product = fld.matmul(*operands)
    assert product.shape == np.matmul(a, b).shape
    assert_product(product.compute(), a, b)


@pytest.mark.parametrize("trans", [False, True])
def test_vectors(trans, rng):
    a, x, several = normal(rng, 31, 31), normal(rng, 31), normal(rng, 2, 1, 31)
    op = a.T if trans else a
    cut = irregular(rng, a)
    assert_product(fld.matvec(cut, x, trans=trans, alpha=2).compute(), op, x, alpha=2)
    got = fld.matvec(cut, irregular(rng, several), trans=trans).compute()
    assert got.shape == (2, 1, 31)
    assert_product(got[..., None], np.broadcast_to(op, (2, 1, 31, 31)), several[..., None])


def test_transposes(rng):
    for shape in ((7, 12), (3, 7, 1), (0, 4)):
        a = normal(rng, *shape)
        cut = irregular(rng, a)
        got = fld.transpose(cut)
        assert got.chunks[0] == cut.chunks[0] if a.ndim == 3 else got.chunks == cut.chunks[::-1]
        assert_same_bits(got.compute(), np.swapaxes(a, -1, -2))
    assert all(
        block.compute().flags.c_contiguous for block in fld.transpose(da.ones((4, 6), dtype="f4", chunks=3)).blocks
    )


def test_one_chunk_has_the_bits_of_the_plain_call(rng):
    a, b = normal(rng, 70, 90), normal(rng, 90, 50)
    product = fld.matmul(da.from_array(a, -1), da.from_array(b, -1), precision="strict")
    assert_same_bits(product.compute(), fl.matmul(a, b, precision="strict"))
    assert len(product.dask.layers[product.name]) == 1


def test_reproducible_products_have_the_bits_of_one_call(rng):
    a, b = normal(rng, 50, 1200), normal(rng, 1200, 40)
    want = fl.sgemm(a, b, alpha=0.3, precision="reproducible")
    left = da.from_array(a, ((20, 30), (512, 256, 256, 176)))
    for right in (da.from_array(b, ((512, 688), 40)), b):
        got = fld.matmul(left, right, alpha=0.3, precision="reproducible").compute()
        assert_same_bits(got, want)
    with pytest.raises(ValueError, match="multiples of 256 along k, got sizes \\(500, 700\\)"):
        fld.matmul(da.from_array(a, (50, ((500, 700)))), b, precision="reproducible")
    with pytest.raises(ValueError, match="split_k must be 1, got 2"):
        fld.matmul(left, b, precision="reproducible", split_k=2)
    with pytest.raises(ValueError, match="is for two matrices"):
        fld.matmul(left, b[:, 0], precision="reproducible")
    for asked, depth in {1: 256, 256: 256, 300: 512}.items():  # the least multiple of 256 from it on
        one = ReadBySlices(a)
        assert_same_bits(fld.matmul(one, b, alpha=0.3, chunks=asked, precision="reproducible").compute(), want)
        assert max(shape[1] for shape in one.read) == depth


@pytest.mark.parametrize("types", [("i8", "f8"), ("f2", "f4"), ("f4", "bfloat16"), ("f2", "bfloat16")], ids=str)
def test_other_types_with_consent(rng, types, monkeypatch):
    types = [dtype_of(name) for name in types]
    a, b = (x.astype(dtype) for x, dtype in zip((50 * normal(rng, 20, 30), normal(rng, 30, 10)), types, strict=True))
    sgemm, seen = fl.sgemm, set()

    def seeing(a, b, *given, **options):
        seen.add((a.dtype, b.dtype))
        return sgemm(a, b, *given, **options)

    monkeypatch.setattr(fl, "sgemm", seeing)
    product = fld.matmul(da.from_array(a, 7), b, dtype=np.float32)
    assert_product(product.compute(), a.astype(np.float32), b.astype(np.float32))
    assert seen == {tuple(types)}  # chunks stay as they are
    vector = fld.matvec(da.from_array(a, 7), b[:, 0], dtype=np.float32)
    assert_product(vector.compute()[:, None], a.astype(np.float32), b[:, :1].astype(np.float32))
    assert_same_bits(fld.transpose(da.from_array(b, 4), dtype=np.float32).compute(), b.T.astype(np.float32))


def test_operands_that_tasks_read(rng):
    a, b = normal(rng, 40, 60), normal(rng, 60, 30)
    chunks = fld.Chunks((16, 25), (25, 12), (16, 12))
    for one, other in ((ReadBySlices(a), ReadBySlices(b)), (ReadBySlices(a), b), (ReadBySlices(a), irregular(rng, b))):
        assert_product(fld.matmul(one, other, chunks=chunks).compute(), a, b)
        assert max(one.read)[0] <= 16
    assert_product(fld.matmul(ReadBySlices(a), ReadBySlices(b)).compute(), a, b)  # in chunks of its own choice
    both = fld.matmul(ReadBySlices(a), ReadBySlices(b), chunks=chunks, split_k=1)
    assert len(both.dask.layers[both.name]) == 9  # one task a chunk: it reads the pairs of chunks by turns
    empty = fld.matmul(ReadBySlices(a[:, :0]), ReadBySlices(b[:0]), chunks=-1)
    assert_same_bits(empty.compute(), np.zeros((40, 30), np.float32))


ASKED = {
    "an int": (7, (7, 7), 7),
    "-1": (-1, (40, 30), 60),
    "a tuple": ((16, 12), (16, 12), 60),
    "a list": ([16, -1], (16, 30), 60),
    "a dict": ({1: 12}, (40, 12), 60),
    "bytes": ("1 kiB", (16, 16), 60),
    "pieces": (((10, 30), 15), ((10, 30), 15), 60),
    "auto": ("auto", (40, 30), 60),
    "Chunks": (fld.Chunks((16, 25), (25, 12), (16, 12)), (16, 12), 25),
}


@pytest.mark.parametrize(("asked", "of_result", "depth"), ASKED.values(), ids=ASKED)
@pytest.mark.parametrize("kinds", [(irregular, irregular), (irregular, None), (None, irregular), (None, None)])
def test_chunks_that_are_asked_for(asked, of_result, depth, kinds, rng):
    a, b = normal(rng, 40, 60), normal(rng, 60, 30)
    operands = [kind(rng, x) if kind else ReadBySlices(x) for kind, x in zip(kinds, (a, b), strict=True)]
    product = fld.matmul(*operands, chunks=asked)
    assert product.chunks == da.core.normalize_chunks(of_result, (40, 30))
    assert_product(product.compute(), a, b)
    if kinds[0] is None:
        assert max(shape[1] for shape in operands[0].read) == depth


def test_the_smaller_operand_is_cut_anew(rng):
    a, b = da.ones((40, 60), dtype="f4", chunks=(20, 7)), da.ones((60, 10), dtype="f4", chunks=(25, 5))
    names = set(fld.matmul(a, b).dask.layers)
    assert a.name in names and any(name.startswith("rechunk") for name in names)
    product = fld.matmul(a, b)
    assert product.chunks == ((20, 20), (5, 5)) and (product.compute() == 60).all()


def test_the_bits_do_not_depend_on_the_scheduler(rng):
    a, b = da.from_array(normal(rng, 90, 400), (40, 33)), da.from_array(normal(rng, 400, 70), (33, 30))
    for split_k in (1, 3):
        product = fld.matmul(a, b, split_k=split_k)
        want = product.compute()
        assert_same_bits(product.compute(scheduler="threads", num_workers=5), want)
        assert_same_bits(product.compute(scheduler="threads", optimize_graph=False), want)
        assert_same_bits(fld.matmul(a, b, split_k=split_k).compute(), want)


def test_names_tell_products_apart(rng):
    a = da.from_array(normal(rng, 9, 9), 4)
    calls = [{}, {"alpha": 2}, {"precision": "strict"}, {"split_k": 2}, {"device": "cpu"}]
    names = [fld.matmul(a, a, **call).name for call in calls]
    assert len(set(names)) == len(calls) and fld.matmul(a, a).name == names[0]
    assert fld.matvec(a, a[0]).name != fld.matvec(a, a[0], trans=True).name
