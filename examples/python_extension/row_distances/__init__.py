"""Distances between the rows of two matrices, by an extension module that links fastlinalg's library."""

import fastlinalg

# The module finds the library that is loaded, wherever pip has put the two packages.
fastlinalg.load_library()

from ._core import get_num_threads, squared_distances  # noqa: E402

__all__ = ["get_num_threads", "squared_distances"]
