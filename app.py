"""The example app: `cdk deploy` it, or read its stacks to see how the constructs are used."""

from __future__ import annotations

import sys
from pathlib import Path

# A clone is enough: the two source roots need not be installed.
sys.path[:0] = [str(Path(__file__).resolve().parent / root) for root in ("infra", "lambdas")]

from aws_cdk import App, Validations  # noqa: E402
from cdk_nag import AwsSolutionsChecks  # noqa: E402

from examples.blog_stack import BlogStack  # noqa: E402
from examples.jobs_stack import JobsStack  # noqa: E402
from examples.leaderboard_stack import LeaderboardStack  # noqa: E402
from examples.pages_stack import PagesStack  # noqa: E402

app = App()
BlogStack(app, "CountersBlog")
JobsStack(app, "CountersJobs")
LeaderboardStack(app, "CountersLeaderboard")
PagesStack(app, "CountersPages")
Validations.of(app).add_plugins(AwsSolutionsChecks(app))
app.synth()
