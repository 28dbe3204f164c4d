"""Workers in processes of their own: bits, the loss of one, files, annotations. One cluster for the whole file."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest

from support.accuracy import assert_product, assert_same_bits
from support.dask_arrays import da, dask, distributed, fld
from support.operands import normal
from support.programs import patient


@pytest.fixture(scope="module")
def client():
    quiet = {"distributed.logging.distributed": "error", "distributed.worker.daemon": True}
    with (
        dask.config.set(quiet),
        distributed.LocalCluster(
            2,
            threads_per_worker=1,
            memory_limit="1 GiB",
            dashboard_address=None,
            resources={"GPU": 1},
            silence_logs=50,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        client.wait_for_workers(2, patient(60))
        yield client


def read(folder, seed, killed=None):
    """A function for the chunks of a random matrix; the first call for the chunk `killed` ends its worker."""
    marker = os.path.join(folder, "killed")

    def block(block_info=None):
        place = block_info[None]
        if place["chunk-location"] == killed and not os.path.exists(marker):
            open(marker, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return np.random.default_rng((seed, *place["chunk-location"])).standard_normal(place["chunk-shape"], "f4")

    return block


def matrices(folder, killed=None):
    chunks = ((50,) * 4, (60,) * 6)
    meta = np.empty((0, 0), np.float32)
    a = da.map_blocks(read(folder, 1), chunks=chunks, dtype=np.float32, meta=meta)
    b = da.map_blocks(read(folder, 2, killed), chunks=chunks[::-1], dtype=np.float32, meta=meta)
    return a, b


def test_a_worker_that_is_killed_in_the_midst(client, tmp_path):
    """What it held is computed again, on the others: the result has the bits that it has without."""
    split_k = 2  # two chains of three links for each chunk of the result
    a, b = dask.compute(*matrices(str(tmp_path)), scheduler="sync")
    want = fld.matmul(*matrices(str(tmp_path)), split_k=split_k).compute(scheduler="sync")
    got = fld.matmul(*matrices(str(tmp_path), killed=(4, 2)), split_k=split_k).compute()
    assert (tmp_path / "killed").exists()
    assert_same_bits(got, want)
    assert_product(got, a, b)
    client.wait_for_workers(2, patient(60))


def test_the_bits_of_threads(client, rng):
    a, x = normal(rng, 300, 200), normal(rng, 200)
    cut = da.from_array(a, (130, 60))
    for product in (fld.matmul(cut, cut.T), fld.matvec(cut, x), fld.transpose(cut)):
        assert_same_bits(product.compute(), product.compute(scheduler="threads"))
    assert_same_bits(fld.matmul(cut, cut.T).compute(optimize_graph=False), fld.matmul(cut, cut.T).compute())


def test_from_zarr_to_zarr(client, rng, tmp_path):
    zarr = pytest.importorskip("zarr")
    a, b = normal(rng, 70, 90), normal(rng, 90, 50)
    made = {"mode": "w", "dtype": "f4"}
    stored = [
        zarr.open_array(str(tmp_path / n), shape=x.shape, chunks=(20, 20), **made) for n, x in (("a", a), ("b", b))
    ]
    for array, values in zip(stored, (a, b), strict=True):
        array[:] = values
    result = zarr.open_array(str(tmp_path / "c"), shape=(70, 50), chunks=(30, 13), **made)
    fld.matmul(*stored, chunks=(40, 20)).to_zarr(result)  # whose tasks would write parts of one file
    assert_product(result[:], a, b)
    product = fld.matmul(*stored, chunks=result.chunks)
    assert product.chunks == ((30, 30, 10), (13, 13, 13, 11))
    product.to_zarr(str(tmp_path / "d"))
    assert zarr.open_array(str(tmp_path / "d")).chunks == (30, 13)


def test_a_map_of_a_file(client, rng, tmp_path):
    a, b = normal(rng, 40, 60), normal(rng, 60, 30)
    np.save(tmp_path / "a.npy", a)
    mapped = np.load(tmp_path / "a.npy", mmap_mode="r")
    assert_product(fld.matmul(mapped, da.from_array(b, 20)).compute(), a, b)


def test_tasks_ask_for_a_gpu_where_they_are_told_to(client, rng):
    """What is annotated when it is computed, all of it; or the layers of the product, if Dask fuses no tasks."""

    def asked():
        found = client.run_on_scheduler(
            lambda dask_scheduler: [(task.key, task.resource_restrictions) for task in dask_scheduler.tasks.values()]
        )
        return {"product": [w for key, w in found if "matmul" in key[0]], "all": [wanted for _, wanted in found]}

    a = da.from_array(normal(rng, 20, 20), 10)
    with dask.annotate(resources={"GPU": 1}):
        product = fld.matmul(a, a)
        future = client.compute(product)
        distributed.wait(future, patient(60))
    assert asked()["all"] and all(wanted == {"GPU": 1} for wanted in asked()["all"])
    with dask.config.set({"optimization.fuse.active": False}):
        future = client.compute(fld.matmul(a + 1, product))
        distributed.wait(future, patient(60))
    assert asked()["product"].count({"GPU": 1}) == 8


def test_chunks_for_the_current_client(client):
    """Two workers with 1 GiB and one thread each."""
    assert fld.suggest_chunks(10**5, 10**5, 10**5) == fld.suggest_chunks(
        10**5, 10**5, 10**5, memory="1 GiB", workers=2, threads=1
    )
