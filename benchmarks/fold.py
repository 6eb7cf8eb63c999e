"""CPU time of the fold, beside that of parsing the same payload and of Powertools' per-record path.

Run ``python -m benchmarks.fold`` from the project's root; ``--json`` prints the figures for a program, ``--rounds``
says how often each is measured. Within a round all are measured one after the other, and of all rounds the best time of
each counts, so that a busy machine slows all of them alike.

A record is a page view of an access log as it stands in a Lambda event: about 1 KB. The aggregates are counts and sums
per page, per visitor, per status and of the site, with and without a filter. ``json.loads`` is what Lambda's runtime
does to the payload before any handler sees it. The per-record path is ``BatchProcessor``, once with a handler that does
nothing, and once with one that looks at the new image, without which there is nothing to count: Powertools deserializes
an image when it is looked at.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType
from aws_lambda_powertools.utilities.data_classes.dynamo_db_stream_event import DynamoDBRecord

# A clone is enough: the runtime need not be installed.
sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "lambdas")]

from dynamodb_counters._declarations import Aggregate, Count, Event, Sum  # noqa: E402
from dynamodb_counters._fold.fold import fold  # noqa: E402
from dynamodb_counters._fold.plan import Plan  # noqa: E402
from dynamodb_counters._fold.records import changes_of  # noqa: E402
from dynamodb_counters._items.conditions import Attr  # noqa: E402

BATCHES: Final = (1_000, 10_000)
AGGREGATES: Final = (1, 3, 20)

EMPTY: Final = "BatchProcessor, empty"
LOOKING: Final = "BatchProcessor, looking"

_VIEW: Final = Event("view", pk="URL#{url}", sk="T#{time}#CID#{clientId}")
_AGENT: Final = (
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_9_1) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/32.0.1700.77 Safari/537.36"
)
_ARN: Final = "arn:aws:dynamodb:us-east-1:123456789012:table/counters/stream/2026-11-20T00:00:00.000"


def declarations(number: int) -> tuple[Aggregate, ...]:
    """Declare some aggregates over page views.

    Parameters
    ----------
    number : int
        How many.

    Returns
    -------
    tuple of Aggregate
        Of different groups, measures and filters.
    """
    kinds: list[dict[str, Any]] = [
        {"pk": "URL#{url}", "measures": {"views": Count()}},
        {"pk": "SITE", "measures": {"views": Count(), "bytes": Sum("bytes")}},
        {"pk": "CLIENT#{clientId}", "measures": {"views": Count()}},
        {"pk": "STATUS#{status}", "measures": {"views": Count()}, "where": Attr("bytes").gt(1000)},
    ]
    return tuple(
        Aggregate(f"aggregate-{place}", _VIEW, sk=f"STATISTICS#{place}", **kinds[place % len(kinds)])
        for place in range(number)
    )


def records(number: int) -> list[dict[str, Any]]:
    """Make stream records of page views: the same ones each time.

    Parameters
    ----------
    number : int
        How many.

    Returns
    -------
    list of dict
        As in a Lambda event.
    """
    chance = random.Random(4)
    made = []
    for place in range(number):
        url = f"/blog/{min(chance.randint(1, 300), chance.randint(1, 300))}/post.html"
        client = ".".join(str(chance.randint(1, 99)) for _ in range(4))
        moment = f"2015-05-17T10:{place // 60 % 60:02d}:{place % 60:02d}+00:00"
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
        change = {
            "ApproximateCreationDateTime": 1795168800.0,
            "Keys": key,
            "NewImage": image,
            "SequenceNumber": str(10**24 + place * 997),
            "SizeBytes": 520,
            "StreamViewType": "NEW_AND_OLD_IMAGES",
        }
        made.append(
            {
                "eventID": f"{place:032x}",
                "eventName": "INSERT",
                "eventVersion": "1.1",
                "eventSource": "aws:dynamodb",
                "awsRegion": "us-east-1",
                "dynamodb": change,
                "eventSourceARN": _ARN,
            }
        )
    return made


def measure(batch: int, rounds: int) -> dict[str, float]:
    """Measure everything at one size of batch.

    Parameters
    ----------
    batch : int
        Records in it.
    rounds : int
        How often.

    Returns
    -------
    dict of str to float
        CPU microseconds a record.
    """
    given = records(batch)
    payload = json.dumps({"Records": given}, separators=(",", ":"))
    plans = {number: Plan(declarations(number)) for number in AGGREGATES}
    contenders: dict[str, Callable[[], object]] = {
        "json.loads": lambda: json.loads(payload),
        EMPTY: lambda: _process_each(given, _ignore),
        LOOKING: lambda: _process_each(given, _look),
        **{_name(number): lambda plan=plan: fold(plan, changes_of(given)) for number, plan in plans.items()},  # type: ignore[misc]
    }
    best = dict.fromkeys(contenders, float("inf"))
    for _ in range(rounds):
        for name, run in contenders.items():
            start = time.process_time()
            run()
            best[name] = min(best[name], time.process_time() - start)
    return {name: seconds / batch * 1e6 for name, seconds in best.items()}


def main() -> None:
    """Measure, and print a table or JSON."""
    parser = argparse.ArgumentParser(description="CPU time of the fold, as ratios of what else one would do")
    parser.add_argument("--json", action="store_true", help="print figures for a program")
    parser.add_argument("--rounds", type=int, default=7, help="how often each is measured (default 7)")
    options = parser.parse_args()
    figures = {batch: measure(batch, options.rounds) for batch in BATCHES}
    if options.json:
        print(json.dumps({"unit": "CPU microseconds a record", "batches": figures}, indent=2))
        return
    print(f"{'batch':>7}  {'':<26}{'µs/record':>10}{'/ json.loads':>14}{'/ empty':>10}{'/ looking':>11}")
    for batch, times in figures.items():
        for name, each in times.items():
            ratios = [each / times[other] for other in ("json.loads", EMPTY, LOOKING)]
            print(f"{batch:>7,}  {name:<26}{each:>10.2f}{ratios[0]:>14.2f}{ratios[1]:>10.2f}{ratios[2]:>11.2f}")


def _name(number: int) -> str:
    return f"fold, {number} aggregate{'s' if number > 1 else ''}"


def _process_each(given: list[dict[str, Any]], handler: Callable[[DynamoDBRecord], None]) -> None:
    processor = BatchProcessor(event_type=EventType.DynamoDBStreams)
    with processor(records=given, handler=handler):
        processor.process()


def _ignore(record: DynamoDBRecord) -> None:
    """Do nothing."""


def _look(record: DynamoDBRecord) -> None:
    assert record.dynamodb is not None
    _ = record.dynamodb.new_image


if __name__ == "__main__":
    main()
