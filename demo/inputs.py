"""The events of one run: read or made up, repeated, and what they must come to."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from demo.access_log import read_log
from demo.events import Course, Job, Page, Submission, View, Visit
from demo.game import submissions
from demo.options import Options
from demo.progress import Progress
from demo.site import created, visited
from demo.traffic import blog_views, customer_jobs, with_duplicates
from demo.truth import BlogTruth, JobsTruth, blog_truth, jobs_truth


@dataclass(frozen=True)
class Inputs:
    """What to send, and the truth about it.

    Parameters
    ----------
    views : sequence of View
        The blog's stream, duplicates included.
    jobs : sequence of Job
        The jobs' stream, duplicates included.
    unparsable_lines : int
        Lines of the log that hold no event.
    blog : BlogTruth
        What the blog's counts must be.
    customers : JobsTruth
        What the jobs' counts must be.
    game : Course of Submission
        What the leaderboard's players do.
    pages : Course of Page
        What is created, and removed.
    visits : Course of Visit
        Who looks at pages, and is forgotten.
    """

    views: Sequence[View]
    jobs: Sequence[Job]
    unparsable_lines: int
    blog: BlogTruth
    customers: JobsTruth
    game: Course[Submission] = field(default_factory=Course)
    pages: Course[Page] = field(default_factory=Course)
    visits: Course[Visit] = field(default_factory=Course)


def prepare(options: Options, now: datetime, progress: Progress) -> Inputs:
    """Read the log, or make traffic up, and deliver some of it twice.

    Parameters
    ----------
    options : Options
        What to do.
    now : datetime
        Aware; made-up traffic ends here.
    progress : Progress
        Told how far it is.

    Returns
    -------
    Inputs
        All events of the run, in memory: a log of a million lines takes about a gigabyte.

    Raises
    ------
    LogError
        The log cannot be read.
    """
    # A generator each: whether the blog replays a log or not, the jobs of a seed are the same.
    for_views, for_jobs, for_duplicates = (random.Random(f"{options.seed} {use}") for use in ("views", "jobs", "again"))
    unparsable = 0
    if options.log is None:
        views = blog_views(for_views, now)
    else:
        views = []
        for line, view in enumerate(read_log(options.log), start=1):
            if view is None:
                unparsable += 1
            else:
                views.append(view)
            if line % 10_000 == 0:
                progress.now_and_then(f"reading {options.log}: {line:,} lines")
    jobs = customer_jobs(for_jobs, now)
    stream = with_duplicates(for_duplicates, views, options.duplicates)
    repeated_jobs = with_duplicates(for_duplicates, jobs, options.duplicates)
    progress(f"{len(stream):,} views and {len(repeated_jobs):,} jobs to send, {unparsable:,} lines not understood")
    for_game, for_pages = (random.Random(f"{options.seed} {use}") for use in ("game", "pages"))
    return Inputs(
        stream,
        repeated_jobs,
        unparsable,
        blog_truth(stream),
        jobs_truth(repeated_jobs),
        game=submissions(for_game, options.duplicates),
        pages=created(for_pages, options.duplicates),
        visits=visited(for_pages, options.duplicates),
    )
