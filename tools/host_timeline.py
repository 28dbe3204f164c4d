#!/usr/bin/env python3
"""Draw what happens when in a product of NumPy arrays on the GPU: docs/host_timeline.png.

tools/host_timeline.py record stamps.json    on a machine with a GPU: the fastest of some calls per size
tools/host_timeline.py draw stamps.json docs/host_timeline.png
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

SIZES = (1024, 2048, 8192)
LANES = (("sent", "arrived", "copies in"), ("queued", "computed", "products"), ("fetched", "filled", "copies out"))


def record(path: Path) -> None:
    import numpy as np

    import fastlinalg as fl
    from fastlinalg import _core

    rng = np.random.default_rng(0)
    best: dict[str, Any] = {}
    for n in SIZES:
        operands = [rng.standard_normal((2, n, n), dtype=np.float32) for _ in range(4)]
        out = np.zeros((n, n), np.float32)
        for a, b in operands * 4:
            stamps = _core.host_call_stamps(lambda a=a, b=b, out=out: fl.matmul(a, b, out=out, device="cuda"))
            if str(n) not in best or stamps[-1][2] < best[str(n)][-1][2]:
                best[str(n)] = stamps
    path.write_text(json.dumps(best))


def bars(stamps: list[Any], begin: str, end: str) -> list[tuple[float, float]]:
    """Start and length of each: it begins when it has been queued and the one before it is done."""
    begun = [us for what, _, us in stamps if what == begin]
    done = [us for what, _, us in stamps if what == end]
    starts = [max(b, d) for b, d in zip(begun, [0.0, *done], strict=False)]
    return [(start, us - start) for start, us in zip(starts, done, strict=False)]


def draw(source: Path, target: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    calls = json.loads(source.read_text())
    figure, axes = pyplot.subplots(len(calls), 1, figsize=(9, 1.7 * len(calls)), layout="constrained")
    for axis, (n, stamps) in zip(axes, calls.items(), strict=True):
        for lane, (begin, end, _) in enumerate(LANES):
            axis.broken_barh(bars(stamps, begin, end), (lane - 0.4, 0.8), facecolors=f"C{lane}", edgecolors="white")
        axis.set_yticks(range(len(LANES)), [lane[2] for lane in LANES])
        axis.invert_yaxis()
        axis.set_xlim(0, stamps[-1][2])
        axis.set_xlabel("microseconds")
        axis.set_title(f"{n} x {n} x {n}, {stamps[-1][2] / 1e3:.2f} ms", loc="left", fontsize="medium")
    figure.savefig(target, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, files in (("record", ["stamps"]), ("draw", ["stamps", "picture"])):
        command = commands.add_parser(name)
        for file in files:
            command.add_argument(file, type=Path)
    options = parser.parse_args()
    if options.command == "record":
        record(options.stamps)
    else:
        draw(options.stamps, options.picture)


if __name__ == "__main__":
    main()
