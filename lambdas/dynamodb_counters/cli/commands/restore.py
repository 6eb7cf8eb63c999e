"""``counters restore``: count in a restored table what was accepted but not yet counted; see docs/restore.md."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import click

from dynamodb_counters._recovery.catch_up import CatchUp, has_caught_up
from dynamodb_counters._streams import StreamReader
from dynamodb_counters.cli.arguments import moment
from dynamodb_counters.cli.session import Session, shared
from dynamodb_counters.errors import RestoreError


@click.command()
@click.argument("stream")
@click.option("--at", type=moment, metavar="TIME", help="When the copy was made, unless DynamoDB knows.")
@click.option("--dry-run", is_flag=True, help="Write nothing.")
@shared
def restore(session: Session, stream: str, *, at: datetime | None, dry_run: bool) -> None:
    """Count in the restored table what was accepted, but not yet counted, when the copy was made.

    STREAM is the ARN of the original table's stream; the restored table needs a stream of its own. A run that was
    killed is repeated.
    """
    table, streams = session.table, session.client("dynamodbstreams")
    described = table.client.describe_table(TableName=table.name)["Table"]
    if described.get("StreamSpecification", {}).get("StreamViewType") != "NEW_AND_OLD_IMAGES":
        hint = "enable it first, so that changes of groups are seen"
        raise RestoreError(f"the table has no stream of new and old images: {hint}")
    own = described["LatestStreamArn"]
    if own == stream:
        raise RestoreError("the stream is the table's own: name the stream of the table it was restored from")
    try:
        status = streams.describe_stream(StreamArn=stream)["StreamDescription"]["StreamStatus"]
    except streams.exceptions.ResourceNotFoundException:
        raise RestoreError(
            "the stream is gone: it is readable for 24 hours after it was disabled, or its table deleted. Events "
            "that had not been counted can no longer be distinguished from others"
        ) from None
    restored_at = at or described.get("RestoreSummary", {}).get("RestoreDateTime")
    catch_up = CatchUp(
        table,
        StreamReader(streams, stream, table.sleep),
        StreamReader(streams, own, table.sleep),
        stream,
        declarations=session.declarations if session.declared else None,
        at=restored_at.timestamp() if restored_at else None,
    )
    found: dict[str, Any] = {"stream": status, "done": has_caught_up(table, stream), "read": 0, "latest": None}
    found |= {"records": {}, "updated": None, "quarantined": None}
    if not found["done"]:
        uncounted = catch_up.find()
        found["read"] = uncounted.read
        found["latest"] = datetime.fromtimestamp(uncounted.moment, UTC).isoformat() if uncounted.moment else None
        found["records"] = {shard: len(records) for shard, records in uncounted.records.items()}
        if not dry_run:
            found["updated"], found["quarantined"] = catch_up.count(uncounted)
    session.emit(found, list(_lines(found)))


def _lines(found: dict[str, Any]) -> Iterator[str]:
    if found["done"]:
        yield "the table has caught up with this stream before: nothing to do"
        return
    yield f"the stream is {found['stream']}"
    yield f"{found['read']:,} records read, the latest in the table: {found['latest'] or 'none'}"
    yield from (f"{shard}: {records:,} records to hand over" for shard, records in found["records"].items())
    if found["updated"] is None:
        yield "dry run: nothing was written"
    else:
        yield f"{found['updated']:,} items updated, {found['quarantined']:,} entries quarantined"
        yield "done: deploy the aggregator"
