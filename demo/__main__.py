"""Runs the demo: see `python -m demo --help`."""

from __future__ import annotations

import signal
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn

_PROJECT: Final = Path(__file__).resolve().parents[1]
# A clone is enough, as for app.py: the two source roots need not be installed.
sys.path[:0] = [str(_PROJECT / root) for root in ("infra", "lambdas")]

from counters_cli.emulator import EmulatorError  # noqa: E402
from demo.options import InputError, Setup, parse_options  # noqa: E402
from demo.terminal import Progress  # noqa: E402

_INTERRUPTED: Final = 128 + signal.SIGINT


def _leave(number: int, _frame: FrameType | None) -> NoReturn:
    # An exception, so that everything started is stopped.
    raise SystemExit(128 + number)


def main(arguments: list[str]) -> int:
    """Run the demo: 0 when all counts are right, 1 when some are wrong or something failed, 2 for invalid arguments."""
    options = parse_options(arguments)
    setup = Setup(options, datetime.now(UTC), Progress())
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _leave)
    # Late, because it is slow: an invalid argument should be reported at once.
    from demo.run import run  # noqa: PLC0415

    try:
        return run(setup)
    except (InputError, EmulatorError) as error:
        lines = [*getattr(error, "lines", ()), f"demo: error: {error}"]
        print("\n".join(lines), file=sys.stderr)
        return 2 if isinstance(error, InputError) else 1
    except KeyboardInterrupt:
        setup.progress("interrupted; everything is stopped")
        return _INTERRUPTED


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
