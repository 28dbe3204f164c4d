"""Drawings of the accurate kernels: terms, promotion, the range check."""

from __future__ import annotations

from matplotlib.figure import Figure

from .draw import INK, arrow, block, box, canvas, cells, drawing, frame, label


@drawing
def split_terms() -> Figure:
    """The twenty-four bits of a float32 number are covered by an fp16 term of eleven bits and a second one of
    eleven bits and a sign.
    """
    figure, axes = canvas(8.2, 3.2, 36, 14.0)
    rows = (
        ("float32: 24 bits", 0, 24, INK.c),
        ("hi: 11 bits", 0, 11, INK.a),
        ("lo: 11 bits and a sign", 11, 12, INK.b),
    )
    for number, (text, start, count, colour) in enumerate(rows):
        y = 0.8 + number * 2
        label(axes, 9.5, y + 0.6, text, ha="right")
        cells(axes, (10 + start, y), (1, count), 1, {(0, c): colour for c in range(count)}, 1.2)
    parts = (
        ("hi · hi'", "1", INK.c, "summed last"),
        ("hi · lo'", "2⁻¹¹", INK.c, "summed second"),
        ("lo · hi'", "2⁻¹¹", INK.c, "summed first"),
    )
    parts += (("lo · lo'", "2⁻²²", INK.bad, "left out"),)
    for number, (text, size, colour, note) in enumerate(parts):
        x = 1.5 + number * 8.6
        box(axes, (x, 8.4), 6.6, 2, text, colour)
        label(axes, x + 3.3, 11.1, f"about {size} of the whole", fontsize=8)
        label(axes, x + 3.3, 12.4, note, fontsize=8)
    return figure


@drawing
def promotion() -> Figure:
    """Products of sixty-four steps of k are added by the tensor cores in a temporary accumulator, which is then
    added to a float32 accumulator by an FMA that rounds to nearest.
    """
    figure, axes = canvas(8.2, 2.6, 36, 11.4)
    label(axes, 18, 0.8, "k", fontsize=10)
    for part in range(4):
        x = 1 + part * 8.7
        cells(axes, (x, 1.6), (1, 16), 0.5, {(0, c): INK.a for c in range(16)}, 1.0)
        label(axes, x + 4, 3.2, "64 k", fontsize=8)
        box(axes, (x + 1, 4.1), 6, 2.0, "tensor cores: cut", INK.bad)
        arrow(axes, INK.line, (x + 4, 6.2), (x + 4, 8.0))
        label(axes, x + 4.4, 7.1, "FMA", fontsize=8, ha="left")
    block(axes, INK.c, (1, 8.2), 34.1, 1.6, 0.75)
    label(axes, 18, 9.0, "sums in float32 registers: rounded to nearest")
    return figure


@drawing
def range_check() -> Figure:
    """Two number lines of powers of two, for two fp16 terms and for three bf16 terms. At the top of each are large
    numbers, for bf16 in the middle numbers that the terms hold, at the bottom small ones, which lose digits. The large
    part is 24 powers of two long for fp16 and 73 for bf16, the middle 28.
    """
    figure, axes = canvas(8.2, 2.5, 36, 11.0)
    lines = (("two fp16 terms", 14, -9, -9), ("three bf16 terms", 50, -22, -50))
    low, high = -62, 55

    def place(power: float) -> float:
        return 8.5 + (power - low) / (high - low) * 26

    for number, (name, top, large, small) in enumerate(lines):
        y = 1.2 + number * 4.8
        label(axes, 8, y + 0.7, name, ha="right")
        parts = (
            (low, small, INK.bad, "small"),
            (small, large, INK.a, "held"),
            (large, top + 1, INK.c, "large"),
        )
        for begin, end, colour, text in parts:
            if begin == end:
                continue
            block(axes, colour, (place(begin), y), place(end) - place(begin), 1.4, 0.75)
            label(axes, place((begin + end) / 2), y - 0.6, text, fontsize=8)
        frame(axes, INK.line, (place(low), y), place(high) - place(low), 1.4, 0.8)
        for power in {small, large, top + 1}:
            label(axes, place(power), y + 2.2, f"2{_power(power)}", fontsize=8)
    label(axes, 22, 10.5, "scaled numbers, by their power of two, for K = 1024", fontsize=8)
    return figure


def _power(number: int) -> str:
    return str(number).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
