"""Runs the demonstration: ``python -m demo --help`` says how."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn

from demo.access_log import LogError
from demo.cdk import CdkError
from demo.emulator import EmulatorError
from demo.options import parse_options
from demo.progress import Progress

_PROJECT: Final = Path(__file__).resolve().parents[1]
_INTERRUPTED: Final = 128 + signal.SIGINT


def _leave(number: int, _frame: FrameType | None) -> NoReturn:
    # An exception, so that everything started is also stopped.
    raise SystemExit(128 + number)


def main(arguments: list[str]) -> int:
    """Run the demonstration and turn whatever ends it into an exit status.

    Parameters
    ----------
    arguments : list of str
        The command line, without the program's name.

    Returns
    -------
    int
        0: all counts are right. 1: some are wrong, or something failed. 2: asked for something impossible.
    """
    options = parse_options(arguments)
    progress = Progress()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _leave)
    # A clone is enough, as for app.py: the two source roots need not be installed.
    sys.path[:0] = [str(_PROJECT / root) for root in ("infra", "lambdas")]
    # Late, because it takes a while: a wrong argument should be told at once.
    from demo.run import run  # noqa: PLC0415

    try:
        return run(options, progress)
    except LogError as error:
        return _failed(error, 2)
    except (CdkError, EmulatorError) as error:
        return _failed(error, 1)
    except KeyboardInterrupt:
        progress("interrupted; everything is stopped")
        return _INTERRUPTED


def _failed(error: Exception, status: int) -> int:
    print(f"demo: error: {error}", file=sys.stderr)
    return status


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
