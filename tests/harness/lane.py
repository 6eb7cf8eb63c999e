"""How far a mapping has got in one shard: what it has read, what is to be tried again, what is given up."""

from __future__ import annotations

import json
from collections.abc import Callable

from tests.harness.settings import Settings
from tests.harness.source import Page, Record, Source
from tests.harness.windows import TumblingWindow


class Lane:
    """The batches of one shard, in order.

    Parameters
    ----------
    shard : str
        Its id.
    source : Source
        The stream.
    clock : callable
        Gives seconds since 1970.
    settings : Settings
        How the mapping is configured.
    give_up : callable
        Takes records that are not tried any more.

    Attributes
    ----------
    window : TumblingWindow
        The shard's.
    checkpoint : str or None
        The last sequence number that needs no delivery any more.
    """

    def __init__(
        self,
        shard: str,
        source: Source,
        clock: Callable[[], float],
        settings: Settings,
        give_up: Callable[[list[Record]], None],
    ) -> None:
        self._shard = shard
        self._source = source
        self._clock = clock
        self._settings = settings
        self._give_up = give_up
        # Batches to try again before anything is read, the next one last.
        self._pending: list[list[Record]] = []
        self._retries = 0
        self.window = TumblingWindow(settings.window_seconds)
        self.checkpoint: str | None = None

    def page(self, batch_size: int) -> Page:
        """Give what is to be delivered next.

        Parameters
        ----------
        batch_size : int
            Records at most, where none are to be tried again.

        Returns
        -------
        Page
            One batch, of records that are not too old.
        """
        while True:
            if not self._pending:
                page = self._source.read(self._shard, self.checkpoint, batch_size)
                batch = self._fitting(self.window.same(page.records))
                if not batch:
                    return page
                self._pending.append(batch)
            oldest = self._clock() - self._settings.max_age_seconds
            batch = self._pending[-1]
            fresh = [record for record in batch if record["dynamodb"]["ApproximateCreationDateTime"] > oldest]
            if len(fresh) == len(batch):
                return Page(batch, ended=False)
            expired = batch[: len(batch) - len(fresh)]
            self._pending[-1] = fresh
            self._abandon(expired)
            if not fresh:
                self._pending.pop()

    def advance(self, records: list[Record]) -> None:
        """Take note that records were processed.

        Parameters
        ----------
        records : list of dict
            The first ones of the batch delivered last.
        """
        if not records:
            return
        self.checkpoint = records[-1]["dynamodb"]["SequenceNumber"]
        rest = self._pending.pop()[len(records) :]
        if rest:
            self._pending.append(rest)

    def succeed(self) -> None:
        """Take note that a delivery is through: what comes next has not been tried yet."""
        self._retries = 0

    def retry(self, cut: Callable[[int], int]) -> None:
        """Take note that the batch delivered last has failed.

        Parameters
        ----------
        cut : callable
            Where a batch of so many is bisected.
        """
        batch = self._pending[-1]
        if self._settings.bisect and len(batch) > 1:
            place = min(max(cut(len(batch)), 1), len(batch) - 1)
            self._pending[-1:] = [batch[place:], batch[:place]]
            return
        self._retries += 1
        if self._settings.max_retries is not None and self._retries > self._settings.max_retries:
            self._abandon(self._pending.pop())

    def rewind(self, checkpoint: str | None) -> None:
        """Go back to an earlier position; batches are cut anew from there.

        Parameters
        ----------
        checkpoint : str or None
            Sequence number after which to go on; None is the beginning.
        """
        self.checkpoint, self._retries = checkpoint, 0
        self._pending.clear()
        self.window.close()

    def _fitting(self, records: list[Record]) -> list[Record]:
        if self._settings.max_bytes is None:
            return records
        room = self._settings.max_bytes
        for place, record in enumerate(records):
            room -= len(json.dumps(record, default=str))
            if room < 0:
                return records[: max(place, 1)]
        return records

    def _abandon(self, records: list[Record]) -> None:
        self._give_up(records)
        self.checkpoint = records[-1]["dynamodb"]["SequenceNumber"]
        self._retries = 0
