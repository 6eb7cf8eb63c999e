"""How an event source mapping is configured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

STREAM_RETENTION_SECONDS: Final = 24 * 3600.0
MAX_PAYLOAD_BYTES: Final = 6_000_000


@dataclass(frozen=True, slots=True)
class Settings:
    """How a mapping is configured.

    No limit of bytes is checked with `max_bytes` None. Without a tumbling window (0 seconds) no event names its shard.
    `max_retries` None tries until the record is older than `max_age_seconds`.
    """

    batch_size: int = 100
    max_bytes: int | None = MAX_PAYLOAD_BYTES
    window_seconds: int = 60
    bisect: bool = False
    report_item_failures: bool = False
    max_age_seconds: float = STREAM_RETENTION_SECONDS
    max_retries: int | None = None
