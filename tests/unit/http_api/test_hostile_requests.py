"""Hostile requests among sensible ones: no 5xx, no exception, and every answer is as the OpenAPI document says."""

from __future__ import annotations

import contextlib
import gc
import io
import os
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import pytest

from counters_lambda.handlers import ingest_queue
from simulation.hostile.costly import BODIES as COSTLY
from simulation.hostile.doors import Answer, Door, all_doors
from simulation.hostile.requests import Stranger, new_request
from simulation.night import scaled

MAX_CPU_SECONDS: Final = 1.0


@pytest.fixture(autouse=True)
def _no_metrics_are_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Drop the metrics, which the functions of a process share: they would be written elsewhere."""
    monkeypatch.setattr(ingest_queue.metrics.provider, "namespace", "Counters")
    yield
    ingest_queue.metrics.clear_metrics()


@pytest.fixture(scope="module")
def doors() -> dict[str, Door]:
    """Build the doors once."""
    return {door.name: door for door in all_doors()}


def answer(door: Door, request: Any) -> Answer:
    """Answer a request; a slow one again, as a busy machine slows some, and garbage of others one."""
    for _ in range(4):
        with contextlib.redirect_stdout(io.StringIO()):
            result = door.answer(request)
        if result.wrong or result.cpu_seconds <= MAX_CPU_SECONDS:
            return result
        gc.collect()
    return result._replace(wrong=f"{result.cpu_seconds:.2f} s")


def test_no_stranger_breaks_a_door(doors: dict[str, Door]) -> None:
    seed = int(os.environ.get("SEED") or 15)
    stranger, statuses = Stranger(seed), Counter[int | None]()
    for _ in range(scaled(60)):
        for name, door in doors.items():
            request = stranger.post() if door.posts else stranger.get()
            result = answer(door, request)
            assert result.wrong == "", f"seed {seed}, {name}: {request!r:.1500}"
            statuses[result.status] += 1
    assert 0 < statuses[202] + statuses[200] < statuses.total()


@pytest.mark.parametrize("name", COSTLY)
def test_no_body_of_a_megabyte_takes_a_second(doors: dict[str, Door], name: str) -> None:
    body = COSTLY[name]()
    for door in (doors["receiver with both"], doors["consumer, direct mode"], doors["API"]):
        path, headers = "/events" if door.posts else "/v1/batch", {"content-type": "text/plain"}
        assert answer(door, new_request("POST", path, body=body, headers=headers)).wrong == ""
