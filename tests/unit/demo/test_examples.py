"""Each example's numbers, read from a table in memory, are those of its truth; and what a log says of its views."""

from __future__ import annotations

import gzip
import io
from calendar import month_abbr
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from demo.blog.access_log import parse_line, read_log
from demo.blog.traffic import View
from demo.example import Finding
from demo.examples import play
from demo.options import EXAMPLES, Options, Setup
from demo.report import Result, summary
from demo.sending import Account
from demo.terminal import Progress
from simulation.counters_in_memory import counters_in_memory
from tests.e2e.demonstration import GARBAGE, REPEATED, VIEWS, write_log

NOW = datetime(2026, 11, 20, 9, 30, 15, tzinfo=UTC)
EMITTING = [
    pytest.param(name, marks=pytest.mark.night) if name in ("blog", "packed") else name
    for name in EXAMPLES
    if name != "orders"
]
"""Those that send events; items of other code need a second table."""
_COMBINED = '83.149.9.216 - - [17/May/2015:10:05:03 +0000] "GET /a.png HTTP/1.1" 200 203023 "http://b.c/" "Mozilla/5.0"'
_LINE = '10.0.0.1 - - [20/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 1'
_VIEW = View("/a.png", "2015-05-17T10:05:03Z", "83.149.9.216", 203023)


def setup(seed: int = 1) -> Setup:
    options = Options(("blog",), log=None, duplicates=0.2, seed=seed, report=None, keep=False)
    return Setup(options, NOW, Progress(io.StringIO()))


def counted(name: str) -> Finding:
    """Count an example's events in memory; crossings, which only the emulator sends, are taken to be right."""
    [example] = play(setup(), [name])
    account = Account()
    declared = [declaration for (is_event, _), declaration in example.declared.items() if not is_event]
    with counters_in_memory(declared, now=example.now) as counters:
        for feed in example.feeds():
            account.send(counters, feed, Progress(io.StringIO()))
        numbers: dict[str, Any] = {**example.read(counters)}
    if name == "blog":
        numbers["crossings"] = example.expected(numbers)["crossings"]
    return Finding(example, account, numbers)


@pytest.fixture(scope="module", params=EMITTING)
def finding(request: pytest.FixtureRequest) -> Finding:
    return counted(request.param)


def test_numbers_are_those_of_the_truth(finding: Finding) -> None:
    assert finding.differences() == []
    assert summary(Result([finding], 1.0)).splitlines()[-1].startswith("EXACT: ")


def test_a_wrong_number_is_named(finding: Finding) -> None:
    for what, numbers in finding.actual.items():
        group = max(numbers, key=lambda name: numbers[name])
        wrong = {**finding.actual, what: {**numbers, group: numbers[group] * 1.03 + 1}}
        [line, *_] = Finding(finding.example, finding.account, wrong).differences()
        assert line.startswith(f"{finding.example.name}: {what} of ")
        assert "NOT EXACT: " in summary(Result([Finding(finding.example, finding.account, wrong)], 1.0))


def test_a_seed_decides_the_traffic() -> None:
    for first, again, other in zip(*(play(setup(seed), EXAMPLES) for seed in (1, 1, 2)), strict=True):
        assert (first.events, first.changes) == (again.events, again.changes)
        assert (first.events, first.changes) != (other.events, other.changes)


def test_a_hostile_log_is_read_back(tmp_path: Path) -> None:
    views = [*read_log(write_log(tmp_path / "access log"))]
    assert views.count(None) == len(GARBAGE)
    for view, (client, time, target) in zip(filter(None, views), [*VIEWS, REPEATED], strict=True):
        moment = datetime.strptime(time, "%d/%b/%Y:%H:%M:%S %z").astimezone(UTC)
        assert view == View(target, f"{moment:%Y-%m-%dT%H:%M:%SZ}", client, 512)


@pytest.mark.parametrize(
    ("line", "view"),
    [
        ('a-1.b - x@y [01/Dec/1999:23:59:59 -0130] "M-SEARCH *" 200 1', ("*", "1999-12-02T01:29:59Z", "a-1.b", 1)),
        (
            '::1 - x [29/Feb/2024:00:00:00 +1400] "get /\\"\\\\ HTTP/3" 599 - "\\"" ""',
            ('/\\"\\\\', "2024-02-28T10:00:00Z", "::1", None),
        ),
        *(
            (_COMBINED.replace("May", month), ("/a.png", f"2015-{number:02}-17T10:05:03Z", "83.149.9.216", 203023))
            for number, month in enumerate(month_abbr[1:], 1)
        ),
    ],
)
def test_a_logged_request_is_read_back(line: str, view: tuple[str, str, str, int | None]) -> None:
    assert parse_line(line) == View(*view)


@pytest.mark.parametrize(
    "line",
    [
        *(_LINE.replace("10.0.0.1 -", by) for by in ("a:443 10.0.0.1 -", "a 10.0.0.1", "10.0.0.1, 10.0.0.2 -")),
        *(_LINE.replace('"GET / HTTP/1.1"', f'"{request}"') for request in ("GET  / HTTP/1.1", "GET HTTP/1.1")),
        *(_LINE.replace('"GET / HTTP/1.1" 200 1', '"-" 408 -'), _LINE.replace("20/Nov", "31/Feb")),
        *(_LINE.replace("200", "2000"), f'{_LINE} "-" "x" "y"', "server restarted"),
    ],
)
def test_a_line_that_could_be_read_in_two_ways_is_none(line: str) -> None:
    assert parse_line(_LINE) is not None
    assert parse_line(line) is None


@pytest.mark.parametrize("name", ["access.log", "access.log.gz"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_gzip_is_recognized_by_content(tmp_path: Path, name: str, pack: type[bytes]) -> None:
    path = tmp_path / name
    path.write_bytes(pack(f"{_COMBINED}\r\ngarbage\n\n{_COMBINED}".encode()))

    assert list(read_log(path)) == [_VIEW, None, None, _VIEW]
