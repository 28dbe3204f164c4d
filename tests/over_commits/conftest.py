"""The benchmarks over commits, and what lets builds take turns, are imported from the source tree."""

from __future__ import annotations

import sys

from support.source_tree import ROOT

if str(ROOT / "asv_bench") not in sys.path:
    sys.path.append(str(ROOT / "asv_bench"))
