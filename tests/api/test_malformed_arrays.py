"""Arrays whose description cannot be true: errors, whatever a producer says."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import fastlinalg as fl


class Tensor(ctypes.Structure):  # a DLManagedTensor
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("dtype", ctypes.c_uint8 * 4),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.c_void_p),
        ("offset", ctypes.c_uint64),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    ]


def capsule(
    shape=(2, 2), ndim=2, device_type=1, device_id=0, memory=True, strides=None, shapeless=False, bits=32, offset=0
):
    """A capsule of 1 and three zeros, or of so many bits of them, that says what it is told to."""
    sizes, data = (ctypes.c_int64 * len(shape))(*shape), (ctypes.c_float * 4)(1)
    steps = (ctypes.c_int64 * len(strides))(*strides) if strides else None
    tensor = Tensor(ctypes.addressof(data) if memory else 0, device_type, device_id, ndim, (2, bits, 1, 0))
    tensor.offset = offset
    tensor.shape, tensor.strides = None if shapeless else sizes, ctypes.addressof(steps) if steps else None
    exports.append((tensor, sizes, data, steps))
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    return new(ctypes.addressof(tensor), b"dltensor", None)


exports = []  # what capsules point to


class Says:
    """1 and three zeros of which this is said."""

    def __init__(self, device=(1, 0), **said):
        self.device, self.said = device, said

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **keywords):
        return capsule(**self.said)


def test_descriptions():
    a = np.ones((2, 2), np.float32)
    assert fl.matmul(Says(), a).tolist() == [[1, 1], [0, 0]]
    high = Says(shape=(1, 1), bits=16, offset=2)  # of 1.0, as float16
    assert fl.matmul(high, a[:1], dtype=np.float32).tolist() == [[1.875, 1.875]]
    with pytest.raises(TypeError, match=r"a.__dlpack_device__\(\) gave \('cpu', 0\)"):
        fl.matmul(Says(device=("cpu", 0)), a)
    with pytest.raises(TypeError, match=r"DLPack device type 1, and __dlpack__\(\) an array on type 2"):
        fl.matmul(Says(device_type=2), a)
    with pytest.raises(ValueError, match="size -2"):
        fl.matmul(Says(shape=(-2, 2)), a)
    with pytest.raises(ValueError, match="-1 dimensions"):
        fl.matmul(Says(ndim=-1), a)
    for device in (None, (1,), (1, 0, 0), "ab", 7):
        with pytest.raises(TypeError, match=r"a.__dlpack_device__\(\) gave .*, and has to give two integers"):
            fl.matmul(Says(device=device), a)
    with pytest.raises(TypeError, match="2 dimensions and no shape"):
        fl.matmul(Says(shapeless=True), a)
    for call in (lambda x: fl.matmul(x, a), lambda x: fl.matmul(a, a, out=x), lambda x: fl.Matmul(a, x)):
        with pytest.raises(ValueError, match="has elements, and its memory is at address 0"):
            call(Says(memory=False))
    assert fl.matmul(Says(memory=False, shape=(0, 2)), a).shape == (0, 2)
    for said in (
        {"shape": (2**40, 2**40)},
        {"shape": (2**61, 2), "strides": (2, 1)},
        {"strides": (-(2**63), 1)},
        {"shape": (3, 2), "strides": (2**62, -(2**62))},
    ):
        with pytest.raises(ValueError, match="larger than the address space"):
            fl.transpose(Says(**said))
    assert fl.transpose(Says(shape=(1, 2), strides=(-(2**63), 1))).shape == (2, 1), "of one element it means nothing"
    with pytest.raises(TypeError, match="DeviceArray without memory"):
        fl.matmul(fl.DeviceArray.__new__(fl.DeviceArray), a)
    with pytest.raises(TypeError, match="masked"):
        fl.DeviceArray.from_numpy(np.ma.masked_array(a, a > 0))


@pytest.mark.parametrize(
    "entry", [{"shape": (2, "x")}, {"shape": (2**70, 2)}, {"data": (None, False)}, {"data": ("x", False)}]
)
def test_interfaces(entry):
    class Interface:
        __cuda_array_interface__ = {"shape": (2, 2), "typestr": "<f4", "data": (4096, False), "version": 3} | entry

    with pytest.raises(TypeError, match=f"'{next(iter(entry))}', where an integer has to be"):
        fl.matmul(Interface(), Interface())


@pytest.mark.gpu
def test_another_device_than_announced():
    with pytest.raises(TypeError, match=r"a.__dlpack_device__\(\) gave cuda:0, and __dlpack__\(\) an array on cuda:7"):
        fl.matmul(Says(device=(2, 0), device_type=2, device_id=7), Says(device=(2, 0), device_type=2))
