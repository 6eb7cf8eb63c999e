"""The options of a run, checked before anything is started."""

from __future__ import annotations

import argparse
import os
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final, NoReturn

from demo.terminal import Progress

_GENERATED_DUPLICATES: Final = 0.2
_ALL: Final = "all"
EXAMPLES: Final = sorted(path.stem for path in Path(__file__).parent.glob("examples/[a-z]*.py"))


class InputError(Exception):
    """The log that is to be sent cannot be read."""


@dataclass(frozen=True)
class Options:
    """How to run the demo; without a `log`, traffic is generated."""

    examples: tuple[str, ...]
    log: Path | None
    duplicates: float
    seed: int
    report: Path | None
    keep: bool


@dataclass(frozen=True)
class Setup:
    """A run's options, the moment that it starts at, and its progress messages."""

    options: Options
    now: datetime
    progress: Progress

    def rng(self, use: str) -> random.Random:
        """Return a generator of its own per use: the traffic of one example does not depend on another's."""
        return random.Random(f"{self.options.seed} {use}")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        # argparse would print the usage too, which buries the one line that matters.
        self.exit(2, f"{self.prog}: error: {message}\n")


def parse_options(arguments: Sequence[str]) -> Options:
    """Parse the command line; end the process with status 2 and one line when an argument is invalid."""
    parser = _Parser(prog="demo", description=__doc__, allow_abbrev=False)
    parser.add_argument(
        "--example", type=_examples, default=("blog",), metavar="NAME", help=f"{', '.join(EXAMPLES)}, several or {_ALL}"
    )
    parser.add_argument(
        "--log", type=_log, metavar="FILE", help="access log to replay: Common or Combined, plain or gzip"
    )
    parser.add_argument(
        "--duplicates",
        type=_share,
        metavar="SHARE",
        help=f"share of distinct events to send twice, 0 to 1; default {_GENERATED_DUPLICATES}, 0 with a log",
    )
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="seed of everything random; default 1")
    parser.add_argument("--report", type=_report, metavar="FILE", help="write a JSON report here")
    parser.add_argument("--keep", action="store_true", help="stay up afterwards and print how to query the counts")
    options = parser.parse_args(arguments)
    duplicates = options.duplicates
    if duplicates is None:
        duplicates = 0.0 if options.log else _GENERATED_DUPLICATES
    return Options(options.example, options.log, duplicates, options.seed, options.report, options.keep)


def _examples(text: str) -> tuple[str, ...]:
    chosen = EXAMPLES if text == _ALL else text.split(",")
    if not {*chosen} <= {*EXAMPLES}:
        raise argparse.ArgumentTypeError(f"invalid example {text!r}: expected {', '.join(EXAMPLES)} or {_ALL}")
    return tuple(chosen)


def _log(text: str) -> Path:
    if not Path(text).is_file() or not os.access(text, os.R_OK):
        raise argparse.ArgumentTypeError(f"invalid log {text!r}: expected a file that can be read")
    return Path(text)


def _share(text: str) -> float:
    if not re.fullmatch(r"0|1|0?\.\d+", text):
        raise argparse.ArgumentTypeError(f"invalid share {text!r}: expected a number from 0 to 1, such as 0.2")
    return float(text)


def _report(text: str) -> Path:
    path = Path(text)
    if not text or path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise argparse.ArgumentTypeError(f"invalid report {text!r}: expected a file that can be written")
    return path
