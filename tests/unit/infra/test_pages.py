"""The constructs' pages: their examples run, and they name every argument, grant and metric."""

from __future__ import annotations

import inspect
import re
from typing import Any

import aws_cdk
import pytest
from aws_cdk import Stack, aws_dynamodb, aws_lambda

import cdk_dynamodb_counters
from cdk_dynamodb_counters import CounterApi, DedupCounterTable, EventIngest, StreamAggregator, WindowedCounter
from tests.unit.infra.support import PROJECT, VIEWS, synthesized

PAGES = {
    DedupCounterTable: PROJECT / "docs" / "constructs" / "dedup-counter-table.md",
    StreamAggregator: PROJECT / "docs" / "constructs" / "stream-aggregator.md",
    WindowedCounter: PROJECT / "docs" / "constructs" / "windowed-counter.md",
    EventIngest: PROJECT / "docs" / "constructs" / "event-ingest.md",
    CounterApi: PROJECT / "docs" / "constructs" / "counter-api.md",
}
MORE_PAGES = [PROJECT / "docs" / "constructs" / "function-settings.md", PROJECT / "docs" / "threat-model.md"]
EXAMPLES = [
    pytest.param(code, id=f"{page.stem}-{index}")
    for page in (*PAGES.values(), *MORE_PAGES)
    for index, code in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL))
]


@pytest.mark.parametrize("code", EXAMPLES)
def test_example_synthesizes(code: str, stack: Stack) -> None:
    inline, runtime = aws_lambda.Code.from_inline("pass"), aws_lambda.Runtime.PYTHON_3_14
    function = aws_lambda.Function(stack, "Function", code=inline, handler="index.handler", runtime=runtime)
    namespace: dict[str, Any] = {"self": stack, "function": function, "TableV2": aws_dynamodb.TableV2}
    namespace |= vars(cdk_dynamodb_counters) | {"Duration": aws_cdk.Duration, "VIEWS": VIEWS}
    exec(code, namespace)
    synthesized(stack)


@pytest.mark.parametrize("construct", PAGES)
def test_page_tells_of_everything_public(construct: Any) -> None:
    page = PAGES[construct].read_text()
    arguments = list(inspect.signature(construct.__init__).parameters)[3:]
    inherited = {"is_construct", "node", "to_string", "with_"}
    members = [name for name in dir(construct) if not name.startswith("_") and name not in inherited]
    assert members
    assert [name for name in {*arguments, *members} if f"`{name}" not in page] == []
