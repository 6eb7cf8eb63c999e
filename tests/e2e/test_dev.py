"""`counters dev` on an app outside this repository: deployed, sent events, changed, deployed again, gone."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.demonstration import PATIENCE_SECONDS, PROJECT, Run
from tests.integration.waiting import eventually, execute

pytestmark = pytest.mark.e2e

_COUNTERS = (sys.executable, "-m", "counters_cli.main")

_APP = """
from datetime import timedelta

from aws_cdk import App, Stack

from cdk_dynamodb_counters import DedupCounterTable, StreamAggregator, WindowedCounter
from dynamodb_counters import Aggregate, Count, Event, Window

ORDER = Event("order", pk="SHOP#{shop}", sk="ORDER#{id}")
SHOPS = Aggregate("shops", ORDER, pk="SHOP#{shop}", sk="TOTAL", measures={"orders": Count()})
LAST_DAY = Window("last_day", ORDER, pk="SHOP#{shop}", time="at", retention=timedelta(hours=25))

app = App()
stack = Stack(app, "Shop")
table = DedupCounterTable(stack, "Counters")
StreamAggregator(stack, "Aggregator", table=table, aggregates=[SHOPS])
WindowedCounter(stack, "LastDay", table=table, window=LAST_DAY)
app.synth()
"""
_MORE = """
ALL = Aggregate("all", ORDER, pk="ALL", sk="TOTAL", measures={"orders": Count()})
"""


def _environment(temporary: Path) -> dict[str, str]:
    # The CLI is on the PATH; the packages are where a wheel would have put them.
    return {
        "HOME": str(temporary),
        "PATH": os.pathsep.join([str(PROJECT / "node_modules" / ".bin"), os.environ["PATH"]]),
        "PYTHONPATH": os.pathsep.join(str(PROJECT / root) for root in ("infra", "lambdas")),
        "TMPDIR": str(temporary),
    }


@pytest.fixture
def app(tmp_path: Path) -> Path:
    directory = tmp_path / "shop"
    directory.mkdir()
    (tmp_path / "tmp").mkdir()
    (directory / "app.py").write_text(_APP)
    context = {"@aws-cdk/core:bootstrapQualifier": "mine"}
    (directory / "cdk.json").write_text(json.dumps({"app": "python3 app.py", "context": context}))
    return directory


@pytest.mark.night
def test_an_app_is_deployed_counted_changed_and_gone(app: Path, tmp_path: Path) -> None:
    printed, temporary = tmp_path / "printed", tmp_path / "tmp"
    options: Any = {"cwd": app, "env": _environment(temporary), "stderr": subprocess.STDOUT, "text": True}
    with printed.open("wb") as output:
        process = subprocess.Popen([*_COUNTERS, "dev", "--port", "0"], stdout=output, **options)
    run = Run(process, temporary, printed, printed)
    try:
        port = int(run.wait_for(r"http://127\.0\.0\.1:(\d+)", printed)[1])
        run.wait_for("^watching", printed)
        exports = dict(re.findall(r"^export (\w+)=(.*)$", printed.read_text(), re.MULTILINE))

        def counters(*arguments: str) -> str:
            done = execute([*_COUNTERS, *arguments], env=_environment(temporary) | exports, cwd=app)
            assert done.returncode == 0, done.stderr
            return done.stdout

        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        assert counters("accept", "order", "shop=a", "id=1", f"at={now}") == "accepted\n"
        (app / "orders.jsonl").write_text("".join(f'{{"shop":"b","id":"{n}","at":"{now}"}}\n' for n in (1, 2, 2)))
        counters("accept", "order", "--file", "orders.jsonl")
        for line in ("shops shop=a: orders=1", "shops shop=b: orders=2", "last_day shop=b: count=2"):
            run.wait_for(f"^{re.escape(line)}$", printed)

        (app / "test_app.py").write_text("1")
        (app / "app.py").write_text(_APP.replace("App()", "App(1, 2, 3)"))
        run.wait_for(r"^error: .*; the app deployed before still runs$", printed)
        (app / "app.py").write_text(_APP.replace("\napp =", f"{_MORE}\napp =").replace("[SHOPS]", "[SHOPS, ALL]"))
        assert eventually(lambda: '"name":"all"' in counters("describe", "--json"))
        counters("backfill", "all", "--yes")
        counters("accept", "order", "shop=c", "id=1", f"at={now}")
        run.wait_for(r"^all: orders=4$", printed)
        assert counters("verify").startswith("7 groups compared: none drifted")
        assert set(re.findall(r"^(.+) changed$", printed.read_text(), re.MULTILINE)) == {"app.py"}

        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_SECONDS) == 0
        assert printed.read_text().count("Traceback") == 1, "the app's own"
        with socket.socket() as probe:
            assert probe.connect_ex(("127.0.0.1", port)) != 0
        # A process of its own removes it: nobody waits for thousands of files.
        assert eventually(lambda: not any(path.name.startswith("emulator-") for path in temporary.iterdir()))
    finally:
        process.kill()
        process.wait()
