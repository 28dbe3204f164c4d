"""Drawings of the accurate kernels: terms, promotion, the range check."""

from __future__ import annotations

from matplotlib.figure import Figure

from .draw import Palette, arrow, block, box, canvas, cells, drawing, frame, label


@drawing
def split_terms(palette: Palette) -> Figure:
    """The twenty-four bits of a float32 number are covered by an fp16 term of eleven bits and a second one of
    eleven bits and a sign.
    """
    figure, axes = canvas(palette, 8.2, 3.2, 36, 14.0)
    rows = (
        ("float32: 24 bits", 0, 24, palette.c),
        ("hi: 11 bits", 0, 11, palette.a),
        ("lo: 11 bits and a sign", 11, 12, palette.b),
    )
    for number, (text, start, count, colour) in enumerate(rows):
        y = 0.8 + number * 2
        label(axes, palette, 9.5, y + 0.6, text, ha="right")
        cells(axes, palette, (10 + start, y), (1, count), 1, {(0, c): colour for c in range(count)}, 1.2)
    parts = (
        ("hi · hi'", "1", palette.c, "summed last"),
        ("hi · lo'", "2⁻¹¹", palette.c, ""),
        ("lo · hi'", "2⁻¹¹", palette.c, "summed first"),
    )
    parts += (("lo · lo'", "2⁻²²", palette.bad, "left out"),)
    for number, (text, size, colour, note) in enumerate(parts):
        x = 1.5 + number * 8.6
        box(axes, palette, (x, 8.4), 6.6, 2, text, colour)
        label(axes, palette, x + 3.3, 11.1, f"about {size} of the whole", fontsize=8)
        label(axes, palette, x + 3.3, 12.4, note, fontsize=8)
    return figure


@drawing
def promotion(palette: Palette) -> Figure:
    """Products of sixty-four steps of k are added by the tensor cores in a temporary accumulator, which is then
    added to a float32 accumulator by an FMA that rounds to nearest.
    """
    figure, axes = canvas(palette, 8.2, 2.6, 36, 11.4)
    label(axes, palette, 18, 0.8, "k", fontsize=10)
    for part in range(4):
        x = 1 + part * 8.7
        cells(axes, palette, (x, 1.6), (1, 16), 0.5, {(0, c): palette.a for c in range(16)}, 1.0)
        label(axes, palette, x + 4, 3.2, "64 k", fontsize=8)
        box(axes, palette, (x + 1, 4.1), 6, 2.0, "tensor cores: cut", palette.bad)
        arrow(axes, palette.line, (x + 4, 6.2), (x + 4, 8.0))
        label(axes, palette, x + 4.4, 7.1, "FMA", fontsize=8, ha="left")
    block(axes, palette.c, (1, 8.2), 34.1, 1.6, 0.75)
    label(axes, palette, 18, 9.0, "sums in float32 registers: rounded to nearest")
    return figure


@drawing
def range_check(palette: Palette) -> Figure:
    """A number line of powers of two: large numbers at the top, numbers that two terms hold in the middle,
    small numbers at the bottom, and the same for three bf16 terms with a much longer middle.
    """
    figure, axes = canvas(palette, 8.2, 2.5, 36, 11.0)
    lines = (
        ("two fp16 terms", 14, 7, -8, "2/spare"),
        ("three bf16 terms", 50, -22, -50, "2⁻⁵⁰"),
    )
    low, high = -60, 55

    def place(power: float) -> float:
        return 8.5 + (power - low) / (high - low) * 26

    for number, (name, top, large, small, text) in enumerate(lines):
        y = 1.2 + number * 4.6
        label(axes, palette, 8, y + 0.7, name, ha="right")
        block(axes, palette.bad, (place(low), y), place(small) - place(low), 1.4, 0.75)
        block(axes, palette.a, (place(small), y), place(large) - place(small), 1.4, 0.75)
        block(axes, palette.c, (place(large), y), place(top + 1) - place(large), 1.4, 0.75)
        frame(axes, palette.line, (place(low), y), place(high) - place(low), 1.4, 0.8)
        for power, shown in ((small, text), (large, f"2{_power(large)}"), (top + 1, f"2{_power(top + 1)}")):
            label(axes, palette, place(power), y + 2.2, shown, fontsize=8)
    label(axes, palette, place(-35), 1.9, "small: digits are lost", fontsize=8)
    label(axes, palette, place(11), 0.6, "large", fontsize=8)
    label(axes, palette, place(-1), 3.4, "", fontsize=8)
    label(axes, palette, place(14), 6.5, "large", fontsize=8)
    label(axes, palette, 18, 10.4, "scaled numbers, by their power of two", fontsize=8)
    return figure


def _power(number: int) -> str:
    return str(number).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
