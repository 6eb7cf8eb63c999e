"""``python -m dynamodb_counters.erase``: erase events from a table, its quarantine, queues and on-failure buckets.

See docs/erasure.md.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from dynamodb_counters._declarations import Declaration, Event
from dynamodb_counters._declarations.codec import decode
from dynamodb_counters._erase.eraser import Erased, Eraser
from dynamodb_counters._statuses import deployment_key
from dynamodb_counters._stream.deployment_items import history_key, read_deployment, read_history
from dynamodb_counters._table import Table
from dynamodb_counters.errors import CountersError, EraseError

_PLACES = {
    "events": "the table",
    "packed": "chunks",
    "quarantined": "the quarantine",
    "messages": "queues",
    "given_up": "on-failure buckets",
}


def main(arguments: Sequence[str] | None = None, ask: Callable[[str], str] = input) -> int:
    """Run the command; the exit status is 1 if it refuses, or is refused."""
    parser = argparse.ArgumentParser(prog="python -m dynamodb_counters.erase", description=__doc__)
    parser.add_argument("--table", required=True)
    parser.add_argument("--event", required=True, help="name of the event's declaration")
    parser.add_argument("fields", nargs="+", metavar="field=value", help="fields of the event's key")
    parser.add_argument("--counts", choices=("keep", "take_back"), required=True, help="as expired, or as retracted")
    parser.add_argument("--queue", action="append", default=[], help="URL of a queue of events or of dead letters")
    parser.add_argument("--bucket", action="append", default=[], help="name of an on-failure bucket")
    parser.add_argument(
        "--uncounted", choices=("refuse", "drop"), default="refuse", help="copies that wait for counting"
    )
    parser.add_argument("--declarations", help="DECLARATIONS of a function, for events that nothing counts")
    parser.add_argument("--dry-run", action="store_true", help="write nothing")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    given = parser.parse_args(arguments)
    if not all("=" in field for field in given.fields):
        parser.error(f"invalid fields={given.fields!r}: expected field=value")
    try:
        table = Table(given.table)
        event = declared_event(table, given.event, given.declarations)
        values = dict(field.split("=", 1) for field in given.fields)
        eraser = Eraser(table, event, values, given.queue, given.bucket)
        if given.dry_run or not given.yes:
            _tell("found", eraser.find())
        if given.dry_run:
            sys.stdout.write("dry run: nothing was written\n")
            return 0
        if not given.yes and ask(f"erase them, counts: {given.counts}? [y/N] ").strip().lower() != "y":
            return 1
        _tell("erased", eraser.erase(given.counts, given.uncounted))
    except CountersError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write("run it again once the stream's records are counted, at the latest after 24 hours\n")
    return 0


def declared_event(table: Table, name: str, declarations: str | None = None) -> Event:
    """The event of this name, as it is given or as the table's latest deployment has it that knows it."""
    known = [decode(declarations)] if declarations else _deployments(table)
    for deployment in known:
        for declaration in deployment:
            source: object = getattr(declaration, "source", declaration)
            while not isinstance(source, Event) and hasattr(source, "source"):
                source = source.source
            if isinstance(source, Event) and source.name == name:
                return source
    raise EraseError(f"no deployment of the table counts an event {name!r}: give its declarations")


def _deployments(table: Table) -> list[tuple[Declaration, ...]]:
    """The declarations of the table's deployments, the latest first."""

    def get(key: dict[str, Any]) -> dict[str, Any]:
        answer = table.client.get_item(TableName=table.name, Key=key, ConsistentRead=True)
        return dict(answer.get("Item", {}))

    history = read_history(get(history_key()))
    names = dict.fromkeys(era.deployment for era in reversed(history.eras)) if history else {}
    found = [read_deployment(get(deployment_key(name))) for name in names]
    return [declarations for declarations in found if declarations is not None]


def _tell(what: str, found: Erased) -> None:
    numbers = asdict(found)
    places = ", ".join(f"{place}: {numbers[name]}" for name, place in _PLACES.items())
    sys.stdout.write(f"{what}: {places}\n")
    if found.uncounted:
        sys.stdout.write(f"{found.uncounted} of them wait to be counted\n")
    if found.out_of_sight:
        sys.stdout.write(f"{found.out_of_sight} messages are out of sight: in a consumer's hands, or delayed\n")


if __name__ == "__main__":
    sys.exit(main())
