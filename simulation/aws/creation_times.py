"""Creation times of stream records: whole seconds, which may go backward within a shard."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

from simulation.aws.rule import Rule

_MOST_SECONDS_OFF: Final = 1.0

TIMES_ARE_APPROXIMATE: Final = Rule(
    "times of creation are approximate, in whole seconds",
    "The approximate date and time when the stream record was created, in UNIX epoch time format and rounded down to "
    "the closest second.",
    "https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_streams_StreamRecord.html",
    switch="simulation.recorded_stream.RecordedStream.disorder",
    guard="each delivery has a cut of its own",
)


def disorder(rng: random.Random) -> Callable[[], float]:
    """By how many seconds the time of each record is wrong."""
    return lambda: rng.uniform(-_MOST_SECONDS_OFF, _MOST_SECONDS_OFF)
