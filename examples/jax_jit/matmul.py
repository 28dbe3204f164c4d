"""fastlinalg's float32 products inside ``jax.jit``, with gradients and ``vmap``, by XLA's foreign function interface.

The handler beside this file is compiled once, by the C++ compiler of the machine with the headers that JAX installs.

It needs JAX (pip install jax).

Run: python examples/jax_jit/matmul.py
"""

from __future__ import annotations

import ctypes
import functools
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import fastlinalg as fl


# ---------------------------------------------------------------- the operator
def compile_handler(folder: Path) -> ctypes.CDLL:
    source, library = Path(__file__).with_name("handler.cpp"), folder / "handler.so"
    compiler = os.environ.get("CXX", "c++")
    headers = [f"-I{fl.get_include()}", "-isystem", jax.ffi.include_dir()]
    called = Path(fl.get_cmake_dir()).parents[1] / "libfastlinalg.so"
    command = [compiler, "-std=c++17", "-O2", "-shared", "-fPIC", *headers, source, called, "-o", library]
    subprocess.run([str(part) for part in command], check=True)
    fl.load_library()
    return ctypes.CDLL(str(library))


def register(folder: Path) -> None:
    handler = compile_handler(folder)
    for platform, symbol in (("cpu", "fastlinalg_matmul_cpu"), ("CUDA", "fastlinalg_matmul_cuda")):
        jax.ffi.register_ffi_target("fastlinalg_matmul", jax.ffi.pycapsule(getattr(handler, symbol)), platform=platform)


def _call(a: jax.Array, b: jax.Array, trans_a: bool, trans_b: bool) -> jax.Array:
    """Of matrices or equal stacks of them, each of which may be stored as its transpose."""
    shape = (*a.shape[:-2], a.shape[-1 if trans_a else -2], b.shape[-2 if trans_b else -1])
    call = jax.ffi.ffi_call("fastlinalg_matmul", jax.ShapeDtypeStruct(shape, jnp.float32), vmap_method="broadcast_all")
    return call(a, b, trans_a=trans_a, trans_b=trans_b)


@functools.partial(jax.custom_vjp, nondiff_argnums=(2, 3))
def _product(a: jax.Array, b: jax.Array, trans_a: bool, trans_b: bool) -> jax.Array:
    return _call(a, b, trans_a, trans_b)


def _forward(a, b, trans_a, trans_b):
    return _product(a, b, trans_a, trans_b), (a, b)


def _backward(trans_a, trans_b, operands, grad):
    """No transpose is made: each product reads what is stored."""
    a, b = operands
    grad_a = _product(b, grad, trans_b, True) if trans_a else _product(grad, b, False, not trans_b)
    grad_b = _product(grad, a, True, trans_a) if trans_b else _product(a, grad, not trans_a, False)
    return grad_a, grad_b


_product.defvjp(_forward, _backward)


def matmul(a: jax.Array, b: jax.Array) -> jax.Array:
    """Of float32 matrices, or stacks of as many."""
    if a.dtype != jnp.float32 or b.dtype != jnp.float32:
        raise TypeError(f"matmul takes float32 arrays, got {a.dtype} and {b.dtype}")
    if a.ndim != b.ndim or a.ndim < 2 or a.shape[:-2] != b.shape[:-2] or a.shape[-1] != b.shape[-2]:
        raise ValueError(f"matmul: shapes {a.shape} and {b.shape} do not match")
    return _product(a, b, False, False)


# ---------------------------------------------------------------- what it is good for
def loss(weights: tuple[jax.Array, jax.Array], x: jax.Array, product=matmul) -> jax.Array:
    return jnp.mean(jnp.square(product(jnp.tanh(product(x, weights[0])), weights[1])))


def error(got: jax.Array, want: np.ndarray) -> float:
    return float(np.linalg.norm(np.asarray(got, np.float64) - want) / np.linalg.norm(want))


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        register(Path(folder))
        rng = np.random.default_rng(1)
        x, *weights = (rng.standard_normal(s).astype(np.float32) for s in ((512, 300), (300, 400), (400, 200)))
        step = jax.jit(jax.value_and_grad(loss))
        value, gradients = step(tuple(map(jnp.asarray, weights)), jnp.asarray(x))

        hidden = np.tanh(x.astype(np.float64) @ weights[0])
        out = hidden @ weights[1].astype(np.float64)
        grad_out = 2 * out / out.size
        grad_1 = hidden.T @ grad_out
        grad_0 = x.astype(np.float64).T @ ((grad_out @ weights[1].T) * (1 - hidden**2))
        print(f"on {jax.devices()[0]}: loss {float(value):.6f}, in float64 {np.mean(out**2):.6f}")
        errors = [error(g, w) for g, w in zip(gradients, (grad_0, grad_1), strict=True)]
        print("errors of the gradients:", ", ".join(f"{e:.1e}" for e in errors))

        stacks = jnp.asarray(rng.standard_normal((3, 64, 300)).astype(np.float32))
        mapped = jax.jit(jax.vmap(matmul, (0, None)))(stacks, jnp.asarray(weights[0]))
        errors.append(error(mapped, np.asarray(stacks, np.float64) @ weights[0]))
        print(f"error under vmap: {errors[-1]:.1e}")
    return 0 if max(errors) < 1e-5 else 1


if __name__ == "__main__":
    sys.exit(main())
