"""Facts of a table, for ``counters describe``: plain values, as JSON has them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from dynamodb_counters._backfill.feeds import books
from dynamodb_counters._changes.effective import same_meaning
from dynamodb_counters._commit.batch import intake
from dynamodb_counters._commit.checkpoints import Checkpoint
from dynamodb_counters._control.control import changes_between, read_control, read_declarations
from dynamodb_counters._declarations import Declaration
from dynamodb_counters._declarations.codec import described
from dynamodb_counters._declarations.groups import generation, read_name
from dynamodb_counters._dev.deployed import AGGREGATOR_HANDLER
from dynamodb_counters._fold.fold import fold
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._fold.records import created_of, stream_number
from dynamodb_counters._streams import StreamReader
from dynamodb_counters.cli.failures import told
from dynamodb_counters.cli.session import Session
from dynamodb_counters.cli.show.formats import stamp

Facts = dict[str, Any]

_MOST_BOOKS: Final = 20
_MOST_PAGES: Final = 5
_ALIVE: Final = ("Creating", "Enabling", "Enabled", "Updating")
"""https://docs.aws.amazon.com/lambda/latest/api/API_EventSourceMappingConfiguration.html"""


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


def of_declarations(session: Session) -> list[Facts]:
    """The definitions that count, those that wait in their place, and the events they count."""
    reads, folded = read_control(session.table).reads, {one.name: one for one in session.folded}
    facts: dict[str, Facts] = {}
    for declared in session.declarations:
        held = folded.get(read_name(declared.name, reads))
        is_held = held is not None and same_meaning(held, declared)
        counts = described([] if held is None else [declared if is_held else generation(held, 0)])
        waits = described([] if is_held else [declared])
        for name in {**counts, **waits}:
            same = counts.get(name) == waits.get(name)
            facts[name] = {"name": name, "counts": counts.get(name), "waits": None if same else waits.get(name)}
    return [facts[name] for name in sorted(facts)]


def of_deployments(session: Session) -> list[Facts]:
    """The deployments in force, the latest first: from when on each holds, and what it declares."""
    seen = read_control(session.table)
    facts: list[Facts] = []
    before: tuple[Declaration, ...] | None = ()
    for era in seen.history.eras if seen.history else ():
        declared = read_declarations(session.table, era.deployment)
        facts.append(
            {
                "deployment": era.deployment,
                "valid_from": stamp(era.valid_from) if era.valid_from else None,
                "declarations": None if declared is None else sorted(one.name for one in declared),
                "changes": None if declared is None or before is None else changes_between(before, declared),
            }
        )
        before = declared
    return facts[::-1]


def of_shards(session: Session, stream: str | None, *, peek: bool) -> tuple[list[Facts], str | None]:
    """Each shard of the stream with its checkpoint and, to `peek`, what lies behind; and why it could not be read."""
    if stream is None:
        return [], "the table has no stream"
    shards, problem = tried(StreamReader(session.client("dynamodbstreams"), stream).shards)
    checkpoints = session.table.each(lambda shard: _checkpoint(session, shard.id), shards or ())
    now = session.clock()
    plan = Plan(session.folded) if peek else Plan(())
    facts = []
    for shard, known in zip(shards or (), checkpoints, strict=True):
        facts.append({"shard": shard.id, "open": shard.is_open, **_checkpoint_facts(known, now)})
        if peek and problem is None:
            oldest, problem = tried(partial(_uncovered, session, plan, stream, shard.id, known))
            facts[-1]["uncovered_seconds"] = None if oldest is None else max(0, round(now - oldest))
    return facts, problem


def of_mappings(session: Session, stream: str | None) -> Facts:
    """How Lambda reads the stream: the mappings of the functions that count the table, and what is wrong with them."""
    if stream is None or session.endpoint_url is not None:  # An emulator has no Lambda.
        return {"mappings": [], "mapping_problems": []}
    found, problem = tried(lambda: list(_mappings(session.client("lambda"), stream, session.table.name)))
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


def _uncovered(session: Session, plan: Plan, stream: str, shard: str, known: Checkpoint | None) -> float | None:
    """When the oldest record that counts beyond the checkpoint was created; None if a few pages show none."""
    # Most records behind a checkpoint are of the counts themselves, which concern nothing.
    through = stream_number(known.applied_through) if known is not None and known.applied_through else None
    reader = StreamReader(session.client("dynamodbstreams"), stream, lambda _: None)
    for record in reader.records(shard, through, _MOST_PAGES):
        folded = fold(plan, intake([record]))
        if folded.deltas or folded.unfoldable:
            return created_of(record)
    return None


def _checkpoint(session: Session, shard: str) -> Checkpoint | None:
    """The checkpoint of a shard's latest book; None for one that cannot be read."""
    try:
        known = [one for _, one in islice(books(session.table, shard), _MOST_BOOKS) if one != Checkpoint()]
    except ValueError:
        return None
    return known[-1] if known else None


def _checkpoint_facts(known: Checkpoint | None, now: float) -> Facts:
    """A checkpoint is as old as the last record it covers; it moves once in a while, so counts may be ahead of it."""
    if known is None:
        return {"checkpoint": None}
    covers = known.met == known.applied_through and known.met_at > 0
    return {
        "checkpoint": {
            "applied_through": stream_number(known.applied_through) if known.applied_through else None,
            "created": stamp(known.met_at) if covers else None,
            "age_seconds": max(0, round(now - known.met_at)) if covers else None,
            "seen": stamp(min(known.seen, now)) if known.seen else None,
            "retrying": any(through > known.applied_through for through, _ in known.progress),
            "lost_before": stamp(known.lost_before) if known.lost_before else None,
        }
    }


def tried(work: Callable[[], Any]) -> tuple[Any, str | None]:
    """The answer of a call, or why there is none: a part that may not be read must not hide the others."""
    try:
        return work(), None
    except (ClientError, BotoCoreError) as error:
        return None, told(error)[1]


def _mappings(lambdas: Any, stream: str, table: str) -> Iterator[Mapping[str, Any]]:
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
