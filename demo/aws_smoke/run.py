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
from demo.aws_smoke.account import Account, AccountError
from demo.aws_smoke.deployed import Deployed
from demo.aws_smoke.deployment import deploy
from demo.aws_smoke.estimate import MOST_DOLLARS, dollars_of
from demo.aws_smoke.expectations import Expectations
from demo.aws_smoke.options import Options
from demo.aws_smoke.page import PAGE, Page, origin_of
from demo.aws_smoke.questions.asked import A_DAY_LATER, AFTER_EVENTS, BEFORE_EVENTS
from demo.aws_smoke.questions.costs import bill_of
from demo.aws_smoke.questions.question import ask as ask_deployed
from demo.aws_smoke.removal import remove
from demo.aws_smoke.signing import SignedApi
from demo.aws_smoke.traffic import Traffic
from demo.terminal import Progress

PLAN: Final = """\
Account {number}, region {region}, as {caller}.
Creates the stack {name}: a copy of the blog behind IAM and a probe, with {resources},
alarms and dashboards. Sends {events:,} events, reads counts, asks {questions} questions, and removes all of
it again, what is retained included. Takes about half an hour and costs about ${dollars:.2f}.
"""
RESOURCES: Final = "6 tables, an HTTP API, 8 functions, 6 queues, 2 buckets"


def run(account: Account, options: Options, progress: Progress, ask: Callable[[str], str] = input) -> int:
    """Run all of it: 0 if everything was as expected and nothing is left."""
    name = f"CountersSmoke-{secrets.token_hex(4)}"
    dollars = dollars_of(options.events)
    if dollars > MOST_DOLLARS:
        progress(f"invalid events={options.events}: expected fewer, for at most ${MOST_DOLLARS:g}, not ${dollars:.2f}")
        return 1
    questions = len(BEFORE_EVENTS) + len(AFTER_EVENTS)
    words = {"resources": RESOURCES, "events": options.events, "questions": questions, "dollars": dollars}
    print(PLAN.format(**vars(account), name=name, **words), file=sys.stderr)
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
    seen = {question.text: ask_deployed(question, deployed) for question in BEFORE_EVENTS}
    checks.refusals(deployed)
    checks.counts(deployed, Traffic.generate(options.seed, options.events, datetime.now(UTC)))
    checks.shards(deployed)
    checks.quarantine(deployed)
    checks.dead_letter(deployed)
    checks.alarms(deployed)
    seen |= {question.text: ask_deployed(question, deployed) for question in AFTER_EVENTS}
    if (path := options.page or (None if account.emulated else PAGE)) is not None:
        path.write_text(Page(origin_of(account, datetime.now(UTC).date()), seen).text())
        expectations.progress(f"wrote {path}")


def add_costs(account: Account, path: Path) -> None:
    """Add to a page what the bill of its day says; nothing is created."""
    page = Page.parse(path.read_text())
    if page.run is None:
        raise AccountError(f"invalid page={path}: expected one that a run on AWS has written")
    day, region = page.run
    bill = bill_of(account, region, day)
    path.write_text(page.with_answers({text: answer(bill).seen for text, _, answer in A_DAY_LATER}).text())


def _remove(account: Account, name: str, expectations: Expectations) -> None:
    # A second Ctrl-C would leave things behind that cost money.
    before = signal.signal(signal.SIGINT, lambda *_: expectations.progress("removing everything; please wait"))
    try:
        expectations.check("what is left after the removal", [], remove(account, name, expectations.progress))
    finally:
        signal.signal(signal.SIGINT, before)
