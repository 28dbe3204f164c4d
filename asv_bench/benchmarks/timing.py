"""Seconds per call, and ratios to a peer, of calls on the host.

What runs on the calling thread alone is timed by the CPU time of that thread: on a machine that does other things too,
a scheduler's turns are not counted, and on a calm one it is the time on the clock.
"""

import time

from bench import timing as shared

PLAN = shared.Plan(repeats=12, budget_us=0.12e6, least=3)
AMONG_THREADS = shared.Quiet(rest_us=150e3, warm_us=5e3, rounds=3)
SAMPLES_AMONG_THREADS = shared.Plan(repeats=9, budget_us=1e12)


def _clock(threads):
    return time.thread_time if threads == 1 else time.perf_counter


def least(call, threads=1):
    """Seconds per call: the least of several blocks, since other load only ever lengthens them."""
    return min(shared.alternating({"": call}, PLAN, clock=_clock(threads))[""].samples) * 1e-6


def ratio(ours, theirs, threads=1):
    """Our seconds as a multiple of the peer's, in blocks by turns.

    On several threads both rest before each turn and warm up again.
    """
    plan, quiet = (SAMPLES_AMONG_THREADS, AMONG_THREADS) if threads > 1 else (PLAN, shared.Quiet())
    found = shared.alternating({"ours": ours, "theirs": theirs}, plan, quiet, _clock(threads))
    return min(found["ours"].samples) / min(found["theirs"].samples)
