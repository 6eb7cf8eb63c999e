"""The example stacks, deployed into an emulator for the length of a run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from demo import cdk
from demo.diagnosis import diagnosis
from demo.emulator import Emulator
from demo.meter import metric_sums
from demo.progress import Progress

_CONNECTIONS: Final = 32
# The emulator has one shard a stream and does not tell its name.
CONTEXT: Final = {"single_shard_stream": "true"}
_BLOG: Final = "CountersBlog"
_JOBS: Final = "CountersJobs"
_LEADERBOARD: Final = "CountersLeaderboard"
_PAGES: Final = "CountersPages"
_NAMESPACE: Final = "DynamoDBCounters"
_LOG_READINGS: Final = 5


@dataclass(frozen=True)
class Deployment:
    """The examples, up and running.

    Parameters
    ----------
    emulator : Emulator
        Where they run.
    outputs : mapping of str to mapping of str to str
        What each stack tells about itself.
    """

    emulator: Emulator
    outputs: Mapping[str, Mapping[str, str]]

    @property
    def blog_table(self) -> str:
        """Name of the blog's table."""
        return self.outputs[_BLOG]["TableName"]

    @property
    def jobs_table(self) -> str:
        """Name of the jobs' table."""
        return self.outputs[_JOBS]["TableName"]

    @property
    def leaderboard_table(self) -> str:
        """Name of the leaderboard's table."""
        return self.outputs[_LEADERBOARD]["TableName"]

    @property
    def pages_table(self) -> str:
        """Name of the pages' table."""
        return self.outputs[_PAGES]["TableName"]

    @property
    def page_url(self) -> str:
        """Address of the blog's live page."""
        return f"{self.emulator.endpoint_url}/_aws/execute-api/{self.outputs[_BLOG]['ApiId']}/$default/"

    def metrics(self, sleep: Callable[[float], None] = time.sleep) -> dict[str, float]:
        """Give the sums of what the blog's aggregator says of itself, once it says no more.

        Parameters
        ----------
        sleep : callable, optional
            Waits some seconds.

        Returns
        -------
        dict of str to float
            By the metric's name. Empty when it has logged nothing.
        """
        logs, group = self.emulator.client("logs"), self.outputs[_BLOG]["AggregatorLogGroup"]
        sums: dict[str, float] = {}
        for _ in range(_LOG_READINGS):
            last, sums = sums, metric_sums(logs, group, _NAMESPACE)
            if sums and sums == last:
                break
            sleep(1)
        return sums

    def diagnosis(self) -> list[str]:
        """Say why counts do not arrive: how deliveries went, and what the functions that count logged last."""
        return diagnosis(self.emulator, self.outputs)

    def database(self) -> Any:
        """Make a DynamoDB client, one of its own for each thing to be measured.

        Returns
        -------
        DynamoDBClient
            Fit for many requests at once.
        """
        return self.emulator.client("dynamodb", max_connections=_CONNECTIONS)


@contextmanager
def deployed(progress: Progress, max_seconds: int) -> Iterator[Deployment]:
    """Start an emulator, bootstrap it and deploy the examples with the CDK CLI.

    Parameters
    ----------
    progress : Progress
        Told how far it is.
    max_seconds : int
        After this long the emulator ends, whatever happens.

    Yields
    ------
    Deployment
        Ready for events. Nothing of it is left afterwards.
    """
    progress("starting the emulator")
    with Emulator.start(max_seconds=max_seconds) as emulator:
        progress(f"bootstrapping the emulated account at {emulator.endpoint_url}")
        cdk.bootstrap(emulator)
        progress("deploying the example stacks with the CDK CLI")
        outputs = cdk.deploy(emulator, context=CONTEXT)
        progress(f"deployed {', '.join(sorted(outputs))}")
        yield Deployment(emulator, outputs)
        progress("stopping the emulator")
