"""Classify handwritten digits by their nearest neighbours, with one matrix product doing the work.

The squared distance of two images x and y is |x|^2 - 2 x.y + |y|^2, so all distances between a test set and a training
set come from the Gram matrix of the two. Every prediction is checked against scikit-learn's own brute-force classifier.

Run: python examples/digits_neighbours.py [--device auto|cpu|cuda] [--kernel NAME]
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

import fastlinalg as fl


def squared_distances(x: np.ndarray, y: np.ndarray, device: str, kernel: str | None) -> np.ndarray:
    """All squared distances between the rows of `x` and those of `y`, as ``-2 x y^T + (|x|^2 + |y|^2)``."""
    norms = (x * x).sum(axis=1)[:, None] + (y * y).sum(axis=1)[None, :]
    return fl.sgemm(x, y, norms, alpha=-2.0, beta=1.0, trans_b=True, out=norms, device=device, kernel=kernel)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--kernel", default=None)
    args = parser.parse_args()

    images, labels = load_digits(return_X_y=True)
    train, test, train_labels, test_labels = train_test_split(
        images.astype(np.float32), labels, test_size=0.5, random_state=0, stratify=labels
    )

    squared_distances(test[:8], train[:8], args.device, args.kernel)  # first use of a GPU sets it up
    start = time.perf_counter()
    predicted = train_labels[squared_distances(test, train, args.device, args.kernel).argmin(axis=1)]
    seconds = time.perf_counter() - start

    reference = KNeighborsClassifier(n_neighbors=1, algorithm="brute").fit(train, train_labels)
    start = time.perf_counter()
    expected = reference.predict(test)
    reference_seconds = time.perf_counter() - start

    agree = int((predicted == expected).sum())
    print(f"{len(test)} digits against {len(train)}, {test.shape[1]} pixels each")
    print(
        f"accuracy      {(predicted == test_labels).mean():.4f}   scikit-learn {(expected == test_labels).mean():.4f}"
    )
    print(f"time          {seconds * 1e3:.1f} ms   scikit-learn {reference_seconds * 1e3:.1f} ms")
    print(f"same answers  {agree} of {len(test)}")
    return 0 if agree == len(test) else 1


if __name__ == "__main__":
    sys.exit(main())
