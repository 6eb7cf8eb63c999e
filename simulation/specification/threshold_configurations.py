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
    "Born": "<- InFirst",
    "Eras": "<- Plain",
    "Generations": "= {1}",
    "Shards": "= {1}",
    "Home": "<- OneHome",
    "Features": "= {}",
    "Without": "= {}",
}
THRESHOLDS: Final = Specification(
    "ThresholdsMC",
    (
        "TypeOK",
        "Silent",
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

_TWO: Final = {
    "Processes": "= {1}",
    "Generations": "= {1, 2}",
    "Shards": "= {1, 2}",
    "Home": "<- Apart",
    "Adds": "<- OneEach",
    "Born": "<- InTurn",
}

CROSSINGS: Final = (
    Configuration("crossings", "two levels, up and down, at once or one by one; two processes"),
    Configuration("highest", "the same; of levels crossed at once the last is reported", {"Eras": "<- Highest"}),
    Configuration(
        "once",
        "a level that is crossed again is reported once",
        {"Eras": "<- OnlyOnce", "Adds": "<- Again"},
        states=5_977,
    ),
    Configuration(
        "new levels", "a deployment that changes levels and directions", {"Eras": "<- NewLevels", "Born": "<- TwoEras"}
    ),
    Configuration(
        "two generations",
        "a second generation is filled, and reports once the first one ends",
        {**_TWO, "Eras": "<- Redefined"},
    ),
    Configuration(
        "two generations, once", "the same, each level is reported once", {**_TWO, "Eras": "<- RedefinedOnce"}
    ),
    Configuration(
        "expired",
        "the item expires, and late records create it again",
        {"Features": '= {"expiry"}', "Adds": "<- TwoRecords", "Born": "<- InFirst"},
        states=6_888,
    ),
    Configuration(
        "notifier",
        "EventBridge refuses events; answers get lost; one process",
        {"Features": '= {"notifier"}', "Processes": "= {1}", "Adds": "<- TwoRecords", "Born": "<- InFirst"},
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
    Removal("a record is judged by the deployment that delivers it", "new levels", "by birth"),
    Removal("every generation that is folded reports", "two generations", "one generation"),
    Removal("a key of `once` has the generation", "two generations, once", "once ever"),
    Removal("an item that expires crosses lines", "expired", "removals cross nothing"),
    Removal("the notifier goes on after a refusal", "notifier", "refused is retried"),
    Removal("each sending has an id of its own", "notifier", "id of the item"),
)
