"""Runs the smoke test: see `python -m demo.aws_smoke --help`."""

from __future__ import annotations

import argparse
import secrets
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn

# A clone is enough, as for app.py: the two source roots need not be installed.
sys.path[:0] = [str(Path(__file__).resolve().parents[2] / root) for root in ("infra", "lambdas")]

from demo.aws_smoke.account import Account, AccountError, caller_account, deploy, remove  # noqa: E402
from demo.aws_smoke.checks import Checks  # noqa: E402
from demo.terminal import Progress  # noqa: E402

_MOST_EVENTS: Final = 10_000
PLAN: Final = """\
Account {account.number}, region {account.region}, as {account.caller}.
Creates the stack {name}: a copy of the blog behind IAM with a table, an HTTP API, functions, queues and
alarms. Sends {options.events:,} events, reads counts, and removes all of it again, what is retained included.
Takes about a quarter of an hour and costs some cents.
"""


def parse_options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="aws-smoke", description=__doc__, allow_abbrev=False)
    parser.add_argument("--yes", action="store_true", help="do not ask before anything is created")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="seed of the events; default 1")
    parser.add_argument("--events", type=int, default=1000, metavar="N", help="events to send; default 1,000")
    parser.add_argument(
        "--patience", type=float, default=600.0, metavar="SECONDS", help="how long to wait for a count; default 600"
    )
    options = parser.parse_args(arguments)
    if not 1 <= options.events <= _MOST_EVENTS:
        parser.error(f"invalid events={options.events}: expected 1 to {_MOST_EVENTS:,}")
    return options


def run(account: Account, options: argparse.Namespace, progress: Progress, ask: Callable[[str], str] = input) -> int:
    """Run all of it: 0 if everything was as expected and nothing is left."""
    name = f"CountersSmoke-{secrets.token_hex(4)}"
    print(PLAN.format(account=account, name=name, options=options), file=sys.stderr)
    if not options.yes and ask("Go on? [y/N] ").strip().lower() not in ("y", "yes"):
        progress("nothing was created")
        return 1
    checks = Checks(account, name, progress, options.patience)
    try:
        progress(f"deploying {name}")
        checks.make(deploy(account, name), options.seed, options.events)
    except BaseException as error:
        # Differences found so far are reported nevertheless; the removal may take minutes.
        checks.check("all checks are made", "yes", f"{type(error).__name__}: {error}")
        raise
    finally:
        # A second Ctrl-C would leave things behind that cost money.
        before = signal.signal(signal.SIGINT, lambda *_: progress("removing everything; please wait"))
        try:
            checks.check("what is left after the removal", [], remove(account, name, progress))
        finally:
            signal.signal(signal.SIGINT, before)
        print(checks.summary(), flush=True)
    return 1 if checks.differences else 0


def _leave(number: int, _frame: FrameType | None) -> NoReturn:
    # An exception, so that everything created is removed.
    raise SystemExit(128 + number)


def main(arguments: list[str]) -> int:
    """Run it: 0 when all is as expected, 1 when something differs or failed."""
    options = parse_options(arguments)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _leave)
    try:
        return run(caller_account(), options, Progress())
    except AccountError as error:
        print(f"aws-smoke: error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
