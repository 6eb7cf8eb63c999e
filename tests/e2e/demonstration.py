"""The demonstration as its user runs it: a process, what it prints, and what is left of it."""

from __future__ import annotations

import gzip
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from counters_cli.emulator import Emulator, outputs
from demo.platform.deployment import Deployment
from tests.integration.waiting import eventually

PROJECT = Path(__file__).resolve().parents[2]
# Only a failure takes this long: tests go on as soon as the condition holds.
PATIENCE_SECONDS = 300.0

LONG = "/" + "x" * 3000

# Client, time and target of distinct views, the last of them at 10:30:59.
VIEWS = [
    ("::1", "19/May/2015:10:30:59 +0000", "/a"),
    ("::1", "19/May/2015:10:31:00 +0000", "/a"),
    ("10.0.0.1", "20/May/2015:10:30:58 +0000", "/a"),
    ("10.0.0.1", "20/May/2015:12:30:59 +0200", "/a#T#2015#CID#"),
    ("10.0.0.1", "20/May/2015:10:30:59 +0000", "/a#T#2015#CID"),
    ("10.0.0.1", "20/May/2015:10:30:59 +0000", "/a%23T%232015#CID#"),
    ("10.0.0.2", "20/May/2015:05:00:00 -0500", "/🐍/{url}"),
    ("10.0.0.2", "20/May/2015:05:00:00 -0500", LONG),
    ("10.0.0.2", "20/May/2015:05:00:00 -0500", LONG + "y"),
    ("10.0.0.3", "20/May/2015:05:00:00 -0500", LONG),
    # More than a hundred: both levels of the threshold.
    *((f"10.0.1.{n % 4}", f"20/May/2015:09:{n // 60:02}:{n % 60:02} +0000", "/busy") for n in range(121)),
    ("10.0.1.0", "19/May/2015:09:00:00 +0000", "/busy"),
]

REPEATED = ("10.0.0.1", "20/May/2015:10:30:59 +0000", "/a#T#2015#CID#")
GARBAGE = [
    *("", "garbage", "\udcff\udcfe"),
    '::1 - - [20/May/2015:10:30:59 +0000] "GET /with spaces HTTP/1.1" 200 512',
    '::1 - - [19/May/2015:10:30:59 +0000] "-" 408 -',
]


def _line(view: tuple[str, str, str]) -> str:
    client, time_, target = view
    return f'{client} - - [{time_}] "GET {target} HTTP/1.1" 200 512 "-" "-"'


def write_log(path: Path) -> Path:
    lines = [*map(_line, VIEWS), *GARBAGE, _line(REPEATED)]
    path.write_bytes(gzip.compress("\n".join(lines).encode("utf-8", "surrogateescape")))
    return path


@dataclass
class Run:
    process: subprocess.Popen[str]
    temporary: Path
    output: Path
    errors: Path

    def wait_for(self, pattern: str, file: Path) -> re.Match[str]:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            ended = self.process.poll() is not None
            if match := re.search(pattern, file.read_text(), re.DOTALL | re.MULTILINE):
                return match
            assert not ended, f"it ended with status {self.process.returncode}:\n{self.errors.read_text()}"
            time.sleep(0.1)
        pytest.fail(f"{pattern!r} not printed in time:\n{self.errors.read_text()}")

    @property
    def port(self) -> int:
        return int(self.wait_for(r"http://127\.0\.0\.1:(\d+)", self.errors)[1])

    def deployment(self) -> Deployment:
        key = self.wait_for(r"export AWS_ACCESS_KEY_ID=(\w+)", self.output)[1]
        [directory] = self.temporary.glob("emulator-*")
        emulator = Emulator(self.port, directory, key)
        return Deployment(emulator, outputs(emulator))

    def assert_nothing_is_left(self, port: int) -> None:
        with socket.socket() as probe:
            assert probe.connect_ex(("127.0.0.1", port)) != 0
        assert eventually(lambda: not any(self.temporary.iterdir()) and not _processes_in(self.temporary))


def _processes_in(directory: Path) -> list[str]:
    commands = []
    for link in Path("/proc").glob("[0-9]*/cwd"):
        try:
            if link.readlink().is_relative_to(directory):
                commands.append(link.with_name("cmdline").read_text().replace("\0", " "))
        except OSError:
            # It has ended meanwhile, or belongs to another user.
            continue
    return commands


@contextmanager
def demonstration(tmp_path: Path, *arguments: str) -> Iterator[Run]:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    output, errors = tmp_path / "output", tmp_path / "errors"
    options: Any = {"cwd": PROJECT, "env": {**os.environ, "TMPDIR": str(temporary)}, "text": True}
    with output.open("w") as out, errors.open("w") as err:
        command = [sys.executable, "-m", "demo", *arguments]
        process = subprocess.Popen(command, stdout=out, stderr=err, **options)
    try:
        yield Run(process, temporary, output, errors)
    finally:
        process.kill()
        process.wait()
