"""Items of backfills and verifications in words."""

from __future__ import annotations

from collections.abc import Mapping

from dynamodb_counters._declarations import Declaration
from dynamodb_counters._items.attributes import Image
from dynamodb_counters._items.table_schema import PK, RUN_PREFIX, SK
from dynamodb_counters._statuses import read_statuses
from dynamodb_counters._stream.run_items import ROWS, RUN_SK_PREFIX, unpack_log, unpack_scanned
from dynamodb_counters.cli.show.decoded_item import Decoded
from dynamodb_counters.cli.show.formats import moment_text


def generations(item: Image, _: Mapping[str, Declaration]) -> Decoded:
    """Which generations readers use."""
    statuses = read_statuses(item)
    lines = ["which items readers use of each declaration, where it is not the first generation, whole"]
    for name, status in sorted(statuses.items()):
        if status.whole and not status.reads:
            continue
        counts = "everything" if status.whole else f"what came since {moment_text(status.since)}"
        lines.append(f"  {name}: generation {status.reads}, which counts {counts}")
    reads = {name: status.reads for name, status in statuses.items()}
    return Decoded("generations", lines, {"reads": reads})


def run(item: Image, _: Mapping[str, Declaration]) -> Decoded:
    """An item of a run: a cut, a page, a heartbeat."""
    pk, sk = item[PK]["S"].removeprefix(RUN_PREFIX), item[SK]["S"]
    identity, _, rest = pk.partition("~")
    kind = rest.partition("~")[0]
    if kind == "log":
        changes = unpack_log(item[ROWS]["B"])
        first, _, last = (text.lstrip("0") for text in sk.partition("#"))
        said = f"the log of the run {identity}: {len(changes)} changes among the records {first} to {last}"
        return Decoded("log page", [f"{said} of {item['shard']['S']}"], {"run": identity, "changes": len(changes)})
    if kind == "scan":
        scanned = unpack_scanned(item[ROWS]["B"])
        said = f"page {int(sk)} of a segment that the run {identity} has scanned"
        lines = [f"{said}: {item['items']['N']} items, {len(scanned)} of which contribute"]
        return Decoded("scan page", lines, {"run": identity, "contributing": len(scanned)})
    if kind == "beat":
        return Decoded("heartbeat", [f"a heartbeat of the run {identity}: idle shards log it"], {"run": identity})
    if sk.startswith("CUT#"):
        cut = item["cut"]["S"].lstrip("0")
        return Decoded("cut", [f"the run {identity} counts {item['shard']['S']} from {cut} on"], {"cut": cut})
    raise ValueError(f"invalid sk={sk!r}: expected an item of a run")


def run_state(item: Image, _: Mapping[str, Declaration]) -> Decoded:
    """Where a run is."""
    identity = item[SK]["S"].removeprefix(RUN_SK_PREFIX)
    since, phase = moment_text(float(item["since"]["N"])), item["phase"]["S"]
    lines = [f"the {item['kind']['S']} run {identity}, {phase}: it begins with records of {since}"]
    return Decoded("run", [*lines, f"it looks at {item['names']['S']}"], {"run": identity, "phase": phase})
