"""Hypothesis profiles, a sealed environment and the engines of all tests."""

from __future__ import annotations

import gc
import os
import re
import signal
import uuid
from shutil import which
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

from simulation.engines import Engine, EngineUnavailableError, dynamodb_local
from simulation.engines.tables import create_table
from simulation.night import NIGHT
from tests.engines import has_ministack, start_ministack, start_moto

if TYPE_CHECKING:
    from collections.abc import Iterator

IN_CI = bool(os.environ.get("CI"))
if not NIGHT:
    # Half of each synthesis would go into CloudFormation's rules, which only warn. Read when the CDK's process starts.
    os.environ.setdefault("CDK_VALIDATION", "false")
# DynamoDB Local is the judge; the others differ in nothing that a change of ours touches, so a night is enough.
ENGINES = ["dynamodb_local" if IN_CI or (which("mvn") and which("javac")) else "moto"]
if os.environ.get("ENGINES") == "all":
    ENGINES = ["dynamodb_local", "moto", *(["ministack"] if has_ministack() else [])]

# No deadline: a slow machine is no bug. The blob and the seed make a failure repeatable elsewhere.
EXAMPLES = max(25 * NIGHT, 30)
settings.register_profile("dev", print_blob=True, deadline=None, max_examples=EXAMPLES)
settings.register_profile(
    "ci", print_blob=True, deadline=None, max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow]
)
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "ci" if IN_CI else "dev")
settings.load_profile(PROFILE)

# One process runs all that share a deployment, DynamoDB Local, or the templates and the processes of the CDK.
_SHARED = {
    "deployed": re.compile(r"tests/e2e/test_(demo|page)\.py"),
    "dynamodb_local": re.compile(r".*dynamodb_local|tests/(integration/|exactly_once/test_crashes\.py)"),
    "stacks": re.compile(
        r"tests/(gate/|unit/infra/)"
        r"|tests/site/test_blocks\.py::test_blocks_run\[(../README|examples)"
    ),
}


def pytest_configure() -> None:
    """Let Ctrl-C through: a shell has what it starts in the background ignore it, children included."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Leave to the night what is marked so; the summary says how many tests that are."""
    if not NIGHT and item.get_closest_marker("night"):
        pytest.skip("waits for the night: `make nightly`, or NIGHT=1 here")


def pytest_collection_finish() -> None:
    """Leave modules and tests, which stay to the end, out of every garbage collection."""
    gc.collect()
    gc.freeze()


class _SlowFilesFirst(LoadFileScheduling):  # type: ignore[misc]
    """Whole files in the order collected: end-to-end tests first, so that the last file to start is a quick one."""

    def __init__(self, config: pytest.Config, log: Any) -> None:
        config.option.loadscopereorder = False
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return next((name for name, pattern in _SHARED.items() if pattern.match(nodeid)), file)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling:
    return _SlowFilesFirst(config, log)


@pytest.fixture(scope="session", autouse=True)
def _no_real_account() -> Iterator[None]:
    """Keep every test, and every process it starts, away from the developer's own AWS account."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(("AWS_", "CDK_"))]:
            patch.delenv(name)
        for name, value in {
            **dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), "testing"),
            **dict.fromkeys(("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"), os.devnull),
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }.items():
            patch.setenv(name, value)
        yield


@pytest.fixture(scope="session")
def dynamodb_local_engine() -> Iterator[dynamodb_local.DynamoDBLocal]:
    """Start DynamoDB Local; without Java or Maven tests on it are skipped, in CI they fail."""
    try:
        with dynamodb_local.start() as engine:
            yield engine
    except EngineUnavailableError as missing:
        if IN_CI:
            pytest.fail(str(missing), pytrace=False)
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def ministack_engine() -> Iterator[Engine]:
    """Start the emulator the demo deploys to."""
    with start_ministack() as engine:
        yield engine


@pytest.fixture
def moto_engine() -> Iterator[Engine]:
    """moto, empty for each test."""
    with start_moto() as engine:
        yield engine


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Engine:
    """Every engine asked for, in turn."""
    engine = request.getfixturevalue(f"{request.param}_engine")
    assert isinstance(engine, Engine)
    return engine


@pytest.fixture
def table(engine: Engine) -> Iterator[str]:
    """Create an empty table on the engine."""
    name = f"counters-{uuid.uuid4().hex[:12]}"
    # Tests set their own clock, which the engine's TTL process does not follow, and hand over records themselves.
    # The streams of tables that are gone would slow DynamoDB Local down.
    create_table(engine.client, name, expires=False, streams=False)
    yield name
    engine.client.delete_table(TableName=name)
