"""One run from beginning to end: deploy, count, report."""

from __future__ import annotations

import json
from typing import Final

from demo.examples import discover
from demo.keep import KEEP_SECONDS, keep
from demo.options import Setup
from demo.platform.deployment import deployed
from demo.report import report, summary
from demo.trial import count

_BASE_SECONDS: Final = 900
_SLOWEST_EVENTS_PER_SECOND: Final = 50


def run(setup: Setup) -> int:
    """Run the demo: exit status 0 when every count is right, otherwise 1.

    A log that cannot be read fails before anything is started.
    """
    options, progress = setup.options, setup.progress
    examples = [example.prepare(setup) for example in discover()]
    feeds = [feed for example in examples for feed in example.feeds()]
    progress("to send: " + ", ".join(f"{len(feed.deliveries):,} {feed.name}" for feed in feeds))
    limit = _BASE_SECONDS + sum(example.size for example in examples) // _SLOWEST_EVENTS_PER_SECOND
    with deployed(progress, limit + (KEEP_SECONDS if options.keep else 0)) as deployment:
        result = count(examples, deployment, progress)
        if options.report:
            text = json.dumps(report(result), indent=2, ensure_ascii=False)
            options.report.write_text(text + "\n", encoding="utf-8")
            progress(f"wrote {options.report}")
        print(summary(result), flush=True)
        if options.keep:
            keep(deployment, examples)
    return 1 if result.differences() else 0
