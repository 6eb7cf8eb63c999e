"""``counters describe`` and ``diff``: what a table counts, whether all is well, and what a deployment would change."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import unified_diff
from pathlib import Path
from typing import Any, Final

import click
from botocore.exceptions import BotoCoreError, ClientError
from rich.console import Group as Lines
from rich.console import RenderableType
from rich.filesize import decimal
from rich.padding import Padding
from rich.text import Text

from dynamodb_counters._backfill.feeds import Shard, StreamReader, read_checkpoint
from dynamodb_counters._commit.checkpoints import Checkpoint
from dynamodb_counters._control.registry import COMPLETE, Registry, entries_of, is_same, read_registry, threshold_name
from dynamodb_counters._declarations import Declaration, Direct
from dynamodb_counters._declarations.codec import decode, described, same_definition
from dynamodb_counters._declarations.thresholds import Threshold
from dynamodb_counters._dev.deployed import AGGREGATOR_HANDLER
from dynamodb_counters._fold.records import stream_number
from dynamodb_counters.cli.output import (
    ACCENT,
    BAD,
    GOOD,
    HEADING,
    QUIET,
    WARNING,
    counted,
    grid,
    json_lines,
    number,
    pairs,
    reason_text,
    span,
    stamp,
)
from dynamodb_counters.cli.session import DONE, FOUND, Session, UnknownDeclarationsError, shared, told
from dynamodb_counters.errors import ChangedError, CheckpointError

Facts = dict[str, Any]

_MOST_REASONS: Final = 10

_TITLES: Final = {
    "new": "new",
    "changed": "changed: a name keeps its definition, by which it counts on",
    "undeclared": "no longer declared, and counted on",
}


def of_table(session: Session, problems: list[str]) -> Facts:
    client, table = session.client("dynamodb"), session.table.name
    description = client.describe_table(TableName=table)["Table"]
    stream = description.get("StreamSpecification", {})
    expiry = client.describe_time_to_live(TableName=table)["TimeToLiveDescription"]
    if description["TableStatus"] != "ACTIVE":
        problems.append(f"the table is {description['TableStatus'].lower()}")
    return {
        "name": description["TableName"],
        "arn": description.get("TableArn"),
        "status": description["TableStatus"],
        "items": description.get("ItemCount", 0),
        "bytes": description.get("TableSizeBytes", 0),
        "stream": {
            "enabled": bool(stream.get("StreamEnabled")),
            "view": stream.get("StreamViewType"),
            "arn": description.get("LatestStreamArn") if stream.get("StreamEnabled") else None,
        },
        "ttl": {"status": expiry.get("TimeToLiveStatus"), "attribute": expiry.get("AttributeName")},
    }


def of_names(session: Session, problems: list[str]) -> list[Facts]:
    """What the table counts: each name's state, and whether the code that began last declares it so."""
    declared, facts = {each.name: each for each in session.registry.declared}, list[Facts]()
    for name, entry in sorted(session.registry.names.items()):
        each, own = entry.declaration, declared.get(name)
        is_same = each is not None and own is not None and same_definition(each, own)
        facts.append(
            {
                "name": name,
                "state": entry.state,
                "since": stamp(entry.since) if entry.since else None,
                "run": entry.run or None,
                "dropped": entry.dropped,
                "declared": "as counted" if is_same else "not" if own is None else "otherwise",
            }
        )
        if entry.dropped or entry.state != COMPLETE:
            problems.append(f"{name} is {'dropped' if entry.dropped else entry.state}")
        if not is_same:
            cure = "no longer: `counters drop` ends it" if own is None else "otherwise: a name keeps its definition"
            problems.append(f"{name} is declared {cure}")
    return facts


def of_shards(session: Session, stream: str | None, problems: list[str]) -> list[Facts]:
    if stream is None:
        problems.append("the table has no stream")
        return []

    def facts(shard: Shard) -> Facts:
        return {"shard": shard.id, "open": shard.is_open, "checkpoint": _checkpoint(session, shard.id, problems)}

    return session.table.each(facts, StreamReader(session.client("dynamodbstreams"), stream).shards())


def note_mappings(session: Session, stream: str | None, problems: list[str]) -> None:
    """Note how aggregators read the stream, unless one does, from its beginning: others lose records."""
    if stream is None or session.endpoint_url is not None:  # An emulator has no Lambda.
        return
    lambdas = session.client("lambda")
    pages = lambdas.get_paginator("list_event_source_mappings").paginate(EventSourceArn=stream)
    starts = [
        mapping.get("StartingPosition")
        for mapping in (mapping for page in pages for mapping in page["EventSourceMappings"])
        if lambdas.get_function_configuration(FunctionName=mapping["FunctionArn"]).get("Handler") == AGGREGATOR_HANDLER
    ]
    if starts != ["TRIM_HORIZON"]:
        problems.append(f"invalid mappings of {stream} to aggregators, {starts}: expected one, from TRIM_HORIZON")


def of_quarantine(session: Session, problems: list[str]) -> Facts:
    waiting = Counter((entry.reason, entry.names) for entry in session.counters.quarantined())
    if waiting:
        problems.append(f"{counted(waiting.total(), 'entry waits', 'entries wait')} in the quarantine")
    return {
        "waiting": waiting.total(),
        "reasons": [
            {"reason": reason, "declarations": list(names), "entries": times}
            for (reason, names), times in waiting.most_common()
        ],
    }


def _checkpoint(session: Session, shard: str, problems: list[str]) -> Facts | None:
    """The checkpoint of a shard, which moves once in a while; None if there is none, or it cannot be read."""
    try:
        checkpoint, now = read_checkpoint(session.table, shard), session.clock()
    except CheckpointError as error:
        problems.append(str(error))
        return None
    if checkpoint == Checkpoint():
        return None
    return {
        "applied_through": stream_number(checkpoint.applied_through),
        "moved": stamp(min(checkpoint.at, now)),
        "age_seconds": max(0, round(now - checkpoint.at)),
    }


@click.command()
@shared
def describe(session: Session) -> None:
    """Show what the table counts, and how far: problems, shards, quarantine.

    Reads checkpoints and the whole quarantine, strongly consistently.
    """
    problems = list[str]()
    document: Facts = {"problems": problems, "table": of_table(session, problems), "names": [], "declarations": {}}
    stream, ttl = document["table"]["stream"]["arn"], document["table"]["ttl"]["status"]
    try:
        document["declarations"] = described(session.declarations)
        document["names"] = of_names(session, problems)
        known = (each for declared in session.declarations for each in (declared.source, declared))
        expiring = sorted({each.name for each in known if getattr(each, "retention", None) is not None})
        if expiring and ttl == "DISABLED":
            problems.append(f"TTL is disabled: {', '.join(expiring)} would expire, but stay")
    except UnknownDeclarationsError as error:
        problems.append(str(error))
    document["shards"] = of_shards(session, stream, problems)
    try:
        note_mappings(session, stream, problems)
    except (ClientError, BotoCoreError) as error:
        problems.append(told(error)[1])  # Who may read the table need not read functions.
    document["quarantine"] = of_quarantine(session, problems)
    session.emit(document, Lines(*_sections(document)))


def _sections(document: Facts) -> Iterator[RenderableType]:
    table = document["table"]
    stream, ttl = table["stream"], table["ttl"]
    yield Text(table["name"], HEADING)
    yield pairs(
        {
            "size": f"{number(table['items'])} items, {decimal(table['bytes'])}, as of the last six hours",
            "stream": stream["view"].replace("_", " ").lower() if stream["enabled"] else "none",
            "TTL": " on ".join(filter(None, (str(ttl["status"]).lower(), ttl["attribute"]))),
        }
    )
    if document["problems"]:
        yield from _section("Problems", Lines(*(Text(problem, WARNING) for problem in document["problems"])))
    yield from _rows("Names", ("name", "state", "counts records from", "declared"), map(_name, document["names"]))
    shards = sorted(document["shards"], key=lambda shard: (not shard["open"], shard["shard"]))
    yield from _rows("Shards", ("shard", "state", "checkpoint moved"), map(_shard, shards))
    reasons = document["quarantine"]["reasons"]
    yield from _rows("Quarantine", ("entries", "not counted by", "reason"), map(_reason, reasons[:_MOST_REASONS]))
    if (more := len(reasons) - _MOST_REASONS) > 0:
        yield f"  {counted(more, 'more reason')} in --json"
    yield from _section("Declarations", Lines(*json_lines(document["declarations"])))


def _section(title: str, content: RenderableType) -> Iterator[RenderableType]:
    yield from ("", Text(title, f"{HEADING} {ACCENT}"), Padding(content, (0, 0, 0, 2)))


def _rows(title: str, columns: Sequence[str], rows: Iterable[Iterable[str]]) -> Iterator[RenderableType]:
    """A table of what there is, in a section of its own."""
    table = grid(*columns, numbers=("checkpoint moved", "entries"), keep=columns[:2])
    for row in rows:
        table.add_row(*row)
    if table.row_count:
        yield from _section(title, table)


def _name(name: Facts) -> tuple[str, ...]:
    since = name["since"] or ("the beginning" if name["state"] == COMPLETE else "-")
    return name["name"], name["state"], since, name["declared"]


def _reason(reason: Facts) -> tuple[str, ...]:
    return number(reason["entries"]), ", ".join(reason["declarations"]) or "all", reason_text(reason["reason"])


def _shard(shard: Facts) -> tuple[str, ...]:
    checkpoint = shard["checkpoint"]
    moved = "no checkpoint" if checkpoint is None else f"{span(checkpoint['age_seconds'])} ago"
    return shard["shard"], "open" if shard["open"] else "closed", moved


@click.command()
@click.option("--template", metavar="FILE|DIR", help="A synthesized template, or a folder of them. Default: cdk.out.")
@click.option("--aggregator", metavar="ID", help="Logical ID of the aggregator's function, if templates have several.")
@shared
def diff(session: Session, template: str | None, aggregator: str | None) -> int:
    """Compare what a deployment declares with what the table counts.

    Run it after `cdk synth`. Exit code 1: there are differences.
    """
    if session.declared is not None and template is not None:
        raise click.UsageError("--template and --declarations: pass one of them")
    registry = read_registry(session.table)
    if session.declared is not None:
        declared = session.declarations
    else:
        declared = decode(from_templates(Path(template or "cdk.out"), aggregator))
    names = list(_entries(registry, declared))
    first = [] if registry.is_founded else ["Nothing counts this table yet: this is its first deployment.", ""]
    lines = [line for entry in names for line in _shown(entry)] or [Text("Nothing changes.")]
    session.emit({"first_deployment": not registry.is_founded, "names": names}, Lines(*first, *lines))
    return FOUND if names else DONE


def from_templates(path: Path, wanted: str | None) -> str:
    """Declarations of the aggregator that is wanted, or is the only one."""
    found: dict[str, str] = {}
    if not path.exists():
        raise click.UsageError(f"there is no {str(path)!r} here: run `cdk synth`, or name a template with --template")
    for file in sorted(path.rglob("*.template.json")) if path.is_dir() else [path]:
        try:
            for name, resource in json.loads(file.read_text(encoding="utf-8"))["Resources"].items():
                properties = resource.get("Properties", {})
                if properties.get("Handler") == AGGREGATOR_HANDLER:
                    found[name] = str(properties["Environment"]["Variables"]["DECLARATIONS"])
        except (AttributeError, LookupError, TypeError, ValueError, OSError):
            raise click.UsageError(f"{str(file)!r} is no template: expected a file that `cdk synth` wrote") from None
    if not found:
        raise click.UsageError(f"no aggregator in {str(path)!r}: run `cdk synth`, or name its folder with --template")
    if wanted in found:
        return found[wanted]
    if wanted is not None or len(found) > 1:
        raise click.UsageError(f"which aggregator? name one with --aggregator: {', '.join(sorted(found))}")
    return next(iter(found.values()))


def _entries(registry: Registry, declared: Sequence[Declaration]) -> Iterator[dict[str, Any]]:
    """What becomes of each name, and then of each threshold, that a deployment does not leave as it is."""
    own = {entry.name: entry for entry in entries_of(declared)}
    for name in sorted({*registry.entries, *own}, key=lambda name: (name.startswith(threshold_name("")), name)):
        before, after = registry.entries.get(name), own.get(name)
        old, new = (None if entry is None else entry.declaration or entry.threshold for entry in (before, after))
        if before is not None and (old is None or (after is not None and is_same(before, after))):
            continue
        if new is None:
            kind, follows = "undeclared", f"counters drop {name.removeprefix(threshold_name(''))}"
        elif old is None:
            is_whole = not registry.is_founded or isinstance(new, Threshold) or isinstance(new.source, Direct)
            kind, follows = "new", "" if is_whole else f"counters backfill {name}"
        else:
            is_watch, cure = isinstance(old, Threshold), ChangedError(name).cure
            kind, follows = "changed", "give the new one another name, and drop the old one" if is_watch else cure
        definitions = {side: each and described([each])[each.name] for side, each in (("before", old), ("after", new))}
        yield {"name": name, "kind": kind, "next": follows, **definitions}


def _shown(entry: Mapping[str, Any]) -> Iterator[Text]:
    """Name and title, what to do next, and how the JSON of the definition changes."""
    yield Text.assemble((entry["name"], HEADING), f": {_TITLES[entry['kind']]}")
    if entry["next"]:
        yield Text(f"  next: {entry['next']}")
    before, after = (json_lines(entry[side]) for side in ("before", "after"))
    for line in unified_diff(before, after, "table", "deployment", lineterm=""):
        yield Text(line, {"+": GOOD, "-": BAD, "@": QUIET}.get(line[0], ""))
