from __future__ import annotations

from pathlib import Path

import pytest

from demo.examples.blog.example import Blog
from demo.examples.blog.traffic import View
from demo.platform.deployment import Deployment
from demo.run import KEEP_SECONDS, keep
from dynamodb_counters._dev.emulator import Emulator
from tests.unit.demo.fakes import NOW

OUTPUTS = {"CountersBlog": {"TableName": "blog-table", "ApiId": "a1"}, "CountersJobs": {"TableName": "jobs-table"}}
DEPLOYMENT = Deployment(Emulator(port=1234, directory=Path("unused"), log=Path("unused")), OUTPUTS)
VIEWS = [View("/'quoted'", "2026-11-20T09:30:00+00:00", client) for client in ("c1", "c2")]


def test_it_says_how_to_query_and_waits(capsys: pytest.CaptureFixture[str]) -> None:
    waited: list[float] = []

    keep(DEPLOYMENT, [Blog(VIEWS, NOW)], waited.append)

    printed = capsys.readouterr().out
    assert waited == [KEEP_SECONDS]
    assert "export AWS_ENDPOINT_URL=http://127.0.0.1:1234\n" in printed
    assert "live page of CountersBlog: http://127.0.0.1:1234/_aws/execute-api/a1/$default/\n" in printed
    assert "counters = Counters('blog-table')\n" in printed
    assert "url = \"/'quoted'\"\n" in printed
    assert "as_of=datetime.fromisoformat('2026-11-20T09:30:00+00:00')" in printed


def test_ctrl_c_is_how_to_end_it() -> None:
    def interrupt(_seconds: float) -> None:
        raise KeyboardInterrupt

    keep(DEPLOYMENT, [Blog([], NOW)], interrupt)
