"""Configurations of the specification for TLC, with each of its guards removed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from simulation.specification import explorations
from simulation.specification.explorations import Removal, Specification

MODULE: Final = "CountersMC"

_DEFAULTS: Final[Mapping[str, str]] = {
    "None": "= None",
    "Items": "= {1}",
    "Shards": "= {1}",
    "NameOf": "<- OneEach",
    "Processes": "= {1, 2}",
    "Streams": "<- Two",
    "Parents": "<- NoParents",
    "Features": "= {}",
    "Without": "= {}",
    "Timeout": "= 0",
    "Landing": "= 0",
    "Fresh": "= 0",
    "Settling": "= 0",
    "MaxAge": "= 0",
    "KeptFor": "= 0",
    "Clock": "<- InStep",
}


COUNTING: Final = Specification(
    MODULE,
    ("TypeOK", "AtMostOnce", "Justified", "Exact", "CheckpointCovers"),
    _DEFAULTS,
    constraint="Bounded",
)
Configuration: Final = partial(explorations.Configuration, COUNTING)


_CROSSED: Final = {"Items": "= {1, 2}", "Shards": "= {1, 2}", "Streams": "<- Crossed"}
_SETTLING: Final = {"Timeout": "= 1", "Settling": "= 1"}
CONFIGURATIONS: Final = (
    Configuration("core", "the watermark alone; two shards, two items, two records each", _CROSSED, states=9_831),
    Configuration(
        "checkpoints",
        "a checkpoint and pruning; one shard, one item, two records",
        {"Features": '= {"checkpoints", "pruning"}', **_SETTLING},
        states=8_804,
    ),
    Configuration(
        "wider",
        "the watermark alone; three records of one shard, two of another",
        {**_CROSSED, "Streams": "<- Wider"},
    ),
    Configuration(
        "split",
        "a shard that splits in two, with checkpoints",
        {
            "Items": "= {1, 2}",
            "Shards": "= {1, 2, 3}",
            "Streams": "<- Split",
            "Parents": "<- OneParent",
            "Features": '= {"checkpoints"}',
        },
    ),
    Configuration(
        "clocks",
        "clocks apart, requests that land after their invocation's deadline",
        {
            "Features": '= {"checkpoints", "pruning"}',
            "Landing": "= 1",
            "Clock": "<- Apart",
            "Settling": "= 3",
        },
    ),
    Configuration(
        "two items",
        "checkpoints moved at the end of windows, too, and pruning; one shard, two items, two records",
        {
            "Items": "= {1, 2}",
            "Streams": "<- Mixed",
            "Features": '= {"checkpoints", "windows", "pruning"}',
            **_SETTLING,
        },
    ),
    Configuration(
        "observing",
        "a checkpoint that moves faster than it settles, and who has read it earlier; pruning; two records",
        {"Features": '= {"checkpoints", "observing", "pruning"}', **_SETTLING},
    ),
    Configuration(
        "kernel",
        "no checkpoint: watermarks are pruned by their age, with clocks apart; one shard, one item, two records",
        {
            "Features": '= {"aging", "pruning"}',
            "Timeout": "= 1",
            "MaxAge": "= 1",
            "KeptFor": "= 4",
            "Landing": "= 1",
            "Clock": "<- Apart",
        },
    ),
    Configuration(
        "copies",
        "processes that use what they have read again, and pruning; one record",
        {
            "Streams": "<- One",
            "Features": '= {"checkpoints", "copies", "pruning"}',
            "Timeout": "= 1",
            "Fresh": "= 1",
            "Settling": "= 2",
        },
    ),
    Configuration(
        "parts",
        "batches that are folded in parts, with checkpoints",
        {"Features": '= {"checkpoints", "parts"}'},
        states=1_353,
    ),
    Configuration(
        "quarantine",
        "a record that a name cannot fold: it waits, and is redriven once",
        {"Items": "= {1, 2}", "Streams": "<- OneFoldedLess", "Features": '= {"quarantine"}'},
    ),
    Configuration(
        "quarantine, with checkpoints",
        "the same with checkpoints; one process",
        {
            "Items": "= {1, 2}",
            "Processes": "= {1}",
            "Streams": "<- OneFoldedLess",
            "Features": '= {"checkpoints", "quarantine"}',
        },
    ),
)

REMOVALS: Final = (
    Removal("an update has no condition", "core", "condition", quick=True),
    Removal("the condition looks at the last record, not the first", "core", "first"),
    Removal("the watermark moves to the first record, not the last", "core", "last"),
    Removal("nothing is written after a refusal", "core", "refold"),
    Removal("after a refusal everything is written again", "core", "from watermark"),
    Removal("a batch is acknowledged before all its items are written", "core", "all written"),
    Removal("one watermark for all shards", "core", "per shard"),
    Removal("the checkpoint is not read", "checkpoints", "read"),
    Removal("the checkpoint moves before the last item is committed", "checkpoints", "all committed", quick=True),
    Removal("the checkpoint moves back", "two items", "forward"),
    Removal("settled after less than the longest invocation", "checkpoints", constants={"Settling": "= 0"}),
    Removal("settled without the time that a process reuses what it read", "copies", constants={"Settling": "= 1"}),
    Removal("settled without the time that requests take, twice", "clocks", constants={"Settling": "= 2"}),
    Removal("stamped by the writer's clock, not its deadline", "checkpoints", "deadline"),
    Removal("settled by when the item was touched", "checkpoints", "standing"),
    Removal("pruned at a checkpoint that has not settled", "checkpoints", "settled", quick=True),
    Removal("a record is counted whose watermark may be gone", "kernel", "young"),
    Removal("a watermark goes before its record can come no more", "kernel", constants={"KeptFor": "= 3"}),
    Removal("pruned without a condition", "checkpoints", "pruned as seen"),
    Removal("a part begins before the one before it is committed", "parts", "part by part"),
    Removal(
        "the checkpoint moves before quarantine has the record", "quarantine, with checkpoints", "quarantined first"
    ),
    Removal("a redrive can be repeated", "quarantine", "redriven once"),
    Removal("a redrive counts in all names", "quarantine", "only those waiting"),
)
