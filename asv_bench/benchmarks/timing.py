"""Seconds per call, and ratios to a peer, of calls on the host.

What runs on the calling thread alone is timed by the CPU time of that thread: on a machine that does other things too,
a scheduler's turns are not counted, and on a calm one it is the time on the clock.
"""

import time

BLOCK_S = 2e-3  # long against the clock's resolution, short against a scheduler's turn
BLOCKS = 12
BUDGET_S = 0.12  # of one measurement; at least `LEAST_BLOCKS` blocks all the same
LEAST_BLOCKS = 3
REST_S = 0.15  # threads of OpenBLAS look for work for 0.1 s after a call, and hold up whoever comes next


def _block(call, repeats, clock):
    begin = clock()
    for _ in range(repeats):
        call()
    return (clock() - begin) / repeats


def _clock(threads):
    return time.thread_time if threads == 1 else time.perf_counter


def _repeats(call, clock):
    """How many calls make a block, and about what one takes; warms up, too."""
    call()
    once = min(_block(call, 1, clock) for _ in range(2))
    if once < BLOCK_S / 10:
        once = _block(call, max(1, int(BLOCK_S / 4 / max(once, 1e-7))), clock)
    return max(1, int(BLOCK_S / max(once, 1e-8))), max(once, 1e-8)


def _blocks(repeats, once):
    return max(LEAST_BLOCKS, min(BLOCKS, int(BUDGET_S / (repeats * once))))


def least(call, threads=1):
    """Seconds per call: the least of several blocks, since other load only ever lengthens them."""
    clock = _clock(threads)
    repeats, once = _repeats(call, clock)
    return min(_block(call, repeats, clock) for _ in range(_blocks(repeats, once)))


def ratio(ours, theirs, threads=1):
    """Our seconds as a multiple of the peer's, in blocks by turns.

    On several threads both rest before each turn and warm up again (`REST_S`).
    """
    clock = _clock(threads)
    plans = [(call, *_repeats(call, clock)) for call in (ours, theirs)]
    best = [float("inf"), float("inf")]
    turns = 3 if threads > 1 else max(_blocks(repeats, once) for _, repeats, once in plans)
    for turn in range(turns):
        for which in (0, 1) if turn % 2 == 0 else (1, 0):
            call, repeats, once = plans[which]
            if threads > 1:
                time.sleep(REST_S)
                _block(call, max(1, int(5e-3 / once)), clock)
            for _ in range(3 if threads > 1 else 1):
                best[which] = min(best[which], _block(call, repeats, clock))
    return best[0] / best[1]
