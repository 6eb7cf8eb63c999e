"""The emulator's process: ministack, whose PartiQL inserts reach the stream as DynamoDB's do.

It is run as a file, without this package: the emulated functions inherit its environment.
"""

from __future__ import annotations

from typing import Any


def _insert_into_the_stream() -> None:
    from ministack.services import dynamodb  # type: ignore[import-untyped]  # noqa: PLC0415 - when it is run

    insert = dynamodb._partiql_insert  # noqa: SLF001 - there is no other way in

    def streamed(table: dict[str, Any], parsed: dict[str, Any]) -> Any:
        answer = insert(table, parsed)
        if answer[0] == 200:  # noqa: PLR2004 - HTTP's OK
            dynamodb._emit_stream_event(table["TableName"], "INSERT", None, parsed["item"])  # noqa: SLF001
        return answer

    dynamodb._partiql_insert = streamed  # noqa: SLF001


if __name__ == "__main__":
    from ministack.app import main  # type: ignore[import-untyped]

    _insert_into_the_stream()
    main()
