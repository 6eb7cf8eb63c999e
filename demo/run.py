"""One run from beginning to end: deploy, send, wait, read back, compare."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from demo.check.drain import StalledError, wait_until_drained
from demo.example import Setup
from demo.examples import discover
from demo.keep import KEEP_SECONDS, keep
from demo.options import Options
from demo.platform.deployment import Deployment, deployed
from demo.report import Result, report, summary
from demo.terminal import Progress
from demo.trial import Trial

_BASE_SECONDS: Final = 900
_SLOWEST_EVENTS_PER_SECOND: Final = 50


def run(options: Options, progress: Progress) -> int:
    """Run the demo: exit status 0 when every count is right, otherwise 1.

    A log that cannot be read fails before anything is started.
    """
    setup = Setup(options, datetime.now(UTC), progress)
    examples = [example.prepare(setup) for example in discover()]
    feeds = [feed for example in examples for feed in example.feeds()]
    progress("to send: " + ", ".join(f"{len(feed.deliveries):,} {feed.name}" for feed in feeds))
    limit = _BASE_SECONDS + sum(example.size for example in examples) // _SLOWEST_EVENTS_PER_SECOND
    with deployed(progress, limit + (KEEP_SECONDS if options.keep else 0)) as deployment:
        result = _count([Trial.of(example, deployment) for example in examples], deployment, progress)
        if options.report:
            text = json.dumps(report(result), indent=2, ensure_ascii=False)
            options.report.write_text(text + "\n", encoding="utf-8")
            progress(f"wrote {options.report}")
        print(summary(result), flush=True)
        if options.keep:
            keep(deployment, examples)
    return 1 if result.differences() else 0


def _count(trials: Sequence[Trial], deployment: Deployment, progress: Progress) -> Result:
    # Smallest first: aggregates over aggregates take further rounds of the stream while the others are being sent.
    for trial in sorted(trials, key=lambda trial: trial.example.size):
        trial.send(progress)
    progress("all sent; waiting until all of it is counted")
    stalled = None
    try:
        wait_until_drained(
            lambda: {name: n for trial in trials for name, n in trial.totals().items()},
            {name: n for trial in trials for name, n in trial.example.expected_totals().items()},
            progress,
        )
    except StalledError as error:
        stalled = str(error)
        for line in (stalled, *deployment.diagnosis()):
            progress(line)
    progress("reading back all groups and windows")
    findings = [(trial.example, trial.finding(progress)) for trial in trials]
    for example, finding in findings if stalled else ():
        if finding.costs:
            progress(f"{example.stack}: the aggregator reports {finding.costs.metrics or 'nothing'}")
    return Result(findings, progress.seconds, stalled)
