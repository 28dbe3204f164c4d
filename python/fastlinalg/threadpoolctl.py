"""Makes fastlinalg known to ``threadpoolctl``, whose limits then hold for it too.

``import fastlinalg`` does this by itself if ``threadpoolctl`` has been imported before it; otherwise
``import fastlinalg.threadpoolctl``.
"""

from __future__ import annotations

import ctypes

from threadpoolctl import LibController, register


class FastlinalgController(LibController):  # type: ignore[misc]  # threadpoolctl has no types
    """fastlinalg as ``threadpoolctl`` sees it: a BLAS, so that limits on BLAS libraries hold here too."""

    user_api = "blas"
    internal_api = "fastlinalg"
    filename_prefixes = ("libfastlinalg",)
    check_symbols = ("fl_get_num_threads", "fl_set_num_threads", "fl_version")

    def get_num_threads(self) -> int:
        """The most CPU threads a call uses."""
        return int(self.dynlib.fl_get_num_threads())

    def set_num_threads(self, num_threads: int) -> None:
        """Set it, for the whole process."""
        self.dynlib.fl_set_num_threads(num_threads)

    def get_version(self) -> str:
        """The version of the library."""
        version = self.dynlib.fl_version
        version.restype = ctypes.c_char_p
        return str(version().decode())

    def set_additional_attributes(self) -> None:
        """Nothing is to be added."""


register(FastlinalgController)
