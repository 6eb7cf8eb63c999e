"""An event source mapping on a stream, as AWS documents it: order, batches, retries, bisect, windows, expiry.

https://docs.aws.amazon.com/lambda/latest/dg/services-dynamodb-eventsourcemapping.html
https://docs.aws.amazon.com/lambda/latest/dg/services-ddb-windows.html
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from tests.harness.source import Page, Record, Source
from tests.harness.windows import TumblingWindow

STREAM_RETENTION_SECONDS: Final = 24 * 3600.0
MAX_PAYLOAD_BYTES: Final = 6_000_000


@dataclass(frozen=True, slots=True)
class Settings:
    """How a mapping is configured.

    Parameters
    ----------
    batch_size : int, optional
        Records a delivery at most. Default 100.
    max_bytes : int or None, optional
        Bytes a delivery at most; None does not look. Default 6 MB.
    window_seconds : int, optional
        Length of the tumbling window; 0 is none, and then no event names its shard. Default 60.
    bisect : bool, optional
        Whether a failed batch is cut in two. Default False.
    report_item_failures : bool, optional
        Whether ``batchItemFailures`` of a response count. Default False.
    max_age_seconds : float, optional
        Age at which a record is given up. Default: what the stream keeps.
    max_retries : int or None, optional
        How often a batch is tried again. Default None: until it expires.
    """

    batch_size: int = 100
    max_bytes: int | None = MAX_PAYLOAD_BYTES
    window_seconds: int = 60
    bisect: bool = False
    report_item_failures: bool = False
    max_age_seconds: float = STREAM_RETENTION_SECONDS
    max_retries: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Delivery:
    """One invocation the mapping asks for.

    Parameters
    ----------
    shard : str
        Where its records come from.
    records : list of dict
        Its records; none for the last invocation of a window.
    event : dict
        What the function is invoked with.
    """

    shard: str
    records: list[Record]
    event: dict[str, Any]


@dataclass(slots=True)
class _Lane:
    window: TumblingWindow
    checkpoint: str | None = None
    pending: list[list[Record]] = field(default_factory=list)
    """Batches to try again before anything is read, the next one last."""
    retries: int = 0
    current: Delivery | None = None
    finished: bool = False


class Mapping:
    """Delivers a stream to a function.

    The caller invokes: it polls a shard, runs the function however it likes, and settles or fails the delivery. A
    delivery that was failed may still be running; what becomes of it then is of no interest to the mapping.

    Parameters
    ----------
    source : Source
        The stream.
    clock : callable
        Gives seconds since 1970.
    settings : Settings, optional
        How it is configured.
    cut : callable, optional
        Where a batch of so many is bisected. Default: in the middle.

    Attributes
    ----------
    given_up : list of list of dict
        What went to the on-failure destination.
    deliveries, delivered : int
        How many invocations and records were asked for.
    """

    def __init__(
        self,
        source: Source,
        clock: Callable[[], float],
        settings: Settings = Settings(),
        cut: Callable[[int], int] = lambda length: length // 2,
    ) -> None:
        self._source = source
        self._clock = clock
        self._settings = settings
        self._cut = cut
        self._lanes: dict[str, _Lane] = {}
        self.given_up: list[list[Record]] = []
        self.deliveries = 0
        self.delivered = 0

    def shards(self) -> list[str]:
        """List the shards that may be delivered from: those whose parents are through, and that are not busy.

        Returns
        -------
        list of str
            Shard ids; there is not necessarily anything to deliver.
        """
        found = self._source.shards()
        for shard in found:
            parent = self._lanes.get(shard.parent or "")
            # A parent that the stream has forgotten can have nothing left.
            known = any(other.id == shard.parent for other in found)
            if shard.id not in self._lanes and (not known or (parent is not None and parent.finished)):
                self._lanes[shard.id] = _Lane(TumblingWindow(self._settings.window_seconds))
        return [name for name, lane in self._lanes.items() if lane.current is None and not lane.finished]

    def poll(self, shard: str, batch_size: int | None = None) -> Delivery | None:
        """Ask for the next delivery of a shard.

        Parameters
        ----------
        shard : str
            One of `shards`.
        batch_size : int, optional
            A smaller batch than configured, as the batching window or the payload's size would make it.

        Returns
        -------
        Delivery or None
            None when there is nothing to deliver.
        """
        lane = self._lanes[shard]
        assert lane.current is None, "a shard has one delivery at a time"
        page = self._page(shard, lane, batch_size or self._settings.batch_size)
        records = lane.window.admit(page.records)
        final = not records and lane.window.is_over(self._clock(), page)
        if not records and not final:
            lane.finished = page.ended
            return None
        event: dict[str, Any] = {"Records": records}
        if self._settings.window_seconds:
            event |= {"shardId": shard, "eventSourceARN": self._source.arn, **lane.window.envelope(final=final)}
        lane.current = Delivery(shard, records, event)
        self.deliveries += 1
        self.delivered += len(records)
        return lane.current

    def settle(self, delivery: Delivery, response: Any) -> bool:
        """Take a function's response.

        Parameters
        ----------
        delivery : Delivery
            What it answers.
        response : object
            What the function returned.

        Returns
        -------
        bool
            False if the response makes the invocation a failure, or comes too late to matter.
        """
        lane = self._lanes[delivery.shard]
        if lane.current is not delivery:
            return False
        settings = self._settings
        if settings.window_seconds and not (isinstance(response, dict) and isinstance(response.get("state"), dict)):
            self.fail(delivery)
            return False
        done = self._successful(delivery, response)
        if delivery.records and done < len(delivery.records):
            self._advance(lane, delivery, done)
            self.fail(delivery)
            return False
        self._advance(lane, delivery, len(delivery.records))
        if settings.window_seconds:
            lane.window.keep(response["state"], final=not delivery.records)
        lane.current, lane.retries = None, 0
        return True

    def fail(self, delivery: Delivery) -> None:
        """Take note that an invocation failed or timed out.

        Parameters
        ----------
        delivery : Delivery
            Which one.
        """
        lane = self._lanes[delivery.shard]
        if lane.current is not delivery:
            return
        lane.current = None
        if not delivery.records:
            return
        batch = lane.pending[-1]
        if self._settings.bisect and len(batch) > 1:
            cut = min(max(self._cut(len(batch)), 1), len(batch) - 1)
            lane.pending[-1:] = [batch[cut:], batch[:cut]]
            return
        lane.retries += 1
        if self._settings.max_retries is not None and lane.retries > self._settings.max_retries:
            self._give_up(lane, lane.pending.pop())

    def rewind(self, shard: str, checkpoint: str | None) -> None:
        """Go back to an earlier position, as after a lost checkpoint; batches are cut anew from there.

        Parameters
        ----------
        shard : str
            A shard that is not busy.
        checkpoint : str or None
            Sequence number after which to go on; None is the beginning.
        """
        lane = self._lanes[shard]
        assert lane.current is None, "a busy shard cannot be rewound"
        lane.checkpoint, lane.retries, lane.finished = checkpoint, 0, False
        lane.pending.clear()
        lane.window.close()

    def checkpoint(self, shard: str) -> str | None:
        """Give the last sequence number of a shard that needs no delivery any more."""
        return self._lanes[shard].checkpoint if shard in self._lanes else None

    def _page(self, shard: str, lane: _Lane, batch_size: int) -> Page:
        while True:
            if not lane.pending:
                page = self._source.read(shard, lane.checkpoint, batch_size)
                batch = self._fitting(lane.window.same(page.records))
                if not batch:
                    return page
                lane.pending.append(batch)
            oldest = self._clock() - self._settings.max_age_seconds
            batch = lane.pending[-1]
            fresh = [record for record in batch if record["dynamodb"]["ApproximateCreationDateTime"] > oldest]
            if len(fresh) == len(batch):
                return Page(batch, ended=False)
            expired = batch[: len(batch) - len(fresh)]
            lane.pending[-1] = fresh
            self._give_up(lane, expired)
            if not fresh:
                lane.pending.pop()

    def _fitting(self, records: list[Record]) -> list[Record]:
        if self._settings.max_bytes is None:
            return records
        room = self._settings.max_bytes
        for place, record in enumerate(records):
            room -= len(json.dumps(record, default=str))
            if room < 0:
                return records[: max(place, 1)]
        return records

    def _successful(self, delivery: Delivery, response: Any) -> int:
        """Count the records before the first one the response reports as failed."""
        everything = len(delivery.records)
        if not self._settings.report_item_failures or not isinstance(response, dict):
            return everything
        failures = response.get("batchItemFailures")
        if not failures:
            return everything
        places = {record["dynamodb"]["SequenceNumber"]: place for place, record in enumerate(delivery.records)}
        try:
            return min(places[entry["itemIdentifier"]] for entry in failures)
        except (KeyError, TypeError):
            return 0

    def _advance(self, lane: _Lane, delivery: Delivery, count: int) -> None:
        if not count:
            return
        lane.checkpoint = delivery.records[count - 1]["dynamodb"]["SequenceNumber"]
        rest = lane.pending.pop()[count:]
        if rest:
            lane.pending.append(rest)

    def _give_up(self, lane: _Lane, records: list[Record]) -> None:
        self.given_up.append(records)
        lane.checkpoint = records[-1]["dynamodb"]["SequenceNumber"]
        lane.retries = 0
