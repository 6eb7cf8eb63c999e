"""An event source mapping on a stream, as AWS documents it: order, batches, retries, bisect, windows, expiry.

https://docs.aws.amazon.com/lambda/latest/dg/services-dynamodb-eventsourcemapping.html
https://docs.aws.amazon.com/lambda/latest/dg/services-ddb-windows.html
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.harness.lane import Lane
from tests.harness.settings import Settings
from tests.harness.source import Record, Source


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
        How it is configured. Default: as `Settings` says.
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
        settings: Settings | None = None,
        cut: Callable[[int], int] = lambda length: length // 2,
    ) -> None:
        self._source = source
        self._clock = clock
        self._settings = settings or Settings()
        self._cut = cut
        self._lanes: dict[str, Lane] = {}
        self._busy: dict[str, Delivery] = {}
        self._finished: set[str] = set()
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
            # A parent that the stream has forgotten can have nothing left.
            known = any(other.id == shard.parent for other in found)
            if shard.id not in self._lanes and (not known or shard.parent in self._finished):
                self._lanes[shard.id] = Lane(shard.id, self._source, self._clock, self._settings, self.given_up.append)
        return [name for name in self._lanes if name not in self._busy and name not in self._finished]

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
        assert shard not in self._busy, "a shard has one delivery at a time"
        page = lane.page(batch_size or self._settings.batch_size)
        records = lane.window.admit(page.records)
        final = not records and lane.window.is_over(self._clock(), page)
        if not records and not final:
            if page.ended:
                self._finished.add(shard)
            return None
        event: dict[str, Any] = {"Records": records}
        if self._settings.window_seconds:
            event |= {"shardId": shard, "eventSourceARN": self._source.arn, **lane.window.envelope(final=final)}
        delivery = self._busy[shard] = Delivery(shard, records, event)
        self.deliveries += 1
        self.delivered += len(records)
        return delivery

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
        if self._busy.get(delivery.shard) is not delivery:
            return False
        lane, settings = self._lanes[delivery.shard], self._settings
        if settings.window_seconds and not (isinstance(response, dict) and isinstance(response.get("state"), dict)):
            self.fail(delivery)
            return False
        done = self._successful(delivery, response)
        if delivery.records and done < len(delivery.records):
            lane.advance(delivery.records[:done])
            self.fail(delivery)
            return False
        lane.advance(delivery.records)
        if settings.window_seconds:
            lane.window.keep(response["state"], final=not delivery.records)
        lane.succeed()
        del self._busy[delivery.shard]
        return True

    def fail(self, delivery: Delivery) -> None:
        """Take note that an invocation failed or timed out.

        Parameters
        ----------
        delivery : Delivery
            Which one.
        """
        if self._busy.get(delivery.shard) is not delivery:
            return
        del self._busy[delivery.shard]
        if delivery.records:
            self._lanes[delivery.shard].retry(self._cut)

    def rewind(self, shard: str, checkpoint: str | None) -> None:
        """Go back to an earlier position, as after a lost checkpoint; batches are cut anew from there.

        Parameters
        ----------
        shard : str
            A shard that is not busy.
        checkpoint : str or None
            Sequence number after which to go on; None is the beginning.
        """
        assert shard not in self._busy, "a busy shard cannot be rewound"
        self._lanes[shard].rewind(checkpoint)
        self._finished.discard(shard)

    def checkpoint(self, shard: str) -> str | None:
        """Give the last sequence number of a shard that needs no delivery any more."""
        return self._lanes[shard].checkpoint if shard in self._lanes else None

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
