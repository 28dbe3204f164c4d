"""What type checkers have to refuse: each line that says `wrong`, and no other. Never run."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

import fastlinalg as fl


class Tensor:
    def __dlpack__(self, *, stream: Any = None) -> Any: ...

    def __dlpack_device__(self) -> tuple[Any, int]:
        return None, 0


F4 = npt.NDArray[np.float32]
F8 = npt.NDArray[np.float64]


def operands(a: F4, d: F8, z: npt.NDArray[np.complex64], x: Tensor) -> None:
    fl.matmul(d, d)  # wrong: float64 without consent
    fl.matmul(a, d)  # wrong
    fl.matmul(a, a, dtype=np.float64)  # wrong: computed in float32 alone
    fl.matmul(z, z, dtype=np.float32)  # wrong: complex
    fl.matmul([[1.0]], a)  # wrong: a list
    fl.matmul(a, None)  # wrong
    fl.matmul(a, 2.0)  # wrong
    fl.sgemm(a, a, d, beta=1.0)  # wrong
    fl.ssyrk(d)  # wrong
    fl.sgemv(d, a)  # wrong
    fl.transpose(d)  # wrong
    fl.matmul(a, x)  # wrong: in different places
    fl.Matmul(d, d)  # wrong: plans convert nothing


def results(a: F4, d: F8, x: Tensor) -> None:
    fl.matmul(a, a, out=d)  # wrong
    fl.matmul(d, d, out=d, dtype=np.float32)  # wrong: out is float32
    fl.matmul(x, x, out=a)  # wrong
    result: F8 = fl.matmul(a, a)  # wrong: the result is float32
    number: int = fl.transpose(a)  # wrong
    tensor: Tensor = fl.sgemv(a, a)  # wrong
    print(result, number, tensor)


def options(a: F4) -> None:
    fl.matmul(a=a, b=a)  # wrong: by position alone
    fl.matmul(a, a, precision="fast")  # wrong
    fl.matmul(a, a, device=0)  # wrong
    fl.matmul(a, a, stream="default")  # wrong
    fl.sgemm(a, a, alpha="2")  # wrong
    fl.sgemm(a, a, trans_a="T")  # wrong
    fl.ssyrk(a, uplo="lower")  # wrong
    fl.sgemv(a, a, kernel=3)  # wrong
    fl.Matmul(a, a, constant="c")  # wrong
    fl.matmul(a, a, colour=1)  # wrong
    fl.set_num_threads("4")  # wrong
    fl.explain("a", "b")  # wrong
