"""``counters decode``: a copied item in words."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any, TextIO

import click

from dynamodb_counters._commit.checkpoint_items import checkpoint_key
from dynamodb_counters._items.table_schema import PK
from dynamodb_counters._quarantine.quarantine_items import UNREADABLE
from dynamodb_counters.cli.session import Session, shared
from dynamodb_counters.cli.show.item_words import Decoded, decoded
from dynamodb_counters.errors import CountersError


@click.command()
@click.argument("file", type=click.File(encoding="utf-8"), default="-")
@shared
def decode(session: Session, file: TextIO) -> None:
    """Say what an item is: FILE, or standard input, holds it as DynamoDB's JSON.

    Takes what the console shows and the AWS CLI prints: an item, a list of items, or an answer with Item or Items. With
    --table or --declarations, groups are named by their fields; with --table, shards by their names.
    """
    try:
        items = list(_items(json.load(file)))
    except (ValueError, RecursionError) as error:
        raise click.UsageError(f"no item in DynamoDB's JSON: {error}") from None
    known = session.folded if session.declared or session.table_name else ()
    found = []
    for item in items:
        try:
            found.append(_named(session, decoded(item, known)))
        except (*UNREADABLE, CountersError) as error:
            key = " / ".join(str(item.get(name, {}).get("S", "?")) for name in ("pk", "sk"))
            raise click.UsageError(f"the item {key} cannot be read: {type(error).__name__}: {error}") from None
    lines = [line for one in found for line in ("", *one.lines)][1:]
    session.emit([{"kind": one.kind, "words": one.lines, **one.facts} for one in found], lines)


def _items(document: Any) -> Iterator[dict[str, Any]]:
    if isinstance(document, list):
        for one in document:
            yield from _items(one)
        return
    if not isinstance(document, dict) or not document:
        raise ValueError("expected a JSON object of attributes")
    held = document.get("Items", document.get("Item"))
    if PK not in document and isinstance(held, list | dict):
        yield from _items(held)
    else:
        yield {name: _value(value) for name, value in document.items()}


def _value(value: Any) -> Any:
    """A value with its bytes; ValueError for one that DynamoDB does not have."""
    match list(value.items()) if isinstance(value, dict) else None:
        case [("L", [*parts])]:
            return {"L": [_value(part) for part in parts]}
        case [("M", dict(parts))]:
            return {"M": {name: _value(part) for name, part in parts.items()}}
        case [("B", str(text))]:
            return {"B": base64.b64decode(text, validate=True)}
        case [("BS", [*texts])]:
            return {"BS": [_value({"B": text})["B"] for text in texts]}
        case [("SS" | "NS", [*texts])] if all(isinstance(text, str) for text in texts):
            return value
        case [("S" | "N", str()) | ("BOOL" | "NULL", bool())]:
            return value
    raise ValueError('expected attributes such as {"pk": {"S": "…"}}')


def _named(session: Session, found: Decoded) -> Decoded:
    """With the names of shards whose digests the table's checkpoints know."""
    for mark in found.facts.get("watermarks", ()) if session.table_name else ():
        digest = mark["shard"]
        if shard := session.table.read_item(checkpoint_key(digest)).get("shard", {}).get("S"):
            mark["name"] = shard
            found.lines = [line.replace(f"shard {digest}:", f"shard {digest}, {shard}:") for line in found.lines]
    return found
