"""Transpose a photograph channel by channel and save it before and after.

Run: python examples/image_transpose.py [--device auto|cpu|cuda] [--kernel NAME] [--to FOLDER]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from PIL import Image
from sklearn.datasets import load_sample_image

import fastlinalg as fl


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--kernel", default=None)
    parser.add_argument("--to", type=Path, default=Path("."))
    args = parser.parse_args()

    photo = load_sample_image("flower.jpg").astype(np.float32) / 255.0  # rows x columns x channels
    channels = np.ascontiguousarray(np.moveaxis(photo, -1, 0))  # a batch of three matrices
    transposed = np.moveaxis(fl.transpose(channels, device=args.device, kernel=args.kernel), 0, -1)

    args.to.mkdir(parents=True, exist_ok=True)
    for name, image in (("flower_before.png", photo), ("flower_after.png", transposed)):
        Image.fromarray(np.rint(image * 255.0).astype(np.uint8)).save(args.to / name)
        print(f"{args.to / name}: {image.shape[0]} x {image.shape[1]} float32")
    return 0 if np.array_equal(transposed, photo.swapaxes(0, 1)) else 1


if __name__ == "__main__":
    sys.exit(main())
