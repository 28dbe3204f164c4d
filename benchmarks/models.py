"""Steps of float32 models in PyTorch: "highest", fastlinalg.torch and "high" (TF32) side by side in one process.

python benchmarks/models.py
python benchmarks/models.py --cases transformer-1024 mlp-4096 --compile --json models.json

A step is a forward and a backward pass and an update by SGD, or a forward pass where the case says so: those with kept
splits of the weights too. The time is a
median of steps between CUDA events, warm; the precisions take turns. Errors are those of the loss and of all gradients
(norm of the difference over norm) against the same model in float64.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import itertools
import statistics
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import fastlinalg as fl
import fastlinalg.torch
from fastlinalg.bench import machine, records

PRECISIONS = ("highest", "fastlinalg", "high")
KEPT = "kept"  # fastlinalg, which keeps the splits of the weights
SEED = 16


# ---------------------------------------------------------------- the models
class Block(nn.Module):
    """Pre-norm attention and a feed-forward layer four times as wide."""

    def __init__(self, width: int, heads: int, causal: bool) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        qkv = self.qkv(self.norm_1(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(*qkv, is_causal=self.causal)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.narrow(nn.functional.gelu(self.wide(self.norm_2(x))))


class Transformer(nn.Module):
    def __init__(self, width: int, layers: int, vocabulary: int = 8192, length: int = 1024) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Parameter(0.02 * torch.randn(length, width))
        self.blocks = nn.Sequential(*[Block(width, width // 64, True) for _ in range(layers)])
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, vocabulary))

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.blocks(self.tokens(tokens) + self.places[: tokens.shape[1]]))


class Vision(nn.Module):
    """A vision transformer of the size of ViT-L/16."""

    def __init__(self, width: int = 1024, layers: int = 24) -> None:
        super().__init__()
        self.patches, self.places = nn.Linear(16 * 16 * 3, width), nn.Parameter(0.02 * torch.randn(196, width))
        self.blocks = nn.Sequential(*[Block(width, width // 64, False) for _ in range(layers)])
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 1000))

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.blocks(self.patches(images) + self.places).mean(1))


class Process(nn.Module):
    """The negative log likelihood of a Gaussian process: products for the kernel matrix, factorisation by PyTorch."""

    def __init__(self, dims: int = 512) -> None:
        super().__init__()
        self.scales, self.noise = nn.Parameter(torch.full((dims,), dims**-0.5)), nn.Parameter(torch.tensor(0.1))

    def forward(self, points: Tensor, values: Tensor) -> Tensor:
        x = points * self.scales
        squares = (x * x).sum(1)
        covariance = torch.exp(0.5 * (2 * (x @ x.mT) - squares[:, None] - squares).clamp(max=0))
        factor = torch.linalg.cholesky(covariance + self.noise**2 * torch.eye(len(x), device=x.device, dtype=x.dtype))
        white = torch.linalg.solve_triangular(factor, values[:, None], upper=False)
        return (0.5 * white.square().sum() + factor.diagonal().log().sum()) / len(x)


# ---------------------------------------------------------------- the cases
@dataclass(frozen=True)
class Case:
    name: str
    model: Callable[[], nn.Module]
    inputs: Callable[[], tuple[Tensor, ...]]
    loss: Callable[[Tensor], Tensor] = lambda y: y.square().mean()
    training: bool = True


def _tokens(batch: int, length: int = 1024) -> Tensor:
    return torch.randint(8192, (batch, length))


def _language_loss(y: Tensor) -> Tensor:
    """Towards tokens that do not matter for its speed."""
    targets = torch.arange(y.shape[0] * y.shape[1], device=y.device) % y.shape[2]
    return nn.functional.cross_entropy(y.flatten(0, 1), targets)


def _mlp() -> nn.Module:
    sizes = [256, *[4096] * 6, 256]
    layers = [x for m, n in itertools.pairwise(sizes) for x in (nn.Linear(m, n), nn.GELU())]
    return nn.Sequential(*layers[:-1])


CASES = [
    Case("transformer-1024", lambda: Transformer(1024, 12), lambda: (_tokens(4),), _language_loss),
    Case("transformer-4096", lambda: Transformer(4096, 4), lambda: (_tokens(4),), _language_loss),
    Case("vision", Vision, lambda: (torch.randn(64, 196, 16 * 16 * 3),)),
    Case("mlp-4096", _mlp, lambda: (torch.randn(8192, 256),)),
    Case("process-16384", Process, lambda: (torch.randn(16384, 512), torch.randn(16384)), lambda y: y),
    *(
        Case(f"inference-{b}", lambda: Transformer(1024, 12), lambda b=b: (_tokens(b, 128),), training=False)
        for b in (1, 8, 64)
    ),
]


# ---------------------------------------------------------------- a measurement
@dataclass
class Row:
    case: str
    compiled: bool
    precision: str
    ms: float
    samples_ms: list[float]
    memory_gib: float
    loss_error: float = float("nan")
    gradient_error: float = float("nan")
    calls: dict[str, int] = field(default_factory=dict)


@contextlib.contextmanager
def precision(name: str, mode: fastlinalg.torch.use | None) -> Iterator[fastlinalg.torch.Products | None]:
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if name == "high" else "highest")
    try:
        with mode or contextlib.nullcontext() as products:
            yield products
    finally:
        torch.set_float32_matmul_precision(before)


class Runner:
    """One case in one precision: its own compiled model, the parameters shared with the others."""

    def __init__(self, case: Case, model: nn.Module, inputs: tuple[Tensor, ...], name: str, compiled: bool) -> None:
        self.case, self.model, self.inputs, self.name = case, model, inputs, name
        self.call: Any = torch.compile(lambda *x: model(*x)) if compiled else model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.0)  # so that every step computes the same
        self.products: fastlinalg.torch.Products | None = None
        self.mode = None
        if name in ("fastlinalg", KEPT):
            self.mode = fastlinalg.torch.use(keep_weights=model if name == KEPT else None)

    def step(self) -> Tensor:
        with precision(self.name, self.mode) as self.products:
            if not self.case.training:
                with torch.no_grad():
                    return self.case.loss(self.call(*self.inputs))
            self.optimizer.zero_grad()
            loss = self.case.loss(self.call(*self.inputs))
            loss.backward()
            self.optimizer.step()
            return loss.detach()

    def ms(self) -> float:
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        self.step()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end)


def _float64(case: Case, model: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[Tensor, list[Tensor]]:
    exact = copy.deepcopy(model).double()
    given = tuple(x.double() if x.is_floating_point() else x for x in inputs)
    loss = case.loss(exact(*given))
    if case.training:
        loss.backward()
    return loss.detach(), [p.grad for p in exact.parameters() if p.grad is not None]


def _errors(runner: Runner, loss: Tensor, gradients: list[Tensor]) -> tuple[float, float]:
    got = runner.step()
    loss_error = ((got.double() - loss).abs() / loss.abs()).item()
    if not gradients:
        return loss_error, float("nan")
    pairs = list(zip((p.grad for p in runner.model.parameters() if p.grad is not None), gradients, strict=True))
    wrong = sum((g.double() - e).square().sum() for g, e in pairs)
    return loss_error, (wrong / sum(e.square().sum() for _, e in pairs)).sqrt().item()


def measure(case: Case, compiled: bool, steps: int, exact: bool) -> list[Row]:
    torch.manual_seed(SEED)
    with torch.device("cuda"):
        model, inputs = case.model(), case.inputs()
    want = _float64(case, model, inputs) if exact else None
    names = PRECISIONS if case.training else (*PRECISIONS, KEPT)
    runners = [Runner(case, model, inputs, name, compiled) for name in names]
    rows = []
    for runner in runners:
        for _ in range(3):
            runner.step()
        torch.cuda.reset_peak_memory_stats()
        runner.step()
        gib = torch.cuda.max_memory_allocated() / 2**30
        rows.append(Row(case.name, compiled, runner.name, 0.0, [], gib))
        if want is not None:
            rows[-1].loss_error, rows[-1].gradient_error = _errors(runner, *want)
        if runner.products is not None:
            rows[-1].calls = {f"{name} {why}".strip(): n for (name, why), n in runner.products.calls.items()}
    for _ in range(steps):
        for row, runner in zip(rows, runners, strict=True):
            row.samples_ms.append(round(runner.ms(), 4))
    for row in rows:
        row.ms = statistics.median(row.samples_ms)
    return rows


def show(rows: list[Row]) -> None:
    highest = next(row.ms for row in rows if row.precision == "highest")
    for row in rows:
        print(
            f"{row.case:18}{'compiled' if row.compiled else 'eager':10}{row.precision:12}{row.ms:9.2f} ms"
            f"{highest / row.ms:7.2f}x{row.memory_gib:8.2f} GiB  loss {row.loss_error:.1e}  gradients"
            f" {row.gradient_error:.1e}  {row.calls or ''}",
            flush=True,
        )


def main() -> int | str:
    names = [case.name for case in CASES]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", choices=names, default=names)
    parser.add_argument("--compile", action="store_true", help="compiled models too")
    parser.add_argument("--steps", type=int, default=10, help="that are timed (default: 10)")
    parser.add_argument("--no-errors", action="store_true", help="without the model in float64")
    parser.add_argument("--json", type=Path, help="a file to write")
    args = parser.parse_args()
    if not torch.cuda.is_available() or not fl.cuda.is_available():
        return "models needs a CUDA device"
    rows = []
    for case in (case for case in CASES if case.name in args.cases):
        for compiled in (False, True) if args.compile else (False,):
            new = measure(case, compiled, args.steps, not args.no_errors)
            show(new)
            rows += new
            torch.cuda.empty_cache()
    if args.json:
        head = {"commit": machine.commit(), "version": fl.__version__, "torch": torch.__version__}
        head |= {"device": fl.devices()[0]}
        records.write(args.json, head | {"rows": [asdict(row) for row in rows]})
    return 0


if __name__ == "__main__":
    sys.exit(main())
