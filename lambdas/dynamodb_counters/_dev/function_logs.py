"""Logs of functions, as they come."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

from botocore.exceptions import ClientError

from dynamodb_counters._dev.deployed import Function

FRAME: Final = ("INIT_START ", "START RequestId: ", "END RequestId: ", "REPORT RequestId: ")
"""How lines begin that every invocation logs."""


class FunctionLogs:
    def __init__(self, client: Any) -> None:
        self._client = client
        self._seen: dict[str, int] = {}

    def new(self, functions: Iterable[Function]) -> Iterator[str]:
        """Lines logged since the last look, but for metrics and those of every invocation."""
        for function in functions:
            messages = self._messages(function.log_group)
            first = self._seen.get(function.log_group, 0)
            self._seen[function.log_group] = len(messages)
            for message in messages[first:]:
                for line in shown(message).splitlines():
                    yield f"{function.label}  {line}"

    def _messages(self, group: str) -> list[str]:
        try:
            pages = list(self._client.get_paginator("filter_log_events").paginate(logGroupName=group))
        except ClientError:
            # Nothing has been logged there.
            return []
        return [event["message"] for page in pages for event in page["events"]]


def shown(message: str) -> str:
    """A message as one reads it; empty if it is none for people."""
    text = message.rstrip()
    if text.startswith(FRAME):
        return ""
    try:
        document = json.loads(text)
    except ValueError:
        return text
    if not isinstance(document, dict):
        return text
    if "_aws" in document or document.get("type", "").startswith("platform."):
        return ""
    said = document.get("message", document.get("errorMessage"))
    return text if said is None else " ".join(str(part) for part in (document.get("level", ""), said) if part)
