"""A transformer's weights in bfloat16 under activations in float32, beside float32 weights and all in bfloat16.

    python benchmarks/weights.py [--batches 1,8,64] [--tokens 128] [--rounds 15] [--json FILE]

Twelve layers of width 1024 (GPT-2's form, no dropout), forward, without gradients. The first contender is PyTorch with
float32 weights ("highest"); the error of each is that of its output in norm, relative to the same network with the same
bfloat16 weights in float64. `weights_mib` is what the weights take, `peak_mib` what a call allocates beside them.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from calls import DRAINED, NO_LIMIT_US, parse, report
from torch import Tensor

import fastlinalg.torch
from fastlinalg.bench.timing import Plan, alternating

WIDTH, LAYERS, HEADS = 1024, 12, 16
SHAPES = ((3 * WIDTH, WIDTH), (WIDTH, WIDTH), (4 * WIDTH, WIDTH), (WIDTH, 4 * WIDTH))
MIB = 2.0**20
Linear = Callable[[Tensor, Tensor], Tensor]


def network(x: Tensor, weights: list[tuple[Tensor, ...]], linear: Linear) -> Tensor:
    batch, tokens, _ = x.shape
    for qkv, out, up, down in weights:
        heads = linear(F.layer_norm(x, (WIDTH,)), qkv).view(batch, tokens, 3, HEADS, WIDTH // HEADS)
        attended = F.scaled_dot_product_attention(*heads.permute(2, 0, 3, 1, 4), is_causal=True)
        x = x + linear(attended.transpose(1, 2).reshape(x.shape), out)
        x = x + linear(F.gelu(linear(F.layer_norm(x, (WIDTH,)), up)), down)
    return x


def converting(x: Tensor, weight: Tensor) -> Tensor:
    return F.linear(x, weight.float())


# Of each contender: the type of the weights, that of the activations, and the product.
CONTENDERS: dict[str, tuple[torch.dtype, torch.dtype, Linear]] = {
    "torch, float32": (torch.float32, torch.float32, F.linear),
    "torch, weight.float()": (torch.bfloat16, torch.float32, converting),
    "torch, all bfloat16": (torch.bfloat16, torch.bfloat16, F.linear),
    "float32 weights": (torch.float32, torch.float32, fastlinalg.torch.linear),
    "bfloat16 weights": (
        torch.bfloat16, torch.float32, functools.partial(fastlinalg.torch.linear, dtype=torch.float32)
    ),
}  # fmt: skip


def peak_mib(call: Callable[[], Any]) -> float:
    fastlinalg.cuda.trim()  # workspaces of the library, which PyTorch does not see, are allocated anew
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before, reserved = torch.cuda.memory_allocated(), fastlinalg.cuda.memory_info()["reserved"]
    call()
    torch.cuda.synchronize()
    ours = fastlinalg.cuda.memory_info()["reserved"] - reserved
    return (torch.cuda.max_memory_allocated() - before + ours) / MIB


@torch.no_grad()
def measure(batch: int, tokens: int, rounds: int) -> list[dict[str, Any]]:
    make = torch.Generator("cuda").manual_seed(batch)
    normal = functools.partial(torch.randn, device="cuda", generator=make)
    stored = [tuple((normal(n, k) / k**0.5).bfloat16() for n, k in SHAPES) for _ in range(LAYERS)]
    x = normal(batch, tokens, WIDTH)
    want = network(x.double(), [tuple(w.double() for w in layer) for layer in stored], F.linear)
    rows, calls = [], {}
    for name, (held, active, linear) in CONTENDERS.items():
        weights = [tuple(w.to(held) for w in layer) for layer in stored]
        call = functools.partial(network, x.to(active), weights, linear)
        error = float((call().double() - want).norm() / want.norm())
        calls[name] = lambda call=call: (call(), torch.cuda.synchronize())
        held_mib = sum(w.nbytes for layer in weights for w in layer) / MIB
        rows.append({"batch": batch, "call": name, "weights_mib": held_mib, "peak_mib": peak_mib(call), "error": error})
    found = alternating(calls, Plan(rounds, NO_LIMIT_US), DRAINED)
    first = found[rows[0]["call"]]
    return [row | {"us": found[row["call"]].median, "speed": found[row["call"]].speed_against(first)} for row in rows]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", default="1,8,64")
    parser.add_argument("--tokens", type=int, default=128)
    args = parse(parser)
    torch.set_float32_matmul_precision("highest")
    rows = (row for batch in map(int, args.batches.split(",")) for row in measure(batch, args.tokens, args.rounds))
    line = "{batch:4} {call:22} {us:10.0f} us {speed:6.2f} {weights_mib:6.0f} {peak_mib:7.0f} MiB {error:9.2e}"
    report(rows, line, args.json, "cuda")


if __name__ == "__main__":
    main()
