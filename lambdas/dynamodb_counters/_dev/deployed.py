"""Resources that an app has deployed, as an emulator lists them: tables, their counts, what counts them, APIs, logs."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, TypeAlias

from botocore.exceptions import ClientError

from dynamodb_counters._assumptions import RUN_OPEN_AFTER
from dynamodb_counters._commit.batch import Aggregator
from dynamodb_counters._counters import Counters
from dynamodb_counters._declarations import Aggregate, Declaration
from dynamodb_counters._declarations.codec import decode
from dynamodb_counters._declarations.composites import MEMBERS
from dynamodb_counters._dev.emulator import Emulator
from dynamodb_counters._fold.item_layout import ItemLayout, group_of_item
from dynamodb_counters._items.conversions import parse_number, whole
from dynamodb_counters._items.table_schema import TYPE
from dynamodb_counters._table import Table
from dynamodb_counters._timeline.tiers import DAY, TOTAL

FRAME: Final = ("INIT_START ", "START RequestId: ", "END RequestId: ", "REPORT RequestId: ")
"""How lines begin that every invocation logs."""

AGGREGATOR_HANDLER: Final = "dynamodb_counters.handlers.aggregator.handler"

MOST_ITEMS: Final = 5_000

Counts: TypeAlias = dict[tuple[str, tuple[tuple[str, str], ...]], Mapping[str, Any]]
"""Measures by the name of what counts and its group."""


@dataclass(frozen=True)
class Function:
    """A deployed function: its id in the template without the hash, and where it logs."""

    label: str
    log_group: str
    table: str = ""
    declarations: tuple[Declaration, ...] = ()
    """Declarations of one that counts a table."""
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Deployed:
    tables: list[str] = field(default_factory=list)
    functions: list[Function] = field(default_factory=list)
    apis: list[str] = field(default_factory=list)
    """Addresses of HTTP APIs in the emulator."""

    @property
    def aggregators(self) -> list[Function]:
        return [one for one in self.functions if one.table]


def deployed(emulator: Emulator) -> Deployed:
    found = Deployed()
    for resource in _resources(emulator.client("cloudformation")):
        kind, name = resource["ResourceType"], resource["PhysicalResourceId"]
        if kind in ("AWS::DynamoDB::Table", "AWS::DynamoDB::GlobalTable"):
            found.tables.append(name)
        elif kind == "AWS::Lambda::Function":
            found.functions.append(_function(emulator.client("lambda"), resource["LogicalResourceId"], name))
        elif kind == "AWS::ApiGatewayV2::Api":
            found.apis.append(f"{emulator.endpoint_url}/_aws/execute-api/{name}/$default/")
    return found


def _resources(cloudformation: Any) -> Iterator[dict[str, Any]]:
    for page in cloudformation.get_paginator("list_stacks").paginate():
        for stack in page["StackSummaries"]:
            if stack["StackStatus"] != "DELETE_COMPLETE":
                name = stack["StackName"]
                for resources in cloudformation.get_paginator("list_stack_resources").paginate(StackName=name):
                    yield from resources["StackResourceSummaries"]


def _function(functions: Any, logical_id: str, name: str) -> Function:
    settings = functions.get_function_configuration(FunctionName=name)
    group = settings.get("LoggingConfig", {}).get("LogGroup") or f"/aws/lambda/{name}"
    variables = settings.get("Environment", {}).get("Variables", {})
    label = re.sub(r"[0-9A-F]{8}$", "", logical_id)
    if settings.get("Handler") != AGGREGATOR_HANDLER:
        return Function(label, group)
    return Function(label, group, variables["TABLE_NAME"], decode(variables["DECLARATIONS"]), variables)


def register(function: Function, client: Any) -> None:
    """Do what the function does on its first invocation, without the delay."""
    # On AWS other processes learn of it later. Here the deployment has replaced the only one.
    table = Table(function.table, client, clock=lambda: time.time() - RUN_OPEN_AFTER)
    retention = float(function.variables["QUARANTINE_RETENTION_DAYS"]) * DAY
    source = function.variables.get("SOURCE_TABLE_ARN")
    Aggregator(
        table, function.declarations, quarantine_retention_seconds=retention, source_table=source, single_shard=True
    ).handle({})


class FunctionLogs:
    def __init__(self, client: Any) -> None:
        self._client = client
        self._seen: dict[str, int] = {}
        self._last: dict[str, str] = {}

    def new(self, functions: Iterable[Function]) -> Iterator[str]:
        """Lines logged since the last look, but for metrics, those of every invocation, and repetitions."""
        for function in functions:
            messages = self._messages(function.log_group)
            first = self._seen.get(function.log_group, 0)
            self._seen[function.log_group] = len(messages)
            for line in (line for message in messages[first:] for line in shown(message).splitlines()):
                if line != self._last.get(function.log_group):
                    yield f"{function.label}  {line}"
                self._last[function.log_group] = line

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


class TableCounts:
    """The counts of a table that an emulator holds; it is scanned, so beyond some thousand items it is left alone."""

    def __init__(self, table: str, client: Any, declarations: tuple[Declaration, ...]) -> None:
        self.table = table
        self.is_too_large = False
        self._client = client
        self._known: Counts = {}
        self.declared(declarations)

    def changed(self) -> Counts:
        pages = self._client.get_paginator("scan").paginate(TableName=self.table, ConsistentRead=True)
        scanned = (item for page in pages for item in page["Items"])
        items = [] if self.is_too_large else list(islice(scanned, MOST_ITEMS + 1))
        self.is_too_large |= len(items) > MOST_ITEMS
        if self.is_too_large:
            return {}
        now = self._counted(items)
        found = {group: measures for group, measures in now.items() if self._known.get(group) != measures}
        self._known = now
        return found

    def declared(self, declarations: tuple[Declaration, ...]) -> None:
        self._declared = {one.name: one for one in declarations if not one.name.endswith(MEMBERS)}

    def _counted(self, items: list[Mapping[str, Any]]) -> Counts:
        wanted: dict[tuple[str, tuple[tuple[str, str], ...]], tuple[Aggregate, Mapping[str, str]]] = {}
        totals: Counts = {}
        for item in items:
            declared = self._declared.get(item.get(TYPE, {}).get("S", ""))
            if declared is None:
                continue
            for group in (group_of_item(declared, image) for image in ItemLayout(declared).images(item)):
                if group is None:
                    continue
                place = declared.name, tuple(zip(declared.fields, group, strict=False))
                if isinstance(declared, Aggregate):
                    wanted[place] = declared, dict(place[1])
                # Each event is in a bucket of every tier: the coarsest ones hold it once.
                elif TOTAL in item and group[-2] == declared._kept_tiers[-1].letter:
                    before = totals.get(place, {TOTAL: 0})[TOTAL]
                    totals[place] = {TOTAL: whole(before + parse_number(item[TOTAL]["N"]))}
        # Through the library: what readers see, write shards added up.
        counters = Counters(self.table, client=self._client)
        groups = counters.get_many(wanted.values(), consistent=True) if wanted else []
        return totals | {place: group.measures for place, group in zip(wanted, groups, strict=True)}
