"""Train a small language model in float32 by PyTorch's own products, by fastlinalg's and in TF32, beside float64.

The text is Python's manual of itself, which comes with every Python. All runs begin with the same weights and see the
same batches, so what sets them apart is rounding alone: how far is each curve of the loss from that in float64?

It needs the extra `torch` (pip install '.[torch]').

Run: python examples/train_float32.py [--device cuda|cpu] [--steps 500] [--csv curves.csv]
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import sys
import time
from pathlib import Path
from pydoc_data.topics import topics

import torch
from torch import Tensor, nn

import fastlinalg.torch

RUNS = ("float64", "highest", "fastlinalg", "high")  # the last three in float32
LENGTH, SEED = 256, 0


class Model(nn.Module):
    """A transformer of bytes."""

    def __init__(self, width: int, layers: int = 4) -> None:
        super().__init__()
        self.symbols, self.places = nn.Embedding(256, width), nn.Parameter(0.02 * torch.randn(LENGTH, width))
        block = nn.TransformerEncoderLayer(
            width, width // 32, 4 * width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.blocks = nn.TransformerEncoder(block, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, 256)

    def forward(self, x: Tensor) -> Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(LENGTH, device=x.device, dtype=self.places.dtype)
        return self.head(self.blocks(self.symbols(x) + self.places, mask=mask, is_causal=True))


def batches(text: Tensor, steps: int, batch: int) -> Tensor:
    """The same for every run: ``(steps, batch, LENGTH + 1)``."""
    starts = torch.randint(len(text) - LENGTH, (steps, batch, 1), generator=torch.Generator().manual_seed(SEED))
    return text[starts + torch.arange(LENGTH + 1)]


def train(run: str, width: int, data: Tensor) -> tuple[Tensor, Tensor, str]:
    """The loss of each step, and the weights at the end, both in float64; and whose products they were."""
    torch.manual_seed(SEED)
    model = Model(width).to(data.device, torch.float64 if run == "float64" else torch.float32)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    torch.set_float32_matmul_precision("high" if run == "high" else "highest")
    losses = []
    with fastlinalg.torch.use() if run == "fastlinalg" else contextlib.nullcontext() as products:
        for batch in data:
            y = model(batch[:, :-1])
            loss = nn.functional.cross_entropy(y.flatten(0, 1), batch[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
    name = run
    if products is not None:
        print(f"# products of {run}, {products}")
        if all(why for _, why in products.calls):  # there was no CUDA device, say
            name = f"{run} (PyTorch's)"
    weights = torch.cat([p.detach().double().flatten() for p in model.parameters()])
    return torch.stack(losses).double().cpu(), weights.cpu(), name


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument(
        "--steps", type=int, default=500, help="500 by default, which take a CPU hours; 5 take it minutes"
    )
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--csv", type=Path, help="a file for the curves")
    args = parser.parse_args()

    text = torch.tensor(list("\n".join(topics[name] for name in sorted(topics)).encode()))
    data = batches(text, args.steps, args.batch).to(args.device)
    curves, ends, names, seconds = {}, {}, {}, {}
    for run in RUNS:
        start = time.perf_counter()
        curves[run], ends[run], names[run] = train(run, args.width, data)
        seconds[run] = time.perf_counter() - start

    exact, end = curves["float64"], ends["float64"]
    print(f"{'run':25}{'seconds':>9}{'last loss':>11}{'off by at most':>16}{'on average':>12}{'weights off':>13}")
    for run in RUNS:
        off, last = (curves[run] - exact).abs(), curves[run][-1]
        weights = (ends[run] - end).norm() / end.norm()
        print(f"{names[run]:25}{seconds[run]:9.1f}{last:11.4f}{off.max():16.1e}{off.mean():12.1e}{weights:13.1e}")
    if args.csv:
        with args.csv.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["step", *RUNS])
            writer.writerows([step, *(float(curves[run][step]) for run in RUNS)] for step in range(args.steps))
    print("each run learns" if all(curves[run][-1] < curves[run][0] for run in RUNS) else "a run has not learnt")
    return 0 if all(curves[run][-1] < curves[run][0] for run in RUNS) else 1


if __name__ == "__main__":
    sys.exit(main())
