"""The Lambda handler in a process of its own, which can be killed at any moment."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from multiprocessing.connection import Connection
from types import SimpleNamespace
from typing import Any, Final

# A fork server has the runtime imported already, but not the handler, which reads its environment at once.
_CONTEXT: Final = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["counters_lambda.counting.batch", "simulation.handler_process"])

_PATIENCE_SECONDS: Final = 60.0


# The part of Lambda's context that is used.
LAMBDA_CONTEXT: Final = SimpleNamespace(
    function_name="aggregator",
    memory_limit_in_mb=256,
    invoked_function_arn="arn:aws:lambda:us-east-1:123456789012:function:aggregator",
    aws_request_id="request",
    get_remaining_time_in_millis=lambda: 60_000,
)


class HandlerProcess:
    """A process that runs the aggregator's handler; `kills` counts how often it died while handling an event."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = dict(environment)
        self.kills = 0
        self._start()

    def invoke(self, event: Any, kill_after: float | None) -> Any:
        """Invoke the handler, killed after `kill_after` seconds; None if it failed or died."""
        self._connection.send(event)
        if not self._connection.poll(_PATIENCE_SECONDS if kill_after is None else kill_after):
            self.stop()
            self.kills += 1
            self._start()
            return None
        return self._connection.recv()

    def stop(self) -> None:
        self._process.kill()
        self._process.join()
        self._connection.close()

    def _start(self) -> None:
        self._connection, theirs = _CONTEXT.Pipe()
        self._process = _CONTEXT.Process(target=self._serve, args=(theirs, self._environment), daemon=True)
        self._process.start()
        theirs.close()

    @staticmethod
    def _serve(connection: Connection[Any, Any], environment: dict[str, str]) -> None:
        os.environ.update(environment)
        # Logs and metrics go to Lambda's standard output; here they would bury the test's.
        with open(os.devnull, "w") as nowhere:  # noqa: PTH123
            sys.stdout = sys.stderr = nowhere
            from counters_lambda.handlers.aggregator import handler  # noqa: PLC0415

            with suppress(EOFError):
                while True:
                    event, response = connection.recv(), None
                    # As for Lambda, a handler that raises is a failed invocation, whatever it raised.
                    with suppress(Exception):
                        response = handler(event, LAMBDA_CONTEXT)
                    connection.send(response)
