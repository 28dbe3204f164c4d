"""Bad arguments are told by the call that makes the graph: what was given, and what is wanted."""

from __future__ import annotations

import numpy as np
import pytest

from support.dask_arrays import ReadBySlices, da, fld

A = da.ones((6, 4), dtype="f4", chunks=2)
B = da.ones((4, 5), dtype="f4", chunks=2)
HOST = np.ones((4, 5), np.float32)
READ = ReadBySlices(HOST)
UNKNOWN = A[A[:, 0] > 0]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda: fld.matmul(A, A),
            ValueError,
            r"\(6, 4\).*axis -1 of a, of size 4.*axis -2 of b, of size 6",
        ),
        (lambda: fld.matmul(A[0], A), ValueError, r"do not match.*of b, of size 6.*axis -1 of a, of size 4"),
        (lambda: fld.matvec(A, A[:, 0]), ValueError, r"axis -1 of a, of size 4, and axis -1 of x, of size 6"),
        (lambda: fld.matmul(A[None][[0] * 3], A.T[None][[0] * 2]), ValueError, "cannot be broadcast"),
        (lambda: fld.matmul(UNKNOWN, B), ValueError, r"known sizes.*axis 0.*a\.compute_chunk_sizes\(\)"),
        (lambda: fld.matmul(B.T, UNKNOWN.T), ValueError, r"axis 1 .*b\.compute_chunk_sizes\(\)"),
        (lambda: fld.transpose(UNKNOWN), ValueError, r"a\.compute_chunk_sizes\(\)"),
        (lambda: fld.matmul(A.astype("f8"), B), TypeError, "a must have dtype float32, got float64.*dtype=np.float32"),
        (lambda: fld.matmul(A, B.astype("f8")), TypeError, "b must have dtype float32, got float64"),
        (lambda: fld.matmul(A, np.ones(4)), TypeError, "b must have dtype float32, got float64"),
        (lambda: fld.matmul(np.ones(6), A), TypeError, "a must have dtype float32, got float64"),
        (lambda: fld.matvec(A, np.ones(4)), TypeError, "x must have dtype float32, got float64"),
        (lambda: fld.transpose(A.astype("i4")), TypeError, "a must have dtype float32, got int32"),
        (lambda: fld.matmul(A.astype(complex), B, dtype=np.float32), TypeError, "complex"),
        (lambda: fld.matmul(A, B, dtype=np.float64), TypeError, "dtype must be None or np.float32"),
        (lambda: fld.matmul(HOST.T, HOST), TypeError, r"got two NumPy arrays; use fastlinalg\.matmul"),
        (lambda: fld.matvec(HOST, HOST[0]), TypeError, r"use fastlinalg\.sgemv"),
        (lambda: fld.matmul([[1.0]], B), TypeError, "a must be a Dask array.*got list"),
        (lambda: fld.transpose(HOST), TypeError, r"a must be a Dask array, got ndarray; use da\.from_array"),
        (
            lambda: fld.matmul(da.ones((), dtype="f4"), B),
            ValueError,
            r"at least 1 dimension, got shape \(\)",
        ),
        (lambda: fld.matvec(A[0], A[0]), ValueError, r"a must have at least 2 dimensions, got shape \(4,\)"),
        (lambda: fld.transpose(A[0]), ValueError, r"at least 2 dimensions, got shape \(4,\)"),
        (lambda: fld.matmul(A, B, device="gpu"), ValueError, "device must be 'auto'.*got 'gpu'"),
        (lambda: fld.transpose(A, device="gpu"), ValueError, "device must be 'auto'.*got 'gpu'"),
        (lambda: fld.transpose(A, device=7), TypeError, "device must be 'auto'.*got 7"),
        (lambda: fld.matmul(A, B, precision="best"), ValueError, "precision must be .*'best'"),
        (lambda: fld.matmul(A, B, alpha="x"), TypeError, "alpha must be a real number, got 'x'"),
        (lambda: fld.matmul(A, B, split_k=0), ValueError, "split_k must be at least 1, got 0"),
        (lambda: fld.matmul(A, B, split_k=1.5), TypeError, "split_k must be an integer or None, got 1.5"),
        (lambda: fld.matmul(A, B, chunks=1.5), TypeError, "chunks must be an int .* got 1.5: of type float"),
        (lambda: fld.matmul(HOST.T, READ, chunks=True), TypeError, "got True: of type bool"),
        (lambda: fld.matmul(A, B, chunks=0), ValueError, "got 0: a size of 0"),
        (lambda: fld.matmul(A, B, chunks="much"), ValueError, "got 'much': .*byte unit"),
        (lambda: fld.matmul(A, READ, chunks=(1, 2, 3)), ValueError, r"got \(1, 2, 3\): .*same length"),
        (lambda: fld.matmul(A, B, chunks=((3, 4), 2)), ValueError, "do not add up"),
        (lambda: fld.matmul(A, B, chunks={-1: 2}), ValueError, "got {-1: 2}: of such axes there are 2"),
        (lambda: fld.matvec(A, B[:, 0], chunks=(2, 2)), ValueError, "do not add up"),
        (lambda: fld.matmul(A[0], B[:, 0], chunks=(2,)), ValueError, "two vectors has neither"),
        (
            lambda: fld.matmul(A, B, chunks=fld.Chunks((1, 2), (3, 4), (1, 4))),
            ValueError,
            "not equal along what is equal",
        ),
        (lambda: fld.matmul(A, B, chunks=fld.Chunks(1, 2, 3)), TypeError, "got Chunks.a=1, b=2, c=3."),
        (lambda: fld.suggest_chunks(-1, 2, 3), ValueError, "m must be at least 0, got -1"),
        (lambda: fld.suggest_chunks(1, 2.5, 3), TypeError, "n must be an integer, got 2.5"),
        (lambda: fld.suggest_chunks(1, 2, True), TypeError, "k must be an integer, got True"),
        (lambda: fld.suggest_chunks(1, 2, 3, workers=0), ValueError, "workers must be at least 1, got 0"),
        (lambda: fld.suggest_chunks(1, 2, 3, memory=8), ValueError, "memory=8 is too little"),
        (lambda: fld.suggest_chunks(1, 2, 3, memory="2 gigs"), ValueError, "memory must be a number of bytes or text"),
    ],
)
def test_bad_arguments(call, error, words):
    with pytest.raises(error, match=f"(?s){words}"):
        call()


@pytest.mark.parametrize("device", ["cuda", "cuda:1", "cuda:all", ["cuda:0", "cuda:2"]])
def test_the_device_is_the_workers(device):
    """The machine that makes the graph need not have it."""
    assert fld.matmul(A, B, device=device).shape == (6, 5)
    assert fld.transpose(A, device=device).shape == (4, 6)
