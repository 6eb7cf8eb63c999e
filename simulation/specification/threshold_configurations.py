"""Configurations of docs/spec/Thresholds.tla for TLC, crossings of lines, with guards removed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from simulation.specification import explorations
from simulation.specification.explorations import Removal, Specification

_DEFAULTS: Final[Mapping[str, str]] = {
    "None": "= None",
    "Processes": "= {1, 2}",
    "Adds": "<- UpAndDown",
    "Plans": "<- Plain",
    "Features": "= {}",
    "Without": "= {}",
}
THRESHOLDS: Final = Specification(
    "ThresholdsMC",
    (
        "TypeOK",
        "Justified",
        "AtMostOnce",
        "CheckpointCovers",
        "Exact",
        "InOrder",
        "Delivered",
        "OneId",
    ),
    _DEFAULTS,
)
Configuration: Final = partial(explorations.Configuration, THRESHOLDS)

CROSSINGS: Final = (
    Configuration("crossings", "two levels, up and down, at once or one by one; two processes"),
    Configuration("highest", "the same; of levels crossed at once the last is reported", {"Plans": "<- Highest"}),
    Configuration(
        "once",
        "a level that is crossed again is reported once",
        {"Plans": "<- OnlyOnce", "Adds": "<- Again"},
        states=5_977,
    ),
    Configuration("later", "a second threshold, which watches later", {"Plans": "<- Later"}),
    Configuration(
        "expired",
        "the item expires, and late records create it again",
        {"Features": '= {"expiry"}', "Adds": "<- TwoRecords"},
        states=6_888,
    ),
    Configuration(
        "refilled",
        "a backfill deletes the item, and adds later what it held",
        {"Features": '= {"filling"}', "Adds": "<- Rising"},
    ),
    Configuration(
        "notifier",
        "EventBridge refuses events; answers get lost; one process",
        {"Features": '= {"notifier"}', "Processes": "= {1}", "Adds": "<- TwoRecords"},
    ),
)

CROSSING_REMOVALS: Final = (
    Removal("the fold reports, after its update", "crossings", "from the record", quick=True),
    Removal("crossings are put after the checkpoint has moved", "crossings", "before the checkpoint", quick=True),
    Removal("a put that fails is passed over", "crossings", "failures fail"),
    Removal("each delivery has keys of its own", "crossings", "key of the record", quick=True),
    Removal("a key has no sequence number", "crossings", "sequence"),
    Removal("crossings of a group are put side by side", "crossings", "in order", quick=True),
    Removal("a put has no condition", "once", "condition", quick=True),
    Removal("a record is judged by the thresholds that are there when it is delivered", "later", "by birth"),
    Removal("an item that expires crosses lines", "expired", "removals cross nothing"),
    Removal("what a backfill adds of before crosses lines", "refilled", "baselines cross nothing", quick=True),
    Removal("the notifier goes on after a refusal", "notifier", "refused is retried"),
    Removal("each sending has an id of its own", "notifier", "id of the item"),
)
