"""``counters describe`` and ``diff``: what a table counts, whether all is well, and what a deployment would change."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from difflib import unified_diff
from pathlib import Path
from typing import Any, Final

import click
from botocore.exceptions import BotoCoreError, ClientError

from counters_cli.output import counted, number, stamp, table
from counters_cli.session import Exit, Session, command, ending
from counters_lambda.counting.commit import Checkpoint
from counters_lambda.counting.feeds import Shard, StreamReader, read_checkpoint
from dynamodb_counters._declarations import Declaration, Direct
from dynamodb_counters._declarations.codec import decode, described, same_definition
from dynamodb_counters._declarations.composites import Threshold
from dynamodb_counters._registry import COMPLETE, Registry, entries_of, is_same, read_registry, threshold_name
from dynamodb_counters.errors import CheckpointError, UncountedError

AGGREGATOR_HANDLER: Final = "counters_lambda.handlers.aggregator.handler"

_SIDES: Final = ("before", "after")
_TITLES: Final = {
    "new": "new",
    "changed": "changed: a name keeps its definition, by which it counts on",
    "undeclared": "no longer declared, and counted on",
}


@command()
def describe(session: Session) -> None:
    """Show what the table counts, and how far: problems, shards, quarantine.

    Reads checkpoints and the whole quarantine, strongly consistently.
    """
    problems = list[str]()
    facts = _table_facts(session, problems)
    document: dict[str, Any] = {"problems": problems, "names": [], "shards": [], "declarations": {}}
    try:
        document["declarations"] = described(session.declarations)
        document["names"] = _name_facts(session, problems)
        levels = (level for declaration in session.declarations for level in (declaration.source, declaration))
        expiring = sorted({level.name for level in levels if getattr(level, "retention", None) is not None})
        if expiring and facts["ttl"] is None:
            problems.append(f"TTL is disabled: {', '.join(expiring)} would expire, but stay")
    except click.UsageError as error:
        problems.append(str(error))
    if facts["stream"]:
        document["shards"] = _shard_facts(session, facts["stream"], problems)
        if session.endpoint_url is None:  # An emulator has no Lambda.
            problems += _mapping_problems(session, facts["stream"])
    else:
        problems.append("the table has no stream")
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
    session.emit({"table": facts, **document}, *lines)


def _table_facts(session: Session, problems: list[str]) -> dict[str, Any]:
    client, name = session.client("dynamodb"), session.table.name
    facts = client.describe_table(TableName=name)["Table"]
    expiry = client.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
    if facts["TableStatus"] != "ACTIVE":
        problems.append(f"the table is {facts['TableStatus'].lower()}")
    has_stream = facts.get("StreamSpecification", {}).get("StreamEnabled")
    return {
        "name": facts["TableName"],
        "arn": facts.get("TableArn"),
        "items": facts.get("ItemCount", 0),
        "bytes": facts.get("TableSizeBytes", 0),
        "stream": facts.get("LatestStreamArn") if has_stream else None,
        "ttl": expiry.get("AttributeName") if expiry.get("TimeToLiveStatus") != "DISABLED" else None,
    }


def _name_facts(session: Session, problems: list[str]) -> list[dict[str, Any]]:
    latest, facts = {declaration.name: declaration for declaration in session.registry.declared}, list[dict[str, Any]]()
    for name, entry in sorted(session.registry.names.items()):
        old, new = entry.declaration, latest.get(name)
        state, by_code = "dropped" if entry.dropped else entry.state, "not" if new is None else "otherwise"
        if state != COMPLETE:
            problems.append(f"{name} is {state}")
        if old is not None and new is not None and same_definition(old, new):
            by_code = "as counted"
        else:
            cure = "no longer: `counters drop` ends it" if new is None else "otherwise: a name keeps its definition"
            problems.append(f"{name} is declared {cure}")
        since = stamp(entry.since) if entry.since else None
        facts.append({"name": name, "state": state, "since": since, "run": entry.run or None, "declared": by_code})
    return facts


def _shard_facts(session: Session, stream: str, problems: list[str]) -> list[dict[str, Any]]:
    """Return shards with the moment up to which all is counted; None if it is unknown. It moves once in a while."""

    def facts(shard: Shard) -> dict[str, Any]:
        checkpoint = Checkpoint()
        try:
            checkpoint = read_checkpoint(session.table, shard.id)
        except CheckpointError as error:
            problems.append(str(error))
        moved = None if checkpoint == Checkpoint() else stamp(min(checkpoint.at, session.clock()))
        return {"shard": shard.id, "state": "open" if shard.is_open else "closed", "checkpoint moved": moved}

    return session.table.each(facts, StreamReader(session.client("dynamodbstreams"), stream).shards())


def _mapping_problems(session: Session, stream: str) -> list[str]:
    """Return what is wrong unless one aggregator reads the stream, from its beginning: others lose records."""
    starts = []
    try:
        client = session.client("lambda")
        for page in client.get_paginator("list_event_source_mappings").paginate(EventSourceArn=stream):
            for mapping in page["EventSourceMappings"]:
                function = client.get_function_configuration(FunctionName=mapping["FunctionArn"])
                starts += [mapping.get("StartingPosition")] if function.get("Handler") == AGGREGATOR_HANDLER else []
    except (ClientError, BotoCoreError) as error:
        return [ending(error)[1]]  # Who may read the table need not read functions.
    problem = f"invalid mappings of {stream} to aggregators, {starts}: expected one, from TRIM_HORIZON"
    return [] if starts == ["TRIM_HORIZON"] else [problem]


@command("template", "aggregator")
def diff(session: Session, template: Path, aggregator: str | None) -> int:
    """Compare what a deployment declares with what the table counts.

    Run it after `cdk synth`. Exit code 1: there are differences.
    """
    registry = read_registry(session.table)
    changes = list(_changes(registry, decode(_declarations_in(template, aggregator))))
    lines = [] if registry.is_founded else ["Nothing counts this table yet: this is its first deployment.", ""]
    for change in changes:
        lines += [f"{change['name']}: {_TITLES[change['kind']]}", f"  next: {change['next'] or 'deploy it'}"]
        before, after = (json.dumps(change[side], indent=2, sort_keys=True) if change[side] else "" for side in _SIDES)
        lines += unified_diff(before.splitlines(), after.splitlines(), "table", "deployment", lineterm="")
    lines += [] if changes else ["Nothing changes."]
    session.emit({"first_deployment": not registry.is_founded, "names": changes}, *lines)
    return Exit.FINDINGS if changes else Exit.SUCCESS


def _declarations_in(path: Path, name: str | None) -> str:
    """Return the declarations of the aggregator of a name, or of the only one; stages of an app may have the same."""
    if not path.exists():
        raise click.UsageError(f"there is no {str(path)!r} here: run `cdk synth`, or name a template with --template")
    aggregators: list[tuple[str, str]] = []
    for file in sorted(path.rglob("*.template.json")) if path.is_dir() else [path]:
        try:
            for logical_id, resource in json.loads(file.read_text(encoding="utf-8"))["Resources"].items():
                properties = resource.get("Properties", {})
                if properties.get("Handler") == AGGREGATOR_HANDLER:
                    aggregators.append((logical_id, str(properties["Environment"]["Variables"]["DECLARATIONS"])))
        except (AttributeError, LookupError, TypeError, ValueError, OSError):
            raise click.UsageError(f"{str(file)!r} is no template: expected a file that `cdk synth` wrote") from None
    texts = {text for logical_id, text in aggregators if name in (None, logical_id)}
    if len(texts) != 1:
        there = ", ".join(sorted({logical_id for logical_id, _ in aggregators})) or "no aggregator"
        raise click.UsageError(f"which aggregator? name one with --aggregator, or its --template; there is: {there}")
    return texts.pop()


def _changes(registry: Registry, declared: Iterable[Declaration]) -> Iterator[dict[str, Any]]:
    """Yield what becomes of each name, and then of each threshold, that a deployment does not leave as it is."""
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
        pairs = zip(_SIDES, (old, new), strict=True)
        definitions = {side: declaration and described([declaration])[declaration.name] for side, declaration in pairs}
        yield {"name": name, "kind": kind, "next": follows, **definitions}
