"""Large results lie in memory of the library's own: huge pages, and freed blocks that are handed out again."""

from __future__ import annotations

import copy
import pickle
import sys

import numpy as np
import pytest

import fastlinalg as fl
from fastlinalg import _core
from support.programs import resident
from support.threads import in_threads

HUGE_PAGE = 2 << 20


def address(array):
    return array.__array_interface__["data"][0]


def make(rows, cols=1024):
    return fl.transpose(np.ones((cols, rows), np.float32), device="cpu")


def test_a_large_result_is_an_ordinary_array():
    c = make(2048)
    assert type(c) is np.ndarray and c.flags.c_contiguous and c.flags.writeable and c.flags.aligned
    assert address(c) % HUGE_PAGE == 0
    for other in (copy.deepcopy(c), pickle.loads(pickle.dumps(c)), c.copy()):
        assert (other == c).all()
    row = c[5]
    del c
    assert (row == 1).all(), "a view keeps the memory"


def test_a_freed_block_is_handed_out_again():
    c = make(2048)
    before = address(c)
    del c
    c = make(2048)
    assert address(c) == before
    other = make(2048)
    assert address(other) != before and (c == 1).all() and (other == 1).all()


@pytest.fixture
def assume(request):
    """Another machine than this one for the test."""
    request.addfinalizer(_core.testing.assume_machine)
    return _core.testing.assume_machine


def test_what_is_kept_is_bounded(assume):
    if not sys.platform.startswith("linux"):
        pytest.skip("reads /proc")

    assume(memory=8 << 30)
    for rows in range(600, 9000, 600):
        make(rows)  # whatever this machine kept before gives way
    base, most = resident() - _core.testing.kept_results()[0], _core.testing.kept_results()[1]
    blocks = (most >> 24) + 24  # 16 MiB each
    held = [make(4096) for _ in range(blocks)]
    assert resident() > base + blocks * (16 << 20) - (32 << 20)
    held.clear()
    bound = base + most + (64 << 20)
    assert resident() < bound and _core.testing.kept_results()[0] <= most
    for rows in range(600, 9000, 600):
        make(rows)
    assert resident() < bound and _core.testing.kept_results()[0] <= most
    c = make(most >> 12)  # all that is kept
    before = address(c)
    del c
    assert address(make(most >> 12)) == before, "the blocks of other sizes have given way"
    c = make((most >> 12) + 1024)  # more than is kept
    kept = _core.testing.kept_results()[0]
    del c
    assert _core.testing.kept_results()[0] == kept <= most and resident() < bound


@pytest.mark.parametrize(("gib", "kept_mib"), [(1, 256), (8, 256), (16, 512), (16.001, 512), (64, 2048), (1024, 4096)])
def test_a_32nd_of_the_memory_is_kept(gib, kept_mib, assume):
    assume(memory=int(gib * 2**30))
    assert _core.testing.kept_results()[1] == kept_mib << 20


def test_threads_never_share_a_block():
    def churn(value):
        for i in range(60):
            c = make(600 + 600 * (i % 3))
            c[...] = value
            assert (c == value).all()

    in_threads(churn, range(4))


def test_no_memory_is_a_memory_error():
    a, b = np.ones((1 << 22, 1), np.float32), np.ones((1, 1 << 22), np.float32)
    with pytest.raises(MemoryError, match="70368744177664 bytes"):
        fl.matmul(a, b)
    wide = np.broadcast_to(np.float32(1), (1 << 33, 1))
    with pytest.raises((MemoryError, ValueError)):
        fl.matmul(wide, wide.T)
    assert (make(2048) == 1).all()


OUT_OF_ROOM = """
import resource, sys
import numpy as np
import fastlinalg as fl

make = lambda rows: fl.transpose(np.ones((1024, rows), np.float32), device="cpu")
fl.set_num_threads(1)
kept = [make(4096) for _ in range(15)]  # 16 MiB each
operand = np.ones((1024, 9216), np.float32)
kept.clear()
with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (8 << 20), resource.RLIM_INFINITY))
assert (fl.transpose(operand, device="cpu") == 1).all()
"""


def test_what_is_kept_gives_way_where_memory_runs_out(python):
    if not sys.platform.startswith("linux"):
        pytest.skip("reads /proc")
    python(OUT_OF_ROOM)
