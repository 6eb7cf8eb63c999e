"""Configurations of docs/spec/Pages.tla for TLC, groups in pages that split, with guards removed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from simulation.specification import explorations
from simulation.specification.explorations import Removal, Specification

_DEFAULTS: Final[Mapping[str, str]] = {
    "None": "= None",
    "Groups": "= {1, 2}",
    "Shards": "= {1}",
    "Processes": "= {1}",
    "Splitters": "= {1}",
    "Readers": "= {}",
    "Streams": "<- OneShard",
    "Depth": "= 1",
    "Home": "<- OneSplit",
    "Features": "= {}",
    "Without": "= {}",
}
PAGES: Final = Specification("PagesMC", ("TypeOK", "AtMostOnce", "Exact", "OneHome", "ReadOnce"), _DEFAULTS)
Configuration: Final = partial(explorations.Configuration, PAGES)

_READ: Final = {"Readers": "= {1}", "Streams": "<- OneRecord"}

PAGINATIONS: Final = (
    Configuration(
        "page",
        "one shard, two groups, a page that splits; answers get lost",
        {"Features": '= {"lost answers"}'},
        states=690,
    ),
    Configuration("page, zombies", "the same with two processes", {"Processes": "= {1, 2}"}),
    Configuration("page, two splitters", "the same with two that split", {"Splitters": "= {1, 2}"}, states=1_316),
    Configuration(
        "page, shards",
        "two shards, two processes",
        {"Shards": "= {1, 2}", "Streams": "<- TwoShards", "Processes": "= {1, 2}"},
    ),
    Configuration("page, increments", "increments of both groups meanwhile", {"Features": '= {"increments"}'}),
    Configuration("page, readers", "a reader of both groups", _READ),
    Configuration("page, stale readers", "the same, its reads are stale", {**_READ, "Features": '= {"stale reads"}'}),
    Configuration(
        "page, deep",
        "three groups, two splits one after the other",
        {"Groups": "= {1, 2, 3}", "Home": "<- TwoSplits", "Depth": "= 2", "Streams": "<- Deep"},
        states=2_575,
    ),
)

PAGE_REMOVALS: Final = (
    Removal("an update has no condition on the level", "page", "level", quick=True),
    Removal("an update adds for the groups alone of which the level is guessed", "page", "whole page", quick=True),
    Removal("an update has no condition on the watermark", "page", "watermark", quick=True),
    Removal("a new page has no watermarks", "page", "watermarks copied", quick=True),
    Removal("a page that has changed since it was read splits", "page", "as read", quick=True),
    Removal("the new page is written before the old one", "page, zombies", "one transaction", quick=True),
    Removal("an update creates a page of any level", "page", "only splits create", quick=True),
    Removal("a refused batch is not folded again", "page", "refold", quick=True),
    Removal("a reader does not look at the level", "page, readers", "level read", quick=True),
    Removal("a reader of a page that is missing does not ask its parent", "page, readers", "parent read", quick=True),
)
