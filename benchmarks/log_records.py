"""Stream records of an access log's page views, about 1 KB each, and aggregates over them."""

from __future__ import annotations

import random
from typing import Any, Final

from dynamodb_counters._declarations import Aggregate, Count, Event, Sum
from dynamodb_counters._items.conditions import Attr

_VIEW: Final = Event("view", pk="URL#{url}", sk="T#{time}#CID#{clientId}")
_AGENT: Final = (
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_9_1) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/32.0.1700.77 Safari/537.36"
)
_ENVELOPE: Final = {
    "eventName": "INSERT",
    "eventVersion": "1.1",
    "eventSource": "aws:dynamodb",
    "awsRegion": "us-east-1",
    "eventSourceARN": "arn:aws:dynamodb:us-east-1:123456789012:table/counters/stream/2026-11-20T00:00:00.000",
}
CREATED: Final = 1795168800.0
_CHANGE: Final = {"ApproximateCreationDateTime": CREATED, "StreamViewType": "NEW_AND_OLD_IMAGES"}


def declarations(number: int) -> tuple[Aggregate, ...]:
    """Counts and sums per page, client and status and of the site, with and without a filter."""
    kinds: list[dict[str, Any]] = [
        {"pk": "URL#{url}", "measures": {"views": Count()}},
        {"pk": "SITE", "measures": {"views": Count(), "bytes": Sum("bytes")}},
        {"pk": "CLIENT#{clientId}", "measures": {"views": Count()}},
        {"pk": "STATUS#{status}", "measures": {"views": Count()}, "where": Attr("bytes").gt(1000)},
    ]
    return tuple(
        Aggregate(f"aggregate-{index}", _VIEW, sk=f"STATISTICS#{index}", **kinds[index % len(kinds)])
        for index in range(number)
    )


def records(count: int) -> list[dict[str, Any]]:
    """The same records each time, as in a Lambda event."""
    chance = random.Random(4)
    made = []
    for index in range(count):
        url = f"/blog/{min(chance.randint(1, 300), chance.randint(1, 300))}/post.html"
        client = ".".join(str(chance.randint(1, 99)) for _ in range(4))
        moment = f"2015-05-17T10:{index // 60 % 60:02d}:{index % 60:02d}+00:00"
        key = {"pk": {"S": f"URL#{url}"}, "sk": {"S": f"T#{moment}#CID#{client}"}}
        image = {
            **key,
            "_type": {"S": "view"},
            "url": {"S": url},
            "time": {"S": moment},
            "clientId": {"S": client},
            "status": {"N": chance.choice(["200", "200", "200", "304", "404"])},
            "bytes": {"N": str(chance.randint(0, 99_999))},
            "referrer": {"S": "http://semicomplete.com/presentations/logstash-monitorama-2013/"},
            "userAgent": {"S": _AGENT},
            "ttl": {"N": "1795773600"},
        }
        number = str(10**24 + index * 997)
        change = {**_CHANGE, "Keys": key, "NewImage": image, "SequenceNumber": number, "SizeBytes": 520}
        made.append({"eventID": f"{index:032x}", **_ENVELOPE, "dynamodb": change})
    return made
