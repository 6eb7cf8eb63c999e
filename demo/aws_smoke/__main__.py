"""Runs the smoke test: see `python -m demo.aws_smoke --help`."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from types import FrameType
from typing import NoReturn

# A clone is enough, as for app.py: the two source roots need not be installed.
sys.path[:0] = [str(Path(__file__).resolve().parents[2] / root) for root in ("infra", "lambdas")]

from demo.aws_smoke.options import parse_options  # noqa: E402
from demo.terminal import Progress  # noqa: E402


def _leave(number: int, _frame: FrameType | None) -> NoReturn:
    # An exception, so that everything created is removed.
    raise SystemExit(128 + number)


def main(arguments: list[str]) -> int:
    """Run it: 0 when all is as expected, 1 when something differs or failed."""
    options = parse_options(arguments)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _leave)
    # Late, because it needs the source roots.
    from demo.aws_smoke.account import AccountError, caller_account  # noqa: PLC0415
    from demo.aws_smoke.deployment import DeploymentError  # noqa: PLC0415
    from demo.aws_smoke.page import PAGE  # noqa: PLC0415
    from demo.aws_smoke.run import add_costs, run  # noqa: PLC0415

    try:
        account = caller_account()
        if options.costs:
            add_costs(account, options.page or PAGE)
            return 0
        return run(account, options, Progress())
    except (AccountError, DeploymentError) as error:
        print(f"aws-smoke: error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
