"""Configurations of docs/spec/Tally.tla for TLC, the tally and its way to the next generation, with guards removed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from simulation.specification import explorations
from simulation.specification.explorations import Removal, Specification

_DEFAULTS: Final[Mapping[str, str]] = {
    "None": "= None",
    "Keys": "= {1}",
    "First": "<- OneItem",
    "Shards": "= {1, 2}",
    "Home": "<- FirstShard",
    "ItemHome": "<- Apart",
    "Generations": "= {1, 2}",
    "Carries": "<- Pair",
    "Weight": "<- Redefined",
    "Keeps": "= {1, 2}",
    "Features": '= {"erasures"}',
    "Without": "= {}",
    "Directs": "= 0",
}
TALLY: Final = Specification("TallyMC", ("TypeOK", "Balanced", "Carried"), _DEFAULTS)
Configuration: Final = partial(explorations.Configuration, TALLY)

_ONE_SHARD: Final = {"Shards": "= {1}", "ItemHome": "<- OneShard"}
_THREE: Final = {"Generations": "= {1, 2, 3}"}
_MIXED: Final = {"Features": '= {"changes", "erasures", "increments"}', "Directs": "= 1"}

TALLIES: Final = (
    Configuration("erasures", "an item is erased, its count kept; the next generation counts it threefold", states=493),
    Configuration(
        "direct",
        "two increments or resets; the item of the generation before is deleted",
        {"Features": '= {"increments", "resets", "removal"}', "Directs": "= 2"},
        states=4_294,
    ),
    Configuration("mixed", "an item is changed, deleted, erased; one increment", _MIXED),
    Configuration("mixed, one shard", "the same; groups and source items share a shard", {**_MIXED, **_ONE_SHARD}),
    Configuration(
        "two erasures",
        "two items of two shards are erased",
        {"Keys": "= {1, 2}", "First": "<- TwoItems", "Home": "<- HomesApart"},
    ),
    Configuration(
        "kept from now on",
        "the generation before subtracts what is erased",
        {"Features": '= {"changes", "erasures"}', "Keeps": "= {2}"},
    ),
    Configuration(
        "kept no more",
        "the next generation subtracts what is erased",
        {"Features": '= {"changes", "erasures"}', "Keeps": "= {1}"},
    ),
    Configuration(
        "waiting",
        "an erasure that some generation cannot fold, and that is redriven; one increment",
        {"Features": '= {"erasures", "increments", "waiting"}', "Directs": "= 1"},
    ),
    Configuration(
        "closing",
        "the group's retention ends meanwhile; one increment",
        {"Features": '= {"closing", "erasures", "increments"}', "Directs": "= 1"},
    ),
    Configuration("deleted", "the item of the generation before is deleted", {"Features": '= {"erasures", "removal"}'}),
    Configuration(
        "chain", "a third generation, opened after the switch to the second", {**_THREE, "Carries": "<- Chain"}
    ),
    Configuration(
        "chain, direct",
        "the same with an increment",
        {**_THREE, "Carries": "<- Chain", "Features": '= {"increments"}', "Directs": "= 1"},
    ),
    Configuration(
        "rivals",
        "two runs of the same name at once; one increment",
        {**_THREE, "Carries": "<- Rivals", "Features": '= {"increments"}', "Directs": "= 1"},
    ),
)

TALLY_REMOVALS: Final = (
    Removal("the value is incremented, the tally afterwards", "direct", "one update", quick=True),
    Removal("an erasure that keeps counts leaves no tally", "erasures", "tallied"),
    Removal("a newer version of a marked item counts as its erasure", "mixed", "marked removals only"),
    Removal("the scan leaves out what is marked as erased", "erasures", "marked at the cut"),
    Removal("the next generation does not carry the tally", "direct", "carried"),
    Removal("the scan does not read the generation before", "direct", "carried before the cut"),
    Removal("an item that goes takes its tally along", "direct", "removed as it was", quick=True),
    Removal("an item that goes is not logged", "direct", "removal logged"),
    Removal("the carry ends with the switch", "direct", "after the switch", quick=True),
    Removal("what is carried is late when the group's retention is over", "closing", "never late"),
    Removal("an erasure is tallied by both generations, and carried", "erasures", "compensated", quick=True),
    Removal("an erasure is compensated as the next generation counts it", "erasures", "as tallied"),
    Removal("compensation waits with the next generation's own part", "waiting", "with the tally"),
    Removal("an erasure below the cut is compensated", "erasures", "past the cut"),
    Removal("readers switch though another run has switched before", "rivals", "reads its predecessor"),
    Removal("a run opens while the generation two before is folded", "chain", "one carry at a time"),
    Removal("the baseline is added before every shard is drained", "chain", "drained"),
)
