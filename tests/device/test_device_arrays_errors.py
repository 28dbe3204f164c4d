"""What is refused of arrays in device memory, the interfaces as documented, and fastlinalg.DeviceArray."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import fastlinalg as fl
from support.accuracy import assert_product, assert_same_bits
from support.device_libraries import LIBRARIES, Announced, Cupy, Own, Torch
from support.operands import normal

pytestmark = pytest.mark.gpu
F32 = np.float32


# ---------------------------------------------------------------- what is refused
def test_mixed_places_are_refused(writable, rng):
    a = normal(rng, 4, 4)
    device = writable.put(a)
    for call in (
        lambda: fl.matmul(a, device),
        lambda: fl.matmul(device, a),
        lambda: fl.matmul(device, device, out=np.empty((4, 4), F32)),
        lambda: fl.sgemm(device, device, a, beta=1.0),
        lambda: fl.matmul(a, a, out=device),
    ):
        with pytest.raises(ValueError, match=r"host memory.*cuda:0|cuda:0.*host memory"):
            call()


def test_streams_that_dlpack_does_not_have(rng):
    x = fl.DeviceArray.from_numpy(normal(rng, 4, 4))
    for stream in (None, -1, 1, 2):
        assert "dltensor" in repr(x.__dlpack__(stream=stream))
    for stream in (0, -2):
        with pytest.raises(ValueError, match=f"stream={stream} is no CUDA stream"):
            x.__dlpack__(stream=stream)


@pytest.mark.parametrize("device", ["cpu", "cuda:1"])
def test_another_device_is_refused(writable, device, rng):
    a = writable.put(normal(rng, 4, 4))
    with pytest.raises(ValueError, match=f"(?s)a is in the memory of cuda:0.*{device}"):
        fl.matmul(a, a, device=device)


def test_a_device_that_is_not_there():
    a, others = np.ones((3, 3), F32), len(fl.devices()) - 1
    text = "there is no device cuda:99; this machine has cuda:0 " + (f"to cuda:{others}" if others else "only")
    for call in (
        lambda: fl.matmul(a, a, device="cuda:99"),
        lambda: fl.DeviceArray.from_numpy(a, device="cuda:99"),
        lambda: fl.cuda.set_memory_limit(1, 99),
        lambda: fl.cuda.memory_info(99),
        lambda: fl.cuda.trim(99),
    ):
        with pytest.raises(fl.CudaError, match=text) as error:
            call()
        assert error.value.name == "cudaErrorInvalidDevice"


@pytest.mark.parametrize("device", ["cuda", "cuda:0", "auto"])
def test_their_own_device_is_taken(device, rng):
    own = Own()
    a = normal(rng, 4, 4)
    assert_product(own.get(fl.matmul(own.put(a), own.put(a), device=device)), a, a)


def test_the_environment_does_not_move_device_arrays(python):
    python(
        "import numpy as np, fastlinalg as fl\n"
        "x = fl.DeviceArray.from_numpy(np.ones((2, 2), np.float32))\n"
        "assert fl.matmul(x, x).numpy()[0, 0] == 2\n",
        FASTLINALG_DEVICE="cpu",
    )


@pytest.mark.parametrize("dtype", ["float64", "float16", "int32", "complex64", "bool"])
def test_dtypes_are_never_cast(dtype):
    torch, cupy, numba = Torch(), Cupy(), LIBRARIES["numba"]()
    wrong = {
        ".to(torch.float32)": torch.lib.zeros((2, 2), dtype=getattr(torch.lib, dtype), device="cuda"),
        ".astype('float32')": cupy.lib.zeros((2, 2), dtype),
        "float32": numba.lib.to_device(np.zeros((2, 2), dtype)),
    }
    for cast, array in wrong.items():
        with pytest.raises(TypeError) as caught:
            fl.matmul(array, array)
        message = str(caught.value)
        assert "a must have dtype float32" in message and cast in message and dtype in message, message


def test_lazy_tensors_are_refused():
    torch = pytest.importorskip("torch")
    a = torch.ones((3, 3), device="cuda")
    with pytest.raises(TypeError, match=r"requires grad.*\.detach\(\)"):
        fl.matmul(a, torch.nn.Parameter(a.clone()))
    assert fl.matmul(a, torch.nn.Parameter(a.clone(), requires_grad=False))[0, 0] == 3
    z = torch.ones((3, 3), dtype=torch.complex64, device="cuda").conj().imag
    assert z.is_neg()
    with pytest.raises(TypeError, match=r"resolve_neg\(\)"):
        fl.matmul(a, z)
    with pytest.raises(TypeError, match="requires grad"):
        fl.matmul(a, a, out=torch.empty((3, 3), device="cuda", requires_grad=True))


def test_cuda_array_interface_as_documented(rng):
    a = normal(rng, 6, 4)
    own = fl.DeviceArray.from_numpy(a)
    pointer = own.__cuda_array_interface__["data"][0]
    good = {
        "plain": ({}, a),
        "strides": ({"strides": (16, 4)}, a),
        "a view": ({"shape": (3, 2), "strides": (32, 8)}, a[::2, ::2]),
        "backwards": ({"data": (pointer + 5 * 16, False), "strides": (-16, 4)}, a[::-1]),
        "read-only": ({"data": (pointer, True)}, a),
        "legacy stream": ({"stream": 1}, a),
        "per-thread stream": ({"stream": 2}, a),
        "no stream": ({"stream": None}, a),
        "version 2": ({"version": 2}, a),
    }
    for name, (changes, want) in good.items():
        assert_same_bits(fl.transpose(Announced(own, **changes)).numpy(), want.T, name)
    bad = {
        "mask": ({"mask": own}, TypeError, "mask"),
        "typestr": ({"typestr": "<f8"}, TypeError, "float32"),
        "big-endian": ({"typestr": ">f4"}, TypeError, "float32"),
        "stream 0": ({"stream": 0}, TypeError, "stream 0"),
        "unaligned": ({"data": (pointer + 2, False)}, ValueError, "aligned"),
        "unaligned strides": ({"strides": (16, 2)}, ValueError, "aligned"),
        "host memory": ({"data": (a.ctypes.data, False)}, ValueError, "no CUDA device"),
        "strides and shape": ({"strides": (4,)}, TypeError, "strides"),
    }
    for changes, error, match in bad.values():
        with pytest.raises(error, match=match):
            fl.transpose(Announced(own, **changes))
    with pytest.raises(ValueError, match="out is read-only"):
        fl.transpose(own, out=Announced(fl.DeviceArray.from_numpy(a.T), data=(pointer, True)))


# ---------------------------------------------------------------- DeviceArray
def test_a_device_array_belongs_to_its_process():
    for send in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match=r"memory of cuda:0 that belongs to this process.*send x\.numpy\(\)"):
            send(fl.DeviceArray.from_numpy(np.ones((2, 2), F32)))


def test_device_array(rng):
    a = normal(rng, 5, 7)
    x = fl.DeviceArray.from_numpy(a[:, ::-1])
    assert (x.shape, x.ndim, x.size, x.nbytes, x.dtype, len(x)) == ((5, 7), 2, 35, 140, F32, 5)
    assert x.strides == (28, 4) and x.device == "cuda:0" and x.stream > 2
    assert repr(x) == "fastlinalg.DeviceArray(shape=(5, 7), dtype=float32, device='cuda:0')"
    assert x.__dlpack_device__() == (2, 0)
    assert_same_bits(x.numpy(), a[:, ::-1])
    with pytest.raises(TypeError, match=r"\.numpy\(\)"):
        np.asarray(x)
    with pytest.raises(TypeError, match="float32"):
        fl.DeviceArray.from_numpy(a.astype(np.float64))
    with pytest.raises(TypeError):
        len(fl.DeviceArray.from_numpy(np.float32(3)))
    empty = fl.DeviceArray.from_numpy(np.zeros((0, 3), F32))
    assert empty.numpy().shape == (0, 3)


def test_device_array_goes_to_every_library(rng):
    torch, cupy, numba, jax = Torch(), Cupy(), LIBRARIES["numba"](), LIBRARIES["jax"]()
    a = normal(rng, 5, 7)
    x = fl.DeviceArray.from_numpy(a)
    assert_same_bits(torch.get(torch.lib.from_dlpack(x)), a)
    assert_same_bits(cupy.get(cupy.lib.from_dlpack(x)), a)
    assert_same_bits(cupy.get(cupy.lib.asarray(x)), a)  # the CUDA array interface
    assert_same_bits(numba.lib.as_cuda_array(x).copy_to_host(), a)
    assert_same_bits(jax.get(jax.lib.from_dlpack(x)), a)
    with pytest.raises(BufferError):
        x.__dlpack__(dl_device=(1, 0))
    with pytest.raises(BufferError):
        x.__dlpack__(copy=True)
    assert "dltensor_versioned" in repr(x.__dlpack__(max_version=(1, 0)))
    assert '"dltensor"' in repr(x.__dlpack__(max_version=(0, 8)))


def test_memory_goes_back(rng):
    def used():
        fl.DeviceArray.from_numpy(np.zeros(1, F32)).numpy()
        return fl.cuda.memory_info()["used"]

    before = used()
    for _ in range(20):
        x = fl.DeviceArray.from_numpy(normal(rng, 512, 512))
        y = fl.matmul(x, x)
        unused, taken = y.__dlpack__(stream=-1), np.dtype(F32)
        del x, y, unused, taken
    assert used() == before
