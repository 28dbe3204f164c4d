"""``fastlinalg show-versions``: what a report of a fault needs."""

from __future__ import annotations

import argparse
from typing import Any

import fastlinalg as fl


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser("show-versions", help="show what a report of a fault needs")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    fl.show_versions()
    return 0
