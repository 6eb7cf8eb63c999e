"""The outbox of thresholds: an item per crossing, put once, whose stream record is what is delivered."""

from __future__ import annotations

from collections.abc import Sequence

from dynamodb_counters._fold.crossings import Crossing
from dynamodb_counters._items.table_schema import PK
from dynamodb_counters._table import Table
from dynamodb_counters.errors import CommitError


def put_crossings(table: Table, crossings: Sequence[Crossing]) -> None:
    """Put crossings that are not there yet; `CommitError` means: deliver the batch again."""

    def put_each(some: Sequence[Crossing]) -> None:
        for each in some:
            table.write("put_item", Item=each.item(), ConditionExpression=f"attribute_not_exists({PK})")

    # One after the other of a group: their records are then in order, too.
    groups: dict[str, list[Crossing]] = {}
    for crossing in crossings:
        groups.setdefault(repr((crossing.threshold.name, crossing.aggregate, crossing.group)), []).append(crossing)
    answers = [there for _, there in table.side_by_side(put_each, [*groups.values()])]
    if failures := [there for there in answers if isinstance(there, Exception)]:
        raise CommitError(failures)
