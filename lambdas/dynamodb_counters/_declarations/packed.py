"""Packed events: many in one item, still deduplicated exactly."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from dynamodb_counters._declarations.checks import require_attribute, require_count, require_duration
from dynamodb_counters.errors import InvalidArgumentError

MAX_PARTS: Final = 256
MIN_CHUNK_BYTES: Final = 1024
MAX_CHUNK_BYTES: Final = 131_072
"""Well below the 400 KB of an item: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html"""

_LONGEST_BUCKET: Final = timedelta(days=1)
_SECOND: Final = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Packed:
    """Keeps an event's occurrences in chunks, many per item, so that accepting one costs a fraction of a write unit.

    An event belongs to a bucket of its own time and to one of `parts`, both of which follow from the event alone, so a
    repetition always meets its original. These arguments, except `chunk_bytes` and `future_tolerance`, and the event's
    retention never change: a table refuses them with `LayoutError`.

    Parameters
    ----------
    time : str
        Field of the event's key that holds its time: ISO 8601 with an offset, or epoch seconds or milliseconds.
    bucket : timedelta, optional
        Whole seconds, from 1 second to 1 day. A bucket of about 10,000 events is best: a process that meets an event of
        a bucket it does not know reads that bucket. Default 10 minutes.
    parts : int, optional
        Partitions that share the events, 1 to 256. More than one are for more than 1,000 write units per second, or
        for many writers, each with parts of its own; fewer events meet in a chunk. Default 1.
    partition_by : str, optional
        A field of the event's key whose text decides the part. Default: the whole key decides.
    tenant : str, optional
        A field of the event's key, each text of which has chunks of its own: what one tenant sends delays no other.
        Reading events then takes its value. Default: all share chunks.
    chunk_bytes : int, optional
        About how long a chunk may become before the next one is begun, 1,024 to 131,072 bytes. Default 4,096.
    future_tolerance : timedelta or None, optional
        An event further ahead of the writer's clock is rejected; None accepts any. Default 15 minutes.

    Examples
    --------
    >>> Packed("time", bucket=timedelta(minutes=1)).parts
    1
    """

    time: str
    bucket: timedelta = timedelta(minutes=10)
    parts: int = 1
    partition_by: str | None = None
    tenant: str | None = None
    chunk_bytes: int = 4096
    future_tolerance: timedelta | None = timedelta(minutes=15)

    def __post_init__(self) -> None:
        require_attribute("time", self.time)
        bucket: object = self.bucket
        if not isinstance(bucket, timedelta) or not _SECOND <= bucket <= _LONGEST_BUCKET or bucket % _SECOND:
            raise InvalidArgumentError("bucket", self.bucket, "a timedelta of whole seconds, from 1 second to 1 day")
        require_count("parts", self.parts, MAX_PARTS)
        for argument, name in (("partition_by", self.partition_by), ("tenant", self.tenant)):
            if name is not None:
                require_attribute(argument, name)
        require_count("chunk_bytes", self.chunk_bytes, MAX_CHUNK_BYTES, MIN_CHUNK_BYTES)
        require_duration("future_tolerance", self.future_tolerance, zero=True)

    @property
    def _bucket_seconds(self) -> int:
        return self.bucket // _SECOND

    @property
    def _tenants(self) -> tuple[str, ...]:
        """The field that reading its events takes, if there are tenants."""
        return () if self.tenant is None else (self.tenant,)
