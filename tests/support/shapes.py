"""Awkward shapes. One list serves every kernel, so the sizes are the edges of all tile sizes in use.

The lists are as long as the slow reference kernel allows: the whole suite has to stay below five minutes on two cores.
"""

from __future__ import annotations

from itertools import product

TILES = (8, 16, 32, 64, 128)
EDGES = tuple(sorted({0, 1, *(t + d for t in TILES for d in (-1, 0, 1))}))
PRIMES = (2, 3, 5, 13, 37, 97)


def _unique(shapes):
    return tuple(dict.fromkeys(shapes))


# m, n, k of C[m,n] = A[m,k] B[k,n]
SGEMM = _unique(
    [
        *product(range(4), repeat=3),  # every combination of empty and nearly empty
        *((s, s, s) for s in (*EDGES, *PRIMES)),
        *product(EDGES, EDGES, (1, 8, 17)),
        *((13, 17, k) for k in (*range(41), *EDGES, 95)),  # 95 ends in the last of three stages of 32 k
        *((t + i, t + j, k) for t in (32, 64, 128) for i in (-1, 0, 1) for j in (-1, 0, 1) for k in (0, 1, 9, 32)),
        *((129, 131, k) for k in (7, 8, 15, 16, 17, 31, 33)),
        *((m, n, 24) for m in (4, 8, 12, 16, 20) for n in (4, 8, 12, 16, 20)),  # vector kernels at their narrowest
        (1, 1, 511), (1, 1, 512), (1, 513, 3), (513, 1, 3), (1, 257, 129), (257, 1, 129),
        (3, 5, 4097), (5, 3, 2048), (64, 64, 1023), (31, 33, 513),  # deep
        (1000, 3, 17), (1025, 8, 8), (3, 1000, 17), (8, 1025, 8),  # tall, wide
        (300, 300, 1), (257, 255, 2), (300, 301, 0),  # outer products
        (97, 89, 101), (251, 241, 127), (256, 384, 64), (255, 257, 63), (130, 70, 256), (66, 258, 1056),
    ]
)  # fmt: skip
SGEMM_FEW = (
    (0, 5, 3), (5, 0, 3), (5, 3, 0), (1, 1, 1), (1, 7, 5), (7, 1, 5), (2, 3, 1),
    (8, 8, 8), (17, 9, 33), (32, 32, 32), (33, 31, 8), (37, 64, 13), (65, 67, 31), (128, 128, 32), (129, 127, 40),
    (65, 130, 300), (140, 9, 700), (11, 259, 1100),
)  # fmt: skip

# m, n of y[m] = A[m,n] x[n]
SGEMV = _unique(
    [
        *product(range(7), repeat=2),
        *product(EDGES, (*EDGES, 3, 4)),
        *((s, s) for s in PRIMES),
        *((m, n) for m in (1, 2, 5, 130) for n in (255, 256, 257, 511, 512, 513, 1000, 1023, 1024, 1025)),
        (1, 4097), (4097, 1), (2049, 3), (3, 2049), (1, 10007), (10007, 1), (5000, 16), (5000, 32), (3001, 33),
        (513, 514), (1, 73728), (2, 65536), (3, 70001),
    ]
)  # fmt: skip
SGEMV_FEW = (
    (0, 3), (3, 0), (1, 1), (1, 5), (5, 1), (8, 2), (9, 4), (33, 7), (16, 16), (31, 32), (32, 33), (7, 128),
    (130, 129), (65, 260), (2, 65537),
)  # fmt: skip

# m, n of B[n,m] = A[m,n]^T
TRANSPOSE = _unique(
    [
        *product(range(10), repeat=2),
        *product(EDGES, EDGES),
        *((s, s) for s in PRIMES),
        (1, 5000), (5000, 1), (2, 4099), (4099, 2), (4, 1028), (1028, 4), (333, 777), (512, 256), (1023, 65),
        (2048, 33), (255, 257),
    ]
)  # fmt: skip
TRANSPOSE_FEW = (
    (0, 3), (3, 0), (1, 1), (1, 9), (9, 1), (2, 2), (4, 4), (8, 12), (7, 5), (32, 32), (31, 33), (64, 40), (65, 63),
    (130, 129),
)  # fmt: skip

# alpha, beta: 0, 1 and others, in every pairing that takes another branch
SCALARS = tuple(product((1.0, 0.0, -1.0, 2.5), (0.0, 1.0, -0.75)))
