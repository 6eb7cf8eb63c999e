from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from botocore.exceptions import ClientError

from demo.platform.aggregators import diagnosis, finished, limits, metric_sums
from dynamodb_counters._dev.emulator import Emulator
from tests.unit.demo.fakes import client

OUTPUTS = {
    "Blog": {"AggregatorName": "count-views", "AggregatorLogGroup": "/views", "TableName": "t"},
    "Jobs": {"AggregatorName": "count-jobs", "AggregatorLogGroup": "/jobs"},
    "Other": {"TableName": "u"},
}
WELL = {"State": "Enabled", "LastProcessingResult": "OK - 3 records"}
FAILED = {"State": "Enabled", "LastProcessingResult": "FAILED"}
GONE = ClientError({"Error": {"Code": "ResourceNotFoundException", "Message": "gone"}}, "FilterLogEvents")


class Stalled:
    """An emulator in which counting stands still."""

    def __init__(self, mappings: dict[str, list[dict[str, str]]], logs: dict[str, list[str]], printed: Path) -> None:
        self.mappings = mappings
        self.logs = logs
        self.printed = Emulator(1234, printed.parent, printed).printed

    def client(self, service: str) -> Any:
        assert service in ("lambda", "logs")
        return self

    def list_event_source_mappings(self, *, FunctionName: str) -> Any:  # noqa: N803
        return {"EventSourceMappings": self.mappings[FunctionName]}

    def get_paginator(self, operation: str) -> Stalled:
        assert operation == "filter_log_events"
        return self

    def paginate(self, *, logGroupName: str) -> Iterator[Any]:  # noqa: N803
        if logGroupName not in self.logs:
            raise GONE
        for message in self.logs[logGroupName]:
            yield {"events": [{"message": message}]}


@pytest.fixture
def printed(tmp_path: Path) -> Path:
    file = tmp_path / "emulator.log"
    file.write_text("INFO ready\n")
    return file


def _told(views: list[dict[str, str]], logs: dict[str, list[str]], printed: Path) -> list[str]:
    emulator = Stalled({"count-views": views, "count-jobs": [WELL]}, logs, printed)
    return diagnosis(cast("Emulator", emulator), OUTPUTS)


def test_who_fails_is_told_with_what_it_logged_last(printed: Path) -> None:
    noise = ["START RequestId: 1 Version: $LATEST", "END RequestId: 1", "REPORT RequestId: 1\tDuration: 9 ms"]
    logged = [*map(str, range(48)), "Traceback:", "\x1b[31mKeyError: 'url'\n", *noise]

    assert _told([FAILED], {"/views": logged, "/jobs": ["fine"]}, printed) == [
        "Blog: event source mapping Enabled, last result: FAILED",
        "Jobs: event source mapping Enabled, last result: OK - 3 records",
        *(f"Blog logged: {number}" for number in range(20, 48)),
        "Blog logged: Traceback:",
        "Blog logged: \\x1b[31mKeyError: 'url'",
    ]


def test_what_fails_before_it_can_log_is_told_by_the_emulator(printed: Path) -> None:
    printed.write_text(
        "WARNING ESM: Lambda count-views failed (errorMessage=older)\n"
        "WARNING ESM: Lambda count-views failed (errorMessage=no module)\n"
        "INFO ESM: Lambda count-jobs processed\n"
        "INFO GET /count-views\n"
    )

    assert _told([FAILED], {"/views": ["END RequestId: 1"]}, printed)[2:] == [
        "Blog logged: (the emulator) WARNING ESM: Lambda count-views failed (errorMessage=no module)"
    ]


def test_a_mapping_that_is_not_there_or_not_on_is_told(printed: Path) -> None:
    disabled = {"State": "Disabled", "LastProcessingResult": "OK - 1 records"}

    assert _told([], {"/views": []}, printed)[0] == "Blog: no event source mapping"
    assert _told([disabled], {"/views": []}, printed) == [
        "Blog: event source mapping Disabled, last result: OK - 1 records",
        "Jobs: event source mapping Enabled, last result: OK - 3 records",
        "Blog logged: nothing",
    ]


def test_where_nobody_fails_all_logs_are_told(printed: Path) -> None:
    assert _told([WELL], {"/views": ["a"], "/jobs": ["b"]}, printed)[2:] == ["Blog logged: a", "Jobs logged: b"]


def test_a_log_that_cannot_be_read_hides_nothing_else(printed: Path) -> None:
    told = _told([FAILED], {}, printed)

    assert told[0] == "Blog: event source mapping Enabled, last result: FAILED"
    assert told[2].startswith("Blog logged: its log cannot be read: ")
    assert "gone" in told[2]


def _logged(namespace: str, **values: object) -> dict[str, str]:
    metrics = [{"Name": name, "Unit": "Count"} for name in values]
    document = {"_aws": {"CloudWatchMetrics": [{"Namespace": namespace, "Metrics": metrics}]}, **values}
    return {"message": json.dumps(document)}


def test_metrics_in_a_log_are_added_up() -> None:
    logs = client(
        "logs",
        "filter_log_events",
        {"events": [{"message": "START"}, _logged("Mine", Units=[1.5]), {"message": "[]"}], "nextToken": "more"},
        {"events": [_logged("Mine", Units=[1, 2], Records=4), _logged("Others", Units=99), {"message": '{"a": 1}'}]},
    )

    assert metric_sums(logs, "/group", "Mine") == {"Units": 4.5, "Records": 4}


def test_limits_that_functions_met_are_told_by_function(tmp_path: Path) -> None:
    log = tmp_path / "emulator.log"
    log.write_text(
        "10:00 WARNING Lambda blog-fn timed out after 60s — killing worker\n"
        "10:00 WARNING ESM: Lambda blog-fn failed processing DynamoDB stream batch from blog (errorType=None "
        "errorMessage=Task timed out after 60.00 seconds)\n"
        "10:01 INFO ESM: Lambda blog-fn processed 12 DynamoDB stream records from blog\n"
        "10:02 WARNING ESM: Lambda jobs-fn failed processing DynamoDB stream batch from jobs (errorType=CommitError "
        "errorMessage=throttled)\n"
    )
    emulator = Emulator(port=1, directory=tmp_path, log=log)
    outputs = {"CountersBlog": {"AggregatorName": "blog-fn"}, "CountersJobs": {"AggregatorName": "jobs-fn"}}

    assert limits(emulator, outputs) == [
        "CountersBlog: 1 invocations failed, the last one by Task timed out after 60.00 seconds",
        "CountersJobs: 1 invocations failed, the last one by throttled",
    ]
    assert finished(emulator) == 1
