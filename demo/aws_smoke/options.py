"""The options of a run."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Options:
    """How to run: without asking, with which events, how long to wait for what takes longest; the page to write."""

    yes: bool
    seed: int
    events: int
    patience_seconds: float
    page: Path | None = None
    costs: bool = False


def parse_options(arguments: Sequence[str]) -> Options:
    parser = argparse.ArgumentParser(prog="aws-smoke", description=__doc__, allow_abbrev=False)
    parser.add_argument("--yes", action="store_true", help="do not ask before anything is created")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="seed of the events; default 1")
    parser.add_argument("--events", type=int, default=1000, metavar="N", help="events to send; default 1,000")
    parser.add_argument(
        "--patience", type=float, default=600.0, metavar="SECONDS", help="how long to wait for a count; default 600"
    )
    parser.add_argument("--page", type=Path, metavar="FILE", help="page to write; default on AWS: docs/seen-on-aws.md")
    parser.add_argument(
        "--costs",
        action="store_true",
        help="create nothing: add to the page what Cost Explorer says of its run's day, a day later, for one cent",
    )
    found = parser.parse_args(arguments)
    if found.events < 1:
        parser.error(f"invalid events={found.events}: expected 1 or more")
    return Options(found.yes, found.seed, found.events, found.patience, found.page, found.costs)
