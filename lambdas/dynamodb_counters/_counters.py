"""`Counters`: the events and counts of one table, for the code that writes and reads them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from dynamodb_counters import _quarantine as quarantine
from dynamodb_counters._declarations import Aggregate, Counter, Declarable, Distinct, Event, Quota, Window
from dynamodb_counters._declarations.checks import require_bool, require_count
from dynamodb_counters._declarations.composites import ActiveMembers, Extremes, Percentiles, Ranks, require_declaration
from dynamodb_counters._declarations.groups import Given, given
from dynamodb_counters._erasure import CountsOfErased, Erased, Eraser
from dynamodb_counters._quarantine import Quarantined
from dynamodb_counters._reads.events import LINES, EventReads, Explanation, explain
from dynamodb_counters._reads.question import Question
from dynamodb_counters._reads.rank_reads import RankReads
from dynamodb_counters._table import Table, make_client
from dynamodb_counters._writes import accept, direct_counts
from dynamodb_counters._writes.direct_counts import Amount, Leases
from dynamodb_counters._writes.outcomes import Outcome, Outcomes
from dynamodb_counters.errors import InvalidArgumentError

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient


class Counters(EventReads, RankReads):
    """Events and counts of one table.

    Groups are named by keyword, a str or number per field; or in one mapping, as the second argument, where a field is
    no identifier or has the name of an option: ``counters.get(TAGS, {"tags[]": "red"})``. Reads that are `consistent`
    are strongly so, at twice the read units.

    Parameters
    ----------
    table_name : str
        Name of the table, or its ARN if it is another account's.
    client : DynamoDBClient, optional
        Default: a new one, configured for concurrent use.
    clock : callable, optional
        Returns seconds since 1970. Default ``time.time``.

    Examples
    --------
    >>> counters = Counters("my-table")  # doctest: +SKIP
    >>> counters.accept(VIEW, {"url": "/", "time": "2026-11-20T10:00:00Z", "clientId": "c1"})  # doctest: +SKIP
    Outcome(status='accepted', reason=None)
    >>> counters.get(VIEWS, url="/")["views"]  # doctest: +SKIP
    42
    >>> counters.window(LAST_DAY, url="/").last(timedelta(hours=24)).count  # doctest: +SKIP
    7
    """

    def __init__(
        self, table_name: str, *, client: DynamoDBClient | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        # Refused before a client is made.
        if not isinstance(table_name, str) or not table_name:
            raise InvalidArgumentError("table_name", table_name, "the name or ARN of a table")
        # Resources and sessions of boto3; what stands in for a client in tests may be anything.
        if isinstance(client, str) or type(client).__module__.startswith("boto3."):
            raise InvalidArgumentError("client", client, 'a client such as boto3.client("dynamodb"), not a resource')
        if not callable(clock):
            raise InvalidArgumentError("clock", clock, "a function that returns seconds since 1970, such as time.time")
        self._table = Table(table_name, client or make_client(), clock)

    def accept(self, event: Event, values: Mapping[str, Any]) -> Outcome:
        """Insert an event once; the stream counts it. 1 write unit per started KB, also for a duplicate.

        A packed event costs as much on its own; many together cost a fraction, and a duplicate nothing. The outcome:
        accepted; a duplicate; or a conflict: the key has another payload, `Outcome.stored`, and keeps it.

        Parameters
        ----------
        event : Event
        values : mapping of str to object
            Its attributes: anything DynamoDB can store, `datetime` with a time zone (as ISO 8601 in UTC), `date`,
            `UUID`, the value of an `Enum`, floats of at most 15 digits.

        Raises
        ------
        RejectedEventError
            The event can never be accepted.
        UnavailableError
            The table kept refusing it; send it again.
        """
        return Outcomes([accept.accept(self._table, event, values)]).raise_for_rejected()[0]

    def accept_many(self, event: Event, events: Iterable[Mapping[str, Any]]) -> Outcomes:
        """Insert many events, each once, 16 at a time; return their `Outcomes` in the order of the events.

        Packed events go into chunks: a call per bucket and part, or per 16 KB. An event that is refused stops no other:
        only `Outcomes.raise_for_rejected` raises for what was not taken.

        Parameters
        ----------
        event : Event
        events : iterable of mapping
            The attributes of each event, as in `accept`.
        """
        return Outcomes(accept.accept_many(self._table, event, events))

    def record_once(self, event: Event, values: Mapping[str, Any], declarations: Iterable[Declarable]) -> Outcome:
        """Insert an event and count it in one transaction, at twice the write units; hot counters conflict.

        For callers that must read their own count at once: the counts are current when the call returns.

        Parameters
        ----------
        event, values
            As in `accept`.
        declarations : iterable of Aggregate and Window
            Declarations over this event that count it at once, at most 99 items; all others do as after `accept`.

        Raises
        ------
        RejectedEventError, UnavailableError
            As in `accept`.
        """
        require_declaration(event, Event)
        outcome = direct_counts.record_once(self._table, event, values, declarations)
        return Outcomes([outcome]).raise_for_rejected()[0]

    def increment(
        self, counter: Counter, values: Given = None, /, *, amount: Amount = 1, **fields: object
    ) -> dict[str, Any]:
        """Add to a group of a counter at once; return a dict of all its measures afterward.

        1 write unit. Not idempotent: calling it again counts again.

        Parameters
        ----------
        counter : Counter
        amount : int, Decimal, float or mapping, optional
            Number to add to the only measure, or by measure. A float has at most 15 digits. Default 1.

        Raises
        ------
        UncountedError
            Aggregators serve the table, and none has ever known this counter: deploy it first.
        UnavailableError
            Its answer is lost, so that it "may have been counted"; or it was refused to the end, and "was not counted".
        """
        return direct_counts.increment(self._table, counter, given(values, fields), amount)

    def leases(self, quota: Quota, values: Given = None, /, **fields: object) -> Leases:
        """Take calls from a `Quota` that is never exceeded, at a fraction of a write unit per call.

        Keep the result as long as the process serves the group, and release it at the end. Threads may share it.
        """
        return Leases(self._table, quota, given(values, fields))

    def retract(self, event: Event, values: Mapping[str, Any]) -> bool:
        """Delete an event and return whether it existed; the stream takes back what it counted.

        An event whose `retention` is over stays counted where expired events do. A packed event is retracted for good,
        even before it came.

        Parameters
        ----------
        event : Event
        values : mapping of str to object
            At least the attributes of its key, as in `accept`.
        """
        return accept.retract(self._table, event, values)

    def erase(self, event: Event, values: Mapping[str, Any], *, counts: CountsOfErased) -> Erased:
        """Erase events wherever the table and its quarantine hold them.

        Safe to repeat. Run it again once the stream's records are counted: what was on its way is found then. While
        copies wait in quarantine to be counted, it raises `UnavailableError` and erases nothing. See docs/erasure.md.

        Parameters
        ----------
        event : Event
        values : mapping of str to str or number
            Fields of the key: events with these values are erased. Without the partition's, the table is read.
        counts : {"keep", "take_back"}
            ``"keep"``: counts stay as when events expire. ``"take_back"``: the stream subtracts them, as by `retract`.
        """
        return Eraser(self._table, event, values).erase(counts)

    def explain(
        self,
        declaration: Aggregate | Window | Distinct | Percentiles | Extremes | ActiveMembers | Ranks,
        values: Given = None,
        /,
        *,
        start: datetime | None = None,
        end: datetime | None = None,
        scan: bool = False,
        limit: int = LINES,
        **fields: object,
    ) -> Explanation:
        """Explain why a number is what it is: the events, items or groups that make it, and what differs.

        Takes a read unit per 4 KB of what it counts, in its partition or the whole table. See docs/explain.md.

        Parameters
        ----------
        declaration : Aggregate, Window, Distinct, Percentiles, Extremes, ActiveMembers or Ranks
        start, end : datetime, optional
            The interval of a window, as in its `between`. Default: 24 hours up to now, or 7 units if those are longer.
        scan : bool, optional
            As in `groups`.
        limit : int, optional
            Most lines to return, by key; all of them add up. Default 1,000.
        """
        require_count("limit", limit, least=0)
        require_bool("scan", scan)
        group: Any = given(values, fields)
        part = getattr(declaration, "_parts", (declaration,))[-1]
        question = Question(now=self._table.clock(), declared=part, values=group, start=start, end=end)
        return explain(self._table, question, scan=scan, limit=limit)

    def reset(self, counter: Counter, values: Given = None, /, **fields: object) -> dict[str, Any]:
        """Set the measures of a counter's group to 0; return a dict of them as they were.

        What is added meanwhile is either in the result or in the group, never both. 1 write unit and a strongly
        consistent read, if no update comes between.

        Raises
        ------
        UnavailableError
            Its answer is lost, so that the group "may have been reset", and from what; or nothing was written.
        """
        return direct_counts.reset(self._table, counter, given(values, fields))

    def quarantined(self, *, redriven: bool = False) -> Iterator[Quarantined]:
        """List the records and deltas that could not be counted, in no particular order.

        Parameters
        ----------
        redriven : bool, optional
            Whether to include entries that were redriven. Default False.
        """
        return quarantine.list_quarantined(self._table, redriven=redriven)

    def redrive(self, entry: Quarantined) -> bool:
        """Send a quarantined entry back through the stream to be counted.

        Safe to repeat: an entry counts once, however often it is redriven; False if it was redriven before or has
        expired. One that still cannot be counted returns to quarantine as a new entry.
        """
        return quarantine.redrive(self._table, entry)
