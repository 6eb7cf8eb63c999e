"""The kinds of event the demonstration sends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

_Event = TypeVar("_Event")


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


class Submission(NamedTuple):
    """A player of the game found a path.

    Parameters
    ----------
    player : str
        Who.
    path : str
        Which. Others may find it too.
    """

    player: str
    path: str

    def as_event(self) -> dict[str, str]:
        """Give the fields under the names that the leaderboard's declarations use."""
        return self._asdict()


class Page(NamedTuple):
    """A page was created.

    Parameters
    ----------
    page : str
        Its name.
    """

    page: str

    def as_event(self) -> dict[str, str]:
        """Give the fields under the names that the pages' declarations use."""
        return self._asdict()


class Visit(NamedTuple):
    """A user looked at a page.

    Parameters
    ----------
    page : str
        Which.
    user : str
        Who.
    """

    page: str
    user: str

    def as_event(self) -> dict[str, str]:
        """Give the fields under the names that the pages' declarations use."""
        return self._asdict()


@dataclass(frozen=True)
class Course(Generic[_Event]):
    """What happens to an example's events, in this order.

    Parameters
    ----------
    sent : sequence
        Events as delivered, repeats included.
    withdrawn : sequence
        Different ones of them, then deleted.
    again : sequence
        Different ones of the deleted, then sent once more: new events.
    """

    sent: Sequence[_Event] = ()
    withdrawn: Sequence[_Event] = ()
    again: Sequence[_Event] = ()
