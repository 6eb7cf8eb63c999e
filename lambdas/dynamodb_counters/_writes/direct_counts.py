"""Counting without the stream: record an event in a transaction, add to a group of a `Counter`, lease calls of a quota.

Each update is sent once, and again only where it was refused. So it never counts twice; where its answer is lost, it
may have counted. None changes an item of another declaration.

A process reserves portions of a quota, and grants calls from them without asking the table. The period's item has one
number, `reserved`: what processes were granted and have not given back. A portion is added on condition that it stays
within the limit, so nothing but a portion that is subtracted twice could exceed it. Where an answer is lost, its calls
are given up: too little is granted then, never too much.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Self, TypeAlias

from botocore.exceptions import BotoCoreError, ClientError

from dynamodb_counters import errors
from dynamodb_counters._assumptions import KEPT_LONGER, LEASE_CLOCKS, TRIES
from dynamodb_counters._declarations import Aggregate, Counter, Declarable, Declaration, Event, Window
from dynamodb_counters._declarations.checks import require_count
from dynamodb_counters._declarations.groups import canonical_fields, group_key, group_of
from dynamodb_counters._declarations.quotas import MOST_CALLS, Quota, QuotaPeriod
from dynamodb_counters._fold.fold import fold
from dynamodb_counters._fold.layouts import MAX_GROUP_BYTES, GroupKey, ItemLayout, Update, require_storable_group
from dynamodb_counters._fold.plan import Plan
from dynamodb_counters._fold.records import changes_of, inserted
from dynamodb_counters._items import schema
from dynamodb_counters._items.conditions import Image
from dynamodb_counters._items.conversions import Number, converted, parse_number, require_storable
from dynamodb_counters._items.schema import PK, SK, TTL, TYPE
from dynamodb_counters._registry import NameStates
from dynamodb_counters._table import Table, item_of
from dynamodb_counters._tiers import utc
from dynamodb_counters._writes.accept import repetition, typed_item, with_ttl
from dynamodb_counters._writes.outcomes import ACCEPTED, Outcome, OutcomeStatus, failed, rejected
from dynamodb_counters.errors import InDoubtError, InvalidArgumentError, MalformedImageError, UnavailableError

MAX_COUNTED: Final = 99
"""A transaction holds 100 items at most, one of which is the event.
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis.html"""

RESERVED: Final = "reserved"
_SHARE: Final = 8  # A portion is at most this part of what remains, so that the first to come hold not all last calls.
_PAUSE: Final = 1.0  # Seconds in which a process that was refused does not ask again: refused updates cost units, too.
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
    if folded.invalid:
        return Outcome(OutcomeStatus.REJECTED, folded.invalid[0].reason)
    item[TYPE] = {"S": event.name + schema.ONCE_SUFFIX}
    if declared:
        # A later correction or deletion takes back exactly what has counted it.
        item[schema.COUNTED_IN] = {"SS": [declaration.name for declaration in declared]}
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
        zeros = dict.fromkeys([*current, schema.SCORE] if counter.ranking is not None else current, _ZERO)
        request = schema.update_as_seen(table.name, key, zeros, {TYPE: item.get(TYPE), **current})
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
        raise errors.UncountedError(declared.name)  # It is being dropped.
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
    return schema.conditional(request, is_own, {"#own": TYPE}, {":own": {"S": layout.name}})


def _require_own(item: Image, name: str) -> None:
    if (writer := item.get(TYPE, {}).get("S", name)) != name:
        raise InvalidArgumentError("aggregate", name, f"{writer!r}, which has written the item of this group")


class Holding:
    """The calls of one period that one process may grant without asking."""

    def __init__(self, table: Table, quota: Quota, pk: str, period: QuotaPeriod) -> None:
        self.period, self.units = period, 0
        self._table, self._quota = table, quota
        self._key = {PK: {"S": pk}, SK: {"S": period.sk}}
        self._free = quota.limit  # What no process holds, as the last answer says.
        self._size = 1  # The next portion: doubled each time, so that about as many calls are held as were made.
        self._refused_at = -math.inf

    def reserve(self, n: int) -> bool:
        """Ask once to hold `n` calls or more; False if the limit does not leave so many."""
        missing, now = n - self.units, self._table.clock()
        if missing > self._free and now < self._refused_at + _PAUSE:
            return False
        units = max(missing, min(self._size, self._free // _SHARE))
        # One whose answer is lost is given up, and so may be the next: it asks for no more than is missing.
        size, self._size = min(2 * self._size, self._quota._portion_size), 1
        if self._add(units, "reserved"):
            self.units, self._size = self.units + units, size
        else:
            self._refused_at = now
        return True

    def give_back(self) -> None:
        units, self.units = self.units, 0
        try:
            if units:
                self._add(-units, "given back")
        except (ClientError, BotoCoreError, UnavailableError) as error:
            self.units = 0 if isinstance(error, InDoubtError) else units
            raise

    def _add(self, units: int, verb: str) -> bool:
        """Add to what the period's item says is reserved, within the limit, or subtract; return whether it took it."""
        if units > 0:
            condition, bound = "attribute_not_exists(#reserved) OR #reserved <= :bound", self._quota.limit - units
        else:
            condition, bound = "#reserved >= :bound", -units
        numbers = {":units": units, ":bound": bound, ":ttl": self.period.end + KEPT_LONGER}
        request = {
            "TableName": self._table.name,
            "Key": self._key,
            "UpdateExpression": "ADD #reserved :units SET #type = :type, #ttl = :ttl",
            "ConditionExpression": condition,
            "ExpressionAttributeNames": {"#reserved": RESERVED, "#type": TYPE, "#ttl": TTL},
            "ExpressionAttributeValues": schema.typed_values({**numbers, ":type": schema.QUOTA}),
        }
        try:
            item, is_added = self._table.update_once(request, verb), True
        except self._table.client.exceptions.ConditionalCheckFailedException as refusal:
            item, is_added = item_of(refusal), False
        self._free = self._quota.limit - int(item.get(RESERVED, {"N": "0"})["N"])
        return is_added


class Leases:
    """Calls that this process may make under a quota. Made by `Counters.leases`.

    A refusal may come early, by what other processes hold. Threads may share an object. As a context manager it
    releases at the end.

    Examples
    --------
    >>> leases = counters.leases(CALLS, customer="c1")  # doctest: +SKIP
    >>> leases.take()  # doctest: +SKIP
    True
    >>> leases.release()  # doctest: +SKIP
    """

    def __init__(self, table: Table, quota: Quota, values: Mapping[str, object]) -> None:
        if not isinstance(quota, Quota):
            raise InvalidArgumentError("quota", quota, "a Quota")
        if set(values) != set(quota.by):
            raise InvalidArgumentError("values", values, f"values for {', '.join(quota.by) or 'no field'}")
        self._table, self._quota = table, quota
        self._pk = quota._pk_template.render(values)
        self._forget()

    def take(self, n: int = 1) -> bool:
        """Take `n` calls, all or none; return whether they may be made, and are counted.

        They are taken of what the process holds; if that is too little, a few writes reserve more.

        Parameters
        ----------
        n : int, optional
            How many calls. Default 1.

        Raises
        ------
        UnavailableError, ClientError, BotoCoreError
            DynamoDB refused to the end, or its answer is lost. Nothing was granted; in the second case, the calls that
            the request asked for count as used.
        """
        require_count("n", n, MOST_CALLS)
        with self._own_lock():
            for _ in range(TRIES):
                current = self._current()
                if not (short := [holding for holding in current if holding.units < n]):
                    for holding in current:
                        holding.units -= n
                    return True
                # Writing takes time: whether it is still the same period is asked again.
                if n > self._quota.limit or not all(holding.reserve(n) for holding in short):
                    break
        return False

    def release(self) -> None:
        """Give back the calls that are reserved and unused, so that others can make them, as when the process ends.

        An error of DynamoDB is raised; releasing again completes it. Where an answer is lost, what it gave back may
        count as used.
        """
        with self._own_lock():
            self._current()
            for holding in self._holdings.values():
                holding.give_back()

    @property
    def resets_at(self) -> datetime:
        """When the current period ends and the whole quota is there again, in UTC."""
        return utc(self._quota._period(self._table.clock()).end)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def _forget(self) -> None:
        self._pid, self._lock, self._holdings = os.getpid(), threading.Lock(), dict[str, Holding]()

    def _own_lock(self) -> threading.Lock:
        if self._pid != os.getpid():
            # A child must not grant what its parent holds.
            self._forget()
        return self._lock

    def _current(self) -> list[Holding]:
        """Return the holdings of the periods that it may be now: two, near the end of a period."""
        moment = self._table.clock()
        earliest, latest = moment - LEASE_CLOCKS, moment + LEASE_CLOCKS
        # Calls left of a period that is over for all are of no use.
        self._holdings = {sk: holding for sk, holding in self._holdings.items() if holding.period.end > earliest}
        periods = dict.fromkeys(map(self._quota._period, (earliest, latest)))
        holdings = (Holding(self._table, self._quota, self._pk, period) for period in periods)
        return [self._holdings.setdefault(holding.period.sk, holding) for holding in holdings]
