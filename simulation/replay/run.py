"""One recorded run: the harness delivers events to the real aggregator, and disturbs it.

Each count has a plain increment for comparison: a handler that adds what it was delivered, without a watermark. It has
the same deliveries, dies at the same moments, and repeats an update when the answer is lost, as any SDK does.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from dynamodb_counters._declarations import Aggregate, Count, Event
from dynamodb_counters._fold.records import padded
from dynamodb_counters._items.table_schema import WATERMARK_PREFIX
from dynamodb_counters._items.watermarks import sequence_of, shard_digest
from dynamodb_counters._table import Table
from dynamodb_counters._writes.accept import accept
from simulation.delivery.event_source_mapping import Delivery, EventSourceMapping, Settings
from simulation.faults.faulty_client import Fault
from simulation.faults.hooked_client import HookedClient
from simulation.replay.tape import State, Tape, Texts
from simulation.schedules.backend import MemoryBackend
from simulation.schedules.sandbox import Invocation, Sandbox

PAGES: Final = ("/home", "/docs", "/pricing")
EVENTS: Final = 20
FAULTS: Final = ("kill", "redeliver", "zombie", "split")
"""Faults that a reader of the page may inject."""

STATUSES: Final = ("running", "lost", "zombie", "dead", "done")

_EVENT: Final = Event("view", pk="VISITOR#{visitor}", sk="VIEW#{id}")
_DECLARATIONS: Final = (Aggregate("views", _EVENT, pk="PAGE#{page}", sk="VIEWS", measures={"views": Count()}),)
_TIMEOUT: Final = 900.0
_MOST_STEPS: Final = 2000
_CHECKPOINT: Final = "CHECKPOINT"


@dataclass(eq=False)
class _Actor:
    """An invocation as the page shows it: its number, its shard, the records it has by position, what it has done.

    `plain` has the pages that the plain increment has added; `next` what its next request would update.
    """

    number: int
    invocation: Invocation
    shard: str
    records: list[tuple[int, int]]
    status: str = "running"
    done: list[int] = field(default_factory=list)
    next: str | int | None = None
    since: int = 0
    """Position of the first record that its next update adds: the watermark must be before it."""

    @property
    def first(self) -> int:
        return self.records[0][0]

    @property
    def last(self) -> int:
        return self.records[-1][0]

    def count(self, page: int) -> int:
        return sum(found == page for _, found in self.records)


class Run:
    """A run by a seed, with `faults` of its own at random moments, and `inject`: a fault at a step, by its number."""

    def __init__(self, seed: int, faults: Sequence[str], texts: Texts, inject: tuple[int, str] | None = None) -> None:
        rng = self._random = random.Random(seed)
        self._backend = MemoryBackend(rng)
        self._backend.stream.disorder = lambda: 0.0
        self._mapping = EventSourceMapping(
            self._backend.stream, self._backend.clock, Settings(window_seconds=86_400, max_bytes=None)
        )
        self._table = Table(self._backend.name, self._backend.client, clock=self._backend.clock, sleep=lambda _: None)
        self._faults, self._inject = list(faults), inject
        self._left, self._calls = EVENTS, 0
        self._actors: list[_Actor] = []
        self._shards: dict[str, str] = {}
        self._acknowledged: Counter[str] = Counter()
        self._delivered: Counter[str] = Counter()
        self._seen: set[tuple[str, int]] = set()
        self.plain: Counter[int] = Counter()
        self.twice: Counter[int] = Counter()
        self.truth: Counter[int] = Counter()
        self.reached: Counter[str] = Counter()
        self.injected = inject is None
        self.tape = Tape(texts)

    def play(self) -> Run:
        """Run to the end; check that every count is exact."""
        self._name_shards()
        self._frame(
            "begin",
            f"Nothing is counted yet. {EVENTS} views are about to be written. Each count will note the last record "
            "that is in it, per shard: its watermark.",
        )
        for _ in range(_MOST_STEPS):
            if not self._step():
                break
        else:
            raise AssertionError("the run does not end")
        written = [self.truth[page] for page in range(len(PAGES))]
        if self._counts() != written:
            raise AssertionError(f"expected {written}, found {self._counts()}")
        wrong = [f"{name} by {self.twice[page]}" for page, name in enumerate(PAGES) if self.twice[page]]
        drift = f"The plain increment counted too many: {', '.join(wrong)}." if wrong else "So is the plain increment."
        self._frame("end", f"Everything is delivered. Every count with watermarks is exact. {drift}")
        return self

    def possible(self) -> list[str]:
        """Which faults could be injected now."""
        found = []
        if self._awake():
            found += ["kill", "zombie"]
        if self._rewindable():
            found.append("redeliver")
        if len(self._shards) < 6:
            found.append("split")
        return found

    def _step(self) -> bool:
        """Do the next thing, drawn at random; False if nothing is left to do."""
        draw = self._random.random
        if self._inject is not None and len(self.tape.frames) > self._inject[0]:
            fault, self._inject = self._inject[1], None
            self.injected = fault in self.possible()
            if self.injected:
                self._disturb(fault)
        elif self._faults and draw() < 0.25 and self._due(self._faults[0]):
            self._disturb(self._faults.pop(0))
        elif self._left and draw() < 0.3:
            self._write()
        elif draw() >= 0.3 or not self._deliver():
            return self._advance()
        return True

    def _advance(self) -> bool:
        """Let an invocation go on; zombies last, and best when their records are acknowledged to a retry."""
        if going := self._awake() or self._zombies(overtaken=True):
            self._go_on(self._random.choice(going))
        elif self._deliver():
            pass
        elif self._left:
            self._write()
        elif zombies := self._zombies():
            self._go_on(zombies[0])
        else:
            return False
        return True

    def _due(self, fault: str) -> bool:
        """Whether a fault is instructive now: when a batch is half written, or something would be counted twice."""
        half = [actor for actor in self._awake() if actor.done and isinstance(actor.next, int)]
        match fault:
            case "kill":
                return bool(half)
            case "zombie" | "lost":
                return any(isinstance(actor.next, int) for actor in self._awake())
            case "redeliver":
                return bool(self._rewindable())
        return fault in self.possible()

    def _disturb(self, fault: str) -> None:
        self.reached[fault] += 1
        awake = self._awake()
        writing = [actor for actor in awake if isinstance(actor.next, int)]
        half = [actor for actor in writing if actor.done]
        match fault:
            case "kill":
                self._kill(self._random.choice(half or writing or awake))
            case "zombie":
                self._abandon(self._random.choice(writing or awake))
            case "lost":
                self._go_on(self._random.choice(writing), Fault.LOST_ACK)
            case "redeliver":
                self._redeliver(self._random.choice(self._rewindable()))
            case "split":
                self._split()

    def _write(self) -> None:
        now: Counter[int] = Counter()
        for _ in range(min(self._left, self._random.randint(2, 4))):
            page = self._random.choice((0, 0, 0, 1, 1, 2))
            event = {"visitor": str(self._random.randrange(1000)), "id": str(self._left), "page": PAGES[page]}
            accept(self._table, _EVENT, event)
            self._left -= 1
            now[page] += 1
        self.truth += now
        self._backend.clock.advance(3)
        told = ", ".join(f"{number} of {PAGES[page]}" for page, number in sorted(now.items()))
        self._frame("write", f"Views are written: {told}. Each becomes a record of one stream shard.")

    def _deliver(self) -> bool:
        """Start the next batch that has views; False if there is none."""
        polled: set[str] = set()
        # Until no shard is new: a parent that is found drained makes way for its children.
        while shards := [shard for shard in self._mapping.shards() if shard not in polled]:
            shard = self._random.choice(shards)
            delivery = self._mapping.poll(shard, self._random.choice((3, 6, 12)))
            if delivery is None:
                polled.add(shard)
                continue
            sequences = {record["dynamodb"]["SequenceNumber"] for record in delivery.records}
            records = [(place, page) for place, page, number in self._views(shard) if number in sequences]
            if records:
                self._start(delivery, records)
                return True
            # Changes of the counts themselves alone: the aggregator reads and drops them.
            self._quietly(delivery)
        return False

    def _sandbox(self, heard: Callable[[dict[str, Any]], None]) -> Sandbox:
        sandbox = Sandbox(self._backend, _DECLARATIONS, 0, self._random)
        aggregator: Any = sandbox._aggregator
        table = aggregator._client._table

        def hook(_: str, send: Callable[[], Any], request: dict[str, Any]) -> Any:
            heard(request)
            return send()

        vars(table)["client"] = HookedClient(table.client, hook)
        return sandbox

    def _quietly(self, delivery: Delivery) -> None:
        sandbox = self._sandbox(lambda _: None)
        invocation = sandbox.invocation = Invocation(sandbox, delivery, self._backend.clock.now + _TIMEOUT)
        while not invocation.done:
            invocation.step(Fault.NONE)
        if invocation.error is not None:
            raise invocation.error
        self._mapping.settle(delivery, invocation.result)

    def _start(self, delivery: Delivery, records: list[tuple[int, int]]) -> None:
        def heard(request: dict[str, Any]) -> None:
            actor.next = _target(request)
            if isinstance(actor.next, int):
                [first] = re.findall(r"< (:\w+)", request["ConditionExpression"])
                actor.since = self._place(actor.shard, request["ExpressionAttributeValues"][first])

        sandbox = self._sandbox(heard)
        invocation = sandbox.invocation = Invocation(sandbox, delivery, self._backend.clock.now + _TIMEOUT)
        self._calls += 1
        actor = _Actor(self._calls, invocation, delivery.shard, records)
        told = "delivered again, to" if actor.first <= self._delivered[actor.shard] else "delivered to"
        self._delivered[actor.shard] = max(actor.last, self._delivered[actor.shard])
        self._actors.append(actor)
        what = f"{self._span(actor)} of shard {self._shards[actor.shard]}"
        self._frame("batch", f"{what} {'is' if len(records) == 1 else 'are'} {told} invocation {actor.number}.")
        self._ahead(actor)

    def _ahead(self, actor: _Actor) -> None:
        """Let an invocation do its bookkeeping, up to its next update of a count."""
        while not actor.invocation.done and not isinstance(actor.next, int):
            actor.invocation.step(Fault.NONE)

    def _go_on(self, actor: _Actor, fault: Fault = Fault.NONE) -> None:
        self._ahead(actor)
        self._backend.clock.advance(4)
        if actor.invocation.done:
            self._end(actor)
            return
        page = actor.next
        assert isinstance(page, int)
        before, actor.next = self._counts()[page], None
        marks, first = self._marks()[page], actor.since
        actor.invocation.step(fault)
        added = self._counts()[page] - before
        refused = self._marks()[page] == marks
        more = actor.count(page)
        twice = page in actor.done and not refused
        if page not in actor.done or fault is Fault.LOST_ACK or actor.status == "lost":
            self._add_plainly(actor, page)
            plain = f"The plain increment adds {more}{' again' if refused else ''}{self._how_wrong(page)}."
        else:
            plain = ""
        name, shard = PAGES[page], self._shards[actor.shard]
        if page not in actor.done:
            actor.done.append(page)
        who = f"{'Zombie' if actor.status == 'zombie' else 'Invocation'} {actor.number}"
        if refused:
            self.reached["refused"] += 1
            [there] = [place for index, place in marks if index == list(self._shards).index(actor.shard)]
            assert there >= first
            self._frame(
                "refused",
                f"{who} offers {more} of shard {shard} to {name}. Refused: watermark {shard}{there} is not before "
                f"{shard}{first}. Nothing is counted twice. {plain}",
                page,
            )
        else:
            answer = " The answer is lost, so the client will send it again." if fault is Fault.LOST_ACK else ""
            rest = f"only the {added} that {name} lacks" if added < more or twice else str(added)
            moves = f"moves its watermark for shard {shard}, in one update."
            self._frame(
                "lost" if answer else "update",
                f"{who} adds {rest} to {name} and {moves}{answer} {plain}",
                page,
            )
        if actor.status != "zombie":
            actor.status = "lost" if fault is Fault.LOST_ACK else "running"

    def _end(self, actor: _Actor) -> None:
        shard = self._shards[actor.shard]
        invocation, skipped = actor.invocation, []
        if invocation.error is not None:
            raise invocation.error
        for page in sorted({page for _, page in actor.records} - set(actor.done)):
            self._add_plainly(actor, page)
            skipped.append(f"{actor.count(page)} to {PAGES[page]}")
        settled = self._mapping.settle(invocation.delivery, invocation.result)
        if settled:
            self._acknowledged[actor.shard] = max(actor.last, self._acknowledged[actor.shard])
        who = f"{'Zombie' if actor.status == 'zombie' else 'Invocation'} {actor.number}"
        told = f"{who} ends. " + (
            f"Shard {shard} moves past {self._span(actor)}." if settled else "Nobody waits for its answer any more."
        )
        if skipped:
            told += (
                f" Shard {shard}'s checkpoint said that its records are counted: it sent nothing. The plain increment"
                f" adds {', '.join(skipped)} again."
            )
        actor.status = "done"
        self._frame("refused" if skipped else "end of batch", told)
        self._actors.remove(actor)

    def _kill(self, actor: _Actor) -> None:
        while not actor.invocation.done:
            actor.invocation.step(Fault.CRASH_BEFORE)
        self._mapping.fail(actor.invocation.delivery)
        actor.status = "dead"
        wrote = ", ".join(PAGES[page] for page in actor.done)
        state = f"after writing {wrote}, before the rest" if wrote else "before it wrote anything"
        self._frame("kill", f"Invocation {actor.number} is killed {state}. Lambda will deliver the whole batch again.")
        self._actors.remove(actor)

    def _abandon(self, actor: _Actor) -> None:
        self._mapping.fail(actor.invocation.delivery)
        actor.status = "zombie"
        self._frame(
            "zombie",
            f"Lambda gives up on invocation {actor.number}, but it is not dead: a zombie, it will go on beside its "
            "retry.",
        )

    def _redeliver(self, shard: str) -> None:
        found = [
            record["dynamodb"]["SequenceNumber"] for record in self._backend.stream.read(shard, None, 9999).records
        ]
        places = [place for place, _, _ in self._views(shard) if place <= self._acknowledged[shard]]
        start = self._random.choice(places[-4:])
        sequence = next(number for place, _, number in self._views(shard) if place == start)
        before = found[: found.index(sequence)]
        self._mapping.rewind(shard, before[-1] if before else None)
        name = self._shards[shard]
        self._frame(
            "redeliver",
            f"The stream goes back: shard {name} will deliver from {name}{start} on again, though all that was "
            "acknowledged.",
        )

    def _split(self) -> None:
        before = set(self._shards)
        self._backend.split(self._random)
        self._name_shards()
        children = [self._shards[shard] for shard in self._shards if shard not in before]
        parents = {shard.parent for shard in self._backend.stream.shards() if shard.id not in before}
        [parent] = [self._shards[shard] for shard in parents if shard]
        self._frame(
            "split",
            f"DynamoDB closes shard {parent} and opens {' and '.join(children)}. Each shard has a watermark of its "
            "own in every count it feeds.",
        )

    def _awake(self) -> list[_Actor]:
        return [actor for actor in self._actors if actor.status in ("running", "lost")]

    def _zombies(self, *, overtaken: bool = False) -> list[_Actor]:
        """Zombies; with `overtaken`, those whose records are acknowledged to a retry."""
        zombies = [actor for actor in self._actors if actor.status == "zombie"]
        return [one for one in zombies if not overtaken or one.last <= self._acknowledged[one.shard]]

    def _rewindable(self) -> list[str]:
        return [shard for shard in self._mapping.shards() if self._acknowledged[shard]]

    def _name_shards(self) -> None:
        for shard in self._backend.stream.shards():
            self._shards.setdefault(shard.id, "ABCDEFGHIJKLMNOP"[len(self._shards)])

    def _views(self, shard: str) -> list[tuple[int, int, str]]:
        """The views in a shard: place from 1, page, sequence number."""
        found: list[tuple[int, int, str]] = []
        for record in self._backend.stream.read(shard, None, 9999).records:
            image = record["dynamodb"].get("NewImage", {})
            if image.get("page") and image["pk"]["S"].startswith("VISITOR#"):
                number = record["dynamodb"]["SequenceNumber"]
                found.append((len(found) + 1, PAGES.index(image["page"]["S"]), number))
        return found

    def _span(self, actor: _Actor) -> str:
        name = self._shards[actor.shard]
        one = actor.first == actor.last
        return f"{name}{actor.first}" if one else f"{name}{actor.first} to {name}{actor.last}"

    def _add_plainly(self, actor: _Actor, page: int) -> None:
        """Add an invocation's views of a page to the plain increment, and note which it has added before."""
        records = {(actor.shard, place) for place, found in actor.records if found == page}
        self.plain[page] += len(records)
        self.twice[page] += len(records & self._seen)
        self._seen |= records

    def _how_wrong(self, page: int) -> str:
        return f", now {self.twice[page]} too many" if self.twice[page] else ""

    def _items(self) -> list[dict[str, Any]]:
        items = {item["pk"]["S"]: dict(item) for item in self._backend.items() if item["sk"]["S"] == "VIEWS"}
        return [items.get(f"PAGE#{page}", {}) for page in PAGES]

    def _counts(self) -> list[int]:
        return [int(item.get("views", {"N": "0"})["N"]) for item in self._items()]

    def _place(self, shard: str, watermark: Any) -> int:
        """How many views of a shard are not after a watermark."""
        through = sequence_of(watermark)
        return sum(padded(number) <= through for *_, number in self._views(shard))

    def _marks(self) -> list[list[list[int]]]:
        """Watermarks of each item: shard, and the place of the last view it has applied."""
        marks = []
        for item in self._items():
            found: list[list[int]] = []
            for index, shard in enumerate(self._shards):
                value = item.get(WATERMARK_PREFIX + shard_digest(shard))
                if value is not None:
                    found.append([index, self._place(shard, value)])
            marks.append(found)
        return marks

    def _frame(self, kind: str, text: str, page: int = -1) -> None:
        names = list(self._shards)
        parents = {shard.id: shard.parent for shard in self._backend.stream.shards()}
        is_open = set(self._backend.stream.open_shards())
        parent = {name: names.index(parents[name]) if parents.get(name) in names else -1 for name in names}
        state: State = {
            "s": [[self._shards[name], parent[name], int(name in is_open), self._acknowledged[name]] for name in names],
            "r": ["".join(str(page) for _, page, _ in self._views(name)) for name in names],
            "i": [
                [a.number, names.index(a.shard), a.first, a.last, STATUSES.index(a.status), list(a.done)]
                for a in self._actors
            ],
            "c": self._counts(),
            "p": [self.plain[page] for page in range(len(PAGES))],
            "t": [self.truth[page] for page in range(len(PAGES))],
            "d": [self.twice[page] for page in range(len(PAGES))],
            "w": self._marks(),
            "f": page,
        }
        self.tape.add(kind, " ".join(text.split()), state)


def _target(request: dict[str, Any]) -> str | int | None:
    """Target of a request: a page's count, by its number, a checkpoint, or something that the page leaves out."""
    transacted = request.get("TransactItems") or [{}]
    request = transacted[0].get("Update") or request
    pk = (request.get("Key") or {}).get("pk", {}).get("S", "")
    names = request.get("ExpressionAttributeNames", {}).values()
    if pk.startswith("PAGE#") and "views" in names and "UpdateExpression" in request:
        return PAGES.index(pk.removeprefix("PAGE#"))
    return _CHECKPOINT if pk.startswith(_CHECKPOINT) else None
