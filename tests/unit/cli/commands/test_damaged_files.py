"""Files with damaged columns: what is read of a record is as it was written, or the record is unreadable."""

from __future__ import annotations

import csv
import io
import os
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, Final

import pytest

from dynamodb_counters.cli.replay_files import rows

FILES: Final = int(os.environ.get("DAMAGED_FILES", "200"))

_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_COLUMNS: Final = ("id", "user", "note", "size")

Damage: Final = Callable[[random.Random, list[str]], list[str]]


def _dropped(rng: random.Random, parts: list[str]) -> list[str]:
    at = rng.randrange(len(parts))
    return [*parts[:at], *parts[at + 1 :]]


def _doubled(rng: random.Random, parts: list[str]) -> list[str]:
    at = rng.randrange(len(parts))
    return [*parts[: at + 1], *parts[at:]]


def _added(rng: random.Random, parts: list[str]) -> list[str]:
    at = rng.randrange(len(parts) + 1)
    return [*parts[:at], rng.choice(["10.0.0.9,", "example.com:443", "-", "x", '"-"', ""]), *parts[at:]]


def _blank(rng: random.Random, parts: list[str]) -> list[str]:
    at = rng.randrange(len(parts))
    return [*parts[:at], rng.choice([" ", "\t"]) + parts[at], *parts[at + 1 :]]


def _cut(rng: random.Random, parts: list[str]) -> list[str]:
    return parts[: rng.randrange(1, len(parts))]


def _unquoted(rng: random.Random, parts: list[str]) -> list[str]:
    quoted = [index for index, part in enumerate(parts) if part.startswith('"')]
    if not quoted:
        return _dropped(rng, parts)
    at = rng.choice(quoted)
    return [*parts[:at], parts[at].replace('"', "", 1), *parts[at + 1 :]]


def _garbled(rng: random.Random, parts: list[str]) -> list[str]:
    at = rng.randrange(len(parts))
    return [*parts[:at], rng.choice(["\udcff", 'a"b', "\x00\udc80"]), *parts[at + 1 :]]


_DAMAGES: Final = (_dropped, _doubled, _added, _blank, _cut, _unquoted, _garbled)


def _log_line(rng: random.Random) -> tuple[list[str], dict[str, Any]]:
    zone = timezone(timedelta(minutes=rng.randrange(-720, 841, 15)))
    time = datetime(2026, 11, 20, tzinfo=UTC) + timedelta(seconds=rng.randrange(10**6))
    local = time.astimezone(zone)
    values: dict[str, Any] = {
        "client": rng.choice(["10.0.0.1", "2001:db8::1", "host.example"]),
        "time": time.isoformat().replace("+00:00", "Z"),
        "method": rng.choice(["GET", "POST"]),
        "url": rng.choice(["/", "/a?b=c&d", '/\\"x', "http://a.example/"]),
        "status": rng.choice([200, 304, 499]),
        "bytes": rng.choice([1, 70_000]),
    }
    parts = [values["client"], "-", user := rng.choice(["-", "ann", "eve@b.example"])]
    parts += [f"[{local:%d}/{_MONTHS[local.month - 1]}/{local:%Y:%H:%M:%S}", f"{local:%z}]"]
    parts += [f'"{values["method"]}', values["url"], 'HTTP/1.1"', str(values["status"]), str(values["bytes"])]
    if rng.random() < 0.5:
        parts += [f'"{(referer := rng.choice(["-", "https://a.example/"]))}"', '"Mozilla/5.0 (X11; \\"y\\")"']
        values |= {"referer": referer, "agent": 'Mozilla/5.0 (X11; \\"y\\")'}
    values |= {"user": user}
    return parts, {name: value for name, value in values.items() if value != "-"}


def _csv_line(rng: random.Random) -> tuple[list[str], dict[str, Any]]:
    values = {
        "id": str(rng.randrange(10**6)),
        "user": rng.choice(["ann", "Zoë", "eve smith"]),
        "note": rng.choice(['say "hi"', "a,b", "two\nlines", "plain"]),
        "size": rng.randrange(1000),
    }
    return [_cell(str(value)) for value in values.values()], values


def _cell(text: str) -> str:
    written = io.StringIO()
    csv.writer(written).writerow([text])
    return written.getvalue().removesuffix("\r\n")


_KINDS: Final = {"log": (_log_line, " ", ""), "csv": (_csv_line, ",", ",".join(_COLUMNS) + "\n")}


@pytest.mark.parametrize("kind", _KINDS)
def test_no_damaged_record_is_read_with_a_wrong_value(kind: str) -> None:
    make, separator, header = _KINDS[kind]
    for seed in range(FILES // len(_KINDS)):
        rng, lines, whole, truth = random.Random(seed), list[str](), list[dict[str, Any]](), list[dict[str, Any]]()
        for _ in range(rng.randrange(1, 12)):
            parts, values = make(rng)
            truth.append(values)
            if rng.random() < 0.6:
                parts = rng.choice(_DAMAGES)(rng, parts)
            else:
                whole.append(values)
            lines.append(separator.join(parts))
        text = (header + "\n".join(lines) + "\n").encode(errors="surrogateescape")
        opened, numbers = io.BufferedReader(io.BytesIO(text)), ("size",) if kind == "csv" else ()
        found = [row.values for row in rows(opened, kind, numbers) if not row.problem]
        assert all(any(values.items() <= true.items() for true in truth) for values in found), seed
        assert all(values in found for values in whole), seed


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('a.example:443 10.0.0.1 - - [20/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 1', "before the time: expected"),
        ('a.example 10.0.0.1 - [20/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 1', "before the time: expected"),
        ('10.0.0.1, 10.0.0.2 - - [20/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 1', "before the time: expected"),
        ('10.0.0.1  - - [20/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 1', "before the time: expected"),
        ('10.0.0.1 - - [20/Nov/2026:10:00:00 +0000] "-" 408 -', "it logs no request: the client sent none"),
        ('10.0.0.1 - - [31/Feb/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 1', "the time '31/Feb/2026"),
        ('10.0.0.1 - - [20/Nov/2026:10:00:00 +0000] "GET  / HTTP/1.1" 200 1', "the request 'GET  / HTTP/1.1'"),
        ('10.0.0.1 - - [20/Nov/2026:10:00:00 +0000] "GET HTTP/1.1" 200 1', "the request 'GET HTTP/1.1'"),
        ('10.0.0.1 - - [20/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" 2000 1', "'2000 1' after the request"),
        ('10.0.0.1 - - [20/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 1 "-"', "at the end: expected"),
        ('10.0.0.1 - - [20/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 1 "-" "x" "y"', "at the end: expected"),
        ('10.0.0.1 - - [20/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 1 \xff', "bytes that are not UTF-8"),
        ("server restarted", "no line of an access log in common or combined format"),
    ],
)
def test_a_line_of_no_format_says_why(line: str, reason: str) -> None:
    [row] = rows(io.BufferedReader(io.BytesIO(line.encode("latin-1"))), "log")
    assert (row.values, reason in row.problem) == ({}, True), row
