"""``python -m dynamodb_counters.redrive``: count what Lambda gave up on and left in the on-failure bucket.

See docs/monitoring.md, GivenUpAlarm.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from botocore.session import get_session

from dynamodb_counters._declarations.codec import decode
from dynamodb_counters._stream.given_up import OnFailureBucket
from dynamodb_counters._stream.redrive_bucket import redrive_bucket
from dynamodb_counters._table import Table
from dynamodb_counters.errors import CountersError


def main(arguments: Sequence[str] | None = None, s3: Any = None) -> int:
    """Run the command; the exit status is 1 if it refuses, or something is left."""
    parser = argparse.ArgumentParser(prog="python -m dynamodb_counters.redrive", description=__doc__)
    parser.add_argument("--table", required=True, help="the table")
    parser.add_argument("--bucket", required=True, help="its aggregator's on-failure bucket")
    parser.add_argument("--declarations", help="DECLARATIONS of the function, for a table without deployments' history")
    parser.add_argument(
        "--keep", action="store_true", help="do not delete the objects: counted again, they count nothing"
    )
    parser.add_argument("--dry-run", action="store_true", help="write nothing")
    given = parser.parse_args(arguments)
    bucket = OnFailureBucket(s3 or get_session().create_client("s3"), given.bucket)
    left = 0
    try:
        for batch in redrive_bucket(
            Table(given.table),
            bucket,
            declarations=decode(given.declarations) if given.declarations else None,
            keep=given.keep,
            dry_run=given.dry_run,
        ):
            left += batch.problem is not None
            told = f"{batch.updated} items updated, {batch.quarantined} entries quarantined"
            told = "dry run" if given.dry_run else told
            sys.stdout.write(f"{batch.key}: {batch.records} records; {batch.problem or told}\n")
    except CountersError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return int(left > 0)


if __name__ == "__main__":
    sys.exit(main())
