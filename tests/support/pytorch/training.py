"""What one of two processes does that train a model together. A module of its own: such processes import it by name."""

from __future__ import annotations

import os

from support.pytorch.mode import close, everywhere, flt, ours, torch

distributed = torch.distributed


def _model(device):
    torch.manual_seed(3)
    layers = torch.nn.Linear(96, 128), torch.nn.GELU(), torch.nn.Linear(128, 64)
    return torch.nn.Sequential(*layers).to(device)


def _gradients(model, x):
    model.zero_grad()
    model(x).square().mean().backward()
    return [p.grad.double().cpu() for p in model.parameters()]


def _halves():
    return torch.randn(64, 96, generator=torch.Generator().manual_seed(5)).chunk(2)


def train_half(rank: int, device: str, port: int) -> None:
    """Of two processes: the gradients are the means over both."""
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    place = torch.device(device, rank) if device == "cuda" else torch.device(device)
    options = {"device_id": place} if device == "cuda" else {}
    distributed.init_process_group("nccl" if device == "cuda" else "gloo", rank=rank, world_size=2, **options)
    try:
        torch.set_num_threads(1)
        exact = _gradients(_model("cpu").double(), torch.cat(_halves()).double())
        model = torch.nn.parallel.DistributedDataParallel(_model(place), [place] if device == "cuda" else None)
        assert flt._mode._current() is None  # the mode of the process that started this one does not hold here
        with everywhere() as products:
            got = _gradients(model, _halves()[rank].to(place))
        assert ours(products) == {"addmm": 2, "mm": 3}, str(products)
        assert all(close(g, want) for g, want in zip(got, exact, strict=True))
    finally:
        distributed.destroy_process_group()
