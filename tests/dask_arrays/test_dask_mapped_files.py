"""Operands in files, which tasks map and leave mapped for a moment."""

from __future__ import annotations

import os
import pickle
import threading
import time
import weakref

import numpy as np
import pytest

from support.accuracy import assert_product
from support.dask_arrays import da, fld
from support.operands import normal

mapped_files = fld._mapped_files
TIMEOUT_S = 60


@pytest.mark.parametrize("order", ["C", "F"])
def test_maps_of_files_are_sent_by_name(order, rng, tmp_path):
    a, b = normal(rng, 40, 60), normal(rng, 60, 30)
    mapped = np.memmap(tmp_path / "a", np.float32, "w+", 64, (40, 60), order)
    mapped[:] = a
    for operand, values in ((mapped, a), (mapped[3:, ::2], a[3:, ::2])):
        right = b[: values.shape[1]]
        product = fld.matmul(operand, da.from_array(right, 11))
        sent = sum(len(pickle.dumps(task)) for key, task in product.dask.items() if operand is mapped)
        assert sent < 40 * 60 * 4 * 2
        assert_product(product.compute(), values, right)


@pytest.mark.parametrize("mode", ["c", "gone"])
def test_numbers_that_are_in_no_file_are_read_where_they_are(mode, rng, tmp_path):
    a, b = normal(rng, 40, 60), normal(rng, 60, 30)
    (-a).tofile(tmp_path / "a")
    mapped = np.memmap(tmp_path / "a", np.float32, "r+" if mode == "gone" else mode, shape=a.shape)
    mapped[:] = a
    if mode == "gone":
        os.remove(tmp_path / "a")
    assert_product(fld.matmul(mapped, da.from_array(b, 11)).compute(), a, b)


def test_a_product_of_a_file_that_has_been_written_is_another_one(rng, tmp_path):
    mapped, b = np.memmap(tmp_path / "a", np.float32, "w+", shape=(40, 60)), da.ones((60, 30), dtype=np.float32)
    first = fld.matmul(mapped, b)
    mapped[:] = 1
    assert fld.matmul(mapped, b).name != first.name, "a scheduler may keep the first"


@pytest.fixture
def mapped_file(rng, tmp_path):
    """A file, its values, and it as operands have it."""
    values = normal(rng, 40, 60)
    values.tofile(tmp_path / "a")
    file = mapped_files.MemoryMap(str(tmp_path / "a"), values.dtype, values.shape, 0, "C")
    return tmp_path / "a", values, file


def test_a_file_stays_mapped_for_the_next_task(mapped_file):
    _, values, file = mapped_file
    first = file[3:, ::2]
    assert np.array_equal(first, values[3:, ::2]) and not first.flags.writeable
    assert np.shares_memory(pickle.loads(pickle.dumps(file))[:], first)


def test_what_is_written_into_a_mapped_file_is_seen(mapped_file):
    path, values, file = mapped_file
    assert file[0, 0] == values[0, 0]
    np.memmap(path, np.float32, "r+", 0, values.shape)[0, 0] = 7
    assert file[0, 0] == 7


def test_another_file_of_the_same_name_is_mapped_anew(mapped_file):
    path, values, file = mapped_file
    first = file[:]
    (-values).tofile(path.with_name("b"))
    os.replace(path.with_name("b"), path)
    assert np.array_equal(file[:], -values) and np.array_equal(first, values)


def test_a_file_that_has_gone_or_become_shorter_is_an_error(mapped_file):
    path, _, file = mapped_file
    file[:1]
    os.truncate(path, 100)
    with pytest.raises(ValueError, match="length"):
        file[:1]
    os.remove(path)
    with pytest.raises(FileNotFoundError, match="a"):
        file[:1]


def test_an_idle_file_is_unmapped(mapped_file, monkeypatch):
    monkeypatch.setattr(mapped_files, "KEEP_S", 0.05)
    mapping = weakref.ref(mapped_file[2][:1]._mmap)
    end = time.monotonic() + TIMEOUT_S
    while mapping() is not None:
        assert time.monotonic() < end
        time.sleep(0.02)


def test_many_reads_wait_for_one_timer(mapped_file):
    _, _, file = mapped_file
    before = sum(isinstance(thread, threading.Timer) for thread in threading.enumerate())
    for _ in range(50):
        file[0]
    assert sum(isinstance(thread, threading.Timer) for thread in threading.enumerate()) <= before + 1
