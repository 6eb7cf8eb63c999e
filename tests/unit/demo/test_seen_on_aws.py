"""The questions to AWS and their page: answers say what was given, and nothing is called seen that was not."""

from __future__ import annotations

import io
import json
import os
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import boto3
import pytest

from demo.aws_smoke import checks, probe_function
from demo.aws_smoke import run as smoke
from demo.aws_smoke.account import Account, AccountError
from demo.aws_smoke.deployed import Deployed
from demo.aws_smoke.estimate import dollars_of
from demo.aws_smoke.expectations import Expectations
from demo.aws_smoke.options import Options
from demo.aws_smoke.page import PAGE, Page, origin_of
from demo.aws_smoke.questions import chains, completions, latencies, metrics, poisoned_batch, refusals
from demo.aws_smoke.questions.asked import AFTER_EVENTS, BEFORE_EVENTS
from demo.aws_smoke.questions.chains import links
from demo.aws_smoke.questions.latencies import init_milliseconds
from demo.aws_smoke.questions.question import Answer, Question, ask
from demo.terminal import Progress

DAY = date(2026, 11, 26)
ACCOUNT = Account("123456789012", "eu-central-1", "arn:aws:iam::123456789012:user/u", None)
SHARD = "shardId-1"


class Cloud:
    """Clients that check requests by AWS's models; each operation's answers come in turn, the last one for ever."""

    def __init__(self, **answers: Any) -> None:
        self.answers = {name: found if isinstance(found, list) else [found] for name, found in answers.items()}
        self.requests: list[Any] = []

    def client(self, service: str) -> Any:
        key = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
        created: Any = boto3.client(service, region_name="us-east-1", **key)  # type: ignore[call-overload]
        created.meta.events.register("before-call", self._answer)
        return created

    def _answer(self, model: Any, params: Any, **_: Any) -> tuple[Any, Any]:
        if model.metadata["protocol"] == "json":
            self.requests.append(json.loads(params["body"]))
        found = self.answers.get(model.name, [{}])
        answer = found.pop(0) if len(found) > 1 else found[0]
        return SimpleNamespace(status_code=400 if "Error" in answer else 200), answer


class Outputs(dict[str, str]):
    def __missing__(self, name: str) -> str:
        return f"the-{name}"


def deployed(emulated: bool = False, **answers: Any) -> Deployed:
    """A deployment whose account gives these answers."""
    cloud = Cloud(**answers)
    account = replace(ACCOUNT, endpoint_url="http://127.0.0.1:1") if emulated else ACCOUNT
    seen = SimpleNamespace(**vars(account), emulated=emulated, client=cloud.client)
    expectations = Expectations(Progress(io.StringIO()))
    return Deployed(cast("Account", seen), "stack", Outputs(), cast("Any", None), expectations, patience_seconds=0.0)


def lines(*printed: Any, at: float = 1000.0) -> dict[str, Any]:
    messages = [one if isinstance(one, str) else json.dumps(one) for one in printed]
    return {"events": [{"timestamp": int(at * 1000) + n, "message": text} for n, text in enumerate(messages)]}


# The page


def test_the_page_in_the_repository_is_what_runs_have_seen() -> None:
    page = Page.parse(PAGE.read_text()) if PAGE.exists() else Page()
    if os.environ.get("UPDATE_SNAPSHOTS"):
        PAGE.write_text(page.text())
    assert PAGE.read_text() == page.text()
    assert page.seen == {} or page.run is not None


def test_a_page_keeps_the_answers_to_its_questions() -> None:
    [question, *_] = BEFORE_EVENTS
    page = Page(origin_of(ACCOUNT, DAY), {question.text: "as assumed: a|b\nc", "Another?": "yes"})
    read = Page.parse(page.text())
    assert read.seen == {question.text: "as assumed: a/b c"}
    assert read.run == (DAY, "eu-central-1")
    assert Page.parse(page.text().replace("Seconds: ", "Minutes: ")).seen == {}
    assert "123456789012" not in page.text()


def test_nothing_on_the_page_of_an_emulator_was_seen_on_aws(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text(Page(origin_of(replace(ACCOUNT, endpoint_url="http://127.0.0.1:1"), DAY)).text())
    assert "nothing on this page was seen on AWS" in path.read_text()
    with pytest.raises(AccountError, match="expected one that a run on AWS has written"):
        smoke.add_costs(ACCOUNT, path)


@pytest.mark.parametrize("emulated", [True, False])
def test_only_a_run_on_aws_writes_the_page_of_the_repository(
    emulated: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(smoke, "PAGE", path := tmp_path / "page.md")
    monkeypatch.setattr(smoke, "deploy", lambda *_: {"ApiId": "api"})
    monkeypatch.setattr(smoke, "remove", lambda *_: [])
    monkeypatch.setattr(smoke, "ask_deployed", lambda *_: "as assumed: yes")
    for check in ("refusals", "counts", "shards", "quarantine", "dead_letter", "alarms"):
        monkeypatch.setattr(checks, check, lambda *_: None)
    account = deployed(emulated).account
    monkeypatch.setattr(account, "url", lambda _: "http://127.0.0.1:1", raising=False)
    smoke.run(account, Options(yes=True, seed=1, events=10, patience_seconds=1.0), Progress(io.StringIO()))
    assert path.exists() is not emulated
    if not emulated:
        assert len(Page.parse(path.read_text()).seen) == len(BEFORE_EVENTS) + len(AFTER_EVENTS)


def test_costs_are_added_to_the_page_of_a_run(tmp_path: Path) -> None:
    def part(kind: str, dollars: str, amount: str, **more: str) -> dict[str, Any]:
        found = {"UnblendedCost": {"Amount": dollars}, "UsageQuantity": {"Amount": amount}}
        return {"ResultsByTime": [{"Groups": [{"Keys": [kind], "Metrics": found}]}], **more}

    path = tmp_path / "page.md"
    path.write_text(Page(origin_of(ACCOUNT, DAY)).text())
    bill = [
        part("EUC1-WriteRequestUnits", "0.03", "40000", NextPageToken="more"),
        part("CW:MetricMonitorUsage", "0", "0.01"),
    ]
    asked = deployed(GetCostAndUsage=bill, ListMetrics={"Metrics": [{}] * 4})
    smoke.add_costs(asked.account, path)
    whole, metered = Page.parse(path.read_text()).seen.values()
    assert whole == "$0.0300 in the account's region that day; most of it: `EUC1-WriteRequestUnits` 0.0300"
    assert metered == "7.3 hours of custom metrics in the account's region that day; the runtime has 4 there"


@pytest.mark.parametrize(
    ("found", "seen", "summary"),
    [
        (Answer("1 s", as_assumed=True), "as assumed: 1 s", (1, 0, 0)),
        (Answer("9 s", as_assumed=False), "**otherwise**: 9 s", (0, 1, 0)),
        (Answer("5 ms", as_assumed=None), "5 ms", (0, 0, 0)),
        (ValueError("arn:aws:iam::123456789012:user/u"), "not answered: ValueError", (0, 1, 0)),
        (completions.nested, "not answered: the emulator sends no events of CloudFormation", (0, 0, 1)),
    ],
)
def test_an_answer_is_as_assumed_or_otherwise_or_missing(found: Any, seen: str, summary: tuple[int, int, int]) -> None:
    def answer(given: Deployed) -> Answer:
        if isinstance(found, Exception):
            raise found
        return found if isinstance(found, Answer) else cast("Answer", found(given))

    given = deployed(emulated=True)
    assert ask(Question("Is it?", "yes", answer), given) == seen
    noted = given.expectations
    assert (len(noted.met), len(noted.differences), len(noted.skipped)) == summary


# Questions to AWS, whose answers are canned: requests are checked by botocore


def _printed(name: str, hops: int, header: str, own: str = "") -> dict[str, Any]:
    message = {"id": "1", "body": {"name": name, "hops": hops, "fails": True}, "header": header}
    return {"Records": [message], "header": own}


def _stream(keys: str, first: int = 1, last: str | None = None, *, final: bool = False) -> dict[str, Any]:
    """An invocation with records of these keys, `!` being the one that fails."""
    records = [{"key": "poison" if key == "!" else key, "sequence": f"{first + n}"} for n, key in enumerate(keys)]
    state = {"last": last} if last else {}
    window = {"start": "0", "end": "30"}
    return {"Records": records, "state": state, "window": window, "shardId": SHARD, "isFinalInvokeForWindow": final}


BISECTED = (_stream("ab!d"), _stream("ab"), _stream("!d", 3, "2"), _stream("!", 3, "2"), _stream("d", 4, "2"))
CHAIN = tuple(_printed("chain", 4 - n, f"Root=1;Lineage=1:ab:{n}" if n else "Root=1") for n in range(5))
OBJECT = {
    "timestamp": "2026-11-26T10:00:00.000Z",
    "DDBStreamBatchInfo": {"shardId": SHARD, "streamArn": "arn:s"},
    "payload": json.dumps(
        {"Records": [{"dynamodb": {"SequenceNumber": "1", "ApproximateCreationDateTime": 1, "Keys": {}}}]}
    ),
}
COMPLETED = {
    "StackEvents": [
        {
            "LogicalResourceId": "stack",
            "ResourceStatus": "CREATE_COMPLETE",
            "Timestamp": datetime.fromtimestamp(990, UTC),
        }
    ]
}
MOVED = {
    "ReceiveMessage": {"Messages": [{"Attributes": {"AWSTraceHeader": "Lineage=1:ab:4"}}]},
    "GetQueueAttributes": {"Attributes": {"QueueArn": "arn:q"}},
}
ALIAS = {"GetAlias": {"FunctionVersion": "$LATEST"}, "Invoke": {}}


def _points(**value: float) -> dict[str, Any]:
    return {"Datapoints": [value]}


def _refusals(units: float | None) -> dict[str, Any]:
    stored: dict[str, Any] = {}
    refused = {"Error": {"Code": "ConditionalCheckFailedException", "Message": ""}}
    capacity = {} if units is None else {"ConsumedCapacity": [{"CapacityUnits": units}]}
    duplicate = {"Responses": [{"Error": {"Code": "DuplicateItem"}}], **capacity}
    puts = [stored, *[refused] * 10, stored, stored, stored]
    return {
        "PutItem": puts,
        "UpdateItem": refused,
        "TransactWriteItems": refused,
        "BatchExecuteStatement": duplicate,
    }


def _object(document: Any, below: str = "aws/lambda/") -> dict[str, Any]:
    key = f"{below}m-1/shardId-1/2026/11/26/2026-11-26T10.00.00-r"
    return {
        "FilterLogEvents": lines(*BISECTED),
        "ListObjectsV2": {"Contents": [{"Key": key}]},
        "GetObject": {"Body": io.BytesIO(json.dumps(document).encode())},
    }


@pytest.mark.parametrize(
    ("asked", "answers", "expected"),
    [
        (
            completions.takeover,
            {"FilterLogEvents": lines("deployment 1 takes over: it"), "DescribeStackEvents": COMPLETED},
            "as assumed: 10.0 s after",
        ),
        (
            completions.nested,
            {"FilterLogEvents": lines({"source": "aws.cloudformation", "time": "1970-01-01T00:16:38Z"})},
            "as assumed: its event came 2.0 s",
        ),
        (completions.takeover, {"FilterLogEvents": lines("START")}, "**otherwise**: no takeover within 0 s"),
        (
            completions.nested,
            {"FilterLogEvents": lines({"Records": []})},
            "**otherwise**: no event of the nested stack",
        ),
        (chains.by_hop, {"FilterLogEvents": lines(*CHAIN[:-1])}, "**otherwise**: the message did not make 4 hops"),
        (
            chains.by_hop,
            {"FilterLogEvents": lines(CHAIN[0], *[_printed("chain", 3 - n, "Lineage=a:1") for n in range(4)])},
            "**otherwise**: by hop: none, 1, 1, 1, 1",
        ),
        (chains.by_hop, {"FilterLogEvents": lines(*CHAIN)}, "as assumed: by hop: none, 1, 2, 3, 4"),
        (
            chains.redriven,
            {**MOVED, "FilterLogEvents": [lines(CHAIN[-1]), lines(CHAIN[-1], CHAIN[-1])]},
            "as assumed: chain before 4, as a dead letter 4, moved back 4",
        ),
        (
            chains.redriven,
            {**MOVED, "FilterLogEvents": [lines(CHAIN[-1]), lines(CHAIN[-1], _printed("chain", 0, ""))]},
            "**otherwise**: chain before 4, as a dead letter 4, moved back none",
        ),
        (
            chains.redriven,
            {**MOVED, "FilterLogEvents": lines(CHAIN[-1])},
            "**otherwise**: the message did not come back",
        ),
        (
            poisoned_batch.handed_over,
            _object(OBJECT),
            "as assumed: below `aws/lambda/`, with `DDBStreamBatchInfo`, `payload`, `timestamp`; 1 records",
        ),
        (poisoned_batch.handed_over, _object(OBJECT, "lambda/dynamodb/"), "**otherwise**: below `lambda/dynamodb/`"),
        (poisoned_batch.handed_over, {"FilterLogEvents": lines()}, "**otherwise**: the batch did not arrive"),
        (
            poisoned_batch.handed_over,
            _object({**OBJECT, "payload": None}),
            "**otherwise**: an object with `DDBStreamBatchInfo`, `payload`, `timestamp`: not what",
        ),
        (
            poisoned_batch.bisected,
            {"FilterLogEvents": lines(*BISECTED, _stream("", last="4", final=True))},
            "as assumed: batches of 4 (failed), 2, 2 (failed), 1 (failed), 1;",
        ),
        (
            poisoned_batch.bisected,
            {"FilterLogEvents": lines(*BISECTED, _stream("", last="2", final=True))},
            "**otherwise**: ",
        ),
        (
            poisoned_batch.undelivered,
            {"GetMetricStatistics": _points(Sum=1.0)},
            "as assumed: `DestinationDeliveryFailures` of the function: 1",
        ),
        (
            refusals.in_answers,
            _refusals(3.0),
            "as assumed: write units in the answer: Put none, Update none, Transaction none, Insert 3",
        ),
        (refusals.in_answers, _refusals(None), "**otherwise**: "),
        (
            refusals.in_metrics,
            {"GetMetricStatistics": [_points(Sum=33.0), _points(Sum=33.0), _points(Sum=83.0), _points(Sum=33.0)]},
            "as assumed: write units of a refused write: Put 3 (assumed 3), Update 3",
        ),
        (
            metrics.alias,
            {**ALIAS, "GetMetricStatistics": _points(SampleCount=1.0)},
            "as assumed: the alias names `$LATEST`; its metric `Errors` has 1 samples",
        ),
        (metrics.alias, {**ALIAS, "GetMetricStatistics": {"Datapoints": []}}, "**otherwise**: the alias names"),
        (
            metrics.polled,
            {"GetMetricStatistics": _points(SampleCount=0.0)},
            "**otherwise**: `PolledEventCount` has 0 samples",
        ),
    ],
)
def test_a_question_says_what_was_seen(
    asked: Callable[[Deployed], Answer], answers: dict[str, Any], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: None)
    monkeypatch.setattr(refusals, "_METRIC_SECONDS", 0.0)
    monkeypatch.setattr(completions, "_SECONDS", 0.0)
    assert asked(deployed(**answers)).seen.startswith(expected)


def test_questions_have_different_words_and_functions() -> None:
    questions = (*BEFORE_EVENTS, *AFTER_EVENTS)
    assert (
        len({question.text for question in questions})
        == len({question.ask for question in questions})
        == len(questions)
    )


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("Root=1-64d38018-6a56;Parent=1e4d;Sampled=0;Lineage=037bed70:0", 0),
        ("Root=1-5759e988-bd86;Sampled=1;Lineage=a87bd80c:1|68fd508a:5|c512fbe3:2", 5),
        ("Lineage=1:fe460cdd:3;Sampled=1", 3),
        ("Root=1-64d38018-6a56", None),
        ("Lineage=?", None),
        ("", None),
    ],
)
def test_a_header_counts_its_longest_chain(header: str, expected: int | None) -> None:
    assert links(header) == expected


@pytest.mark.parametrize(("own", "expected"), [("4", "as assumed: "), ("1", "**otherwise**: ")])
def test_the_chain_of_a_batch_is_that_of_its_invocation(own: str, expected: str) -> None:
    mixed = {"Records": [CHAIN[3]["Records"][0], CHAIN[0]["Records"][0]], "header": f"Lineage=1:ab:{own}"}
    assert chains.followed_in_batch([CHAIN[1], mixed]).seen.startswith(f"{expected}longest chain")
    assert chains.followed_in_batch([CHAIN[1]]).as_assumed is None


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("REPORT RequestId: 1\tDuration: 2 ms\tInit Duration: 480.25 ms", 480.25),
        ('{"type": "platform.report", "record": {"metrics": {"durationMs": 1, "initDurationMs": 411.9}}}', 411.9),
        ('{"type": "platform.report", "record": {"metrics": {"durationMs": 1}}}', None),
        ("REPORT RequestId: 1\tDuration: 2 ms", None),
    ],
)
def test_a_report_says_how_long_a_cold_start_was(line: str, expected: float | None) -> None:
    assert init_milliseconds(line) == expected


def test_cold_starts_are_read_by_log_group() -> None:
    name = "CountersSmoke-1-AggregatorLogGroup0A1B2C3D-x9"
    found = {"StackResourceSummaries": [{"PhysicalResourceId": name, "ResourceType": "AWS::Logs::LogGroup"}]}
    reports = lines("REPORT\tInit Duration: 480.25 ms", "REPORT", "REPORT\tInit Duration: 520 ms")
    assert (
        latencies.cold_starts(deployed(ListStackResources=found, FilterLogEvents=reports)).text
        == "Aggregator 480-520 ms (2)"
    )


# The probe's function, and the bound


def _message(**body: Any) -> dict[str, Any]:
    return {"messageId": body["name"], "body": json.dumps(body), "attributes": {"AWSTraceHeader": "Lineage=1:ab:2"}}


def test_a_message_is_sent_on_until_its_hops_are_over(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cloud = Cloud()
    sqs = cloud.client("sqs")
    monkeypatch.setenv("QUEUE_URL", "https://queue")
    monkeypatch.setattr(boto3, "client", lambda _: sqs)
    messages = [
        _message(name="a", hops=2, fails=True),
        _message(name="b", hops=0, fails=True),
        _message(name="c", hops=0, fails=False),
    ]
    answer = probe_function.handler({"Records": messages}, None)
    assert answer["batchItemFailures"] == [{"itemIdentifier": "b"}]
    [sent] = cloud.requests
    assert json.loads(sent["MessageBody"]) == {"name": "a", "hops": 1, "fails": True}
    assert links(json.loads(capsys.readouterr().out)["Records"][0]["header"]) == 2


def test_a_batch_with_a_poisoned_record_fails_and_others_move_the_state() -> None:
    def batch(*keys: str) -> dict[str, Any]:
        records = [
            {"dynamodb": {"Keys": {"sk": {"S": key}}, "SequenceNumber": f"{n}"}} for n, key in enumerate(keys, 7)
        ]
        return {"Records": records, "state": {"last": "6"}}

    assert probe_function.handler(batch("a", "b"), None)["state"] == {"last": "8"}
    assert probe_function.handler(batch(), None)["state"] == {"last": "6"}
    with pytest.raises(ValueError, match="poison"):
        probe_function.handler(batch("a", "poison"), None)


def test_a_run_that_would_cost_more_than_a_dollar_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    told = io.StringIO()
    assert smoke.run(ACCOUNT, Options(yes=True, seed=1, events=1_000_000, patience_seconds=1.0), Progress(told)) == 1
    assert "invalid events=1000000: expected fewer, for at most $1, not $" in told.getvalue()
    assert capsys.readouterr().err == ""
    assert 0.01 < dollars_of(1000) < 0.1
