"""Speed over commits. Names and parameters here are literal, so that a result means the same at every commit.

Kernels are those of the table that lies beside the benchmarks, whatever the commit has of them.

A benchmark may use nothing but what is public, and says with NotImplementedError what a commit or a machine lacks. All
of them are `track_*` methods that measure for themselves (`timing.py`): asv's own timer calls `setup` before each call,
which hides what repeated calls on the same arrays cost. Lower is better everywhere; `unit` says what is counted, and
"ratio" is our time as a multiple of a peer's in the same process, the two by turns.

`version` is set by hand and counts up when a benchmark begins to measure something else: asv then starts its history
anew. `quick` lists the parameters that belong to the quick set; without it, none do.
"""

import importlib.util
import os
import sys
from pathlib import Path

# The timers and the driver of turns are those of this checkout: what is installed may be of any commit.
BENCH = Path(__file__).resolve().parents[2] / "python" / "fastlinalg" / "bench"
_spec = importlib.util.spec_from_file_location("bench", BENCH / "__init__.py", submodule_search_locations=[str(BENCH)])
sys.modules["bench"] = importlib.util.module_from_spec(_spec)

os.environ["FASTLINALG_TUNE"] = "off"  # a user's table is no part of a commit
