"""Delivers a workload to a design: undisturbed, or at least once as queues and streams do."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Protocol, TypeVar

from benchmarks.designs.base import Design
from demo.examples.blog.traffic import View

_T = TypeVar("_T")

QUEUE_BATCH: Final = 25
REDELIVERED: Final = 0.1


class Crash(BaseException):  # No handler of exceptions sees a process die.
    """The function's process died before its next request."""


class MortalClient:
    """A client whose process dies before a request, when told to.

    Parameters
    ----------
    client
        Does the requests.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self.left: float = float("inf")
        self.calls = 0

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._client, name)
        if name in ("exceptions", "meta", "create", "items", "stream", "get_paginator"):
            return method

        def call(**request: Any) -> Any:
            if self.left <= 0:
                raise Crash
            self.left -= 1
            self.calls += 1
            return method(**request)

        return call


class _Source(Protocol):
    client: Any

    def records(self) -> list[dict[str, Any]]: ...


def chunks(values: Sequence[_T], size: int) -> Iterator[Sequence[_T]]:
    """Cut a sequence into pieces."""
    for start in range(0, len(values), size):
        yield values[start : start + size]


def deliver(design: Design, source: _Source, views: Sequence[View], batch: int) -> None:
    """Deliver every view and every batch of the stream once."""
    for part in chunks(views, QUEUE_BATCH):
        design.accept(part)
    if design.reads_stream:
        _drain(source, batch, design.aggregate)


def deliver_at_least_once(
    design: Design, source: _Source, mortal: MortalClient, views: Sequence[View], *, batch: int, seed: int = 1
) -> None:
    """Deliver a tenth of the queue's and of the stream's batches more than once.

    Half of them because the acknowledgement got lost, half because the function died at a random request of its work.
    A stream's batch comes again whole or in two halves.
    """
    dice = random.Random(seed)
    for part in chunks(views, QUEUE_BATCH):
        _again(dice, mortal, design.accept, part, [part])
    if design.reads_stream:

        def aggregate(records: Sequence[dict[str, Any]]) -> None:
            middle = len(records) // 2
            halves = [records[:middle], records[middle:]]
            _again(dice, mortal, design.aggregate, records, dice.choice([[records], halves]))

        _drain(source, batch, aggregate)


def _drain(source: _Source, batch: int, aggregate: Callable[[Sequence[dict[str, Any]]], None]) -> None:
    """Hand over what is in the stream, until nothing comes after; counting writes into it too."""
    done = 0
    while len(records := source.records()) > done:
        for part in chunks(records[done:], batch):
            aggregate(part)
        done = len(records)


def _again(
    dice: random.Random,
    mortal: MortalClient,
    work: Callable[[Any], None],
    delivery: Any,
    later: Sequence[Any],
) -> None:
    if dice.random() >= REDELIVERED:
        work(delivery)
        return
    before = mortal.calls
    if dice.random() < 0.5:  # noqa: PLR2004
        # As if it had as many requests to make as records: what it gets done before varies.
        mortal.left = dice.randrange(2 * len(delivery)) if len(delivery) <= QUEUE_BATCH else dice.randrange(60)
    try:
        work(delivery)
    except Crash:
        assert mortal.calls >= before
    mortal.left = float("inf")
    for part in later:
        work(part)
