from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

import demo.run
from demo.__main__ import main
from demo.options import InputError
from dynamodb_counters._dev.cdk import CdkError
from dynamodb_counters._dev.emulator import EmulatorError


@pytest.fixture(autouse=True)
def _signals() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("status", [0, 1])
def test_the_run_decides_the_status(monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    monkeypatch.setattr(demo.run, "run", lambda *_: status)

    assert main([]) == status


@pytest.mark.parametrize(("error", "status"), [(InputError("why"), 2), (CdkError("why"), 1), (EmulatorError("why"), 1)])
def test_a_failure_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception, status: int
) -> None:
    def fail(*_: object) -> int:
        raise error

    monkeypatch.setattr(demo.run, "run", fail)

    assert main([]) == status
    assert capsys.readouterr().err == "demo: error: why\n"


def test_ctrl_c_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo.run, "run", lambda *_: signal.raise_signal(signal.SIGINT))

    assert main([]) == 130


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_other_signals_end_it_through_every_finally(monkeypatch: pytest.MonkeyPatch, number: signal.Signals) -> None:
    cleaned = []

    def run(*_: object) -> int:
        try:
            os.kill(os.getpid(), number)
            return 0
        finally:
            cleaned.append(True)

    monkeypatch.setattr(demo.run, "run", run)

    with pytest.raises(SystemExit) as ended:
        main([])
    assert (ended.value.code, cleaned) == (128 + number, [True])
