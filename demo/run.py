"""One run from beginning to end: deploy, send, wait, read back, compare."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Final

from demo.deployment import Deployment, deployed
from demo.drain import StalledError, read_settled, wait_until_drained
from demo.example import Example
from demo.inputs import Inputs, prepare
from demo.keep import KEEP_SECONDS, keep
from demo.leaderboard import Leaderboard
from demo.meter import Meter
from demo.options import Options
from demo.pages import Pages
from demo.progress import Progress
from demo.readback import Reader, Rolling
from demo.report import report, summary
from demo.result import Result
from demo.sending import send
from demo.truth import BlogTruth, JobsTruth
from dynamodb_counters import Counters
from examples.blog_declarations import VIEW
from examples.jobs_declarations import JOB

_BASE_SECONDS: Final = 900
_SLOWEST_EVENTS_PER_SECOND: Final = 50


def run(options: Options, progress: Progress) -> int:
    """Run the demonstration.

    Parameters
    ----------
    options : Options
        What to do.
    progress : Progress
        Told how far it is.

    Returns
    -------
    int
        Exit status: 0 when every count is right, otherwise 1.

    Raises
    ------
    LogError
        The log cannot be read. Nothing was started.
    """
    now = datetime.now(UTC)
    inputs = prepare(options, now, progress)
    limit = _BASE_SECONDS + (len(inputs.views) + len(inputs.jobs)) // _SLOWEST_EVENTS_PER_SECOND
    with deployed(progress, limit + (KEEP_SECONDS if options.keep else 0)) as deployment:
        result = _count(deployment, inputs, now, progress)
        wrong = result.differences()
        if options.report:
            text = json.dumps(report(result, wrong), indent=2, ensure_ascii=False)
            options.report.write_text(text + "\n", encoding="utf-8")
            progress(f"wrote {options.report}")
        print(summary(result, wrong), flush=True)
        if options.keep:
            keep(deployment, inputs)
    return 1 if wrong else 0


def _count(deployment: Deployment, inputs: Inputs, now: datetime, progress: Progress) -> Result:
    writer, asker = deployment.database(), deployment.database()
    # "put", because what is written by PartiQL does not appear in the emulator's stream.
    bind = partial(Counters, client=writer, bulk="put")
    blog, jobs = bind(deployment.blog_table), bind(deployment.jobs_table)
    examples: list[Example] = [
        Leaderboard(bind(deployment.leaderboard_table), inputs.game),
        Pages(bind(deployment.pages_table), inputs.pages, inputs.visits),
    ]

    # First, because aggregates over aggregates take further rounds of the stream, which go on beside the rest.
    accounts = [example.send(progress) for example in examples]

    accepting = Meter(writer)
    blog_account = send(partial(blog.accept_many, VIEW), inputs.views, "views", progress)
    accept_units = accepting.write_units
    jobs_account = send(partial(jobs.accept_many, JOB), inputs.jobs, "jobs", progress)

    reader = Reader(inputs, blog, jobs, now, progress)
    stalled = None
    progress("all sent; waiting until all of it is counted")
    try:
        wait_until_drained(partial(_totals, reader, examples), _expected_totals(reader, examples), progress)
    except StalledError as error:
        stalled = str(error)
        progress(stalled)
        for line in deployment.diagnosis():
            progress(line)
    progress(f"reading back {len(inputs.blog.views):,} urls with windows, {len(inputs.blog.visitors):,} visitors")
    # A client of its own: what it reads is weighed.
    reading = Meter(asker)
    reader = replace(reader, blog=Counters(deployment.blog_table, client=asker))
    views, visitors, rolling = (
        reader.views(),
        reader.visitors(),
        read_settled(reader.rolling, partial(_agrees, inputs.blog)),
    )
    metrics = deployment.metrics() if inputs.views else {}
    if stalled:
        progress(f"the blog's aggregator reports {metrics or 'nothing'}")
    return Result(
        inputs=inputs,
        blog=blog_account,
        jobs=jobs_account,
        views=views,
        visitors=visitors,
        site_views=reader.site_views(),
        rolling=rolling,
        jobs_placed=reader.jobs_placed(),
        jobs_rolling=read_settled(reader.jobs_rolling, partial(_agrees, inputs.customers)),
        accept_units=accept_units,
        aggregate_units=_updates(metrics) * reading.units_per_item if metrics else None,
        window_units=reading.units_per_query,
        findings=[example.finding(account) for example, account in zip(examples, accounts, strict=True)],
        seconds=progress.seconds,
        stalled=stalled,
    )


def _totals(reader: Reader, examples: Sequence[Example]) -> dict[str, int]:
    return reader.totals() | {name: n for example in examples for name, n in example.totals().items()}


def _expected_totals(reader: Reader, examples: Sequence[Example]) -> dict[str, int]:
    return reader.expected_totals() | {name: n for example in examples for name, n in example.expected_totals().items()}


def _agrees(truth: BlogTruth | JobsTruth, found: Rolling) -> bool:
    return found.counts == truth.rolling(found.start, found.end)


def _updates(metrics: Mapping[str, float]) -> float:
    # A refused update costs as much as one that is done.
    return metrics["ItemsUpdated"] + metrics["AlreadyCounted"]
