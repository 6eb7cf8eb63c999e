"""Files with damaged columns: what is read of a record is as it was written, or the record is unreadable."""

from __future__ import annotations

import csv
import io
import os
import random
from typing import Any, Final

import click

from dynamodb_counters.cli.commands.events import rows

FILES: Final = int(os.environ.get("DAMAGED_FILES", "200"))

_COLUMNS: Final = ("id", "user", "note", "size")


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


def _csv_line(rng: random.Random) -> tuple[list[str], dict[str, Any]]:
    values = {
        "id": str(rng.randrange(10**6)),
        "user": rng.choice(["ann", "Zoë", "eve smith"]),
        "note": rng.choice(['say "hi"', "a,b", "plain"]),
        "size": str(rng.randrange(1, 1000)),
    }
    return [_cell(str(value)) for value in values.values()], values


def _cell(text: str) -> str:
    written = io.StringIO()
    csv.writer(written).writerow([text])
    return written.getvalue().removesuffix("\r\n")


def test_no_damaged_record_is_read_with_a_wrong_value() -> None:
    for seed in range(FILES):
        rng, lines, whole, truth = random.Random(seed), list[str](), list[dict[str, Any]](), list[dict[str, Any]]()
        for _ in range(rng.randrange(1, 12)):
            parts, values = _csv_line(rng)
            truth.append(values)
            if rng.random() < 0.6:
                parts = rng.choice(_DAMAGES)(rng, parts)
            else:
                whole.append(values)
            lines.append(",".join(parts))
        text = "\n".join([",".join(_COLUMNS), *lines]).encode(errors="surrogateescape")
        found = list[dict[str, Any]]()
        try:
            found.extend(row.values for row in rows(io.BytesIO(text), is_csv=True) if not row.problem)
        except click.UsageError:
            # A quote that is not closed ends the file: what comes after it is not read.
            assert all(any(values.items() <= true.items() for true in truth) for values in found), seed
            continue
        assert all(any(values.items() <= true.items() for true in truth) for values in found), seed
        assert all(values in found for values in whole), seed
