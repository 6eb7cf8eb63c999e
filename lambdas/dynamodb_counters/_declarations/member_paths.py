"""Paths that lead into the members of a list of maps: ``lines[].sku``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dynamodb_counters._items.attributes import LIST_MARK
from dynamodb_counters.errors import InvalidArgumentError

_INTO: Final = f"{LIST_MARK}."


def of_member(path: str) -> str | None:
    """The part of a path inside a member, as ``sku`` in ``lines[].sku``; None for a path of the item itself."""
    return path.partition(_INTO)[2] or None


def member_list(fields: Iterable[str], measured: Iterable[str]) -> str | None:
    """The list whose members some paths lead into; None if they lead into none."""
    paths = {"pk": list(fields), "measures": list(measured)}
    lists = list(dict.fromkeys(path.partition(_INTO)[0] for each in paths.values() for path in each if of_member(path)))
    if not lists:
        return None
    for argument, each in paths.items():
        for path in each:
            if (
                path.endswith(LIST_MARK)
                or LIST_MARK in (of_member(path) or "")
                or path.partition(_INTO)[0] not in (path, lists[0])
            ):
                raise InvalidArgumentError(argument, path, f"no other list next to the members of {lists[0]!r}")
    return lists[0]


def require_no_member(argument: str, paths: Iterable[str]) -> None:
    """Refuse paths into members where only the item itself is looked at."""
    for path in paths:
        if of_member(path):
            raise InvalidArgumentError(argument, path, "an attribute of the item, not of a list's members")
