"""The table of C functions that torch publishes for its tensors, with a made-up torch in place of the real one."""

from __future__ import annotations

import pytest

# A module `torch` whose tensors are NumPy arrays, with a table written in ctypes after the DLPack specification.
FAKE = """
import ctypes, sys, types
import numpy as np

class Version(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32)]
class DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]
class Managed(ctypes.Structure):
    _fields_ = [("version", Version), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
                ("flags", ctypes.c_uint64), ("tensor", DLTensor)]
SetError = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)
Allocate = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.POINTER(DLTensor), ctypes.POINTER(ctypes.POINTER(Managed)),
                             ctypes.c_void_p, SetError)
FromObject = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(DLTensor))
ToObject = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.POINTER(Managed), ctypes.POINTER(ctypes.c_void_p))
Stream = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))

class Table(ctypes.Structure):
    _fields_ = [("version", Version), ("previous", ctypes.c_void_p), ("allocate", Allocate),
                ("managed_from", ctypes.c_void_p), ("to_object", ToObject), ("from_object", FromObject),
                ("stream", Stream)]

calls, alive, tables = [], [], []

class Tensor:
    requires_grad = False
    negative = False
    def __init__(self, array):
        self.array = array
        self.sizes = (ctypes.c_int64 * max(array.ndim, 1))(*array.shape)
        self.steps = (ctypes.c_int64 * max(array.ndim, 1))(*(s // array.itemsize for s in array.strides))
    def is_neg(self): return self.negative
    def detach(self): return type(self)(self.array)
    @property
    def dtype(self): return "torch." + self.array.dtype.name
    def __dlpack_device__(self): return (1, 0)
    def __dlpack__(self, **keywords):
        calls.append("__dlpack__"); return self.array.__dlpack__(**keywords)
    def new_empty(self, shape, dtype):
        assert dtype == "torch.float32"
        calls.append("new_empty"); return type(self)(np.full(shape, np.nan, np.float32))

def described(tensor):
    a = tensor.array
    code, bits = {"f": 2, "i": 0}[a.dtype.kind], a.itemsize * 8
    return DLTensor(a.ctypes.data, 1, 0, a.ndim, code, bits, 1, tensor.sizes, tensor.steps, 0)
@FromObject
def from_object(tensor, out):
    calls.append("from_object")
    out[0] = described(tensor)
    return 0
@Allocate
def allocate(prototype, out, context, set_error):
    calls.append("allocate")
    p = prototype[0]
    shape = tuple(p.shape[i] for i in range(p.ndim))
    if shape == (13, 13):
        set_error(context, b"MemoryError", b"unlucky"); return -1
    assert (p.device_type, p.code, p.bits, p.lanes) == (1, 2, 32, 1)
    tensor = Tensor(np.full(shape, np.nan, np.float32))
    managed = Managed(context=id(tensor), tensor=described(tensor))
    alive.append((tensor, managed)); out[0] = ctypes.pointer(managed)
    return 0
@ToObject
def to_object(managed, out):
    tensor = next(t for t, m in alive if id(t) == managed[0].context)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(tensor)); out[0] = id(tensor)
    return 0
@Stream
def stream(kind, device, out):
    out[0] = None; return 0

def publish(major):
    table = Table(Version(major, 3), None, allocate, None, to_object, from_object, stream)
    tables.append(table)
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new(ctypes.addressof(table), b"dlpack_exchange_api", None)

torch = types.ModuleType("torch"); torch.Tensor = Tensor; sys.modules["torch"] = torch
torch.is_grad_enabled, torch.float32 = lambda: True, "torch.float32"
rng = np.random.default_rng(1)
a, b = rng.random((5, 4), np.float32), rng.random((4, 6), np.float32)
import fastlinalg as fl
"""


def test_the_table_is_used(python):
    python(
        FAKE
        + """
Tensor.__dlpack_c_exchange_api__ = publish(1)
r = fl.matmul(Tensor(a), Tensor(b))
assert type(r) is Tensor and np.allclose(r.array, a @ b)
assert calls == ["from_object", "from_object", "allocate"], calls
out = Tensor(np.zeros((6, 5), np.float32)[:, ::1].T)
assert fl.matmul(Tensor(a), Tensor(b), out=out) is out and np.allclose(out.array, a @ b)
assert np.allclose(fl.transpose(Tensor(a[::-2, 1:])).array, a[::-2, 1:].T)
assert fl.matmul(Tensor(a[0]), Tensor(a[0])).array.shape == ()
"""
    )


@pytest.mark.parametrize("table", ["publish(2)", "None"])
def test_without_a_table_it_goes_by_capsules(python, table):
    python(
        FAKE
        + f"""
Tensor.__dlpack_c_exchange_api__ = {table}
r = fl.matmul(Tensor(a), Tensor(b))
assert type(r) is Tensor and np.allclose(r.array, a @ b)
assert calls == ["__dlpack__", "__dlpack__", "new_empty", "__dlpack__"], calls
"""
    )


def test_subclasses_decide_themselves_what_they_export(python):
    python(
        FAKE
        + """
Tensor.__dlpack_c_exchange_api__ = publish(1)
class Traced(Tensor): pass
fl.matmul(Traced(a), Traced(b))
assert "from_object" not in calls and "__dlpack__" in calls, calls
"""
    )


def test_what_a_tensor_may_not_be(python):
    python(
        FAKE
        + """
Tensor.__dlpack_c_exchange_api__ = publish(1)
def refused(tensor, error, words):
    for call in (lambda: fl.matmul(tensor, Tensor(b)), lambda: fl.transpose(Tensor(a), out=tensor)):
        try: call()
        except error as e: assert all(word in str(e) for word in words), e
        else: raise AssertionError("accepted")
t = Tensor(a.copy()); t.requires_grad = True
refused(t, TypeError, ["requires grad", ".detach()", "fastlinalg.torch", "no_grad"])
torch.is_grad_enabled = lambda: False
assert np.allclose(fl.matmul(t, Tensor(b)).array, a @ b)
torch.is_grad_enabled, torch.float32 = lambda: True, "torch.float32"
t = Tensor(a.copy()); t.negative = True
refused(t, TypeError, ["resolve_neg()"])
refused(Tensor(a.astype(np.float64)), TypeError, ["must have dtype float32, got torch.float64"])
try: fl.matmul(Tensor(a.astype(np.float64)), Tensor(b))
except TypeError as e: assert "use a.to(torch.float32), or dtype=np.float32" in str(e), e
else: raise AssertionError("accepted")
refused(Tensor(a.astype(np.int32)), TypeError, ["float32", "torch.int32"])
n = Tensor(np.ones((13, 13), np.float32))
try: fl.matmul(n, n)
except MemoryError as e: assert "unlucky" in str(e)
else: raise AssertionError("no error")
"""
    )


def test_a_plan_keeps_the_memory_of_its_result(python):
    """`out.data = y` gives a tensor another memory: the plan goes on writing to the first, which must not be freed."""
    python(
        FAKE
        + """
import weakref
Tensor.__dlpack_c_exchange_api__ = publish(1)
out = Tensor(np.zeros((5, 6), np.float32))
memory = weakref.ref(out.array)
plan = fl.Matmul(Tensor(a), Tensor(b), out=out)
assert plan.execute() is out and np.allclose(out.array, a @ b)
out.array[...] = 0
out.array = np.zeros((5, 6), np.float32)
assert memory() is not None
plan.execute()
assert np.allclose(memory(), a @ b) and not out.array.any()
plan.free()
assert memory() is None
"""
    )
