"""Items of the table, in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from dynamodb_counters._backfill.verdicts import tally_of
from dynamodb_counters._changes.words import words_of
from dynamodb_counters._commit.checkpoint_items import BOOK, Checkpoint
from dynamodb_counters._control.deployment_items import read_deployment, read_history
from dynamodb_counters._control.statuses import read_statuses
from dynamodb_counters._declarations import Aggregate, Declaration, Window
from dynamodb_counters._fold.item_layout import group_items, group_of_item
from dynamodb_counters._fold.page_layout import level_of, texts_of
from dynamodb_counters._items import table_schema as schema
from dynamodb_counters._items.attributes import Image
from dynamodb_counters._items.chunks import chunk_bucket, decode_chunk
from dynamodb_counters._items.conversions import plain_value
from dynamodb_counters._items.derived_fields import LOG, ORDER, parts_of
from dynamodb_counters._items.escaping import unescape
from dynamodb_counters._items.log_bins import log_bins
from dynamodb_counters._items.ordered_texts import value_of
from dynamodb_counters._items.table_schema import PK, SK, TTL, TYPE
from dynamodb_counters._items.watermarks import sequence_of
from dynamodb_counters._quarantine.quarantine_items import RECORD
from dynamodb_counters._writes.chunk_log import erased_digests
from dynamodb_counters._writes.holdings import RESERVED
from dynamodb_counters.cli.entries import read_entry, words
from dynamodb_counters.cli.show.formats import group_text, moment_text

_TIERS: Final = {"M": "minute", "H": "hour", "D": "day", "N": "month"}
_SIGNS: Final = {"+": "accepted", "-": "taken back", "0": "retracted before it came"}


@dataclass
class Decoded:
    """The kind of an item, its lines for people, and its facts as JSON has them."""

    kind: str
    lines: list[str]
    facts: dict[str, Any]


def decoded(item: Image, declarations: Sequence[Declaration] = ()) -> Decoded:
    """An item in words; ValueError if it cannot be read as its type says."""
    found = _decoded(item, {one.name: one for one in declarations})
    marks = [
        {"shard": name.removeprefix(schema.WATERMARK_PREFIX), "sequence": sequence_of(value).lstrip("0")}
        for name, value in item.items()
        if name.startswith(schema.WATERMARK_PREFIX)
    ]
    if marks:
        found.facts["watermarks"] = marks
        found.lines += [f"watermark of the shard {one['shard']}: counted through {one['sequence']}" for one in marks]
    if tally := tally_of(item):
        found.facts["tally"] = tally
        found.lines.append(f"its sources do not show: {', '.join(f'{name} {n}' for name, n in sorted(tally.items()))}")
    if "N" in item.get(TTL, {}):
        found.lines.append(f"DynamoDB may delete it from {_moment(item, TTL)} on")
    return found


def _decoded(item: Image, declarations: Mapping[str, Declaration]) -> Decoded:
    pk, sk, name = (str(item.get(each, {}).get("S", "")) for each in (PK, SK, TYPE))
    if name == schema.QUARANTINE:
        return _quarantined(item)
    is_layout = pk.startswith(schema.PACK_PREFIX) and sk == schema.LAYOUT
    is_typed = name in (schema.QUOTA, schema.CROSSING)
    if is_layout or is_typed or pk.startswith(schema.CHECKPOINT_PREFIX):
        part = pk.removeprefix(schema.RUN_PREFIX).split("~")[1:2] if pk.startswith(schema.RUN_PREFIX) else []
        kind, tell = _BOOKKEEPING[name if is_typed else part[0] if part else sk.partition("#")[0]]
        plain = {each: plain_value(value) for each, value in item.items() if each not in (PK, SK, TYPE)}
        return Decoded(kind, list(tell(item)), {"attributes": plain})
    if name.endswith(schema.PACK_SUFFIX) and schema.CHUNK in item:
        return _chunk(item)
    values = {each: plain_value(value) for each, value in item.items() if not schema.is_reserved(each)}
    if not name:
        return Decoded("item", [f"an item that other code writes: {group_text(values)}"], {"values": values})
    return _counted(item, values, declarations)


def _counted(item: Image, values: dict[str, Any], declarations: Mapping[str, Declaration]) -> Decoded:
    sk, name = item[SK]["S"], item[TYPE]["S"]
    if f"WINDOW#{name}#" in sk:
        return _bucket(item, values, declarations.get(name))
    is_group = name in declarations or any(each.startswith(schema.WATERMARK_PREFIX) for each in item)
    if sk.startswith(f"{schema.PAGE_PREFIX}{name}#"):
        return _page(item, declarations.get(name))
    return _group(item, values, declarations.get(name)) if is_group else _event(item, values, bool(declarations))


def _event(item: Image, values: dict[str, Any], is_declared: bool) -> Decoded:
    name = item[TYPE]["S"]
    line = f"an event {name.removesuffix(schema.ONCE_SUFFIX)!r}: {group_text(values)}"
    found = Decoded("event", [line], {"values": values})
    if not is_declared and values and all(isinstance(value, int | Decimal) for value in values.values()):
        found.kind = "event or group"
        found.lines = [f"an event {name!r}, or a group whose watermarks are gone: {group_text(values)}"]
        found.lines.append("--table or --declarations shows which")
    if name.endswith(schema.ONCE_SUFFIX):
        counted = found.facts["counted_in"] = sorted(item.get(schema.COUNTED_IN, {}).get("SS", ()))
        found.lines.append(f"the transaction that wrote it has counted it in: {', '.join(counted) or 'nothing'}")
    return found


def _group(item: Image, measures: dict[str, Any], declared: Declaration | None) -> Decoded:
    group = _fields(declared, item) if isinstance(declared, Aggregate) else {}
    whose = group_text(group) if group else f"{item[PK]['S']} / {item[SK]['S']}"
    lines = [f"a group of the aggregate {item[TYPE]['S']!r}, {whose}: {group_text(measures)}"]
    lines += [f"it counts {words_of(declared)}"] if declared is not None else []
    return Decoded("group", lines, {"values": group, "measures": measures})


def _page(item: Image, declared: Declaration | None) -> Decoded:
    """A page and its groups: by field and measure if they are declared, else by the texts that name them."""
    groups: list[dict[str, Any]] = [{"text": text} for text in texts_of(item)]
    if isinstance(declared, Aggregate):
        shown = group_items(declared, item)
        names = declared._attributes
        groups = [{**_fields(declared, one), **{n: plain_value(one[n]) for n in names if n in one}} for one in shown]
    level = level_of(item)
    lines = [f"a page of the aggregate {item[TYPE]['S']!r}, level {level}: {len(groups)} groups"]
    lines += [f"  {group_text(one)}" for one in groups]
    return Decoded("page", lines, {"level": level, "groups": groups})


def _bucket(item: Image, slots: dict[str, Any], declared: Declaration | None) -> Decoded:
    name = item[TYPE]["S"]
    tier, _, start = item[SK]["S"].partition(f"WINDOW#{name}#")[2].partition("#")
    total = slots.pop("total", 0)
    group = _fields(declared, item) if isinstance(declared, Window) else {}
    whose = group_text(group) if group else item[PK]["S"]
    lines = [f"a bucket of the window {name!r}, {whose}: {total} in the {_TIERS.get(tier, tier)} {start}"]
    lines += [f"by slot: {group_text(slots)}"] if slots else []
    return Decoded("bucket", lines, {"values": group, "tier": tier, "start": start, "total": total, "slots": slots})


def _chunk(item: Image) -> Decoded:
    rows: list[dict[str, Any]] = [
        {"is": _SIGNS[row.sign], "values": {name: plain_value(value) for name, value in row.values.items()}}
        for row in decode_chunk(item[schema.CHUNK]).all_rows()
    ]
    name, erased = item[TYPE]["S"].removesuffix(schema.PACK_SUFFIX), len(erased_digests(item))
    number, bucket = item[SK]["S"].partition("#")[2], chunk_bucket(item[SK]["S"])
    lines = [f"chunk {int(number)} of the events {name!r} in the bucket that begins {bucket}: {len(rows)} rows"]
    lines += [f"  {row['is']}: {group_text(row['values'])}" for row in rows]
    lines += [f"{erased} events were erased from it"] if erased else []
    return Decoded("chunk", lines, {"event": name, "rows": rows, "erased": erased})


def _quarantined(item: Image) -> Decoded:
    said, facts = ["its content was erased, and it is never counted" if RECORD not in item else "it has no state"], {}
    if "state" in item:
        entry = read_entry(item)
        said, facts = [entry.state, *words(entry)], entry.document()
    return Decoded("quarantine entry", [f"an entry of the quarantine: {said[0]}", *said[1:]], facts)


def _layout(item: Image) -> Iterator[str]:
    name = item[PK]["S"].removeprefix(schema.PACK_PREFIX)
    yield f"where the chunks of the events {name!r} are: {item['layouts']['S']}"
    yield f"how long buckets are kept, from which start on, in seconds: {item['retentions']['S']}"
    yield f"events up to {item['tolerance']['N']} s ahead are accepted"


def _quota_period(item: Image) -> str:
    name, *group = map(unescape, item[PK]["S"].removeprefix(schema.LEASES_PREFIX).split("#"))
    per, start = item[SK]["S"].split("#")
    whose = f", {' / '.join(group)}" if group else ""
    return f"the quota {name!r}{whose}, in the period ({per}) that begins {start}"


def _crossing(item: Image) -> Iterator[str]:
    said = {"old": "nothing", "new": "nothing"} | {name: plain_value(value) for name, value in item.items()}
    line = f"{said['measure']} {said['direction']} across {said['level']}, {said['old']} → {said['new']}"
    yield f"{said['at']} the threshold {said['threshold']!r}, {group_text(said['group'])}: {line}"


def _checkpoint(item: Image) -> Iterator[str]:
    known = Checkpoint.of(item)
    through, settled = known.applied_through.lstrip("0"), known.settled.lstrip("0")
    covered = f"all records through {through} are counted" if through else "it covers no record yet"
    yield f"the checkpoint of {_shard(item)}: {covered}"
    if settled:
        yield f"settled through {settled}: watermarks up to there can go"
    if known.seen:
        yield f"last written {moment_text(known.seen)}, or up to 15 minutes earlier"
    for counted, place in known.progress:
        yield f"a batch through {counted.lstrip('0')} failed; its groups before {place} are counted"
    if known.lost_before:
        yield f"an earlier checkpoint was lost: records before {moment_text(known.lost_before)} may be counted"
    if known.successor:
        yield f"another book of the shard begins at {known.successor.lstrip('0')}"


def _witness(item: Image) -> Iterator[str]:
    moved = item.get("moved", {}).get("BOOL")
    said = "if the checkpoint is gone, it was lost" if moved else "the checkpoint had not moved yet"
    yield f"the witness of the checkpoint of {_shard(item)}: {said}"


def _history(item: Image) -> Iterator[str]:
    history = read_history(item)
    if history is None:
        raise ValueError("the history of deployments cannot be read")
    yield "which deployment's declarations count which records"
    for era in history.eras:
        since = f"records created from {moment_text(era.valid_from)} on" if era.valid_from else "all records"
        yield f"  {since}: deployment {era.deployment}"


def _deployment(item: Image) -> Iterator[str]:
    name, declared = _rest(item), read_deployment(item)
    if declared is None:
        raise ValueError(f"the declarations of the deployment {name} cannot be read: another version wrote them")
    yield f"the declarations of deployment {name}"
    yield from (f"  {one.name}: {words_of(one)}" for one in declared)


def _generations(item: Image) -> Iterator[str]:
    yield "which items readers use of each declaration, where it is not the first generation, whole"
    for name, status in sorted(read_statuses(item).items()):
        counts = "everything" if status.whole else f"what came since {moment_text(status.since)}"
        if status.reads or not status.whole:
            yield f"  {name}: generation {status.reads}, which counts {counts}"


def _expired(item: Image) -> Iterator[str]:
    which = f", in groups before {_moment(item, 'until')}" if "until" in item else ""
    yield f"{_rest(item)} counts items that have expired{which}: they cannot be recomputed"


def _run(item: Image) -> Iterator[str]:
    said = f"the {item['kind']['S']} run {_rest(item)}, {item['phase']['S']}"
    yield f"{said}: it begins with records of {_moment(item, 'since')}"
    yield f"it looks at {item['names']['S']}"


def _of_run(kind: str) -> tuple[str, Callable[[Image], Iterable[str]]]:
    """A kind of items in which a run keeps how far it is."""
    return kind, lambda item: [f"a {kind} of the run {_identity(item)}"]


_BOOKKEEPING: Final[dict[str, tuple[str, Callable[[Image], Iterable[str]]]]] = {
    schema.LAYOUT: ("layout", _layout),
    schema.QUOTA: ("quota", lambda item: [f"{_quota_period(item)}: {item[RESERVED]['N']} calls are reserved"]),
    schema.CROSSING: ("crossing", _crossing),
    "CHECKPOINT": ("checkpoint", _checkpoint),
    "WITNESS": ("witness", _witness),
    "DEPLOYMENTS": ("history", _history),
    "DEPLOYMENT": ("deployment", _deployment),
    "GENERATIONS": ("generations", _generations),
    "EXPIRED": ("expired", _expired),
    "RUN": ("run", _run),
    "log": _of_run("log page"),
    "scan": _of_run("scan page"),
    "beat": _of_run("heartbeat"),
    "CUT": _of_run("cut"),
}
"""By the part of an item's key that names its kind."""


def _rest(item: Image) -> str:
    return str(item[SK]["S"].partition("#")[2])


def _identity(item: Image) -> str:
    return str(item[PK]["S"].removeprefix(schema.RUN_PREFIX).partition("~")[0])


def _moment(item: Image, name: str) -> str:
    return moment_text(float(item[name]["N"]))


def _shard(item: Image) -> str:
    shard, later, first = str(item.get("shard", {}).get("S", "a shard that it does not name")).partition(BOOK)
    return f"{shard}, the book from {first.lstrip('0') or 'its beginning'} on" if later else shard


def _fields(declared: Aggregate | Window, item: Image) -> dict[str, str]:
    """The fields of a group; none if its item does not show them, as that of another declaration."""
    found = zip(declared.fields, group_of_item(declared, item) or (), strict=False)
    return {name: _value(parts_of(name)[1], text) for name, text in found}


def _value(derived: str, text: str) -> str:
    """The value that the text of a bin, or one in the order of values, stands for; other texts are themselves."""
    if derived.startswith(LOG):
        return str(log_bins(Decimal(derived.removeprefix(LOG))).value_of(text))
    return str(value_of(text)) if derived == ORDER else text
