"""The demonstration as its user runs it: exact counts of hostile traffic, and nothing left behind."""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.integration.waiting import eventually

pytestmark = pytest.mark.e2e

_PROJECT = Path(__file__).resolve().parents[2]
# Only a failure takes this long.
_PATIENCE_SECONDS = 600.0
_LONG = "/" + "x" * 3000

# Client, time and target of distinct views, the last of them at 10:30:59.
_VIEWS = [
    ("::1", "19/May/2015:10:30:59 +0000", "/a"),
    ("::1", "19/May/2015:10:31:00 +0000", "/a"),
    ("10.0.0.1", "20/May/2015:10:30:58 +0000", "/a"),
    ("10.0.0.1", "20/May/2015:12:30:59 +0200", "/a#T#2015#CID#"),
    ("10.0.0.1", "20/May/2015:10:30:59 +0000", "/a#T#2015#CID"),
    ("10.0.0.1", "20/May/2015:10:30:59 +0000", "/a%23T%232015#CID#"),
    ("10.0.0.2", "20/May/2015:05:00:00 -0500", "/🐍/{url}"),
    ("10.0.0.2", "20/May/2015:05:00:00 -0500", _LONG),
    ("10.0.0.2", "20/May/2015:05:00:00 -0500", _LONG + "y"),
    ("10.0.0.3", "20/May/2015:05:00:00 -0500", _LONG),
    # More than a hundred: both levels of the threshold.
    *((f"10.0.1.{n % 4}", f"20/May/2015:09:{n // 60:02}:{n % 60:02} +0000", "/busy") for n in range(121)),
    ("10.0.1.0", "19/May/2015:09:00:00 +0000", "/busy"),
]
_BEFORE_THE_WINDOW = (_VIEWS[0], _VIEWS[-1])
_REPEATED = ("10.0.0.1", "20/May/2015:10:30:59 +0000", "/a#T#2015#CID#")
_GARBAGE = [
    "",
    "garbage",
    '::1 - - [20/May/2015:10:30:59 +0000] "GET /with spaces HTTP/1.1" 200 512',
    '::1 - - [19/May/2015:10:30:59 +0000] "-" 408 -',
    "\udcff\udcfe",
]


def _line(view: tuple[str, str, str]) -> str:
    client, time_, target = view
    return f'{client} - - [{time_}] "GET {target} HTTP/1.1" 200 512 "-" "-"'


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("log") / "access log"
    lines = [*map(_line, _VIEWS), *_GARBAGE, _line(_REPEATED)]
    path.write_bytes(gzip.compress("\n".join(lines).encode("utf-8", "surrogateescape")))
    return path


@dataclass
class Run:
    process: subprocess.Popen[str]
    temporary: Path
    output: Path
    errors: Path

    def wait_for(self, pattern: str, file: Path) -> re.Match[str]:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while time.monotonic() < deadline:
            ended = self.process.poll() is not None
            if found := re.search(pattern, file.read_text(), re.DOTALL):
                return found
            assert not ended, f"it ended with status {self.process.returncode}:\n{self.errors.read_text()}"
            time.sleep(0.1)
        pytest.fail(f"{pattern!r} not printed in time:\n{self.errors.read_text()}")

    def assert_nothing_is_left(self, port: int) -> None:
        with socket.socket() as probe:
            assert probe.connect_ex(("127.0.0.1", port)) != 0
        assert eventually(lambda: not any(self.temporary.iterdir()) and not _processes_in(self.temporary))


def _processes_in(directory: Path) -> list[str]:
    found = []
    for link in Path("/proc").glob("[0-9]*/cwd"):
        try:
            if link.readlink().is_relative_to(directory):
                found.append(link.with_name("cmdline").read_text().replace("\0", " "))
        except OSError:
            # It has ended meanwhile, or belongs to another user.
            continue
    return found


@contextmanager
def _demo(tmp_path: Path, *arguments: str) -> Iterator[Run]:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    output, errors = tmp_path / "output", tmp_path / "errors"
    with output.open("w") as out, errors.open("w") as err:
        process = subprocess.Popen(
            [sys.executable, "-m", "demo", *arguments],
            cwd=_PROJECT,
            env={**os.environ, "TMPDIR": str(temporary)},
            stdout=out,
            stderr=err,
            text=True,
        )
    try:
        yield Run(process, temporary, output, errors)
    finally:
        process.kill()
        process.wait()


def _port(run: Run) -> int:
    return int(run.wait_for(r"http://127\.0\.0\.1:(\d+)", run.errors)[1])


def test_counts_are_exact_and_can_be_queried_until_ctrl_c(tmp_path: Path, log: Path) -> None:
    report = tmp_path / "report.json"
    options = ("--log", str(log), "--duplicates", "0.5", "--report", str(report), "--keep")
    with _demo(tmp_path, "--example", "blog,jobs,leaderboard", *options) as run:
        port = _port(run)
        instructions = run.wait_for(r"(\nexport .*\ncounters explain [^\n]*\n)", run.output)[1]
        answer = subprocess.run(
            ["sh", "-c", "set -e\n" + instructions],
            cwd=_PROJECT,
            env={"PATH": os.environ["PATH"]},
            capture_output=True,
            text=True,
            check=True,
            timeout=_PATIENCE_SECONDS,
        )
        assert re.search(r"views +122\b", answer.stdout)
        assert re.search(r"count +121\b", answer.stdout)
        assert "122 counted" in answer.stdout

        run.process.send_signal(signal.SIGINT)

        assert run.process.wait(_PATIENCE_SECONDS) == 0
        run.assert_nothing_is_left(port)
    numbers = json.loads(report.read_text())
    _check(numbers)
    _check_leaderboard(numbers["leaderboard"])
    jobs = numbers["jobs"]
    assert sum(jobs["jobs"].values()) == jobs["accepted"] > jobs["duplicates_rejected"] > 0
    printed = run.output.read_text()
    assert printed.count("Killed the function while it counted; the batch was delivered again") == 3
    assert "Why 122?  122 lines add up to it" in printed
    assert "\nEXACT: " in printed


def _check(report: dict[str, Any]) -> None:
    rolling = report["rolling_24h"]
    urls = Counter(target for _, _, target in _VIEWS)

    assert report["exact"] is True
    assert report["events_sent"] == len(_VIEWS) + 1 + len(_VIEWS) // 2
    assert report["distinct_events"] == report["site_views"] == len(_VIEWS)
    assert report["duplicates_rejected"] == 1 + len(_VIEWS) // 2
    assert report["unparsable_lines"] == len(_GARBAGE)
    assert report["views"] == urls
    assert report["visitors"] == Counter(client for client, _, _ in _VIEWS)
    assert (rolling["from"], rolling["from_inclusive"]) == ("2015-05-19T10:31:00+00:00", True)
    assert rolling["as_of"] == "2015-05-20T10:31:00+00:00"
    assert rolling["counts"] == urls - Counter(target for _, _, target in _BEFORE_THE_WINDOW)
    assert report["crossings"] == {f"{url} up {level}": 1 for url in urls for level in (10, 100) if urls[url] >= level}
    _check_measures(report["measures"])
    assert 0 < report["write_units_per_event"]["accept"] < 10
    assert 0 < report["write_units_per_event"]["aggregate"] < 40
    assert 0.5 <= report["window_read_units"] < 1


def _check_measures(found: dict[str, Any]) -> None:
    clients = {day: {client for client, time, _ in _VIEWS if time.startswith(day)} for day in ("19", "20")}
    on_the_day = {f"2015-05-{day}": len(each) for day, each in clients.items()}
    both = {"2015-05-19": len(clients["19"]), "2015-05-20": len(clients["19"] | clients["20"])}

    assert found["unique visitors, 1 days to"] == on_the_day
    assert found["unique visitors, 7 days to"] == found["unique visitors, 30 days to"] == both
    assert found["p95 of response sizes by day"].keys() == on_the_day.keys()
    assert all(abs(size - 512) <= 5.12 for size in found["p95 of response sizes by day"].values())
    assert found["latest view"].keys() == {client for client, _, _ in _VIEWS}
    assert f"10.0.0.3 {_LONG}" in found["latest page"]


def _check_leaderboard(found: dict[str, Any]) -> None:
    paths = found["players.paths"]

    assert found["duplicates_rejected"] > 0
    assert found["withdrawn"] > 0
    assert found["accepted"] - found["withdrawn"] == sum(paths.values())
    assert min(paths.values()) == 0
    assert max(paths.values()) > 12
    assert found["leaderboard.total_paths"][""] == sum(min(n, 12) for n in paths.values())
    assert found["leaderboard.active_players"][""] == sum(n > 0 for n in paths.values())
    sizes = {str(size): sum(min(n, 12) == size for n in paths.values()) for size in range(1, 13)}
    assert found["leaderboard.players_by_paths"] == {"<1": 0, **sizes}
    assert list(found["players.top"].values()) == sorted(paths.values(), reverse=True)[:10]


@pytest.mark.night
def test_all_examples_are_exact(tmp_path: Path) -> None:
    with _demo(tmp_path, "--example", "all") as run:
        assert run.process.wait(_PATIENCE_SECONDS) == 0, run.errors.read_text()
    assert run.output.read_text().count("Killed the function while it counted") == 6


@pytest.mark.parametrize("ending", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.night)])
def test_nothing_is_left_when_it_is_ended_amid_the_deployment(tmp_path: Path, ending: signal.Signals) -> None:
    with _demo(tmp_path) as run:
        port = _port(run)
        run.wait_for("deploying", run.errors)
        time.sleep(1)

        run.process.send_signal(ending)

        assert run.process.wait(_PATIENCE_SECONDS) == 128 + ending
        run.assert_nothing_is_left(port)
    assert "Traceback" not in run.errors.read_text()


def test_an_impossible_wish_is_refused_before_anything_starts(tmp_path: Path) -> None:
    missing = tmp_path / "none.log"
    with _demo(tmp_path, "--log", str(missing)) as run:
        assert run.process.wait(_PATIENCE_SECONDS) == 2

    assert run.errors.read_text() == f"demo: error: argument --log: there is no file '{missing}'\n"
    assert list(run.temporary.iterdir()) == []


def test_a_damaged_log_is_refused_before_anything_starts(tmp_path: Path, log: Path) -> None:
    damaged = tmp_path / "damaged.gz"
    damaged.write_bytes(log.read_bytes()[:-20])
    with _demo(tmp_path, "--log", str(damaged)) as run:
        assert run.process.wait(_PATIENCE_SECONDS) == 2

    assert "its gzip data is damaged or cut off" in run.errors.read_text()
    assert run.errors.read_text().count("\n") == 1
