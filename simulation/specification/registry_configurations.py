"""Configurations of docs/spec/Registry.tla for TLC, names that keep their definitions, with guards removed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from simulation.specification import explorations
from simulation.specification.explorations import Removal, Specification

_DEFAULTS: Final[Mapping[str, str]] = {
    "None": "= None",
    "Names": '= {"a"}',
    "Versions": "= {1}",
    "Declares": "<- OneVersion",
    "Reads": "<- ReadAll",
    "Adds": "<- Two",
    "Images": "<- OneChange",
    "NewTable": "= FALSE",
    "Processes": "= {1}",
    "Runners": "= {1}",
    "Features": '= {"backfill"}',
    "Without": "= {}",
    "Fresh": "= 0",
    "Timeout": "= 0",
    "Margin": "= 1",
}
REGISTRY: Final = Specification(
    "RegistryMC", ("TypeOK", "KeepsDefinition", "StaleFirst", "Unmixed", "ReadsRight"), _DEFAULTS
)
Configuration: Final = partial(explorations.Configuration, REGISTRY)

_TURNS: Final = {"Versions": "= {1, 2}", "Declares": "<- OtherDefinition"}
_TIMES: Final = {"Fresh": "= 1", "Margin": "= 2", "Timeout": "= 1"}
_AT_ONCE: Final = {"Fresh": "= 0", "Margin": "= 1", "Timeout": "= 0"}
_PAIR: Final = {"Processes": "= {1, 2}"}

REGISTRIES: Final = (
    Configuration(
        "rollout",
        "a new table; two versions that take turns: the second changes a name and adds one; two processes",
        {
            **_PAIR,
            "Names": '= {"a", "b"}',
            "Versions": "= {1, 2}",
            "Declares": "<- AddedName",
            "NewTable": "= TRUE",
            "Images": "<- Changed",
            "Features": "= {}",
        },
        states=723,
    ),
    Configuration(
        "new name", "a backfill of a new name, again and again; two processes, one change", _PAIR, states=1_532
    ),
    Configuration(
        "new name, changed", "the same with an item that is created and changed", {**_PAIR, "Images": "<- Changed"}
    ),
    Configuration(
        "old copies",
        "everyone relies on what it has read before; invocations that take time; one change",
        {**_PAIR, **_TIMES},
        states=7_695,
    ),
    Configuration(
        "slow runners",
        "a runner that dies, or is doubled; one process, an item that is created and changed",
        {**_TIMES, "Runners": "= {1, 2}", "Images": "<- Changed"},
    ),
    Configuration(
        "drop",
        "two versions that declare the name differently; it is dropped and declared again, again and again",
        {**_TURNS, **_TIMES, "Features": '= {"backfill", "drop"}'},
        states=19_853,
    ),
    Configuration(
        "stale",
        "two versions; the first cannot read one of the two names",
        {**_TURNS, "Names": '= {"a", "b"}', "Declares": "<- OtherName", "Reads": "<- OlderReadsLess"},
    ),
    Configuration(
        "together",
        "drop, where the first version cannot read the second definition; a new table, an item created and changed",
        {
            **_TURNS,
            **_TIMES,
            "Reads": "<- OlderReadsLess",
            "NewTable": "= TRUE",
            "Images": "<- Changed",
            "Features": '= {"backfill", "drop"}',
        },
    ),
)

REGISTRY_REMOVALS: Final = (
    Removal("a process folds by what its own code declares", "rollout", "registered definition", quick=True),
    Removal("a process folds only names that its own code declares", "rollout", "undeclared names", quick=True),
    Removal("a process relies longer on what it has read", "old copies", "fresh registry", quick=True),
    Removal("a deployment replaces a definition", "rollout", "first registration", quick=True),
    Removal("a later name of a new table is complete, too", "rollout", "one founding", quick=True),
    Removal("a process folds before any name is registered", "rollout", "founded first", quick=True),
    Removal("the header is read after the names", "rollout", "header first", quick=True),
    Removal(
        "S is too early for processes that do not know of it", "old copies", constants={"Margin": "= 1"}, quick=True
    ),
    Removal("records before S count when they are delivered again", "new name", "past the cut", quick=True),
    Removal("a name is left out though it is not stale", "stale", "stale first", quick=True),
    Removal("a name is left out as soon as it is stale", "stale", "readers first", quick=True),
    Removal("stale is written without a condition", "drop", "stale as read", _AT_ONCE, quick=True),
    Removal("a command stops the folding of a complete name", "new name", "stale before waiting", quick=True),
    Removal("the folding stops as soon as a name is stale", "new name", "stale for a while", quick=True),
    Removal("items are deleted while a process may begin to fold", "old copies", "nobody begins", quick=True),
    Removal("items are deleted while an invocation folds", "old copies", "nobody folds", quick=True),
    Removal("a backfill keeps the items that are there", "new name", "emptied", quick=True),
    Removal("a slow runner opens what was filled since", "new name", "opened as emptied", quick=True),
    Removal("a dropped name is removed before its items", "drop", "removed last", _AT_ONCE, quick=True),
    Removal("the log of the run before stays", "new name", "log deleted", quick=True),
    Removal("a slow runner deletes items of the next run", "new name", "deleted in time", quick=True),
    Removal("a slow runner adds a baseline to the next run", "slow runners", "added in time", _AT_ONCE, quick=True),
    Removal("a name that went stale meanwhile becomes complete", "new name", "complete as read", quick=True),
)
