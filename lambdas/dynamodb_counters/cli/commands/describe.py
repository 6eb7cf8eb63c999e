"""``counters describe``: what a table counts, and whether all is well."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import click
from botocore.exceptions import BotoCoreError, ClientError
from rich.console import Group as Lines
from rich.console import RenderableType
from rich.filesize import decimal
from rich.padding import Padding
from rich.text import Text

from dynamodb_counters._backfill.feeds import read_checkpoint
from dynamodb_counters._commit.checkpoints import Checkpoint
from dynamodb_counters._control.registry import COMPLETE, WAITING
from dynamodb_counters._declarations.codec import described
from dynamodb_counters._declarations.definitions import same_definition
from dynamodb_counters._dev.deployed import AGGREGATOR_HANDLER
from dynamodb_counters._fold.records import stream_number
from dynamodb_counters._streams import StreamReader
from dynamodb_counters.cli.output import (
    ACCENT,
    BAD,
    GOOD,
    HEADING,
    QUIET,
    WARNING,
    grid,
    json_lines,
    number,
    pairs,
    reason_text,
    span,
    stamp,
)
from dynamodb_counters.cli.session import Session, UnknownDeclarationsError, shared, told

Facts = dict[str, Any]

_ALIVE: Final = ("Creating", "Enabling", "Enabled", "Updating")
"""https://docs.aws.amazon.com/lambda/latest/api/API_EventSourceMappingConfiguration.html"""

_MOST_REASONS: Final = 10


def of_table(session: Session) -> Facts:
    client, table = session.client("dynamodb"), session.table.name
    found = client.describe_table(TableName=table)["Table"]
    stream = found.get("StreamSpecification", {})
    facts: Facts = {
        "name": found["TableName"],
        "arn": found.get("TableArn"),
        "status": found["TableStatus"],
        "items": found.get("ItemCount", 0),
        "bytes": found.get("TableSizeBytes", 0),
        "billing": found.get("BillingModeSummary", {}).get("BillingMode", "PROVISIONED"),
        "indexes": sorted(index["IndexName"] for index in found.get("GlobalSecondaryIndexes", ())),
        "stream": {
            "enabled": bool(stream.get("StreamEnabled")),
            "view": stream.get("StreamViewType"),
            "arn": found.get("LatestStreamArn") if stream.get("StreamEnabled") else None,
        },
    }
    answer, problem = tried(lambda: client.describe_time_to_live(TableName=table)["TimeToLiveDescription"])
    expiry = answer or {}
    facts["ttl"] = {"status": expiry.get("TimeToLiveStatus"), "attribute": expiry.get("AttributeName")}
    return facts | ({"problem": problem} if problem else {})


def of_retentions(session: Session) -> list[str]:
    """The names of what TTL is to delete: events, and groups or buckets of declarations."""
    known = (each for declared in session.declarations for each in (declared.source, declared))
    return sorted({each.name for each in known if getattr(each, "retention", None) is not None})


def of_names(session: Session) -> list[Facts]:
    """What the table counts: each name's state, and whether the code that began last declares it so."""
    declared = {each.name: each for each in session.registry.declared}
    facts = []
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
                "definition": None if each is None else described([each])[name],
            }
        )
    return facts


def of_shards(session: Session, stream: str | None) -> tuple[list[Facts], str | None]:
    """Each shard of the stream with its checkpoint; and why they could not be read."""
    if stream is None:
        return [], "the table has no stream"
    shards, problem = tried(StreamReader(session.client("dynamodbstreams"), stream).shards)
    checkpoints = session.table.each(lambda shard: _checkpoint(session, shard.id), shards or ())
    return [
        {"shard": shard.id, "open": shard.is_open, "checkpoint": checkpoint}
        for shard, checkpoint in zip(shards or (), checkpoints, strict=True)
    ], problem


def of_mappings(session: Session, stream: str | None) -> Facts:
    """How Lambda reads the stream: the mappings of the functions that count the table, and what is wrong with them."""
    if stream is None or session.endpoint_url is not None:  # An emulator has no Lambda.
        return {"mappings": [], "mapping_problems": []}
    found, problem = tried(lambda: list(_listed_mappings(session.client("lambda"), stream, session.table.name)))
    return {
        "mappings": [
            {
                "id": one["UUID"],
                "function": one["FunctionArn"],
                "stream": one["EventSourceArn"],
                "state": one["State"],
                "starts": one.get("StartingPosition"),
            }
            for one in found or ()
        ],
        "mapping_problems": [problem] if problem else list(_problems(found, stream)),
    }


def of_quarantine(session: Session) -> Facts:
    """Entries by reason; those redriven wait no more."""
    waiting, redriven = Counter[tuple[str, tuple[str, ...]]](), 0
    for entry in session.counters.quarantined(redriven=True):
        if entry.redriven:
            redriven += 1
        else:
            waiting[entry.reason, entry.names] += 1
    return {
        "waiting": waiting.total(),
        "redriven": redriven,
        "reasons": [
            {"reason": reason, "declarations": list(names), "entries": times}
            for (reason, names), times in waiting.most_common()
        ],
    }


def of_queue(session: Session, queue: str) -> Facts:
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    found = session.client("sqs").get_queue_attributes(QueueUrl=queue, AttributeNames=names)["Attributes"]
    visible, hidden = (int(found[name]) for name in names)
    return {"queue": queue, "messages": visible, "in_flight": hidden}


def _checkpoint(session: Session, shard: str) -> Facts | None:
    """The checkpoint of a shard, which moves once in a while; None if there is none, or it cannot be read."""
    try:
        known, now = read_checkpoint(session.table, shard), session.clock()
    except ValueError:
        return None
    if known == Checkpoint():
        return None
    return {
        "applied_through": stream_number(known.applied_through) if known.applied_through else None,
        "moved": stamp(min(known.at, now)) if known.at else None,
        "age_seconds": max(0, round(now - known.at)) if known.at else None,
        "seen": stamp(min(known.seen, now)) if known.seen else None,
        "lost_before": stamp(known.lost_before) if known.lost_before else None,
    }


def tried(work: Callable[[], Any]) -> tuple[Any, str | None]:
    """The answer of a call, or why there is none: a part that may not be read must not hide the others."""
    try:
        return work(), None
    except (ClientError, BotoCoreError) as error:
        return None, told(error)[1]


def _listed_mappings(lambdas: Any, stream: str, table: str) -> Iterator[Mapping[str, Any]]:
    # Without the version or alias.
    readers = {":".join(one["FunctionArn"].split(":")[:7]) for one in _listed(lambdas, EventSourceArn=stream)}
    for function in sorted(readers):
        if _counts(lambdas, function, table):
            yield from _listed(lambdas, FunctionName=function)


def _problems(mappings: Iterable[Mapping[str, Any]], stream: str) -> Iterator[str]:
    readers = Counter({stream: 0})
    for one in mappings:
        readers[one["EventSourceArn"]] += 1
        if one.get("StartingPosition") != "TRIM_HORIZON":
            yield (
                f"mapping {one['UUID']} starts at {one.get('StartingPosition')}: records from before are not counted; "
                "create it with TRIM_HORIZON"
            )
        if one["State"] not in _ALIVE:
            yield f"mapping {one['UUID']} is {one['State'].lower()}: the stream forgets records after 24 hours"
    for arn, times in readers.items():
        if not times:
            yield f"no mapping of a function that counts this table reads {arn}"
        if times > 1:
            yield (
                f"{times} mappings read {arn}: records that one delivers before the other are lost; delete all but the "
                "construct's"
            )


def _counts(lambdas: Any, function: str, table: str) -> bool:
    found = lambdas.get_function_configuration(FunctionName=function)
    variables = found.get("Environment", {}).get("Variables", {})
    counted, asked = (name.rpartition("/")[2] for name in (variables.get("TABLE_NAME", ""), table))
    return found.get("Handler") == AGGREGATOR_HANDLER and counted == asked


def _listed(lambdas: Any, **of: str) -> Iterator[Mapping[str, Any]]:
    for page in lambdas.get_paginator("list_event_source_mappings").paginate(**of):
        yield from page["EventSourceMappings"]


@click.command()
@click.option("--queue", "queues", multiple=True, metavar="URL", help="A dead-letter queue; may be repeated.")
@shared
def describe(session: Session, queues: Sequence[str]) -> None:
    """Show what the table counts, and how far: shards, quarantine, dead letters.

    Reads checkpoints and the whole quarantine, strongly consistently.
    """
    document: Facts = {"table": {**of_table(session), "expiring": []}}
    try:
        document["declarations"] = described(session.declarations)
        document["table"]["expiring"] = of_retentions(session)
    except UnknownDeclarationsError as error:
        document |= {"declarations": {}, "problem": str(error)}
    document["names"] = of_names(session) if "problem" not in document else []
    stream = document["table"]["stream"]["arn"]
    document["shards"], document["stream_problem"] = of_shards(session, stream)
    document |= of_mappings(session, stream)
    document["quarantine"] = of_quarantine(session)
    document["dead_letters"] = [of_queue(session, queue) for queue in queues]
    session.emit(document, Lines(*_sections(document, session.clock())))


def _sections(document: Facts, now: float) -> Iterator[RenderableType]:
    yield _table(document["table"])
    yield from _section("Names", _names(document["names"], now), document.get("problem"))
    yield from _section("Shards", _shards(document["shards"]), document["stream_problem"])
    if document["mappings"] or document["mapping_problems"]:
        yield from _section("Mappings", _mappings(document))
    yield from _section("Quarantine", _quarantine(document["quarantine"]))
    if document["dead_letters"]:
        yield from _section("Dead letters", _queues(document["dead_letters"]))
    yield from _section("Declarations", Lines(*json_lines(document["declarations"])))


def _section(title: str, content: RenderableType, problem: str | None = None) -> Iterator[RenderableType]:
    yield ""
    yield Text(title, f"{HEADING} {ACCENT}")
    yield Padding(Text(problem, WARNING) if problem else content, (0, 0, 0, 2))


def _table(table: Facts) -> RenderableType:
    head = Text(table["name"], HEADING)
    head.append(f"  {table['status'].lower()}", GOOD if table["status"] == "ACTIVE" else WARNING)
    stream, ttl, names = table["stream"], table["ttl"], ", ".join(table["expiring"])
    idle = (
        f"disabled: {names} would expire, but stay (an emulator deletes nothing)"
        if names
        else "disabled: nothing would expire"
    )
    problem = table.get("problem", idle)
    expires = ttl["status"] in ("ENABLED", "ENABLING")
    billing = {"PAY_PER_REQUEST": "on demand", "PROVISIONED": "provisioned"}[table["billing"]]
    rows: dict[str, str | Text] = {
        "size": f"{number(table['items'])} items, {decimal(table['bytes'])}, as of the last six hours; {billing}",
        "stream": Text(stream["view"].replace("_", " ").lower()) if stream["enabled"] else Text("none", BAD),
        "TTL": f"{ttl['status'].lower()} on {ttl['attribute']}" if expires else Text(problem, WARNING),
        "indexes": ", ".join(table["indexes"]) or "none",
    }
    return Lines(head, Padding(pairs(rows), (0, 0, 0, 2)))


def _names(names: list[Facts], now: float) -> RenderableType:
    shown = grid("name", "state", "counts records from (UTC)", "declared", keep=("name", "state"))
    for one in names:
        since, begins = one["since"], "-" if one["state"] == WAITING else "the beginning"
        when = _clock(since) + (" (ahead)" if since > stamp(now) else "") if since else begins
        state = Text("dropped" if one["dropped"] else one["state"], GOOD if one["state"] == COMPLETE else WARNING)
        told = {"as counted": "", "not": "no longer: `counters drop`"}.get(
            one["declared"], "otherwise: a name keeps its"
        )
        shown.add_row(one["name"], state, when, Text(told, WARNING))
    return shown


def _shards(shards: list[Facts]) -> RenderableType:
    keep = ("shard", "state", "checkpoint moved (UTC)")
    shown = grid(*keep, "ago", *([""] if any(map(_lost, shards)) else []), numbers=("ago",), keep=keep)
    for one in sorted(shards, key=lambda one: (not one["open"], one["shard"])):
        name = re.sub(r"^0+(?=\d)", "", one["shard"].removeprefix("shardId-"))
        known = one["checkpoint"]
        through, age = Text("no checkpoint", WARNING if one["open"] else QUIET), "-"
        if known is not None and known["moved"] is None:
            through = Text("not reported yet", QUIET)
        elif known is not None:
            through, age = Text(_clock(known["moved"])), span(known["age_seconds"])
        lost = f"its checkpoint was lost before {_lost(one)}" if _lost(one) else ""
        shown.add_row(
            name, Text("open" if one["open"] else "closed", QUIET), through, age, *([Text(lost, BAD)] if lost else [])
        )
    return shown


def _lost(shard: Facts) -> str | None:
    """Before when a shard's checkpoint was lost, if it was."""
    return (shard["checkpoint"] or {}).get("lost_before")


def _mappings(document: Facts) -> RenderableType:
    shown = grid("function", "stream of", "starts at", "state")
    for one in document["mappings"]:
        function, table = one["function"].split(":", 6)[-1], one["stream"].split("/")[1]
        shown.add_row(function, table, str(one["starts"]).lower().replace("_", " "), one["state"].lower())
    problems = [Text(problem, BAD) for problem in document["mapping_problems"]]
    return Lines(*([shown] if document["mappings"] else []), *problems)


def _quarantine(quarantine: Facts) -> RenderableType:
    redriven = f"; {number(quarantine['redriven'])} redriven" if quarantine["redriven"] else ""
    if not quarantine["waiting"]:
        return Text(f"empty{redriven}", GOOD)
    shown = grid("entries", "not counted by", "reason", numbers=("entries",))
    for one in quarantine["reasons"][:_MOST_REASONS]:
        names = ", ".join(one["declarations"]) or "all"
        shown.add_row(Text(number(one["entries"]), WARNING), names, reason_text(one["reason"]))
    more = len(quarantine["reasons"]) - _MOST_REASONS
    rest = f"; {number(more)} more reasons in --json" if more > 0 else ""
    return Lines(shown, Text(f"{number(quarantine['waiting'])} wait{redriven}{rest}", QUIET))


def _queues(queues: list[Facts]) -> RenderableType:
    shown = grid("queue", "messages", "in flight", numbers=("messages", "in flight"))
    for one in queues:
        waiting = Text(number(one["messages"]), WARNING if one["messages"] else GOOD)
        shown.add_row(one["queue"].rsplit("/", 1)[-1], waiting, number(one["in_flight"]))
    return shown


def _clock(stamp: str) -> str:
    """A moment below a heading that names its zone."""
    return stamp.replace("T", " ").removesuffix("Z")
