"""The emulator's process, which ends that of each function that reads a stream once, amid a batch; run as a file."""

from __future__ import annotations

import json
import runpy
import sys
from typing import Any


def _kill_amid_a_batch() -> None:
    """End the process of each function that reads a stream once: with its first addition done and unanswered."""
    from ministack.core import lambda_runtime  # type: ignore[import-untyped]  # noqa: PLC0415 - when it is run
    from ministack.services import dynamodb  # type: ignore[import-untyped]  # noqa: PLC0415 - when it is run

    invoke, handle = lambda_runtime.Worker.invoke, dynamodb.handle_request
    reading: list[Any] = []
    killed: set[str] = set()

    def invoked(worker: Any, event: Any, request_id: str) -> Any:
        streamed = b'"aws:dynamodb"' in json.dumps(event.get("Records", [])[:1]).encode()
        if not streamed or worker.func_name in killed:
            return invoke(worker, event, request_id)
        reading.append(worker)
        try:
            return invoke(worker, event, request_id)
        finally:
            reading.remove(worker)

    async def handled(method: str, path: str, headers: dict[str, str], body: bytes, query: dict[str, Any]) -> Any:
        answer = await handle(method, path, headers, body, query)
        is_update = headers.get("x-amz-target", "").endswith((".UpdateItem", ".TransactWriteItems"))
        if is_update and "/AWS_Lambda_" in headers.get("user-agent", "") and b"CHECKPOINT#" not in body:
            for worker in reading:
                table = worker.config["Environment"]["Variables"].get("TABLE_NAME", "")
                if f'"{table}"'.encode() in body and worker.func_name not in killed:
                    killed.add(worker.func_name)
                    worker._proc.kill()  # noqa: SLF001 - there is no other way in
        return answer

    lambda_runtime.Worker.invoke, dynamodb.handle_request = invoked, handled


if __name__ == "__main__":
    _kill_amid_a_batch()
    runpy.run_path(sys.argv.pop(1), run_name="__main__")
