"""Normal data: float32, and the real types that `dtype=np.float32` converts, with values to tell them by."""

from __future__ import annotations

import numpy as np

from support.requirements import missing

# Of the library's own conversion, of NumPy's for the rest (another byte order, longdouble).
CONVERTED = ("f8", "f2", "bfloat16", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?", "g", ">f8", ">i4")
HALVES = ("f2", "bfloat16")
ORDERS = {
    "C": lambda x: x,
    "F": np.asfortranarray,
    "steps": lambda x: np.repeat(np.repeat(x, 2, 0), 3, 1)[::2, ::3],
    "backwards": lambda x: x[::-1, ::-1],
}


def normal(rng, *shape):
    return rng.standard_normal(shape, dtype=np.float32)


def normal_of(*shape, seed=0):
    """The same for a shape and a seed, whoever else draws."""
    return normal(np.random.default_rng([seed, *shape]), *shape)


def dtype_of(name: str) -> np.dtype:
    if name != "bfloat16":
        return np.dtype(name)
    try:
        import ml_dtypes
    except ImportError:
        missing("ml_dtypes", "ml_dtypes is not installed")
    return np.dtype(ml_dtypes.bfloat16)


def numbers(name: str, *shape: int, seed: int = 0) -> np.ndarray:
    """Normal data of three digits, all of them in float64 and of the larger integers."""
    rng = np.random.default_rng([seed, *shape])
    scale = 1e12 if name in ("i8", "u8") else 1e8 if name in ("i4", "u4", ">i4") else 30.0
    values = rng.standard_normal(shape) * scale
    dtype = dtype_of(name)
    return (np.abs(values) if dtype.kind == "u" else values).astype(dtype)


def halves(name: str, *shape: int, seed: int = 0) -> np.ndarray:
    """Subnormal numbers among them, and what float16 is too small for."""
    x = np.random.default_rng([seed, *shape]).standard_normal(shape)
    x = np.ldexp(x, (np.arange(x.size) % 23 - 20).reshape(shape))
    return x.astype(dtype_of(name))


def as_float32(x: np.ndarray) -> np.ndarray:
    return x if x.dtype == np.float32 else x.astype(np.float32, order="K")
