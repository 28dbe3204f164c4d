"""Operands of no special kind."""

from __future__ import annotations

import numpy as np


def normal(rng, *shape):
    return rng.standard_normal(shape, dtype=np.float32)
