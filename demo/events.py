"""The two kinds of event the demonstration sends."""

from __future__ import annotations

from typing import NamedTuple


class View(NamedTuple):
    """Somebody looked at a page of the blog.

    Parameters
    ----------
    url : str
        What was asked for.
    time : str
        When, ISO 8601 in UTC.
    client : str
        Who.
    """

    url: str
    time: str
    client: str

    def as_event(self) -> dict[str, str]:
        """Give the fields under the names that the blog's declarations use."""
        return {"url": self.url, "time": self.time, "clientId": self.client}


class Job(NamedTuple):
    """A customer placed a job.

    Parameters
    ----------
    customer : str
        Who.
    id : str
        Makes the job unique.
    at : int
        When, in milliseconds since 1970-01-01T00:00Z.
    """

    customer: str
    id: str
    at: int

    def as_event(self) -> dict[str, str | int]:
        """Give the fields under the names that the jobs' declarations use."""
        return {"customer": self.customer, "id": self.id, "insertUtcTime": self.at}
