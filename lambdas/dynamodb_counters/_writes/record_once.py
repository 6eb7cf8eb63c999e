"""Record once: insert an event and count it in one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from dynamodb_counters._control.counted_names import NameStates
from dynamodb_counters._declarations import Aggregate, Declarable, Declaration, Event, Window
from dynamodb_counters._fold.fold import fold
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._fold.records import changes_of, inserted
from dynamodb_counters._fold.updates import Update
from dynamodb_counters._items.table_schema import COUNTED_IN, ONCE_SUFFIX, PK, TYPE
from dynamodb_counters._table import Table
from dynamodb_counters._writes.event_items import typed_item, with_ttl
from dynamodb_counters._writes.insert import failed, repetition
from dynamodb_counters._writes.outcomes import ACCEPTED, Outcome, OutcomeStatus, rejected
from dynamodb_counters._writes.update_conditions import only_own, writer_of
from dynamodb_counters.errors import InvalidArgumentError

MAX_COUNTED: Final = 99
"""A transaction holds 100 items at most, one of which is the event.
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis.html"""


def record_once(table: Table, event: Event, values: Mapping[str, Any], declarations: Iterable[Declarable]) -> Outcome:
    """Insert an event and count it, all or nothing; the stream counts it in all other declarations."""
    if not isinstance(declarations, Iterable):
        raise InvalidArgumentError("declarations", declarations, "a sequence of declarations, such as [VIEWS]")
    declared = _countable(event, declarations)
    if event.packed is not None:
        raise InvalidArgumentError("event", event.name, "one that is not packed: a transaction inserts an item")
    try:
        item = with_ttl(table, event, typed_item(event, values))
    except InvalidArgumentError as error:
        return rejected(error)
    try:
        # What is being filled, or has gone stale, is left to the stream.
        declared = tuple(filter(NameStates.of_table(table).counts, declared))
    except InvalidArgumentError as error:
        return Outcome(OutcomeStatus.FAILED, str(error))  # Until a deployment counts it.
    except (ClientError, BotoCoreError) as error:
        return failed(error)
    folded = fold(Plan(declared), changes_of([inserted(item, table.clock())]))
    if folded.unfoldable:
        return Outcome(OutcomeStatus.REJECTED, folded.unfoldable[0].reason)
    item[TYPE] = {"S": event.name + ONCE_SUFFIX}
    if declared:
        # A later correction or deletion takes back exactly what has counted it.
        item[COUNTED_IN] = {"SS": [each.name for each in declared]}
    put = {
        "TableName": table.name,
        "Item": item,
        "ConditionExpression": f"attribute_not_exists({PK})",
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }
    # Any shard will do: it only spreads the writes of write-sharded groups.
    shard = str(table.jitter())
    writes, names = [{"Put": put}], ["", *(delta.layout.name for delta in folded.deltas)]
    for delta in folded.deltas:
        update = Update(delta.layout, delta.group, delta.measures, shard).request(table.name)
        own = only_own(update, delta.layout.name)
        writes.append({"Update": {**own, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}})
    return _transact(table, event, writes, names)


def _countable(event: Event, declarations: Iterable[Declarable]) -> tuple[Declaration, ...]:
    declared = list[Declaration]()
    for each in declarations:
        if not isinstance(each, Aggregate | Window):
            raise InvalidArgumentError("declarations", each, "Aggregates and Windows")
        if isinstance(each, Aggregate) and each.pages:
            allowed = "aggregates without pages: transactions would conflict with all groups of a page"
            raise InvalidArgumentError("declarations", each.name, allowed)
        declared.append(each)
    if len(declared) > MAX_COUNTED or any(declaration.source != event for declaration in declared):
        names = [declaration.name for declaration in declared]
        raise InvalidArgumentError("declarations", names, f"up to {MAX_COUNTED} declarations over {event.name!r}")
    return tuple(declared)


def _transact(table: Table, event: Event, writes: list[Any], names: list[str]) -> Outcome:
    outcome = Outcome(OutcomeStatus.FAILED, "not tried")
    for _ in table.tries():
        try:
            table.client.transact_write_items(TransactItems=writes)
        except (ClientError, BotoCoreError) as error:
            reasons: Any = error.response.get("CancellationReasons", []) if isinstance(error, ClientError) else []
            codes = [reason.get("Code") for reason in reasons]
            if codes[:1] == ["ConditionalCheckFailed"]:
                item = writes[0]["Put"]["Item"]
                return repetition(event, item, reasons[0].get("Item", item))
            if "ConditionalCheckFailed" in codes:
                refused = codes.index("ConditionalCheckFailed")
                writer = writer_of(reasons[refused].get("Item", {}), names[refused])
                reason = f"{names[refused]!r} cannot count it: an item of its group is of {writer!r}"
                return Outcome(OutcomeStatus.REJECTED, reason)
            outcome = failed(error)
        else:
            return ACCEPTED
    return outcome
