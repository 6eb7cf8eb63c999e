"""How an event source mapping is configured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

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
