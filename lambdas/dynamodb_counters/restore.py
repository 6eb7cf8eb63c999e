"""``python -m dynamodb_counters.restore``: count in a restored table what was accepted but not yet counted.

See docs/restore.md.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from botocore.session import get_session

from dynamodb_counters._declarations.codec import decode
from dynamodb_counters._stream.catch_up import CatchUp
from dynamodb_counters._stream.stream_reader import StreamReader
from dynamodb_counters._table import CONCURRENCY, Table
from dynamodb_counters.errors import CountersError, RestoreError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit status is 1 if it refuses."""
    parser = argparse.ArgumentParser(prog="python -m dynamodb_counters.restore", description=__doc__)
    parser.add_argument("--table", required=True, help="the restored table, its stream enabled")
    parser.add_argument("--stream", required=True, help="ARN of the original table's stream")
    parser.add_argument("--declarations", help="DECLARATIONS of the function, for a table without deployments' history")
    parser.add_argument("--at", type=datetime.fromisoformat, help="when the copy was made (UTC), unless DynamoDB knows")
    parser.add_argument("--dry-run", action="store_true", help="write nothing")
    given = parser.parse_args(arguments)
    try:
        told = restore(
            Table(given.table), given.stream, declarations=given.declarations, at=given.at, dry_run=given.dry_run
        )
    except (CountersError, BotoCoreError, ClientError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write("".join(f"{line}\n" for line in told))
    return 0


def restore(
    table: Table,
    stream: str,
    *,
    declarations: str | None = None,
    at: datetime | None = None,
    dry_run: bool = False,
    streams: Any = None,
) -> list[str]:
    """Catch up and tell what was done, in lines."""
    if streams is None:
        config = Config(max_pool_connections=CONCURRENCY, retries={"mode": "standard", "total_max_attempts": 10})
        streams = get_session().create_client("dynamodbstreams", config=config)
    described = table.client.describe_table(TableName=table.name)["Table"]
    if described.get("StreamSpecification", {}).get("StreamViewType") != "NEW_AND_OLD_IMAGES":
        raise RestoreError(
            "the table has no stream of new and old images: enable it first, so that changes of groups are seen"
        )
    own = described["LatestStreamArn"]
    if own == stream:
        raise RestoreError("the stream is the table's own: name the stream of the table it was restored from")
    try:
        status = streams.describe_stream(StreamArn=stream)["StreamDescription"]["StreamStatus"]
    except streams.exceptions.ResourceNotFoundException:
        raise RestoreError(
            "the stream is gone: it is readable for 24 hours after it was disabled, or its table deleted. The events "
            "that had not been counted cannot be told from the others any more"
        ) from None
    if at is not None and at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    restored_at = at or described.get("RestoreSummary", {}).get("RestoreDateTime")
    catch_up = CatchUp(
        table,
        StreamReader(streams, stream, table.sleep),
        StreamReader(streams, own, table.sleep),
        stream,
        declarations=decode(declarations) if declarations else None,
        at=restored_at.timestamp() if restored_at else None,
    )
    if catch_up.is_done():
        return ["the table has caught up with this stream before: nothing to do"]
    uncounted = catch_up.find()
    latest = datetime.fromtimestamp(uncounted.moment, UTC).isoformat() if uncounted.moment else "none"
    told = [f"the stream is {status}", f"{uncounted.read} records read, the latest in the table: {latest}"]
    told += [f"{shard}: {len(records)} records to hand over" for shard, records in uncounted.records.items()]
    if dry_run:
        return [*told, "dry run: nothing was written"]
    updated, quarantined = catch_up.count(uncounted)
    return [*told, f"{updated} items updated, {quarantined} entries quarantined", "done: deploy the aggregator"]


if __name__ == "__main__":
    sys.exit(main())
