"""``counters bucket``: records that Lambda gave up on and left in the on-failure bucket."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial

import click

from dynamodb_counters._recovery.given_up import OnFailureBucket
from dynamodb_counters._recovery.redrive_bucket import RedrivenBatch, redrive_bucket
from dynamodb_counters.cli.failures import DONE, FOUND
from dynamodb_counters.cli.session import Session, shared, with_dry_run


@click.group()
def bucket() -> None:
    """Records that Lambda gave up on: redrive them from the on-failure bucket."""


@bucket.command()
@click.argument("bucket")
@click.option("--keep", is_flag=True, help="Delete no object: counted again, it counts nothing.")
@with_dry_run
@shared
def redrive(session: Session, bucket: str, *, keep: bool, dry_run: bool, yes: bool) -> int:
    """Count what Lambda gave up on and left in the on-failure BUCKET, each record once.

    An object that is counted is deleted. Every other one stays and is named with the reason: exit code 1.
    """
    objects = OnFailureBucket(session.client("s3"), bucket)
    declarations = session.declarations if session.declared else None
    batches = partial(redrive_bucket, session.table, objects, declarations=declarations, keep=keep)
    found = list(batches(dry_run=True))
    counted = [batch for batch in found if batch.problem is None]
    if dry_run or not counted:
        return _show(session, found, writes=False)
    records = sum(batch.records for batch in counted)
    question = f"Count {records:,} records of {len(counted):,} objects" + ("?" if keep else ", and delete the objects?")
    if not session.confirm(question, yes=yes):
        return FOUND
    done = []
    with session.progress("objects", len(found)) as show:
        for batch in batches():
            done.append(batch)
            show(len(done))
    return _show(session, done, writes=True)


def _show(session: Session, batches: list[RedrivenBatch], *, writes: bool) -> int:
    lines = []
    for batch in batches:
        said = f"{batch.updated:,} items updated, {batch.quarantined:,} entries quarantined" if writes else "to count"
        lines.append(f"{batch.key}: {batch.records:,} records; {batch.problem or said}")
    session.emit({"objects": [asdict(batch) for batch in batches]}, lines or "The bucket holds nothing.")
    return FOUND if any(batch.problem is not None for batch in batches) else DONE
