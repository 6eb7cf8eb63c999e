"""Faults between a write and its count."""

from __future__ import annotations

from dataclasses import dataclass, fields

from dynamodb_counters.errors import InvalidArgumentError


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """Faults that DynamoDB Streams and Lambda may inflict on the aggregator; the counts must stay exact.

    Each is a probability from 0 to 1; the seed of `counters_in_memory` decides. With any of them, shards are read in
    random order and batches are cut at random places.

    Parameters
    ----------
    crash : float, optional
        Probability that an invocation dies before or after one of its calls, with some of its writes done; its
        batch is delivered again, to a new process. Default 0.
    redeliver : float, optional
        Probability that a batch is delivered again although it was counted, with some records before it. Default 0.
    late_expiry : float, optional
        Probability that DynamoDB deletes an expired item only some time within the next two days. Default 0.
    split : float, optional
        Probability that a shard of the stream is replaced by one or two others after a write. Default 0.

    Examples
    --------
    >>> Faults(crash=0.3, redeliver=0.3).split
    0.0
    """

    crash: float = 0.0
    redeliver: float = 0.0
    late_expiry: float = 0.0
    split: float = 0.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, int | float) or not 0 <= value <= 1:
                raise InvalidArgumentError(field.name, value, "a probability from 0 to 1")

    def __bool__(self) -> bool:
        return any(getattr(self, field.name) for field in fields(self))
