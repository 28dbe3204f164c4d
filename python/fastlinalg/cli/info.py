"""``fastlinalg info``: what was built, what this machine has, and what decides how calls are answered; and
``fastlinalg show-versions``: what a bug report needs.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import fastlinalg as fl

from .._info import OPERATIONS, cuda_version, settings
from .._text import aligned
from .kernels import reasons


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser("info", help="show the build and the machine")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)
    versions = subparsers.add_parser("show-versions", help="show what a bug report needs")
    versions.set_defaults(run=show_versions)


def summary(data: dict[str, Any], kernels: list[fl.Kernel]) -> list[tuple[str, str]]:
    """What was built, what is there, and how many kernels that makes."""
    cpu, cuda = data["cpu"], data["cuda"]
    rows = [("fastlinalg", data["version"])]
    if data["cuda_built"]:
        rows.append(("build", f"{cuda_version(cuda['runtime'])}, architectures {data['architectures']}"))
    else:
        rows.append(("build", "without CUDA"))
    rows.append(("cpu", f"{cpu['isa']}, {cpu['threads']} threads, CPUs for {cpu['max_threads']}"))
    rows.append(("python", f"{data['python']}, NumPy {data['numpy']}"))
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
    runs = sum(kernel.available for kernel in kernels)
    rows += [*settings(data), ("kernels", f"{runs} of {len(kernels)} run here; fastlinalg kernels shows them")]
    return rows + [("", reason) for reason in reasons(kernels)]


def unavailable(cuda: dict[str, Any]) -> str:
    """Why there is no CUDA device."""
    return f"{cuda['message']} ({cuda['name']}, code {cuda['code']})" if cuda["name"] else str(cuda["message"])


def show_versions(_: argparse.Namespace) -> int:
    fl.show_versions()
    return 0


def run(args: argparse.Namespace) -> int:
    data = {**fl.info(), "devices": fl.devices()}
    kernels = [kernel for op in OPERATIONS for kernel in fl.kernels(op)]
    print(json.dumps(data, indent=2) if args.json else "\n".join(aligned(summary(data, kernels))))
    return 0
