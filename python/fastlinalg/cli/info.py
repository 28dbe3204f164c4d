"""``fastlinalg info``: what was built, what this machine has, and which kernels it can run."""

from __future__ import annotations

import argparse
import json
import textwrap
from dataclasses import asdict
from typing import Any

import fastlinalg as fl

from .._check import OPS
from ._text import aligned


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser("info", help="show the build, the machine and the kernel table")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def cuda_version(number: int) -> str:
    """13000 is "13.0"."""
    return f"{number // 1000}.{number % 1000 // 10}"


def collect() -> dict[str, Any]:
    """All that is shown, as plain data."""
    kernels = [asdict(kernel) for op in OPS for kernel in fl.kernels(op)]
    return {**fl.info(), "devices": fl.devices(), "kernels": kernels}


def summary(data: dict[str, Any]) -> list[tuple[str, str]]:
    """The lines above the kernel table."""
    cpu, cuda = data["cpu"], data["cuda"]
    rows = [("fastlinalg", data["version"])]
    if data["cuda_built"]:
        rows.append(("build", f"CUDA {cuda_version(cuda['runtime'])}, architectures {data['architectures']}"))
    else:
        rows.append(("build", "without CUDA"))
    rows.append(("cpu", f"{cpu['isa']}, {cpu['threads']} of at most {cpu['max_threads']} threads"))
    rows.append(("driver", f"CUDA {cuda_version(cuda['driver'])}" if cuda["driver"] else "none"))
    for device in data["devices"]:
        facts = (
            device["name"],
            f"compute capability {device['compute_capability']}",
            f"{device['sm_count']} SMs at up to {device['clock_khz'] / 1000:.0f} MHz",
            f"{device['memory'] / 2**30:.1f} GiB",
            f"L2 {device['l2_cache'] / 2**20:.0f} MiB",
            f"float32 peak {device['peak_gflops'] / 1000:.1f} TFLOP/s",
        )
        rows.append((f"cuda:{device['ordinal']}", ", ".join(facts)))
    if not data["devices"]:
        rows.append(("cuda", f"no device: {unavailable(cuda)}"))
    if cuda["missing_code"]:
        rows.append(("warning", f"kernels are missing: {cuda['missing_code']}"))
    return rows


def unavailable(cuda: dict[str, Any]) -> str:
    """Why there is no CUDA device."""
    return f"{cuda['message']} ({cuda['name']}, code {cuda['code']})" if cuda["name"] else str(cuda["message"])


def kernel_table(kernels: list[dict[str, Any]]) -> list[str]:
    """One line per kernel, then why some of them cannot run, once per reason."""
    rows = [("OP", "KERNEL", "DEVICE", "NEEDS", "RUNS", "")]
    missing: dict[str, list[str]] = {}
    for row in kernels:
        rows.append(
            (
                row["op"],
                row["name"],
                row["device"],
                row["needs"],
                "yes" if row["available"] else "no",
                row["blurb"],
            )
        )
        if not row["available"]:
            missing.setdefault(row["reason"], []).append(f"{row['op']} {row['name']}")
    lines = aligned(rows)
    for reason, names in missing.items():
        lines += [
            "",
            f"Not here, because {reason}:",
            *textwrap.wrap(", ".join(names), 100, initial_indent="  ", subsequent_indent="  "),
        ]
    return lines


def run(args: argparse.Namespace) -> int:
    data = collect()
    if args.json:
        print(json.dumps(data, indent=2))
        return 0
    print("\n".join([*aligned(summary(data)), "", *kernel_table(data["kernels"])]))
    return 0
