"""Every exception the runtime raises; all of them are `CountersError`."""

from __future__ import annotations


class CountersError(Exception):
    """Base of every exception raised by this package."""


class InvalidArgumentError(CountersError, ValueError):
    """An argument was refused. It is a `ValueError` too.

    Parameters
    ----------
    argument : str
        Name of the refused argument, as the caller wrote it.
    value : object
        The refused value.
    expected : str
        What would have been accepted: a noun phrase.

    Examples
    --------
    >>> raise InvalidArgumentError("precision", 7, "one of 1, 60, 3600, 86400 seconds")
    Traceback (most recent call last):
    ...
    dynamodb_counters.errors.InvalidArgumentError: invalid precision=7: expected one of 1, 60, 3600, 86400 seconds
    """

    def __init__(self, argument: str, value: object, expected: str) -> None:
        super().__init__(f"invalid {argument}={_short(value)}: expected {expected}")
        self.argument = argument
        self.value = value
        self.expected = expected


class UnparsableKeyError(CountersError, ValueError):
    """A key does not match the template it is parsed with, or holds a hash in place of its values."""


class MalformedImageError(CountersError, ValueError):
    """An item image lacks what a declaration needs; its record goes to quarantine."""


class ShardUnknownError(CountersError):
    """A stream event names no shard, so nothing can be counted exactly once."""


class CheckpointError(CountersError):
    """Two stream shards of a table have the same 72-bit digest, or another aggregator counts the table."""


class LayoutError(CountersError):
    """The table's packed events are kept in another layout than is declared, or in one that nobody can tell."""


class CommitError(CountersError):
    """Some items of a batch could not be written, so the batch must be delivered again; the others are committed.

    `failures` holds one cause per item that was not written.
    """

    def __init__(self, failures: list[Exception]) -> None:
        first = f"{type(failures[0]).__name__}: {failures[0]}" if failures else "none"
        super().__init__(f"{len(failures)} item(s) not committed; first cause: {first}")
        self.failures = failures


class RestoreError(CountersError):
    """It cannot be told what a restored table lacks; nothing was written."""


class EraseError(CountersError):
    """Copies of the events wait to be counted, so that erasing them would leave wrong counts; nothing was erased."""


def _short(value: object, limit: int = 120) -> str:
    try:
        text = repr(value)
    except RecursionError:
        text = f"a deeply nested {type(value).__name__}"
    return text if len(text) <= limit else f"{text[:limit]}…"
