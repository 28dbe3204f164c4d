"""``fastlinalg info``: what was built, what this machine has, and which kernels it can run."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from dataclasses import asdict
from typing import Any

import fastlinalg as fl

from .._info import OPERATIONS, cuda_version
from .._text import aligned


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser("info", help="show the build and the machine")
    parser.add_argument("--kernels", action="store_true", help="show the kernel table too")
    parser.add_argument("--json", action="store_true", help="print all of it as one JSON object")
    parser.set_defaults(run=run)


def collect() -> dict[str, Any]:
    """All that is shown, as plain data."""
    kernels = [asdict(kernel) for op in OPERATIONS for kernel in fl.kernels(op)]
    return {**fl.info(), "devices": fl.devices(), "kernels": kernels}


def summary(data: dict[str, Any]) -> list[tuple[str, str]]:
    """What was built, what is there, and how many kernels that makes."""
    cpu, cuda = data["cpu"], data["cuda"]
    rows = [("fastlinalg", data["version"])]
    if data["cuda_built"]:
        rows.append(("build", f"{cuda_version(cuda['runtime'])}, architectures {data['architectures']}"))
    else:
        rows.append(("build", "without CUDA"))
    rows.append(("cpu", f"{cpu['isa']}, {cpu['threads']} of at most {cpu['max_threads']} threads"))
    rows.append(("driver", cuda_version(cuda["driver"])))
    for device in data["devices"]:
        facts = (
            device["name"],
            f"compute capability {device['compute_capability']}"
            + (f" ({device['pretended']})" if device["pretended"] else ""),
            f"{device['sm_count']} SMs at up to {device['clock_khz'] / 1000:.0f} MHz",
            f"{device['memory'] / 2**30:.1f} GiB",
            f"L2 {device['l2_cache'] / 2**20:.0f} MiB",
            f"float32 peak {device['peak_gflops'] / 1000:.1f} TFLOP/s",
        )
        rows.append((f"cuda:{device['ordinal']}", ", ".join(facts)))
    if not data["devices"]:
        rows.append(("cuda", f"no device: {unavailable(cuda)}"))
    return rows + kernel_counts(data["kernels"])


def kernel_counts(kernels: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """How many kernels this machine can run, and one line for each reason why it cannot run the others."""
    reasons = Counter(row["reason"] for row in kernels if not row["available"])
    runs = len(kernels) - reasons.total()
    missing = [("", f"{count} not here: {reason}") for reason, count in reasons.items()]
    passed_over = Counter(row["passed_over"] for row in kernels if row["available"] and row["passed_over"])
    by_name = [("", f"{count} by name alone: {reason}") for reason, count in passed_over.items()]
    return [("kernels", f"{runs} of {len(kernels)} run here; info --kernels shows them"), *missing, *by_name]


def unavailable(cuda: dict[str, Any]) -> str:
    """Why there is no CUDA device."""
    return f"{cuda['message']} ({cuda['name']}, code {cuda['code']})" if cuda["name"] else str(cuda["message"])


def kernel_table(kernels: list[dict[str, Any]]) -> list[str]:
    """One line per kernel."""
    rows = [("OP", "KERNEL", "DEVICE", "NEEDS", "RUNS", "")]
    for row in kernels:
        runs = "no" if not row["available"] else "by name" if row["passed_over"] else "yes"
        rows.append((row["op"], row["name"], row["device"], row["needs"], runs, row["blurb"]))
    return aligned(rows)


def run(args: argparse.Namespace) -> int:
    data = collect()
    if args.json:
        print(json.dumps(data, indent=2))
        return 0
    table = ["", *kernel_table(data["kernels"])] if args.kernels else []
    print("\n".join([*aligned(summary(data)), *table]))
    return 0
