"""The drawings of the documentation, by name: `render(folder)` writes them all."""

from __future__ import annotations

from . import accurate, ladder, memory_bound, strict
from .draw import DRAWINGS, PALETTES, render

__all__ = ["DRAWINGS", "PALETTES", "accurate", "ladder", "memory_bound", "render", "strict"]
