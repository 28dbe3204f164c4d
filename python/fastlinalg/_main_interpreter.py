"""Raises ImportError in a subinterpreter: before Python 3.12 the import of the extension module hung there, and it is
let in today where the subinterpreter shares the lock of the main one."""

import sys
from typing import Any

interpreters: Any = None
try:
    if sys.version_info >= (3, 13):
        import _interpreters as interpreters
    else:
        import _xxsubinterpreters as interpreters  # type: ignore[import-not-found, no-redef]
except ImportError:  # neither name is public
    pass

if interpreters and interpreters.get_current() != interpreters.get_main():
    raise ImportError(
        "fastlinalg cannot be imported in a subinterpreter: use threads of the main interpreter, whose lock it "
        "releases while it computes, or processes"
    )
