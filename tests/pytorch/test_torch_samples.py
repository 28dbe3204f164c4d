"""PyTorch's own samples of the operators that the mode covers, and of what is made of them."""

from __future__ import annotations

import sys
import types
import unittest
import warnings

import pytest

from support.pytorch.mode import F32, everywhere, ours, torch

NAMES = [
    "mm", "bmm", "addmm", "baddbmm", "addbmm", "mv", "addmv", "matmul", "__rmatmul__", "nn.functional.linear",
    "nn.functional.bilinear", "einsum", "tensordot", "inner", "linalg.multi_dot", "cov",
]  # fmt: skip


@pytest.fixture(scope="module")
def samples():
    """The samples by name. PyTorch's tests need a package to compare texts, which the samples do not."""
    try:
        import expecttest  # noqa: F401
    except ImportError:
        stub = types.ModuleType("expecttest")
        stub.TestCase, stub.assert_expected_inline = unittest.TestCase, None
        sys.modules["expecttest"] = stub
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            from torch.testing._internal.common_methods_invocations import op_db
        except ImportError as error:
            pytest.skip(f"this PyTorch has no samples here: {error}")
    return {name: [op for op in op_db if op.name == name] for name in NAMES}


def _converted(x, convert):
    if isinstance(x, torch.Tensor):
        return convert(x)
    return type(x)(_converted(y, convert) for y in x) if isinstance(x, (list, tuple)) else x


def _call(op, sample, convert):
    """The result, and the tensors that require grad."""
    given = _converted([sample.input, *sample.args], convert)
    wanted = []
    _converted(given, lambda x: wanted.append(x) if x.requires_grad else None)
    return op(*given, **sample.kwargs), wanted


def _double(x):
    return x.detach().double().requires_grad_(x.requires_grad)


def _near(got, want):
    """Where rounding decides what is divided by zero (`cov` of one observation), only whether there is a number."""
    if got.shape != want.shape or not torch.equal(got.isfinite(), want.isfinite()):
        return False
    return torch.allclose(got[got.isfinite()].double(), want[want.isfinite()], rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("name", NAMES)
def test_samples(name, samples, device):
    taken = 0
    assert samples[name]
    for op in samples[name]:
        for sample in op.sample_inputs(device, F32, requires_grad=True):
            want, exact = _call(op, sample, _double)
            with everywhere() as products:
                got, given = _call(op, sample, lambda x: x)
                assert got.dtype == F32 and _near(got, want), (name, sample)
                gradients = given and torch.autograd.grad(got.sum(), given, allow_unused=True)
            exact_gradients = exact and torch.autograd.grad(want.sum(), exact, allow_unused=True)
            for x, y in zip(gradients, exact_gradients, strict=True):
                assert (x is None and y is None) or _near(x, y), (name, sample)
            taken += sum(ours(products).values())
    assert taken or name in ("inner", "nn.functional.bilinear")  # by dot, and by sums
