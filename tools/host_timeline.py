#!/usr/bin/env python3
"""Draw what happens when in a product of NumPy arrays on the GPU: docs/host_timeline.png.

tools/host_timeline.py record trace.json    on a machine with a GPU: the fastest of some calls per size
tools/host_timeline.py draw trace.json docs/host_timeline.png
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

SIZES = (1024, 2048, 8192)
# what begins, what ends it, and which event before it names what it needs, by the event of its arrival
LANES = (
    ("copies in", "sent", "arrived", ("", "")),
    ("products", "queued", "computed", ("sent", "arrived")),
    ("copies out", "fetched", "filled", ("awaited", "computed")),
)


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
            events = _core.host_call_trace(lambda a=a, b=b, out=out: fl.matmul(a, b, out=out, device="cuda"))
            if str(n) not in best or events[-1][2] < best[str(n)][-1][2]:
                best[str(n)] = events
    path.write_text(json.dumps(best))


def bars(events: list[Any], begin: str, end: str, needs: tuple[str, str]) -> list[tuple[float, float]]:
    """Start and length of each: it begins when it is queued, what it needs is there and the one before is done."""
    done = {index: us for what, index, us in events if what == end}
    there = {index: us for what, index, us in events if what == needs[1]}
    result, needed, last = [], 0.0, 0.0
    for what, index, us in events:
        if what == needs[0]:
            needed = there.get(index, 0.0)
        if what == begin:
            start = min(max(us, needed, last), done[index])
            last = done[index]
            result.append((start, last - start))
    return result


def draw(source: Path, target: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    calls = json.loads(source.read_text())
    figure, axes = pyplot.subplots(len(calls), 1, figsize=(9, 1.7 * len(calls)), layout="constrained")
    for axis, (n, events) in zip(axes, calls.items(), strict=True):
        for lane, (_, begin, end, needs) in enumerate(LANES):
            axis.broken_barh(
                bars(events, begin, end, needs), (lane - 0.4, 0.8), facecolors=f"C{lane}", edgecolors="white"
            )
        axis.set_yticks(range(len(LANES)), [lane[0] for lane in LANES])
        axis.invert_yaxis()
        axis.set_xlim(0, events[-1][2])
        axis.set_xlabel("microseconds")
        axis.set_title(f"{n} x {n} x {n}, {events[-1][2] / 1e3:.2f} ms", loc="left", fontsize="medium")
    figure.savefig(target, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, files in (("record", ["events"]), ("draw", ["events", "picture"])):
        command = commands.add_parser(name)
        for file in files:
            command.add_argument(file, type=Path)
    options = parser.parse_args()
    if options.command == "record":
        record(options.events)
    else:
        draw(options.events, options.picture)


if __name__ == "__main__":
    main()
