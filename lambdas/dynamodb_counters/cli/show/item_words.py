"""Items of the table, in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from decimal import Decimal
from typing import Any, Final

from dynamodb_counters._backfill.group_items import tally_of
from dynamodb_counters._declarations import Aggregate, Declaration, Window
from dynamodb_counters._declarations.words import words_of
from dynamodb_counters._items.attributes import Image
from dynamodb_counters._items.chunks import chunk_bucket, decode_chunk
from dynamodb_counters._items.escaping import unescape
from dynamodb_counters._items.plain_values import plain_value
from dynamodb_counters._items.table_schema import (
    CHECKPOINT_PREFIX,
    CHUNK,
    COUNTED_IN,
    DEPLOYMENT_PREFIX,
    LAYOUT,
    LEASES_PREFIX,
    ONCE_SUFFIX,
    PACK_PREFIX,
    PACK_SUFFIX,
    PK,
    QUARANTINE,
    QUOTA,
    RUN_PREFIX,
    SK,
    TTL,
    TYPE,
    WATERMARK_PREFIX,
    is_reserved,
)
from dynamodb_counters._stream.checkpoint_items import BOOK, WITNESS, Checkpoint
from dynamodb_counters._stream.deployment_items import (
    AGGREGATOR,
    read_deployment,
    read_history,
)
from dynamodb_counters._stream.predecessors import read_predecessors
from dynamodb_counters._stream.quarantine_items import RECORD
from dynamodb_counters._stream.watermarks import OLD_FORMAT_PREFIX, sequence_of
from dynamodb_counters._writes.chunk_log import erased_digests
from dynamodb_counters._writes.holdings import RESERVED
from dynamodb_counters.cli.entries import read_entry, words
from dynamodb_counters.cli.show import run_words
from dynamodb_counters.cli.show.decoded_item import Decoded
from dynamodb_counters.cli.show.formats import group_text, moment_text
from dynamodb_counters.errors import UnparsableKeyError

_TIERS: Final = {"M": "minute", "H": "hour", "D": "day", "N": "month"}
_SIGNS: Final = {"+": "accepted", "-": "taken back", "0": "retracted before it came"}


def decoded(item: Image, declarations: Sequence[Declaration] = ()) -> Decoded:
    """An item in words; ValueError if it cannot be read as what it says it is."""
    found = _reader(item)(item, {one.name: one for one in declarations})
    if marks := watermarks(item):
        found.facts["watermarks"] = marks
        found.lines += [f"watermark of the shard {one['shard']}: counted through {one['sequence']}" for one in marks]
    if tally := tally_of(item):
        found.facts["tally"] = tally
        found.lines.append(f"its sources do not show: {', '.join(f'{name} {n}' for name, n in sorted(tally.items()))}")
    if "N" in item.get(TTL, {}):
        found.lines.append(f"DynamoDB may delete it from {moment_text(float(item[TTL]['N']))} on")
    return found


def watermarks(item: Image) -> list[dict[str, str]]:
    """The last record of each shard that an item has counted; a shard by its digest, or by the older format's name."""
    return [
        {
            "shard": name.removeprefix(OLD_FORMAT_PREFIX).removeprefix(WATERMARK_PREFIX),
            "sequence": sequence_of(value).lstrip("0"),
        }
        for name, value in item.items()
        if name.startswith(WATERMARK_PREFIX)
    ]


_Reader = Callable[[Image, Mapping[str, Declaration]], Decoded]


def _reader(item: Image) -> _Reader:
    pk, sk, kind = (str(item.get(name, {}).get("S", "")) for name in (PK, SK, TYPE))
    if kind in (QUARANTINE, QUOTA):
        return _quota if kind == QUOTA else _quarantined
    if pk.startswith(CHECKPOINT_PREFIX):
        named = {"DEPLOYMENTS": _history, "RESTORE": _restore, "SINCE": _switch, "EXPIRED": _expired, WITNESS: _witness}
        named |= {"GENERATIONS": run_words.generations, "RUN": run_words.run_state}
        prefixed = _deployment if sk.startswith(DEPLOYMENT_PREFIX) else named.get(sk.partition("#")[0], _checkpoint)
        return run_words.run if pk.startswith(RUN_PREFIX) else prefixed
    if kind.endswith(PACK_SUFFIX) and CHUNK in item:
        return _chunk
    if pk.startswith(PACK_PREFIX) and sk == LAYOUT:
        return _layout
    if not kind:
        return _foreign
    is_bucket = f"WINDOW#{kind}#" in sk
    return _bucket if is_bucket else _group if watermarks(item) else _event


def _event(item: Image, declarations: Mapping[str, Declaration]) -> Decoded:
    name, values = item[TYPE]["S"], _values(item)
    if name in declarations:
        return _group(item, declarations)
    found = Decoded("event", [f"an event {name.removesuffix(ONCE_SUFFIX)!r}: {group_text(values)}"], {"values": values})
    if not declarations and values and all(isinstance(value, int | Decimal) for value in values.values()):
        found.kind = "event or group"
        found.lines = [f"an event {name!r}, or a group whose watermarks are gone: {group_text(values)}"]
        found.lines.append("--table or --declarations shows which")
    if name.endswith(ONCE_SUFFIX):
        counted = sorted(item.get(COUNTED_IN, {}).get("SS", ()))
        found.lines.append(f"the transaction that wrote it has counted it in: {', '.join(counted) or 'nothing'}")
        found.facts["counted_in"] = counted
    return found


def _group(item: Image, declarations: Mapping[str, Declaration]) -> Decoded:
    name, measures = item[TYPE]["S"], _values(item)
    declared = declarations.get(name)
    group = _fields(declared, item) if isinstance(declared, Aggregate) else {}
    whose = group_text(group) if group else f"{item[PK]['S']} / {item[SK]['S']}"
    lines = [f"a group of the aggregate {name!r}, {whose}: {group_text(measures)}"]
    if declared is not None:
        lines.append(f"it counts {words_of(declared)}")
    return Decoded("group", lines, {"group": group, "measures": measures})


def _bucket(item: Image, declarations: Mapping[str, Declaration]) -> Decoded:
    name = item[TYPE]["S"]
    tier, _, start = item[SK]["S"].partition(f"WINDOW#{name}#")[2].partition("#")
    slots = _values(item)
    total = slots.pop("total", 0)
    declared = declarations.get(name)
    group = _fields(declared, item) if isinstance(declared, Window) else {}
    whose = group_text(group) if group else item[PK]["S"]
    lines = [f"a bucket of the window {name!r}, {whose}: {total} in the {_TIERS.get(tier, tier)} {start}"]
    lines += [f"by slot: {group_text(slots)}"] if slots else []
    return Decoded("bucket", lines, {"group": group, "tier": tier, "start": start, "total": total, "slots": slots})


def _chunk(item: Image, _: Mapping[str, Declaration]) -> Decoded:
    chunk = decode_chunk(item[CHUNK])
    rows: list[dict[str, Any]] = [
        {"is": _SIGNS[row.sign], "values": {name: plain_value(value) for name, value in row.values.items()}}
        for row in chunk.all_rows()
    ]
    name, erased = item[TYPE]["S"].removesuffix(PACK_SUFFIX), len(erased_digests(item))
    number, bucket = item[SK]["S"].partition("#")[2], chunk_bucket(item[SK]["S"])
    lines = [f"chunk {int(number)} of the events {name!r} in the bucket that begins {bucket}: {len(rows)} rows"]
    lines += [f"  {row['is']}: {group_text(row['values'])}" for row in rows]
    lines += [f"{erased} events were erased from it"] if erased else []
    return Decoded("chunk", lines, {"event": name, "rows": rows, "erased": erased, "batch": chunk.batch})


def _layout(item: Image, _: Mapping[str, Declaration]) -> Decoded:
    name = item[PK]["S"].removeprefix(PACK_PREFIX)
    lines = [f"where the chunks of the events {name!r} are: {item['layouts']['S']}"]
    lines.append(f"how long buckets are kept, from which start on, in seconds: {item['retentions']['S']}")
    lines.append(f"events up to {item['tolerance']['N']} s ahead are accepted")
    return Decoded("layout", lines, {"event": name, "layouts": item["layouts"]["S"]})


def _quota(item: Image, _: Mapping[str, Declaration]) -> Decoded:
    name, *group = map(unescape, item[PK]["S"].removeprefix(LEASES_PREFIX).split("#"))
    per, __, start = item[SK]["S"].partition("#")
    reserved = int(item[RESERVED]["N"])
    whose = f", {' / '.join(group)}" if group else ""
    lines = [f"the quota {name!r}{whose}, in the period ({per}) that begins {start}: {reserved} calls are reserved"]
    return Decoded("quota", lines, {"quota": name, "group": group, "start": start, "reserved": reserved})


def _quarantined(item: Image, _: Mapping[str, Declaration]) -> Decoded:
    if "deployment" in item:
        return Decoded("fence", [f"a mark of a version without checkpoints: {item['deployment'].get('S')}"])
    if "state" not in item:
        state = "its content was erased, and it is never counted" if RECORD not in item else "it has no state"
        return Decoded("quarantine entry", [f"an entry of the quarantine: {state}"])
    entry = read_entry(item)
    return Decoded("quarantine entry", [f"an entry of the quarantine, {entry.state}", *words(entry)], entry.document())


def _checkpoint(item: Image, _: Mapping[str, Declaration]) -> Decoded:
    known = Checkpoint.of(item)
    shard, facts = _shard(item), dict[str, Any]()
    through = known.applied_through.lstrip("0")
    covered = f"all records through {through} are counted" if through else "it covers no record yet"
    lines = [f"the checkpoint of {shard}: {covered}"]
    if settled := known.settled.lstrip("0"):
        lines.append(f"settled through {settled}: watermarks up to there can go")
    lines += [f"last written {moment_text(known.seen)}, or up to 15 minutes earlier"] if known.seen else []
    for counted, place in known.progress:
        lines.append(f"a batch through {counted.lstrip('0')} failed; its groups before {place} are counted")
    if known.lost_before:
        lines.append(f"an earlier checkpoint was lost: records before {moment_text(known.lost_before)} may be counted")
    lines += [f"another book of the shard begins at {known.successor.lstrip('0')}"] if known.successor else []
    facts |= {"shard": shard, "applied_through": through, "settled": settled, "successor": known.successor.lstrip("0")}
    return Decoded("checkpoint", lines, facts)


def _witness(item: Image, _: Mapping[str, Declaration]) -> Decoded:
    moved = bool(item.get("moved", {}).get("BOOL"))
    said = "if the checkpoint is gone, it was lost" if moved else "the checkpoint had not moved yet"
    return Decoded("witness", [f"the witness of the checkpoint of {_shard(item)}: {said}"], {"moved": moved})


def _history(item: Image, _: Mapping[str, Declaration]) -> Decoded:
    history = read_history(item)
    if history is None:
        raise ValueError("the history of deployments cannot be read")
    lines = ["which deployment's declarations count which records"]
    for era in history.eras:
        since = f"records created from {moment_text(era.valid_from)} on" if era.valid_from else "all records"
        lines.append(f"  {since}: deployment {era.deployment}")
    aggregator = item.get(AGGREGATOR, {}).get("S")
    lines += [f"the aggregator is {aggregator}; no other may take over"] if aggregator else []
    eras = [{"valid_from": era.valid_from, "deployment": era.deployment} for era in history.eras]
    copied = read_predecessors(item)
    lines += [f"this table was restored from that of {one.stream}, as of {moment_text(one.at)}" for one in copied]
    facts = {"eras": eras, "aggregator": aggregator, "predecessors": [asdict(one) for one in copied]}
    return Decoded("history", lines, facts)


def _deployment(item: Image, _: Mapping[str, Declaration]) -> Decoded:
    name, declared = item[SK]["S"].removeprefix(DEPLOYMENT_PREFIX), read_deployment(item)
    if declared is None:
        raise ValueError(f"the declarations of the deployment {name} cannot be read: another version wrote them")
    said = {one.name: words_of(one) for one in declared}
    lines = [f"the declarations of deployment {name}", *(f"  {one}: {text}" for one, text in said.items())]
    return Decoded("deployment", lines, {"deployment": name, "declarations": said})


def _switch(item: Image, _: Mapping[str, Declaration]) -> Decoded:
    since = float(item["since"]["N"])
    said = f"since {moment_text(since)}" if since else "from the beginning"
    return Decoded("switch", [f"versions with checkpoints count this table {said}"], {"since": since})


def _expired(item: Image, _: Mapping[str, Declaration]) -> Decoded:
    name, until = item[SK]["S"].partition("#")[2], item.get("until", {}).get("N")
    which = f", in groups before {moment_text(float(until))}" if until is not None else ""
    lines = [f"{name} counts items that have expired{which}: they cannot be recomputed"]
    return Decoded("expired", lines, {"name": name})


def _restore(item: Image, _: Mapping[str, Declaration]) -> Decoded:
    stream = item.get("stream", {}).get("S")
    return Decoded("restore", [f"this table was restored, and has caught up with {stream}"], {"stream": stream})


def _foreign(item: Image, _: Mapping[str, Declaration]) -> Decoded:
    values = {name: plain_value(value) for name, value in item.items() if name not in (PK, SK)}
    return Decoded("item", [f"an item that other code writes: {group_text(values)}"], {"values": values})


def _shard(item: Image) -> str:
    shard, later, first = str(item.get("shard", {}).get("S", "a shard that it does not name")).partition(BOOK)
    return f"{shard}, the book from {first.lstrip('0') or 'its beginning'} on" if later else shard


def _values(item: Image) -> dict[str, Any]:
    return {name: plain_value(value) for name, value in item.items() if not is_reserved(name)}


def _fields(declared: Aggregate | Window, item: Image) -> dict[str, str]:
    """The fields of a group, as its key shows them; none if the key is of another declaration, or hashed."""
    try:
        parsed = {**declared.pk_template.parse(item[PK]["S"]), **declared.sk_template.parse(item[SK]["S"])}
    except UnparsableKeyError:
        return {}
    return {name: value for name, value in parsed.items() if name in declared.fields}
