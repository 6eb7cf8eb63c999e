"""Configurations of docs/spec/Backfill.tla and Verify.tla for TLC, with each of their guards removed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from simulation.specification import explorations
from simulation.specification.explorations import Removal, Specification

_VERIFY_DEFAULTS: Final[Mapping[str, str]] = {
    "None": "= None",
    "Adds": "<- TwoRecords",
    "AtFirst": "= 5",
    "CutAt": "= 1",
    "Processes": "= {1}",
    "Verifiers": "= {1}",
    "Features": '= {"pruning"}',
    "Without": "= {}",
}
_DEFAULTS: Final[Mapping[str, str]] = {
    "None": "= None",
    "Keys": "= {1}",
    "Images": "<- OneChange",
    "Shards": "= {1}",
    "Home": "<- FirstShard",
    "Parents": "<- NoParents",
    "Processes": "= {1}",
    "Runners": "= {1}",
    "Features": '= {"beats"}',
    "Without": "= {}",
    "Fresh": "= 0",
    "Clocks": "= 0",
    "Landing": "= 0",
    "Margin": "= 1",
    "Settled": "= 0",
    "Group": "= None",
}
BACKFILL: Final = Specification("BackfillMC", ("TypeOK", "Exact", "OverExact", "Onwards"), _DEFAULTS)
VERIFY: Final = Specification("VerifyMC", ("TypeOK", "NoFalseDrift", "Exact"), _VERIFY_DEFAULTS)
Configuration: Final = partial(explorations.Configuration, BACKFILL)

Verification: Final = partial(explorations.Configuration, VERIFY)

_CLOCKS: Final = {"Clocks": "= 1", "Margin": "= 2", "Settled": "= 1"}
_COPIES: Final = {"Fresh": "= 1", "Margin": "= 2"}
_ROLLOVER: Final = {"Shards": "= {1, 2}", "Parents": "<- Rollover"}

BACKFILLS: Final = (
    Configuration(
        "backfill",
        "two processes of the aggregator, checkpoints; one item, one change",
        {"Processes": "= {1, 2}", "Features": '= {"beats", "checkpoints"}'},
    ),
    Configuration(
        "changes",
        "an item that is created and changed; checkpoints",
        {"Images": "<- Inserted", "Features": '= {"beats", "checkpoints"}'},
    ),
    Configuration("two runners", "a runner that dies, or is doubled; one item, one change", {"Runners": "= {1, 2}"}),
    Configuration(
        "clocks apart",
        "times of creation that do not grow; an item that is created and changed",
        {**_CLOCKS, "Images": "<- Inserted"},
    ),
    Configuration("copied runs", "processes that use what they have read before", _COPIES, states=1_394),
    Configuration(
        "late opening",
        "the run's opening lands late, and its runner dies before it hears of it",
        {**_COPIES, "Features": '= {"beats", "late opening"}'},
        states=1_758,
    ),
    Configuration(
        "split shard",
        "a shard that splits between two changes of an item",
        {**_ROLLOVER, "Images": "<- Inserted", "Features": '= {"beats", "split"}'},
    ),
    Configuration(
        "split near the cut",
        "a shard that splits, clocks apart",
        {**_ROLLOVER, **_CLOCKS, "Images": "<- Inserted", "Features": '= {"read only", "split"}'},
    ),
    Configuration(
        "two shards",
        "two shards, an item in each, of which one is changed",
        {"Keys": "= {1, 2}", "Images": "<- TwoKeys", "Shards": "= {1, 2}", "Home": "<- FirstShards"},
    ),
    Configuration(
        "quiet end",
        "no heartbeats: the log's last records show that the scan's end has passed",
        {**_CLOCKS, "Features": '= {"quiet end"}'},
        states=1_499,
    ),
    Configuration(
        "read-only source",
        "no heartbeats: the source's stream is read to its end; a shard that splits",
        {**_ROLLOVER, "Features": '= {"read only", "split"}'},
        states=2_512,
    ),
    Configuration(
        "over it",
        "an aggregate over the name, whose item changes in another shard; clocks apart",
        {**_CLOCKS, "Shards": "= {1, 2}", "Group": "= 2"},
    ),
    Configuration(
        "filled anew",
        "the same in one shard, which has records of the item from before it was deleted",
        {"Group": "= 1", "Features": '= {"beats", "anew"}'},
    ),
    Verification("verification", "nothing is wrong; one process, two records, pruning", states=1_944),
    Verification("cut", "the same with a record below the cut", {"CutAt": "= 2"}),
    Verification(
        "zombies", "nothing is wrong; two processes, one record", {"Processes": "= {1, 2}", "Adds": "<- OneRecord"}
    ),
    Verification(
        "two verifiers",
        "one ends the run while the other one compares; one record",
        {"Verifiers": "= {1, 2}", "Adds": "<- OneRecord", "Features": '= {"ending"}'},
    ),
    Verification(
        "repair",
        "the item is spoiled once; two verifiers, one record",
        {"Verifiers": "= {1, 2}", "Adds": "<- OneRecord", "Features": '= {"pruning", "corruption"}'},
        states=7_588,
    ),
    Verification("lost item", "the item is lost once; two records", {"Features": '= {"loss"}'}, states=8_034),
)

BACKFILL_REMOVALS: Final = (
    Removal("nothing is logged before the checkpoint moves", "backfill", "logged before checkpoint"),
    Removal("nothing is logged before a batch is acknowledged", "backfill", "logged before ack"),
    Removal("pages hold records below the cut, too", "changes", "from cut"),
    Removal("a page is named by its first record only: another one is refused", "changes", "last in name"),
    Removal("a page is named by its last record only, and put again", "changes", "first in name"),
    Removal("the last logged image counts, not the first", "changes", "first image"),
    Removal("the cut is where each invocation first sees it", "clocks apart", "cut stored"),
    Removal("no cut: times of creation decide", "clocks apart", "cut"),
    Removal("only batches with a record past S ask for the cut", "clocks apart", "near"),
    Removal("the scan begins at S", "clocks apart", constants={"Settled": "= 0"}),
    Removal("S is too early for clocks", "clocks apart", constants={"Margin": "= 1"}),
    Removal("S is too early for processes that do not know of the run", "copied runs", constants={"Margin": "= 1"}),
    Removal("a run is resumed though no process saw it opened in time", "late opening", "opened in time"),
    Removal("the log is ordered by sequence numbers, not by lineage", "split shard", "lineage"),
    Removal("shards are not compared before the scan", "split near the cut", "same shards"),
    Removal("pages of the scan are put again", "two runners", "sealed"),
    Removal("the end waits for no acknowledgement", "backfill", "drained", quick=True),
    Removal("the end waits for one shard only", "two shards", "every shard"),
    Removal("the end waits for open shards only", "read-only source", "closed shards"),
    Removal("the baseline is added without a condition", "two runners", "baseline once"),
    Removal("records of the name's own items are below the cut by their times", "over it", "own items", quick=True),
    Removal("records of the name's own items before they were deleted are past it", "filled anew", "own items since"),
    Removal("the position is the watermark alone", "verification", "checkpoint", quick=True),
    Removal("the position is the checkpoint alone", "verification", "watermark", quick=True),
    Removal("the item is read before the checkpoint", "verification", "checkpoint first", quick=True),
    Removal("the log is read before the item", "verification", "log last", quick=True),
    Removal("a batch is committed before it is logged", "verification", "logged before commit", quick=True),
    Removal("a checkpoint settles between the reads", "verification", "fresh checkpoint", quick=True),
    Removal("a verifier goes on though the run is over", "two verifiers", "still open", quick=True),
    Removal("what comes after the cut is logged before what comes before it is counted", "cut", "parts", quick=True),
    Removal("an item that is missing counts nothing", "lost item", "read again", quick=True),
    Removal("a repair without a condition", "repair", "repair mark", quick=True),
)
