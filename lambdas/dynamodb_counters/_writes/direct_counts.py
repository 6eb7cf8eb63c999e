"""Counting without the stream: record an event in a transaction, add to a group of a `Counter`, or set it to 0.

Each update is sent once, and again only where it was refused. So it never counts twice; where its answer is lost, it
may have counted. None changes an item of another declaration.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from botocore.exceptions import BotoCoreError, ClientError

from dynamodb_counters._assumptions import TRIES
from dynamodb_counters._declarations import Aggregate, Counter, Declarable, Declaration, Event, Window
from dynamodb_counters._declarations.groups import canonical_fields, group_key, group_of
from dynamodb_counters._fold.fold import fold
from dynamodb_counters._fold.layouts import MAX_GROUP_BYTES, GroupKey, ItemLayout, Update, require_storable_group
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._fold.records import changes_of, inserted
from dynamodb_counters._items.conditions import Image
from dynamodb_counters._items.conversions import Number, converted, parse_number, require_storable
from dynamodb_counters._items.schema import COUNTED_IN, ONCE_SUFFIX, PK, SCORE, TYPE, conditional, update_as_seen
from dynamodb_counters._registry import NameStates
from dynamodb_counters._table import Table, item_of
from dynamodb_counters._writes.accept import repetition, typed_item, with_ttl
from dynamodb_counters._writes.outcomes import ACCEPTED, Outcome, OutcomeStatus, failed, rejected
from dynamodb_counters.errors import InvalidArgumentError, MalformedImageError, UnavailableError, UncountedError

MAX_COUNTED: Final = 99
"""A transaction holds 100 items at most, one of which is the event.
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis.html"""

_COUNTER: Final = "a Counter: what the stream counts is changed by its items alone"
_ZERO: Final = {"N": "0"}

Amount: TypeAlias = Mapping[str, Number | float] | Number | float


def record_once(table: Table, event: Event, values: Mapping[str, Any], declarations: Iterable[Declarable]) -> Outcome:
    """Insert an event and count it, all or nothing; the stream counts it in all other declarations."""
    if not isinstance(declarations, Iterable):
        raise InvalidArgumentError("declarations", declarations, "a sequence of declarations, such as [VIEWS]")
    declared = _countable(event, [*declarations])
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
        item[COUNTED_IN] = {"SS": [declaration.name for declaration in declared]}
    # Any shard will do: it only spreads the writes of write-sharded groups.
    shard, answer = str(table.jitter()), {"ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
    put = {"TableName": table.name, "Item": item, "ConditionExpression": f"attribute_not_exists({PK})"}
    updates = [_update(table, delta.layout, delta.group, delta.measures, shard) for delta in folded.deltas]
    writes = [{"Put": {**put, **answer}}, *({"Update": {**update, **answer}} for update in updates)]
    return _transact(table, event, writes, ["", *(delta.layout.name for delta in folded.deltas)])


def _countable(event: Event, declarations: Sequence[Declarable]) -> tuple[Declaration, ...]:
    of_event = (item for item in declarations if isinstance(item, Aggregate | Window) and item.source == event)
    # Transactions would conflict with all groups of a page.
    countable = tuple(item for item in of_event if isinstance(item, Window) or not item.pages)
    if len(countable) != len(declarations) or len(declarations) > MAX_COUNTED:
        allowed = f"up to {MAX_COUNTED} Windows, and Aggregates without pages, over {event.name!r}"
        raise InvalidArgumentError("declarations", [getattr(item, "name", item) for item in declarations], allowed)
    return countable


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
                writer = reasons[refused].get("Item", {}).get(TYPE, {}).get("S", names[refused])
                reason = f"{names[refused]!r} cannot count it: an item of its group is of {writer!r}"
                return Outcome(OutcomeStatus.REJECTED, reason)
            outcome = failed(error)
        else:
            return ACCEPTED
    return outcome


def increment(table: Table, counter: Counter, values: Mapping[str, object], amount: Amount) -> dict[str, Any]:
    layout, group = _open_group(table, counter, values)
    measures = [*counter.measures]
    amounts = {measures[0]: amount} if not isinstance(amount, Mapping) and len(measures) == 1 else amount
    if not isinstance(amounts, Mapping) or not amounts or not set(amounts) <= set(measures):
        allowed = f"a mapping of measures to numbers, of {counter.name!r}: {', '.join(measures)}"
        raise InvalidArgumentError("amount", amount, allowed)
    numbers = {name: require_storable("amount", converted("amount", number)) for name, number in amounts.items()}
    try:
        item = table.update_once(_update(table, layout, group, numbers, ""), "counted")
    except ClientError as error:
        _require_own(item_of(error), layout.name)
        if error.response["Error"]["Code"] != "ValidationException":
            raise
        # The item cannot take it, as it is.
        raise InvalidArgumentError("amount", amount, "one whose sum has at most 38 digits") from error
    return dict(group_of(counter, values, [item]).measures)


def reset(table: Table, counter: Counter, values: Mapping[str, object]) -> dict[str, Any]:
    """Set a group's measures to 0, if they still are what was read, and return what they were."""
    layout, group = _open_group(table, counter, values)
    [key] = layout.keys(group)
    for _ in table.tries():
        item = table.read_item(key)
        _require_own(item, counter.name)
        current = {name: item.get(name) for name in counter._attributes}
        before = ", ".join(f"{name}={number['N']}" for name, number in current.items() if number)
        zeros = dict.fromkeys([*current, SCORE] if counter.ranking is not None else current, _ZERO)
        request = update_as_seen(table.name, key, zeros, {TYPE: item.get(TYPE), **current})
        try:
            if any(parse_number(number["N"]) for number in current.values() if number):
                table.update_once(request, f"reset, from {before}")
        except table.client.exceptions.ConditionalCheckFailedException:
            continue
        return dict(group_of(counter, values, [item]).measures)
    raise UnavailableError(f"nothing was written: {TRIES} times, other updates of the group came first")


def _open_group(table: Table, declared: Counter, values: Mapping[str, object]) -> tuple[ItemLayout, GroupKey]:
    if not isinstance(declared, Counter):
        raise InvalidArgumentError("counter", getattr(declared, "name", declared), _COUNTER)
    if not NameStates.of_table(table).counts(declared):
        raise UncountedError(declared.name)  # It is being dropped.
    layout, group = ItemLayout(declared), group_key(declared, canonical_fields(declared, declared.fields, values))
    try:
        require_storable_group(group)
    except MalformedImageError as error:
        raise InvalidArgumentError("values", dict(values), f"at most {MAX_GROUP_BYTES} bytes of UTF-8") from error
    if layout.closing_time is not None and layout.closing_time(group) <= table.clock():
        # All that looks at it has counted it for good.
        raise InvalidArgumentError("values", dict(values), f"a group of {layout.name!r} whose retention is not over")
    return layout, group


def _update(table: Table, layout: ItemLayout, group: GroupKey, numbers: Mapping[str, Number], shard: str) -> Any:
    """Return an update on condition that no other declaration has written the item."""
    is_own = "(attribute_not_exists(#own) OR #own = :own)"
    request = Update(layout, group, numbers, shard).request(table.name)
    return conditional(request, is_own, {"#own": TYPE}, {":own": {"S": layout.name}})


def _require_own(item: Image, name: str) -> None:
    if (writer := item.get(TYPE, {}).get("S", name)) != name:
        raise InvalidArgumentError("aggregate", name, f"{writer!r}, which has written the item of this group")
