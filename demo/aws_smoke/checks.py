"""Checks of what is deployed: each notes what was expected and what it found."""

from __future__ import annotations

import json
import random
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlencode

import boto3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest

from demo.aws_smoke.account import Account
from demo.sending import with_duplicates
from demo.terminal import Progress, printable
from dynamodb_counters import Counters
from examples.blog import VIEWS

_PAUSE_SECONDS: Final = 2.0
_REQUEST_SECONDS: Final = 60
_EVENTS_PER_REQUEST: Final = 100
_PAGES: Final = 40
_SHARE: Final = 0.2
_SPOILED: Final = "/smoke/spoiled"
_MALFORMED: Final = {"url": "/smoke/malformed", "time": "2026-13-45T99:00:00Z", "clientId": "c"}
_PROVOKED: Final = ("Uncounted", "DeadLetters", "Lag", "Polling", "Watch", "Waiting")
"""Alarms that the checks themselves may set off, or a deployment until the first heartbeat."""


class Checks:
    """Checks that were made of a stack, those that differed, and those that could not be made where it ran."""

    def __init__(self, account: Account, stack: str, progress: Progress, patience_seconds: float) -> None:
        self._account, self._stack, self._progress, self._patience = account, stack, progress, patience_seconds
        self._outputs: dict[str, str] = {}
        self._met = 0
        self.differences: list[str] = []
        self._skipped: list[str] = []

    def make(self, outputs: dict[str, str], seed: int, events: int) -> None:
        """Make all checks; some look at what earlier ones have sent."""
        self._outputs = outputs
        self._url = self._account.url(outputs["ApiId"])
        self._refusals()
        self._counts(random.Random(seed), events)
        self._shards()
        self._quarantine()
        self._dead_letter()
        self._alarms()
        self._window()

    def check(self, what: str, expected: object, actual: object) -> None:
        if actual == expected:
            self._met += 1
            self._progress(f"as expected: {what}: {printable(str(actual))}")
        else:
            self.differences.append(f"{what}: expected {expected}, found {actual}")
            self._progress(f"DIFFERS: {what}: expected {printable(str(expected))}, found {printable(str(actual))}")

    def summary(self) -> str:
        lines = [f"{self._met} as expected, {len(self.differences)} differ, {len(self._skipped)} skipped"]
        lines += (f"  differs: {difference}" for difference in self.differences)
        lines += (f"  skipped: {reason}" for reason in self._skipped)
        return "\n".join(lines)

    def _skip(self, what: str, reason: str) -> None:
        self._skipped.append(f"{what}: {reason}")
        self._progress(f"skipped: {what}: {reason}")

    def _eventually(self, read: Callable[[], object], expected: object, seconds: float | None = None) -> object:
        """Read until it is as expected, or time is up; return what was read last."""
        deadline = time.monotonic() + (self._patience if seconds is None else seconds)
        while (actual := read()) != expected and time.monotonic() < deadline:
            time.sleep(_PAUSE_SECONDS)
        return actual

    def _settle(self, what: str, expected: object, read: Callable[[], object]) -> None:
        self.check(what, expected, self._eventually(read, expected))

    def _request(self, path: str, document: Any = None, *, signed: bool = True) -> tuple[int, Any]:
        """Post a document, text as it is, or get what there is; signed with the caller's credentials."""
        body = None if document is None else (document if isinstance(document, str) else json.dumps(document)).encode()
        request = AWSRequest(
            "GET" if body is None else "POST", self._url + path, {"Content-Type": "application/json"}, body
        )
        if signed:
            credentials = boto3.session.Session().get_credentials()
            assert credentials is not None
            SigV4Auth(credentials.get_frozen_credentials(), "execute-api", self._account.region).add_auth(request)
        prepared = request.prepare()
        headers = dict(prepared.headers.items())
        # The address is the API's own.
        http_request = urllib.request.Request(prepared.url, body, headers, method=prepared.method)  # noqa: S310
        try:
            with urllib.request.urlopen(http_request, timeout=_REQUEST_SECONDS) as response:  # noqa: S310
                return response.status, _document(response.read())
        except urllib.error.HTTPError as error:
            with error:
                return error.code, _document(error.read())

    def _refusals(self) -> None:
        """Unsigned requests are refused with 403, and bodies that are no event with 400."""
        if self._account.emulated:
            self._skip("an unsigned request", "the emulator checks no signatures")
        else:
            self.check("an unsigned request", 403, self._request("/v1/site", signed=False)[0])
        status, problem = self._request("/events", [_MALFORMED])
        self.check("a malformed event in validated mode", 400, status)
        self.check("its reason names the attribute", True, "time" in json.dumps(problem))

    def _counts(self, rng: random.Random, count: int) -> None:
        """Everything sent is counted once: by page, in all, and in the last 24 hours."""
        end, distinct = datetime.now(UTC), round(count / (1 + _SHARE))
        views = [
            {
                "url": f"/smoke/{rng.randrange(_PAGES)}",
                "time": (end - timedelta(seconds=rng.randrange(60, 3600))).isoformat(timespec="seconds"),
                "clientId": f"client-{number}",
            }
            for number in range(distinct)
        ]
        events = with_duplicates(rng, views, (count - distinct) / distinct)
        starts = range(0, len(events), _EVENTS_PER_REQUEST)
        answers = {self._request("/events", events[start : start + _EVENTS_PER_REQUEST])[0] for start in starts}
        self.check("events are taken", {202}, answers)
        self._progress(f"sent {len(events)} events, {distinct} of them different; waiting until they are counted")
        by_url = Counter(view["url"] for view in views)
        page = min(by_url)
        day = f"/v1/views_24h?last=24h&{urlencode({'url': page})}"
        self._settle("views of all pages", distinct, lambda: self._read("/v1/site")["measures"]["site_views"])
        self._settle("views by page", dict(by_url), lambda: self._by_url(by_url))
        self._settle("views in 24 hours", by_url[page], lambda: self._read(day)["count"])

    def _by_url(self, urls: Iterable[str]) -> dict[str, Any]:
        return {url: self._read(f"/v1/views?{urlencode({'url': url})}")["measures"]["views"] for url in urls}

    def _read(self, path: str) -> Any:
        status, answer = self._request(path)
        if status != HTTPStatus.OK:
            raise RuntimeError(f"{path}: status {status}: {answer}")
        return answer

    def _shards(self) -> None:
        """Batches name their shard: checkpoint items are of shards that the stream has."""
        if self._account.emulated:
            self._skip("shard ids of the checkpoints", "the emulator does not name a batch's shard")
            return
        dynamodb, table = self._account.client("dynamodb"), self._outputs["TableName"]
        pages = dynamodb.get_paginator("scan").paginate(
            TableName=table,
            FilterExpression="begins_with(pk, :checkpoint) AND attribute_exists(shard)",
            ExpressionAttributeValues={":checkpoint": {"S": "CHECKPOINT#"}},
        )
        noted = {item["shard"]["S"] for page in pages for item in page["Items"]}
        stream = dynamodb.describe_table(TableName=table)["Table"]["LatestStreamArn"]
        streams = self._account.client("dynamodbstreams")
        shards = {item["ShardId"] for item in streams.describe_stream(StreamArn=stream)["StreamDescription"]["Shards"]}
        self.check("there are checkpoints", True, bool(noted))
        self.check("checkpoints of shards that the stream does not have", set(), noted - shards)

    def _quarantine(self) -> None:
        """Spoil a group: its views wait in quarantine; repaired and redriven, they count once."""
        dynamodb = self._account.client("dynamodb")
        counters = Counters(self._outputs["TableName"], client=dynamodb)
        key = {"pk": {"S": f"URL#{_SPOILED}"}, "sk": {"S": "STATISTICS"}}
        table = {"TableName": self._outputs["TableName"], "Key": key, "ExpressionAttributeNames": {"#views": "views"}}
        dynamodb.update_item(
            **table, UpdateExpression="SET #views = :text", ExpressionAttributeValues={":text": {"S": "spoiled"}}
        )
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 60))
        self._request("/events", {"url": _SPOILED, "time": now, "clientId": "c"})
        self._eventually(lambda: any(counters.quarantined()), expected=True)
        waiting = list(counters.quarantined())
        self.check("views of a spoiled group in quarantine", 1, len(waiting))
        dynamodb.update_item(**table, UpdateExpression="REMOVE #views")
        for entry in waiting:
            self.check("an entry is redriven", True, counters.redrive(entry))
        self._settle(
            "views of the repaired group",
            1,
            lambda: counters.get(VIEWS, url=_SPOILED, consistent=True).measures["views"],
        )
        self.check("what waits after the redrive", 0, len(list(counters.quarantined())))

    def _dead_letter(self) -> None:
        """In direct mode no receiver validates an event: the malformed one ends in the dead-letter queue."""
        what, emulated = "the malformed event of direct mode is a dead letter", self._account.emulated
        status, _ = self._request("/direct", "no JSON")
        if emulated and status != HTTPStatus.ACCEPTED:
            self._skip(what, f"the emulator has no direct integration with a queue (status {status})")
            return
        self.check("direct mode takes anything", 202, status)
        queue = {"QueueUrl": self._outputs["DeadLetterQueue"], "AttributeNames": ["ApproximateNumberOfMessages"]}

        def letters() -> int:
            answer = self._account.client("sqs").get_queue_attributes(**queue)
            return int(answer["Attributes"]["ApproximateNumberOfMessages"])

        count = self._eventually(letters, 1, 10.0 if emulated else None)
        if emulated and not count:
            self._skip(what, "the emulator's CloudFormation leaves the redrive policy out")
            return
        self.check(what, 1, count)

    def _alarms(self) -> None:
        """Every alarm of the template exists, and none is on that nothing here has provoked."""
        created = self._account.resources(self._stack)
        expected = {name for name, kind in created if kind == "AWS::CloudWatch::Alarm"}
        paginator = self._account.client("cloudwatch").get_paginator("describe_alarms")
        pages = paginator.paginate(AlarmTypes=["MetricAlarm"])
        states = {
            alarm["AlarmName"]: alarm["StateValue"]
            for page in pages
            for alarm in page["MetricAlarms"]
            if alarm["AlarmName"] in expected
        }
        self.check("alarms of the template that do not exist", set(), expected - {*states})
        if self._account.emulated:
            self._skip("states of alarms", "the emulator does not evaluate them")
            return
        on = [name for name, state in states.items() if state == "ALARM"]
        unprovoked = [name for name in on if not any(part in name for part in _PROVOKED)]
        self.check("alarms that nothing has provoked", [], unprovoked)

    def _window(self) -> None:
        """Ask whether batches of more than 10 records need a window, which the constructs assume."""
        what = "a batching window of 0 for batches of 100 records"
        if self._account.emulated:
            self._skip(what, "the emulator checks no settings of a mapping")
            return
        functions = self._account.client("lambda")
        created = self._account.resources(self._stack)
        for mapping in (name for name, kind in created if kind == "AWS::Lambda::EventSourceMapping"):
            if ":dynamodb:" not in functions.get_event_source_mapping(UUID=mapping)["EventSourceArn"]:
                continue
            try:
                functions.update_event_source_mapping(UUID=mapping, BatchSize=100, MaximumBatchingWindowInSeconds=0)
                self.check(what, "refused", "accepted")
            except functions.exceptions.InvalidParameterValueException:
                self.check(what, "refused", "refused")


def _document(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return body.decode(errors="replace")
