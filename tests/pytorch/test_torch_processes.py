"""The mode in models that several processes train together, and in the processes of a data loader."""

from __future__ import annotations

import os
import socket

import pytest

from support.pytorch.mode import everywhere, flt, torch
from support.pytorch.training import train_half


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu2)])
def test_two_processes_share_their_gradients(device):
    if not torch.distributed.is_available():
        pytest.skip("this PyTorch has no torch.distributed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with everywhere() as products:
        torch.multiprocessing.spawn(train_half, (device, port), nprocs=2)
    assert not products.calls


class _Products(torch.utils.data.Dataset):
    """Each is made in a process of the loader."""

    def __len__(self):
        return 8

    def __getitem__(self, i):
        x = torch.full((16, 16), float(i))
        return (x @ x)[0, 0], os.getpid()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_data_loaders(device):
    """Their processes, forked in the mode, compute on the CPU as ever; their threads that pin memory are outside."""
    options = {"num_workers": 2, "multiprocessing_context": "fork", "pin_memory": device == "cuda"}
    got, makers = [], set()
    with flt.use() as products:
        for values, pids in torch.utils.data.DataLoader(_Products(), batch_size=2, **options):
            got += (values[:, None].to(device) @ torch.ones(1, 1, device=device)).flatten().tolist()
            makers.update(pids.tolist())
    assert got == [16.0 * i * i for i in range(8)]
    assert len(makers) == 2 and os.getpid() not in makers
    assert sum(products.calls.values()) == 4
