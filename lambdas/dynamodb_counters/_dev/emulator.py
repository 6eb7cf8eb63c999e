"""An AWS emulator (`ministack`) on a free loopback port, gone when the process that started it is."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

import botocore.session
from botocore.config import Config

from dynamodb_counters._dev import supervisor
from dynamodb_counters.errors import CountersError

SERVER = Path(__file__).with_name("server.py")
_HOST = "127.0.0.1"
_REGION = "us-east-1"
_READY_SECONDS = 60.0
_TAIL_CHARACTERS = 4000
# The user's own account, profile and proxies must not reach the emulator or its clients.
_PRIVATE_PREFIXES = ("AWS_", "CDK_", "BOTO_")
_NOWHERE = os.devnull
_AWS_SETTINGS = {
    # No signature is checked: who knows the access key gets in.
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_REGION": _REGION,
    "AWS_DEFAULT_REGION": _REGION,
    "AWS_CONFIG_FILE": _NOWHERE,
    "AWS_SHARED_CREDENTIALS_FILE": _NOWHERE,
    "AWS_EC2_METADATA_DISABLED": "true",
    "NO_PROXY": "127.0.0.1,localhost",
    "no_proxy": "127.0.0.1,localhost",
}
_EXPORTED = ("AWS_ENDPOINT_URL", "AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")


class EmulatorError(CountersError):
    """The emulator is missing or did not start. The message ends with what it printed last."""


@dataclass(frozen=True)
class Emulator:
    """A running emulator: everything in its directory is removed with it."""

    port: int
    directory: Path
    key: str = field(repr=False)
    """The access key, of this run only: a web page that finds the port must not be able to use it."""
    account: str = "000000000000"
    region: str = _REGION

    @property
    def endpoint_url(self) -> str:
        return f"http://{_HOST}:{self.port}"

    @property
    def log(self) -> Path:
        return self.directory / "emulator.log"

    def environment(self) -> dict[str, str]:
        """The environment of a process that talks to the emulator: this one's without its AWS and CDK settings."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(_PRIVATE_PREFIXES)}
        return {
            **kept,
            **_AWS_SETTINGS,
            "AWS_ACCESS_KEY_ID": self.key,
            "AWS_ENDPOINT_URL": self.endpoint_url,
            "CDK_DEFAULT_ACCOUNT": self.account,
            "CDK_DEFAULT_REGION": self.region,
        }

    def exports(self) -> dict[str, str]:
        """The variables that lead AWS SDKs and `counters` in another terminal here."""
        environment = self.environment()
        return {name: environment[name] for name in _EXPORTED}

    def client(self, service: str) -> Any:
        """Create a client of an emulated service for many threads, independent of this user's AWS configuration."""
        nothing, no_file = (None, None, None, None), (None, None, _NOWHERE, None)
        variables = {"profile": nothing, "config_file": no_file, "credentials_file": no_file}
        return botocore.session.Session(session_vars=variables).create_client(
            service,
            region_name=self.region,
            endpoint_url=self.endpoint_url,
            aws_access_key_id=self.key,
            aws_secret_access_key=_AWS_SETTINGS["AWS_SECRET_ACCESS_KEY"],
            config=Config(max_pool_connections=32, proxies={}),
        )

    @classmethod
    @contextlib.contextmanager
    def start(
        cls,
        *,
        max_seconds: int = 900,
        port: int = 0,
        key: str | None = None,
        is_alone: bool = False,
        server: Sequence[Path] = (SERVER,),
    ) -> Iterator[Emulator]:
        """Run an emulator for the length of a `with` block, at most `max_seconds`; port 0 is any that is free."""
        # It answers who has the key, by default one of this run only, and says in each answer whether it `is_alone`:
        # only its functions count its tables, and read the control item before each batch. No process, port or file
        # remains, even when this process is interrupted or killed.
        if find_spec("ministack") is None:
            raise EmulatorError("the emulator is not installed: pip install 'cdk-dynamodb-counters[dev]'")
        # Resolved, because macOS keeps temporary files behind a symbolic link, and tools compare paths as text.
        directory = Path(tempfile.mkdtemp(prefix="emulator-")).resolve()
        emulator = cls(_free_port(port), directory, key or f"LOCAL{secrets.token_hex(16).upper()}")
        with emulator.log.open("wb+") as output:
            process = supervisor.start(
                [sys.executable, "-P", *map(str, server)],
                environment=_server_environment(emulator) | ({"COUNTERS_DEV": "alone"} if is_alone else {}),
                output=output,
                max_seconds=max_seconds,
                directory=emulator.directory,
                remove_directory=True,
            )
            try:
                _wait_until_ready(emulator, process, output)
                yield emulator
            finally:
                supervisor.stop(process)


def _server_environment(emulator: Emulator) -> dict[str, str]:
    # Little more than PATH: the emulated Lambda functions inherit all of it.
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "LANG": "C.UTF-8",
        "HOME": str(emulator.directory),
        "TMPDIR": str(emulator.directory),
        **_AWS_SETTINGS,
        "AWS_ACCESS_KEY_ID": emulator.key,
        # The functions': ministack takes their account's id for their access key.
        "AWS_SESSION_TOKEN": emulator.key,
        # As AWS sets it: the functions' clients name it with each request.
        "AWS_EXECUTION_ENV": "AWS_Lambda_python3.13",
        "BIND_HOST": _HOST,
        "MINISTACK_HOST": _HOST,
        "GATEWAY_PORT": str(emulator.port),
        "MINISTACK_ACCOUNT_ID": emulator.account,
        "MINISTACK_REGION": emulator.region,
        # Both would listen on every interface.
        "SFTP_ENABLED": "0",
        "IOT_MTLS_ENABLED": "0",
        # On start it removes containers with its label, even another emulator's: it must find no Docker.
        "DOCKER_HOST": "unix:///nonexistent/docker.sock",
    }


def _free_port(wanted: int) -> int:
    with socket.socket() as probe:
        # As servers do: a port whose last connections are only closing is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((_HOST, wanted))
        except OSError as error:
            raise EmulatorError(f"invalid port={wanted}: expected a free one ({error.strerror})") from error
        return int(probe.getsockname()[1])


def _wait_until_ready(emulator: Emulator, process: subprocess.Popen[bytes], output: IO[bytes]) -> None:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    deadline = time.monotonic() + _READY_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(OSError), opener.open(f"{emulator.endpoint_url}/_ministack/ready", timeout=1):
            return
        time.sleep(0.05)
    status = process.poll()
    reason = f"did not answer within {_READY_SECONDS:g} s" if status is None else f"ended with status {status}"
    # Through the open file: its directory is removed as soon as the process has ended.
    output.seek(0)
    last = output.read().decode(errors="replace")[-_TAIL_CHARACTERS:].strip()
    raise EmulatorError(f"The emulator {reason}. It printed last:\n{last}")
