"""``counters describe`` and ``diff``: what a table counts, whether all is well, and what a deployment would change."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import unified_diff
from pathlib import Path
from typing import Any, Final

import click
from botocore.exceptions import BotoCoreError, ClientError

from counters_cli.deployed import AGGREGATOR_HANDLER
from counters_cli.output import counted, number, stamp, table
from counters_cli.session import DONE, FOUND, Session, ending, shared
from counters_lambda.counting.commit import Checkpoint
from counters_lambda.counting.feeds import Shard, StreamReader, read_checkpoint
from dynamodb_counters._declarations import Declaration, Direct
from dynamodb_counters._declarations.codec import decode, described, same_definition
from dynamodb_counters._declarations.composites import Threshold
from dynamodb_counters._registry import COMPLETE, Registry, entries_of, is_same, read_registry, threshold_name
from dynamodb_counters.errors import CheckpointError, UncountedError

Facts = dict[str, Any]

_TITLES: Final = {
    "new": "new",
    "changed": "changed: a name keeps its definition, by which it counts on",
    "undeclared": "no longer declared, and counted on",
}


@click.command()
@shared
def describe(session: Session) -> None:
    """Show what the table counts, and how far: problems, shards, quarantine.

    Reads checkpoints and the whole quarantine, strongly consistently.
    """
    problems = list[str]()
    facts = _table_facts(session, problems)
    document: Facts = {"problems": problems, "names": [], "shards": [], "declarations": {}}
    try:
        document["declarations"] = described(session.declarations)
        document["names"] = _name_facts(session, problems)
        known = (each for declared in session.declarations for each in (declared.source, declared))
        expiring = sorted({each.name for each in known if getattr(each, "retention", None) is not None})
        if expiring and facts["ttl"] is None:
            problems.append(f"TTL is disabled: {', '.join(expiring)} would expire, but stay")
    except click.UsageError as error:
        problems.append(str(error))
    if facts["stream"]:
        document["shards"] = _shard_facts(session, facts["stream"], problems)
    else:
        problems.append("the table has no stream")
    try:
        if facts["stream"] and session.endpoint_url is None:  # An emulator has no Lambda.
            _note_mappings(session, facts["stream"], problems)
    except (ClientError, BotoCoreError) as error:
        problems.append(ending(error)[1])  # Who may read the table need not read functions.
    waiting = Counter((entry.reason, entry.names) for entry in session.counters.quarantined())
    if waiting:
        problems.append(f"{counted(waiting.total(), 'entry waits', 'entries wait')} in the quarantine")
    document["quarantine"] = [
        {"entries": count, "declarations": names, "reason": reason} for (reason, names), count in waiting.most_common()
    ]
    lines = [f"{facts['name']}: {number(facts['items'])} items, {number(facts['bytes'])} bytes, of the last six hours"]
    for title in ("problems", "names", "shards", "quarantine"):
        rows = problems if title == "problems" else table(document[title])
        lines += ["", title.capitalize(), *(f"  {row}" for row in rows)] if rows else []
    session.emit({"table": facts, **document}, lines)


def _table_facts(session: Session, problems: list[str]) -> Facts:
    client, name = session.client("dynamodb"), session.table.name
    table = client.describe_table(TableName=name)["Table"]
    stream = table.get("StreamSpecification", {})
    expiry = client.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
    if table["TableStatus"] != "ACTIVE":
        problems.append(f"the table is {table['TableStatus'].lower()}")
    return {
        "name": table["TableName"],
        "arn": table.get("TableArn"),
        "items": table.get("ItemCount", 0),
        "bytes": table.get("TableSizeBytes", 0),
        "stream": table.get("LatestStreamArn") if stream.get("StreamEnabled") else None,
        "ttl": expiry.get("AttributeName") if expiry.get("TimeToLiveStatus") != "DISABLED" else None,
    }


def _name_facts(session: Session, problems: list[str]) -> list[Facts]:
    """What the table counts: each name's state, and whether the code that began last declares it so."""
    declared, facts = {each.name: each for each in session.registry.declared}, list[Facts]()
    for name, entry in sorted(session.registry.names.items()):
        each, own = entry.declaration, declared.get(name)
        is_same = each is not None and own is not None and same_definition(each, own)
        state, since = "dropped" if entry.dropped else entry.state, stamp(entry.since) if entry.since else None
        by_code = "as counted" if is_same else "not" if own is None else "otherwise"
        facts.append({"name": name, "state": state, "since": since, "run": entry.run or None, "declared": by_code})
        if state != COMPLETE:
            problems.append(f"{name} is {state}")
        if not is_same:
            cure = "no longer: `counters drop` ends it" if own is None else "otherwise: a name keeps its definition"
            problems.append(f"{name} is declared {cure}")
    return facts


def _shard_facts(session: Session, stream: str, problems: list[str]) -> list[Facts]:
    """Shards with the moment up to which all is counted; None if it is unknown. It moves once in a while."""

    def facts(shard: Shard) -> Facts:
        checkpoint = Checkpoint()
        try:
            checkpoint = read_checkpoint(session.table, shard.id)
        except CheckpointError as error:
            problems.append(str(error))
        moved = None if checkpoint == Checkpoint() else stamp(min(checkpoint.at, session.clock()))
        return {"shard": shard.id, "state": "open" if shard.is_open else "closed", "checkpoint moved": moved}

    return session.table.each(facts, StreamReader(session.client("dynamodbstreams"), stream).shards())


def _note_mappings(session: Session, stream: str, problems: list[str]) -> None:
    """Note how aggregators read the stream, unless one does, from its beginning: others lose records."""
    lambdas = session.client("lambda")
    pages = lambdas.get_paginator("list_event_source_mappings").paginate(EventSourceArn=stream)
    starts = [
        mapping.get("StartingPosition")
        for mapping in (mapping for page in pages for mapping in page["EventSourceMappings"])
        if lambdas.get_function_configuration(FunctionName=mapping["FunctionArn"]).get("Handler") == AGGREGATOR_HANDLER
    ]
    if starts != ["TRIM_HORIZON"]:
        problems.append(f"invalid mappings of {stream} to aggregators, {starts}: expected one, from TRIM_HORIZON")


@click.command()
@click.option("--template", default="cdk.out", type=Path, metavar="FILE|DIR", help="A template, or a folder of them.")
@click.option("--aggregator", metavar="ID", help="Logical ID of the aggregator's function, if templates have several.")
@shared
def diff(session: Session, template: Path, aggregator: str | None) -> int:
    """Compare what a deployment declares with what the table counts.

    Run it after `cdk synth`. Exit code 1: there are differences.
    """
    registry = read_registry(session.table)
    names = list(_changes(registry, decode(_declarations_in(template, aggregator))))
    lines = [] if registry.is_founded else ["Nothing counts this table yet: this is its first deployment.", ""]
    for entry in names:
        lines += [f"{entry['name']}: {_TITLES[entry['kind']]}", f"  next: {entry['next'] or 'deploy it'}"]
        before, after = (
            json.dumps(entry[side], indent=2, sort_keys=True).splitlines() if entry[side] else []
            for side in ("before", "after")
        )
        lines += unified_diff(before, after, "table", "deployment", lineterm="")
    document = {"first_deployment": not registry.is_founded, "names": names}
    session.emit(document, lines if names else [*lines, "Nothing changes."])
    return FOUND if names else DONE


def _declarations_in(path: Path, wanted: str | None) -> str:
    """Declarations of the aggregator that is wanted, or is the only one; stages of an app may have the same."""
    aggregators: list[tuple[str, str]] = []
    if not path.exists():
        raise click.UsageError(f"there is no {str(path)!r} here: run `cdk synth`, or name a template with --template")
    for file in sorted(path.rglob("*.template.json")) if path.is_dir() else [path]:
        try:
            for name, resource in json.loads(file.read_text(encoding="utf-8"))["Resources"].items():
                properties = resource.get("Properties", {})
                if properties.get("Handler") == AGGREGATOR_HANDLER:
                    aggregators.append((name, str(properties["Environment"]["Variables"]["DECLARATIONS"])))
        except (AttributeError, LookupError, TypeError, ValueError, OSError):
            raise click.UsageError(f"{str(file)!r} is no template: expected a file that `cdk synth` wrote") from None
    texts = {text for name, text in aggregators if wanted in (None, name)}
    if len(texts) != 1:
        there = ", ".join(sorted({name for name, _ in aggregators})) or "no aggregator"
        raise click.UsageError(f"which aggregator? name one with --aggregator, or its --template; there is: {there}")
    return texts.pop()


def _changes(registry: Registry, declared: Sequence[Declaration]) -> Iterator[Facts]:
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
            is_watch, cure = isinstance(old, Threshold), UncountedError(name).cure
            kind, follows = "changed", "give the new one another name, and drop the old one" if is_watch else cure
        definitions = {side: each and described([each])[each.name] for side, each in (("before", old), ("after", new))}
        yield {"name": name, "kind": kind, "next": follows, **definitions}
