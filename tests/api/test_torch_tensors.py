"""Tensors of the real PyTorch on the CPU that the functions of the package take, and those that they refuse."""

from __future__ import annotations

import numpy as np
import pytest

import fastlinalg as fl

torch = pytest.importorskip("torch")


def test_tensors_that_require_grad():
    """Are refused where a gradient would be lost, and nowhere else."""
    a, b = torch.randn(5, 7, requires_grad=True), torch.randn(7, 3)
    with pytest.raises(TypeError, match=r"a requires grad.*fastlinalg\.torch.*a\.detach\(\).*no_grad"):
        fl.matmul(a, b)
    for quiet in (torch.no_grad, torch.inference_mode):
        with quiet():
            got = fl.matmul(a, b, out=torch.empty(5, 3, requires_grad=True))
        assert np.allclose(got.detach().numpy(), a.detach().numpy() @ b.numpy(), atol=1e-5)


def test_tensors_with_tangents():
    """Are refused where the tangent would be lost."""
    forward, a = torch.autograd.forward_ad, torch.eye(5)
    with forward.dual_level():
        dual = forward.make_dual(a, 2 * a)
        for x, y, name in ((dual, a, "a"), (a, dual, "b")):
            with pytest.raises(TypeError, match=rf"^{name} has a tangent.*unpack_dual\({name}\)\.primal"):
                fl.matmul(x, y)
        assert torch.equal(fl.matmul(a, forward.unpack_dual(dual).primal), a)
    assert torch.equal(fl.matmul(dual, a), a)


def test_lists_of_tensors_and_arrays():
    """The first array of the list says of which library the results are."""
    x, y = torch.eye(5), np.eye(5, dtype=np.float32)
    assert [type(c) for c in fl.grouped_matmul([x, y], [y, x])] == [torch.Tensor] * 2
    assert [type(c) for c in fl.grouped_matmul([y, x], [x, y])] == [np.ndarray] * 2


def _refused():
    yield "sparse", torch.eye(5).to_sparse()
    yield "compressed", torch.eye(5).to_sparse_csr()
    yield "meta", torch.empty(5, 5, device="meta")


@pytest.mark.parametrize(("what", "tensor"), _refused(), ids=lambda x: x if isinstance(x, str) else "")
def test_tensors_without_elements_in_memory(what, tensor):
    with pytest.raises(TypeError, match=r"^b is a torch tensor that has no elements .*layout torch\.\w+, device \w+"):
        fl.matmul(torch.eye(5), tensor)
    with pytest.raises(TypeError, match=r"^a is a torch tensor"):
        fl.transpose(tensor)


def test_tensors_under_transforms():
    from torch._subclasses.fake_tensor import FakeTensorMode

    a, b = torch.randn(4, 5, 7), torch.randn(7, 3)
    with pytest.raises(TypeError, match=r"^a is a torch tensor.*fastlinalg\.torch"):
        torch.vmap(lambda x: fl.matmul(x, b))(a)
    with FakeTensorMode() as mode, pytest.raises(TypeError, match=r"^a is a torch tensor.*FakeTensor"):
        fl.matmul(mode.from_tensor(b), mode.from_tensor(b).mT)
