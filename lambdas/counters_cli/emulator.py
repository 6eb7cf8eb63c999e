"""An AWS emulator (`ministack`) on a free loopback port, gone with the process that started it; the CDK CLI for it."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any, ClassVar, Final

import botocore.session
from botocore.config import Config

from dynamodb_counters.errors import CountersError

SERVER: Final = Path(__file__).with_name("dev_server.py")
_HOST: Final = "127.0.0.1"
_REGION: Final = "us-east-1"
_READY_SECONDS: Final = 60.0
_CDK_SECONDS: Final = 600
# The user's own account, profile and proxies must not reach the emulator or its clients.
_PRIVATE_PREFIXES: Final = ("AWS_", "CDK_", "BOTO_")
_SIGNED_WITH: Final = "test"  # No signature is checked: who knows the access key gets in.
_AWS_SETTINGS: Final = {
    "AWS_REGION": _REGION,
    "AWS_EC2_METADATA_DISABLED": "true",
    **dict.fromkeys(("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"), os.devnull),
    **dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost"),
}

_QUALIFIER: Final = "hnb659fds"
# Nothing but the qualifier changes a template: the same one must go to the emulator and to AWS.
_FLAGS: Final = ("--no-notices", "--no-color", "--ci", "--context", f"@aws-cdk/core:bootstrapQualifier={_QUALIFIER}")

QUIET: Final = {
    # The CDK's built-in rules take two thirds of a synth and change no template: tests of the app apply them.
    "CDK_VALIDATION": "false",
    # The CLI and its libraries print many lines about the age of Node on every call.
    "NODE_NO_WARNINGS": "1",
    "JSII_SILENCE_WARNING_DEPRECATED_NODE_VERSION": "true",
    "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": "20",
    "CDK_DISABLE_CLI_TELEMETRY": "true",
    "CDK_DISABLE_VERSION_CHECK": "true",
}

_SUFFIXES: Final = (".css", ".html", ".js", ".json", ".jsx", ".mjs", ".py", ".toml", ".ts", ".tsx", ".yaml", ".yml")
_NO_SOURCES: Final = frozenset(("__pycache__", "build", "cdk.context.json", "cdk.out", "dist", "node_modules", "tests"))


class EmulatorError(CountersError):
    """The emulator or the CDK CLI is missing, or failed; `lines` are what the CLI printed last."""

    def __init__(self, reason: str, lines: Sequence[str] = ()) -> None:
        super().__init__(reason)
        self.lines = list(lines)


@dataclass(frozen=True)
class Emulator:
    """A running emulator: everything in its directory and in its group of processes ends with it."""

    port: int
    directory: Path
    key: str = field(repr=False)
    """The access key, of this run only: a web page that finds the port must not be able to use it."""
    group: int | None = None
    """The process group of the emulator, which what runs on its behalf joins."""
    account: ClassVar = "000000000000"
    region: ClassVar = _REGION

    @property
    def endpoint_url(self) -> str:
        return f"http://{_HOST}:{self.port}"

    @property
    def log(self) -> Path:
        return self.directory / "emulator.log"

    def environment(self) -> dict[str, str]:
        """Return the environment of a process that talks to the emulator: this one's without AWS and CDK settings."""
        public = {name: value for name, value in os.environ.items() if not name.startswith(_PRIVATE_PREFIXES)}
        target = {"CDK_DEFAULT_ACCOUNT": self.account, "CDK_DEFAULT_REGION": self.region}
        return {**public, **_AWS_SETTINGS, **self.address(), **target}

    def address(self) -> dict[str, str]:
        """Return the variables that lead AWS SDKs and `counters` in another terminal here."""
        key = {"AWS_ACCESS_KEY_ID": self.key, "AWS_SECRET_ACCESS_KEY": _SIGNED_WITH}
        return {"AWS_ENDPOINT_URL": self.endpoint_url, "AWS_DEFAULT_REGION": self.region, **key}

    def client(self, service: str) -> Any:
        """Create a client of an emulated service for many threads, independent of this user's AWS configuration."""
        no_file = (None, None, os.devnull, None)
        variables = {"profile": (None, None, None, None), "config_file": no_file, "credentials_file": no_file}
        return botocore.session.Session(session_vars=variables).create_client(
            service,
            region_name=self.region,
            endpoint_url=self.endpoint_url,
            aws_access_key_id=self.key,
            aws_secret_access_key=_SIGNED_WITH,
            config=Config(max_pool_connections=32, proxies={}),
        )

    def listed(self, service: str, operation: str, kind: str) -> list[Any]:
        pages = self.client(service).get_paginator(operation).paginate()
        return [resource for page in pages for resource in page[kind]]

    @classmethod
    @contextmanager
    def start(
        cls, *files: Path, max_seconds: int = 900, port: int = 0, key: str = "", is_alone: bool = False
    ) -> Iterator[Emulator]:
        """Run an emulator for the length of a `with` block, at most `max_seconds`; port 0 is any that is free."""
        # It says in each answer whether it `is_alone`: only its functions count its tables, and read the registry
        # before each batch. No process, port or file remains, even when this process is interrupted or killed.
        if find_spec("ministack") is None:
            raise EmulatorError("the emulator is not installed: pip install 'dynamodb-counters[dev]'")
        port, key = _free_port(port), key or f"LOCAL{secrets.token_hex(16).upper()}"
        # Resolved, because macOS keeps temporary files behind a symbolic link, and tools compare paths as text.
        directory = Path(tempfile.mkdtemp(prefix="emulator-")).resolve()
        starting = cls(port, directory, key)
        with starting.log.open("wb+") as output:
            process = subprocess.Popen(
                [sys.executable, "-P", *map(str, files or (SERVER,))],
                # It ends when this is closed, thus with this process.
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=directory,
                env=_server_environment(starting, max_seconds) | ({"COUNTERS_DEV": "alone"} if is_alone else {}),
                # Ctrl-C in a terminal is for this process, which then ends the group.
                process_group=0,
            )
            try:
                _wait_until_ready(starting, process, output)
                yield cls(port, directory, key, process.pid)
            finally:
                # Killed, not asked to end: nothing here is worth saving, and one signal reaches the whole group.
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
                # Again, where a process of the group was still writing.
                for _ in range(3):
                    shutil.rmtree(directory, ignore_errors=True)


def _server_environment(emulator: Emulator, max_seconds: int) -> dict[str, str]:
    # Little more than PATH: the emulated Lambda functions inherit all of it.
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        **dict.fromkeys(("HOME", "TMPDIR"), str(emulator.directory)),
        "COUNTERS_MAX_SECONDS": str(max_seconds),
        **_AWS_SETTINGS,
        **emulator.address(),
        # The functions': ministack takes their account's id for their access key.
        "AWS_SESSION_TOKEN": emulator.key,
        # As AWS sets it: the functions' clients name it with each request.
        "AWS_EXECUTION_ENV": "AWS_Lambda_python3.13",
        **dict.fromkeys(("BIND_HOST", "MINISTACK_HOST"), _HOST),
        "GATEWAY_PORT": str(emulator.port),
        # Both would listen on every interface.
        **dict.fromkeys(("SFTP_ENABLED", "IOT_MTLS_ENABLED"), "0"),
        # On start it removes containers with its label, even another emulator's: it must find no Docker.
        "DOCKER_HOST": "unix:///nonexistent/docker.sock",
    }


def _free_port(port: int) -> int:
    try:
        # As servers do: a port whose last connections are only closing is free.
        with socket.create_server((_HOST, port)) as probe:
            return int(probe.getsockname()[1])
    except OSError as error:
        expected = f"a free one, or --port 0 for any ({error.strerror})"
        raise EmulatorError(f"invalid port={port}: expected {expected}") from error


def _wait_until_ready(emulator: Emulator, process: subprocess.Popen[bytes], output: IO[bytes]) -> None:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    deadline = time.monotonic() + _READY_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        with suppress(OSError), opener.open(f"{emulator.endpoint_url}/_ministack/ready", timeout=1):
            return
        time.sleep(0.05)
    output.seek(0)
    last = output.read().decode(errors="replace")[-4000:].strip()
    raise EmulatorError(f"the emulator did not start within {_READY_SECONDS:g} s; it printed last:\n{last}")


def source_files(directory: Path) -> set[tuple[str, int]]:
    """Return the source files below a directory, each with when it was written last."""
    files = set()
    for folder, folders, names in os.walk(directory):
        inner = (name for name in folders if name not in _NO_SOURCES and not name.startswith("."))
        folders[:] = [name for name in inner if not Path(folder, name, "pyvenv.cfg").exists()]
        for name in names:
            if name.endswith(_SUFFIXES) and not name.startswith("test_") and name not in _NO_SOURCES:
                path = Path(folder, name)
                with suppress(OSError):  # It may be gone since it was listed.
                    files.add((str(path.relative_to(directory)), path.stat().st_mtime_ns))
    return files


def bootstrap(emulator: Emulator) -> None:
    """Make what `cdk bootstrap` leaves: the bucket of assets, and its version, newer than any app asks for."""
    bucket = f"cdk-{_QUALIFIER}-assets-{emulator.account}-{emulator.region}"
    emulator.client("s3").create_bucket(Bucket=bucket)
    emulator.client("ssm").put_parameter(Name=f"/cdk-bootstrap/{_QUALIFIER}/version", Value="30", Type="String")


def deploy(emulator: Emulator, directory: Path, app: str | None = None) -> dict[str, dict[str, str]]:
    """Deploy the app of a directory; return the outputs of all its stacks."""
    # "direct", because the emulator cannot replace the change set of an earlier deployment. The CLI waits most of the
    # time, for a stack's state to change: hence many at once.
    options = ["--require-approval", "never", "--method", "direct", "--progress", "events", "--concurrency", "8"]
    run(emulator, directory, ["deploy", "--all", *options], app)
    return outputs(emulator)


def outputs(emulator: Emulator) -> dict[str, dict[str, str]]:
    return {
        stack["StackName"]: {output["OutputKey"]: output["OutputValue"] for output in stack.get("Outputs", ())}
        for stack in emulator.client("cloudformation").describe_stacks()["Stacks"]
    }


def run(emulator: Emulator, directory: Path, command: Sequence[str], app: str | None = None) -> list[str]:
    """Run a command of the CLI, on an `app` other than that of its cdk.json; return the lines that it printed."""
    options = ["--app", app] if app else []
    # The emulator has one shard per stream and does not name it.
    options += ["--context", "single_shard_stream=true", *_FLAGS]
    options += ["--output", tempfile.mkdtemp(prefix="cdk-", dir=emulator.directory)]
    environment = emulator.environment()
    # The project's own CLI comes first; a bare "python" in cdk.json must be this one.
    own = [str(parent / "node_modules" / ".bin") for parent in (directory, *directory.parents)]
    path = os.pathsep.join([str(Path(sys.executable).parent), *own, environment.get("PATH", os.defpath)])
    settings = {"CDK_HOME": str(emulator.directory / "cdk-home"), "TMPDIR": str(emulator.directory), "PATH": path}
    try:
        process = subprocess.run(
            ["cdk", *command, *options],
            cwd=directory,
            env=environment | QUIET | settings,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            errors="replace",
            # What it starts, such as the app, ends with the emulator at the latest.
            process_group=emulator.group,
            timeout=_CDK_SECONDS,
            check=False,
        )
    except FileNotFoundError:
        raise EmulatorError("the CDK CLI is missing: install Node 20 or newer, then `npm install aws-cdk@2`") from None
    except subprocess.TimeoutExpired as error:
        raise EmulatorError(f"`cdk {command[0]}` took longer than {_CDK_SECONDS} s") from error
    lines = [line.rstrip() for line in process.stdout.splitlines()]
    if process.returncode:
        raise EmulatorError(f"`cdk {command[0]}` ended with status {process.returncode}", lines[-60:])
    return lines
