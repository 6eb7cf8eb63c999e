"""The example app, deployed once for all tests that ask what is deployed."""

from __future__ import annotations

import json
import shutil
import signal
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest

from counters_cli.emulator import Emulator
from tests.conftest import IN_CI
from tests.e2e.demonstration import PATIENCE_SECONDS, PROJECT, Run, demonstration, write_log
from tests.integration import waiting

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

AXE = PROJECT / "node_modules" / "axe-core" / "axe.min.js"
FLAGS = [f"--disable-{part}" for part in ("gpu", "quic", "background-networking", "component-update", "sync")]
FLAGS += ["--headless", "--no-sandbox", "--no-first-run"]

_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@dataclass(frozen=True)
class Blog:
    emulator: Emulator
    outputs: dict[str, str]

    @property
    def url(self) -> str:
        return f"{self.emulator.endpoint_url}/_aws/execute-api/{self.outputs['ApiId']}/$default/"

    def ask(self, path: str, **parameters: str) -> tuple[int, Any]:
        return self._request(f"{self.url}{path}?{urlencode(parameters)}" if parameters else self.url + path)

    def post(self, document: Any) -> tuple[int, Any]:
        return self.send("POST", "events", document)

    def send(self, method: str, path: str, document: Any) -> tuple[int, Any]:
        data = document if isinstance(document, bytes) else json.dumps(document).encode()
        headers = {"Content-Type": "application/json"}
        return self._request(urllib.request.Request(self.url + path, data, headers, method=method))

    def views(self, url: str) -> int:
        status, group = self.ask("v1/views", url=url)
        assert status == 200, group
        return int(group["measures"]["views"])

    def _request(self, request: str | urllib.request.Request) -> tuple[int, Any]:
        try:
            with _OPENER.open(request, timeout=60) as response:
                return response.status, json.loads(response.read())
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read())


ANSWER_SECONDS = 180.0
eventually = partial(waiting.eventually, seconds=ANSWER_SECONDS)
"""Wait for a condition; return whether it holds."""


@pytest.fixture(scope="session")
def demo_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Return the demonstration as it is kept, until Ctrl-C; then nothing is left."""
    directory = tmp_path_factory.mktemp("demo")
    log, report = str(write_log(directory / "access log")), str(directory / "report.json")
    options = ("--log", log, "--duplicates", "0.5", "--report", report, "--keep")
    with demonstration(directory, "--example", "blog,jobs,leaderboard,orders", *options) as run:
        port = run.port
        run.wait_for("until Ctrl-C", run.output)
        yield run
        run.process.send_signal(signal.SIGINT)
        assert run.process.wait(PATIENCE_SECONDS) == 0
        run.assert_nothing_is_left(port)


@pytest.fixture(scope="session")
def blog(demo_process: Run) -> Blog:
    """Return the blog of the example app, which the demonstration keeps."""
    deployment = demo_process.deployment()
    return Blog(deployment.emulator, dict(deployment.outputs["CountersBlog"]))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    missing = [what for what, there in (("chromium", shutil.which("chromium")), (str(AXE), AXE.exists())) if not there]
    if missing:
        message = f"the page is tested with {' and '.join(missing)}: apt install chromium; npm ci"
        pytest.fail(message, pytrace=False) if IN_CI else pytest.skip(message)
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - only needed here

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        yield browser
        browser.close()


def violations(page: Page) -> list[str]:
    # By the browser's own means: the page's policy lets no script in, not even this one.
    page.context.new_cdp_session(page).send("Runtime.evaluate", {"expression": AXE.read_text()})
    report = page.evaluate("axe.run()")
    assert len(report["passes"]) > 10
    return [f"{violation['impact']}: {violation['id']}" for violation in report["violations"]]
