"""Data outside the table: batches that Lambda gave up on, files to compare."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from demo.cli_examples.blog import LAGGING, Blog

BUCKET: Final = "blog-on-failure"
_STREAM: Final = "arn:aws:dynamodb:us-east-1:123456789012:table/blog/stream/2026-11-19T05:30:00.000"

_NEW: Final = """\
from dynamodb_counters import Aggregate, Attr, Count, Items, Sum

order = Items("order", where=Attr("customer").exists())
revenue = Aggregate("revenue", order, pk="CUSTOMER#{customer}", sk="REVENUE", total=Sum("price", cap=12))
totals = Aggregate("totals", order, pk="SHOP", sk="TOTALS", orders=Count(), taken=Sum("price"))
"""


def put_beside(blog: Blog) -> None:
    """Create the bucket."""
    waiting = blog.waiting(LAGGING)
    document = {
        "requestContext": {"condition": "RetryAttemptsExhausted"},
        "DDBStreamBatchInfo": {"shardId": LAGGING, "streamArn": _STREAM},
        "payload": json.dumps({"Records": waiting, "shardId": LAGGING}),
    }
    blog.clients["s3"].create_bucket(Bucket=BUCKET)
    key = "aws/lambda/5f0c/2026/11/20/2026-11-20T17.29.58-c0ffee"
    blog.clients["s3"].put_object(Bucket=BUCKET, Key=key, Body=json.dumps(document).encode())


def write_files(folder: Path) -> None:
    """Write declarations."""
    (folder / "new.py").write_text(_NEW, encoding="utf-8")
