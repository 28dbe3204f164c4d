"""Drawings of the machine: its memories, and its roofline."""

from __future__ import annotations

import figures
import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from .draw import INK, arrow, block, box, canvas, drawing, label


def _host_and_device() -> Figure:
    figure, axes = canvas(4.2, 4.4, 19, 20)
    box(axes, (0.3, 0.4), 18.4, 4.6, "", INK.line)
    label(axes, 9.5, 1.2, "host", fontsize=10)
    for x, text in ((1.3, "CPU"), (10, "memory")):
        box(axes, (x, 2.0), 7.7, 2.2, text, INK.c)
    arrow(axes, INK.line, (9.5, 5.1), (9.5, 7.2))
    label(axes, 10.1, 6.1, "PCIe: 0.06 TB/s", ha="left", fontsize=8)
    box(axes, (0.3, 7.3), 18.4, 12.4, "", INK.line)
    label(axes, 9.5, 8.1, "device", fontsize=10)
    for row in range(4):
        for col in range(12):
            block(axes, INK.a, (1.3 + col * 1.38, 8.9 + row * 0.9), 1.1, 0.65, 0.85)
    label(axes, 9.5, 13.1, "132 multiprocessors (48 drawn)", fontsize=8.5)
    box(axes, (1.3, 13.9), 16.4, 1.8, "L2 cache, 50 MB", INK.b)
    arrow(axes, INK.line, (9.5, 15.8), (9.5, 17.1))
    label(axes, 10.1, 16.4, "4.8 TB/s", ha="left", fontsize=8)
    box(axes, (1.3, 17.2), 16.4, 1.8, "device memory, 141 GB", INK.c)
    return figure


def _multiprocessor() -> Figure:
    figure, axes = canvas(4.2, 4.4, 19, 20)
    label(axes, 9.5, 0.7, "one multiprocessor", fontsize=10)
    box(axes, (0.3, 1.4), 18.4, 18.3, "", INK.a)
    for part in range(4):
        x = 1.0 + part * 4.4
        box(axes, (x, 2.2), 3.8, 1.9, "scheduler", INK.text)
        box(axes, (x, 4.9), 3.8, 2.6, "registers\n64 KiB", INK.c)
        box(axes, (x, 8.3), 3.8, 2.2, "32 FMAs\na cycle", INK.a)
        box(axes, (x, 11.2), 3.8, 1.9, "tensor core", INK.copy)
    box(axes, (1.0, 14.0), 17.0, 2.2, "shared memory and L1 cache: 256 KiB", INK.b)
    label(axes, 9.5, 17.1, "32 banks of one word: 128 bytes a cycle", fontsize=8.5)
    label(axes, 9.5, 18.6, "to and from L2", fontsize=8.5)
    return figure


@drawing
def machine() -> list[Figure]:
    """Left, the host with its memory, connected by PCIe to the device, which has 132 multiprocessors, a second-level
    cache and its memory. Right, one multiprocessor: four schedulers, each with registers, 32 FMA lanes and a tensor
    core, and one shared memory for all.
    """
    return [_host_and_device(), _multiprocessor()]


@drawing
def roofline() -> Figure:
    """Speed over arithmetic intensity, both logarithmic. A slope, the bandwidth of memory, meets a level, the float32
    peak, at the ridge. SGEMV lies at the foot of the slope; four products lie one above the other far to the right, the
    fastest just below the peak.
    """
    peak, bandwidth = figures.results("sgemm")["machine"]["peak_gflops"] / 1e3, figures.BANDWIDTH
    figure = plt.figure(figsize=(7.4, 3.6))
    axes = figure.add_axes((0.09, 0.14, 0.89, 0.83))
    ridge = peak / bandwidth
    axes.plot([0.125, ridge, 2000], [0.125 * bandwidth, peak, peak], color=INK.text, linewidth=1.6)
    axes.plot([ridge, ridge], [0.1, peak], color=INK.line, linestyle=":")
    label(axes, ridge * 1.08, 0.16, f"ridge: {ridge:.0f} flop a byte", ha="left", fontsize=8.5)
    label(axes, 0.9, 6.6, f"memory: {bandwidth} TB/s", rotation=34, fontsize=8.5)
    label(axes, 60, peak * 1.28, f"arithmetic: {figures.significant(peak)} TFLOP/s", fontsize=8.5)
    m = n = 4096
    k = 1024
    intensity = 2 * m * n * k / (4 * (m * k + k * n + m * n))
    steps = [(name, figures.terms("sgemm", name, (m, n, k))) for name in ("naive", "coalesced", "blocktile_2d")]
    steps.append(("strict", figures.terms("sgemm-strict", "dispatch", (m, n, k))))
    for name, speed in steps:
        axes.plot([intensity], [speed], "o", color=INK.a)
        label(axes, intensity * 1.15, speed, name, ha="left", fontsize=8.5)
    axes.plot([0.5, 0.5], [0.1, 0.5 * bandwidth], color=INK.line, linestyle=":")
    label(axes, 0.54, 0.16, "SGEMV: half a flop a byte", ha="left", fontsize=8.5)
    axes.set(xscale="log", yscale="log", xlim=(0.125, 2000), ylim=(0.1, 150))
    axes.set_xlabel("flop for each byte of device memory", color=INK.text, fontsize=8.5)
    axes.set_ylabel("TFLOP/s", color=INK.text, fontsize=8.5)
    axes.tick_params(colors=INK.text, which="both", labelsize=8)
    axes.patch.set_alpha(0)
    for spine in axes.spines.values():
        spine.set_color(INK.line)
    return figure
