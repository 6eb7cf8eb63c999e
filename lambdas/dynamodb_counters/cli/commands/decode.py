"""``counters decode``: a copied item in words."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator
from typing import Any, Final, TextIO

import click

from dynamodb_counters._commit.checkpoint_items import checkpoint_key
from dynamodb_counters._quarantine.quarantine_items import UNREADABLE
from dynamodb_counters.cli.session import Session, shared
from dynamodb_counters.cli.show.item_words import Decoded, decoded
from dynamodb_counters.errors import CountersError

_KINDS: Final[dict[str, Any]] = {
    **dict.fromkeys(("S", "N", "B"), str),
    **dict.fromkeys(("BOOL", "NULL"), bool),
    **dict.fromkeys(("SS", "NS", "BS", "L"), list),
    "M": dict,
}


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
    elif not isinstance(document, dict):
        raise ValueError("expected a JSON object")
    elif isinstance(document.get("Items"), list):
        yield from _items(document["Items"])
    elif isinstance(document.get("Item"), dict) and not _is_typed(document["Item"]):
        yield from _items(document["Item"])
    elif not document or not all(map(_is_typed, document.values())):
        raise ValueError('expected attributes such as {"pk": {"S": "…"}}')
    else:
        yield {name: _with_bytes(value) for name, value in document.items()}


def _is_typed(value: Any) -> bool:
    if not isinstance(value, dict) or len(value) != 1:
        return False
    [(kind, content)] = value.items()
    if kind not in _KINDS or not isinstance(content, _KINDS[kind]):
        return False
    if kind in ("L", "M"):
        return all(map(_is_typed, content if kind == "L" else content.values()))
    return not kind.endswith("S") or all(isinstance(part, str) for part in content)


def _with_bytes(value: Any) -> Any:
    [(kind, content)] = value.items()
    if kind in ("B", "BS"):
        parts = [content] if kind == "B" else content
        try:
            found = [base64.b64decode(part, validate=True) for part in parts]
        except (binascii.Error, TypeError) as error:
            raise ValueError(f"not base64: {error}") from None
        return {kind: found[0] if kind == "B" else found}
    if kind == "L":
        return {kind: [_with_bytes(part) for part in content]}
    if kind == "M":
        return {kind: {name: _with_bytes(part) for name, part in content.items()}}
    return value


def _named(session: Session, found: Decoded) -> Decoded:
    """With the names of shards whose digests the table's checkpoints know."""
    for mark in found.facts.get("watermarks", ()) if session.table_name else ():
        digest = mark["shard"]
        if shard := session.table.read_item(checkpoint_key(digest)).get("shard", {}).get("S"):
            mark["name"] = shard
            found.lines = [line.replace(f"shard {digest}:", f"shard {digest}, {shard}:") for line in found.lines]
    return found
