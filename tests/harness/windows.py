"""Tumbling windows of one shard: which records share an invocation, the envelope, the state carried on."""

from __future__ import annotations

from typing import Any

from tests.harness.source import Page, Record
from tests.harness.virtual import iso


class TumblingWindow:
    """The window one shard is in.

    Parameters
    ----------
    seconds : int
        Its length; 0 is no windows at all.
    """

    def __init__(self, seconds: int) -> None:
        self._seconds = seconds
        self._start: int | None = None
        self._state: dict[str, Any] = {}

    def same(self, records: list[Record]) -> list[Record]:
        """Give the first records that belong to one window.

        Parameters
        ----------
        records : list of dict
            In the order of the shard.

        Returns
        -------
        list of dict
            A beginning of them.
        """
        if not self._seconds or not records:
            return records
        first = self._of(records[0])
        return records[: next((place for place, record in enumerate(records) if self._of(record) > first), None)]

    def admit(self, records: list[Record]) -> list[Record]:
        """Open a window for records, unless another has to be ended first.

        Parameters
        ----------
        records : list of dict
            Records of one window.

        Returns
        -------
        list of dict
            The records, or none.
        """
        if not self._seconds or not records:
            return records
        begins = self._of(records[0])
        if self._start is None:
            self._start = begins
        return records if begins <= self._start else []

    def is_over(self, now: float, page: Page) -> bool:
        """Tell whether an open window is to be ended.

        Parameters
        ----------
        now : float
            Seconds since 1970.
        page : Page
            What was read.

        Returns
        -------
        bool
            True when its last invocation is due.
        """
        if self._start is None:
            return False
        return bool(page.records) or page.ended or now >= self._start + self._seconds

    def envelope(self, *, final: bool) -> dict[str, Any]:
        """Give what Lambda adds to the event.

        Parameters
        ----------
        final : bool
            Whether this is the window's last invocation.

        Returns
        -------
        dict
            Window, state and flags.
        """
        assert self._start is not None
        return {
            "window": {"start": iso(self._start), "end": iso(self._start + self._seconds)},
            "state": self._state,
            "isFinalInvokeForWindow": final,
            "isWindowTerminatedEarly": False,
        }

    def keep(self, state: dict[str, Any], *, final: bool) -> None:
        """Take the state a function returned.

        Parameters
        ----------
        state : dict
            For the window's next invocation.
        final : bool
            Whether there is none.
        """
        self._state = state
        if final:
            self.close()

    def close(self) -> None:
        """End the window and forget its state."""
        self._start, self._state = None, {}

    def _of(self, record: Record) -> int:
        created = int(record["dynamodb"]["ApproximateCreationDateTime"])
        return created - created % self._seconds
