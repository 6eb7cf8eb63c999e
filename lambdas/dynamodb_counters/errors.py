"""Every exception the runtime raises.

CountersError
├── InvalidArgumentError (ValueError): UncountedError, RejectedEventError
├── UnavailableError: InDoubtError
├── MalformedImageError (ValueError)
├── CheckpointError, CommitError: a batch of the stream is delivered again
└── BackfillError
"""

from __future__ import annotations

from dataclasses import is_dataclass
from reprlib import Repr
from typing import Final

_LONGEST: Final = 120  # Characters of a value, or of an argument's name, in a message.


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
        The values that are accepted: a noun phrase.
    text : str, optional
        The message. Default: of these, ``invalid precision=7: expected one of 1, 60, 3600, 86400 seconds``.
    """

    def __init__(self, argument: str, value: object, expected: str, text: str = "") -> None:
        super().__init__(text or f"invalid {argument!s:.{_LONGEST}}={_short(value)}: expected {expected}")
        self.argument = argument
        self.value = value
        self.expected = expected


class UncountedError(InvalidArgumentError):
    """A declaration was read, or added to, that the table does not count, or not by this definition.

    It is an `InvalidArgumentError` too. If `is_changed`, the table counts another definition by the name, and keeps it.
    """

    def __init__(self, name: str, *, is_changed: bool = False) -> None:
        base, _, version = name.rpartition("_v")
        new = f"{base}_v{int(version) + 1}" if base and version.isdecimal() else f"{name}_v2"
        self.cure = f"declare the new one as {new!r}, deploy, and run `counters backfill {new}`"
        changed = f"the definition that the table counts by, which a name keeps: {self.cure}"
        super().__init__("declaration", name, changed if is_changed else "one that the table's aggregator counts")


class RejectedEventError(InvalidArgumentError):
    """An event can never be accepted, so nothing of it was stored. It is an `InvalidArgumentError` too.

    Its `argument` is the attribute that was refused, ``"values"`` where DynamoDB refused the event as a whole; its
    `value` is None if the attribute is missing or DynamoDB refused the event.
    """


class UnavailableError(CountersError):
    """The table cannot do this now: it was throttled or failed, however often it was tried. Do it again later.

    Sending an event again is always safe: if it was accepted after all, it is a duplicate. An increment or reset is
    not repeated after a lost answer: the message says that it "may have been counted", or "reset".
    """


class InDoubtError(UnavailableError):
    """An update's answer is lost: it may have been done, or may be done in a while."""


class MalformedImageError(CountersError, ValueError):
    """An item lacks what a declaration needs, its key has another form, or it is of no known table."""


class CheckpointError(CountersError):
    """A batch cannot be counted: it is too old, or names no shard, or bookkeeping is not as expected."""


class CommitError(CountersError):
    """Some items of a batch could not be written, so the batch must be delivered again; the others are committed."""

    def __init__(self, failures: list[Exception]) -> None:
        first = f"{type(failures[0]).__name__}: {failures[0]}" if failures else "none"
        super().__init__(f"{len(failures)} item(s) not committed; first cause: {first}")


class BackfillError(CountersError):
    """A backfill or verification cannot begin, or cannot be brought to its end; what was counted is as it was."""


class _Repr(Repr):
    def repr_Decimal(self, value: object, _level: int) -> str:  # noqa: N802 - by the type's name
        return str(value)


# Looks no further into a value than its text is cut off.
_REPR: Final = _Repr()
_REPR.maxlevel = 4
_REPR.maxdict = _REPR.maxlist = _REPR.maxtuple = _REPR.maxset = _REPR.maxfrozenset = 20
_REPR.maxstring = _REPR.maxlong = _REPR.maxother = 4 * _LONGEST


def _short(value: object) -> str:
    name = getattr(value, "name", None)
    if isinstance(name, str) and is_dataclass(value):
        return f"{type(value).__name__}({name!r}, …)"  # A declaration; whoever wrote it knows the rest.
    try:
        text = _REPR.repr(value)
    except (RecursionError, ValueError):
        text = f"a huge {type(value).__name__}"  # Deeply nested, or an int with more digits than Python writes.
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
