"""Seconds per call, and ratios to a peer, of calls on the host."""

import time

BLOCK_S = 2e-3  # long against the clock's resolution, short against a scheduler's turn
BLOCKS = 12
BUDGET_S = 0.12  # of one measurement; at least `LEAST_BLOCKS` blocks all the same
LEAST_BLOCKS = 3
REST_S = 0.15  # threads of OpenBLAS look for work for 0.1 s after a call, and hold up whoever comes next


def _block(call, repeats):
    begin = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - begin) / repeats


def _repeats(call):
    """How many calls make a block; warms up, too."""
    call()
    once = min(_block(call, 1) for _ in range(2))
    if once < BLOCK_S / 10:
        once = _block(call, max(1, int(BLOCK_S / 4 / max(once, 1e-7))))
    return max(1, int(BLOCK_S / max(once, 1e-8))), once


def _blocks(repeats, once):
    return max(LEAST_BLOCKS, min(BLOCKS, int(BUDGET_S / (repeats * once))))


def least(call):
    """Seconds per call: the least of several blocks, since other load only ever lengthens them."""
    repeats, once = _repeats(call)
    return min(_block(call, repeats) for _ in range(_blocks(repeats, once)))


def ratio(ours, theirs, threads=1):
    """Our seconds as a multiple of the peer's, in blocks by turns.

    On several threads both rest before each turn and warm up again (`REST_S`).
    """
    plans = [(call, *_repeats(call)) for call in (ours, theirs)]
    best = [float("inf"), float("inf")]
    turns = 3 if threads > 1 else max(_blocks(repeats, once) for _, repeats, once in plans)
    for turn in range(turns):
        for which in (0, 1) if turn % 2 == 0 else (1, 0):
            call, repeats, once = plans[which]
            if threads > 1:
                time.sleep(REST_S)
                _block(call, max(1, int(5e-3 / once)))
            for _ in range(3 if threads > 1 else 1):
                best[which] = min(best[which], _block(call, repeats))
    return best[0] / best[1]
