"""Each test on the CPU, where the mode is made to hold, and on a CUDA device."""

from __future__ import annotations

import pytest


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request):
    return request.param


@pytest.fixture
def normal(device):
    """Normal numbers of a fixed seed, on the device."""
    import torch

    generator = torch.Generator().manual_seed(20240229)

    def make(*shape, requires_grad=False, dtype=torch.float32):
        x = torch.randn(*shape, generator=generator, dtype=dtype).to(device)
        return x.requires_grad_(requires_grad)

    return make
