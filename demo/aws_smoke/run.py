"""One run from beginning to end: ask, deploy, check, and remove everything whatever happened."""

from __future__ import annotations

import secrets
import signal
import sys
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from demo.aws_smoke import checks
from demo.aws_smoke.account import Account
from demo.aws_smoke.deployed import Deployed
from demo.aws_smoke.deployment import deploy
from demo.aws_smoke.expectations import Expectations
from demo.aws_smoke.options import Options
from demo.aws_smoke.removal import remove
from demo.aws_smoke.signing import SignedApi
from demo.aws_smoke.traffic import Traffic
from demo.terminal import Progress

PLAN: Final = """\
Account {number}, region {region}, as {caller}.
Creates the stack {name}: a DynamoDB table with a stream, an HTTP API behind IAM, 6 functions, 4 queues, a bucket,
alarms and dashboards. Sends {events:,} events, reads counts, and removes all of it again, what is retained included.
Takes about 15 minutes and costs a few US cents: about {units:,} DynamoDB units, as many requests, alarms for the hour.
"""


def run(account: Account, options: Options, progress: Progress, ask: Callable[[str], str] = input) -> int:
    """Run all of it: 0 if everything was as expected and nothing is left."""
    name = f"CountersSmoke-{secrets.token_hex(4)}"
    units = 10 * options.events
    print(PLAN.format(**vars(account), name=name, events=options.events, units=units), file=sys.stderr)
    if not options.yes and ask("Go on? [y/N] ").strip().lower() not in ("y", "yes"):
        progress("nothing was created")
        return 1
    expectations = Expectations(progress)
    try:
        _check(account, name, options, expectations)
    except BaseException as error:
        # Differences found so far are reported nevertheless; the removal may take minutes.
        expectations.check("all checks are made", "yes", f"{type(error).__name__}: {error}")
        raise
    finally:
        _remove(account, name, expectations)
        print(expectations.summary(), flush=True)
    return 1 if expectations.differences else 0


def _check(account: Account, name: str, options: Options, expectations: Expectations) -> None:
    expectations.progress(f"deploying {name}")
    with tempfile.TemporaryDirectory(prefix="aws-smoke-") as directory:
        outputs = deploy(account, name, Path(directory))
    api = SignedApi(account.url(outputs["ApiId"]), account.region)
    deployed = Deployed(account, name, outputs, api, expectations, options.patience_seconds)
    checks.refusals(deployed)
    checks.counts(deployed, Traffic.generate(options.seed, options.events, datetime.now(UTC)))
    checks.shards(deployed)
    checks.quarantine(deployed)
    checks.dead_letter(deployed)
    checks.alarms(deployed)


def _remove(account: Account, name: str, expectations: Expectations) -> None:
    # A second Ctrl-C would leave things behind that cost money.
    before = signal.signal(signal.SIGINT, lambda *_: expectations.progress("removing everything; please wait"))
    try:
        expectations.check("what is left after the removal", [], remove(account, name, expectations.progress))
    finally:
        signal.signal(signal.SIGINT, before)
