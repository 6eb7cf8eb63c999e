"""The one line of a command that fails, and the exit code it ends with."""

from __future__ import annotations

from typing import Final

import click
from botocore import exceptions as aws

from dynamodb_counters.errors import CommitError, CountersError

DONE: Final = 0
FOUND: Final = 1
"""It was done, and something was found, or the person said no."""
WRONG_INPUT: Final = 2
AWS_REFUSED: Final = 3
UNKNOWN: Final = 4
"""It was done, and what was found is certain, but of something nothing is known."""
FAULT: Final = 70
"""A fault of this program: EX_SOFTWARE of sysexits.h."""
INTERRUPTED: Final = 130
PIPE_CLOSED: Final = 141

_AWS_SETTINGS: Final = (aws.ProfileNotFound, aws.ConfigParseError, aws.ConfigNotFound, aws.NoRegionError)
_CODES: Final[dict[tuple[type[BaseException], ...], int]] = {
    (click.Abort,): FOUND,
    (KeyboardInterrupt,): INTERRUPTED,
    (CommitError,): AWS_REFUSED,
    (click.ClickException, CountersError, aws.ParamValidationError, *_AWS_SETTINGS): WRONG_INPUT,
    (aws.ClientError, aws.BotoCoreError, TimeoutError): AWS_REFUSED,
    (OSError,): WRONG_INPUT,
    (BaseException,): FAULT,
}
"""By kind of error; the first that fits holds."""

_MISSING: Final = (
    "ResourceNotFoundException",
    "AWS.SimpleQueueService.NonExistentQueue",
    "QueueDoesNotExist",
    "NoSuchBucket",
)


def told(error: BaseException) -> tuple[int, str]:
    if isinstance(error, click.Abort) and isinstance(error.__cause__, KeyboardInterrupt):
        error = error.__cause__
    code = next(code for kinds, code in _CODES.items() if isinstance(error, kinds))
    if _is_missing(error):
        code = WRONG_INPUT
    return code, " ".join(_line(error, code).split())


def _line(error: BaseException, code: int) -> str:
    if isinstance(error, aws.ClientError):
        said = error.response.get("Error", {})
        message = said.get("Message") or "no reason given"
        if _is_missing(error):
            return f"{error.operation_name} found nothing of that name in this region: {message}"
        return f"AWS refused {error.operation_name}: {said.get('Code', 'unknown')}: {message}"
    if code == FAULT:
        return f"a fault of this program, {type(error).__name__}: {error}; COUNTERS_DEBUG=1 shows where"
    if isinstance(error, click.ClickException):
        return error.format_message()
    if isinstance(error, click.Abort | KeyboardInterrupt):
        return "interrupted" if code == INTERRUPTED else "no answer"
    return str(error).rstrip(".")


def _is_missing(error: BaseException) -> bool:
    """Whether what does not exist was named wrong: a table, a stream, a queue, a bucket."""
    return isinstance(error, aws.ClientError) and error.response.get("Error", {}).get("Code") in _MISSING
