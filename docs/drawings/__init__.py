"""The drawings of the documentation, by name: `render(folder)` writes them all."""

from __future__ import annotations

from . import accurate, async_steps, ladder, machine, measured, memory_bound, strict
from .draw import DRAWINGS, panels, render, render_for_both

__all__ = [
    "DRAWINGS",
    "accurate",
    "async_steps",
    "ladder",
    "machine",
    "measured",
    "memory_bound",
    "panels",
    "render",
    "render_for_both",
    "strict",
]
