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


def capsule(shape=(2, 2), ndim=2, device_type=1):
    """A capsule of four zeros that says what it is told to."""
    sizes, data = (ctypes.c_int64 * len(shape))(*shape), (ctypes.c_float * 4)()
    tensor = Tensor(ctypes.addressof(data), device_type, 0, ndim, (2, 32, 1, 0), sizes)
    exports.append((tensor, sizes, data))
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    return new(ctypes.addressof(tensor), b"dltensor", None)


exports = []  # what capsules point to


class Says:
    """Four zeros of which this is said."""

    def __init__(self, device=(1, 0), **said):
        self.device, self.said = device, said

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **keywords):
        return capsule(**self.said)


def test_descriptions():
    a = np.ones((2, 2), np.float32)
    assert (fl.matmul(Says(), a) == 0).all()
    with pytest.raises(TypeError, match=r"a.__dlpack_device__\(\) gave \('cpu', 0\)"):
        fl.matmul(Says(device=("cpu", 0)), a)
    with pytest.raises(TypeError, match=r"DLPack device type 1, and __dlpack__\(\) an array on type 2"):
        fl.matmul(Says(device_type=2), a)
    with pytest.raises(ValueError, match="size -2"):
        fl.matmul(Says(shape=(-2, 2)), a)
    with pytest.raises(ValueError, match="-1 dimensions"):
        fl.matmul(Says(ndim=-1), a)
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
