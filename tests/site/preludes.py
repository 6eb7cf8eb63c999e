"""Preludes of the reference pages: code that runs before a page's first block."""

from __future__ import annotations

_VIEWS = """
from dynamodb_counters import Aggregate, Count, Event
VIEW = Event("view", key=("url", "time", "clientId"))
VIEWS = Aggregate("views", VIEW, by="url", measures={"views": Count()})
"""

PRELUDES = {
    "constructs/function-options.md": _VIEWS,
    "monitoring.md": _VIEWS,
    "erasure.md": """
import boto3
from dynamodb_counters import Counters, Event
from simulation.engines.tables import create_table
VIEW = Event("view", key=("url", "time", "clientId"))
client = boto3.Session().client("dynamodb")
create_table(client, "mine")
counters = Counters("mine", client=client)
""",
    "existing-tables.md": """
import os
from datetime import timedelta
from typing import Final
from aws_cdk import aws_dynamodb as dynamodb
from cdk_dynamodb_counters import DedupCounterTable, StreamAggregator, WindowedCounter
from dynamodb_counters import Aggregate, Attr, Count, Counters, Distinct, Items, Sum, TableKeys
from examples.orders import BY_STATUS, LAST_DAY
import boto3
for number, cents in ("1001", 1990), ("1002", 3000):
    boto3.client("dynamodb").put_item(
        TableName=os.environ["ORDERS_TABLE"],
        Item={
            "PK": {"S": "CUSTOMER#ann"},
            "SK": {"S": f"ORDER#{number}"},
            "status": {"S": "paid"},
            "cents": {"N": str(cents)},
            "placedAt": {"S": "2026-11-20T10:00:00Z"},
        },
    )
""",
    "packed-events.md": """
from datetime import UTC, datetime, timedelta
from dynamodb_counters import Counters, Event, Packed
counters = Counters(table_name)
""",
    "pages.md": """
from dynamodb_counters import Aggregate, Distinct, Event, Packed
""",
    "windows.md": """
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo
from dynamodb_counters import Counters, Distinct, Event, Window
VIEW = Event("view", key=("url", "at"))
JOB = Event("job", key=("customer", "id"))
counters = Counters(table_name)
then = end = datetime(2026, 11, 20, 12, tzinfo=UTC)
start = end - timedelta(days=7)
""",
}
