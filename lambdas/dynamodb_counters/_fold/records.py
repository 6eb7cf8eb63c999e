"""Stream records: what one tells beside its images."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from dynamodb_counters._items.attributes import Image
from dynamodb_counters._items.table_schema import COUNTED_IN, SEQUENCE_DIGITS
from dynamodb_counters.errors import MalformedImageError

Record: TypeAlias = Mapping[str, Any]
"""A stream record as Lambda hands it over."""

NEW: Final = "NewImage"
OLD: Final = "OldImage"

# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/time-to-live-ttl-streams.html
_TTL_PRINCIPAL: Final = "dynamodb.amazonaws.com"


def alone(record: Record, side: str) -> Record:
    """Give a record with one of its images only.

    Parameters
    ----------
    record : mapping
        A stream record.
    side : str
        ``NewImage`` or ``OldImage``.

    Returns
    -------
    dict
        What is to be counted when that image can be folded.
    """
    other = OLD if side == NEW else NEW
    return {**record, "dynamodb": {name: value for name, value in record["dynamodb"].items() if name != other}}


def counted_in(image: Image) -> list[str]:
    """Tell what the transaction that inserted an event has counted it in.

    Parameters
    ----------
    image : mapping
        An image of an item whose type says that a transaction inserted it.

    Returns
    -------
    list of str
        Names of declarations.
    """
    return list(image.get(COUNTED_IN, {}).get("SS", ()))


def padded(sequence: str) -> str:
    """Pad a sequence number so that string order is number order.

    Parameters
    ----------
    sequence : str
        21 to 40 digits.

    Returns
    -------
    str
        40 digits.

    Raises
    ------
    MalformedImageError
        It is not made of at most 40 digits.

    Examples
    --------
    >>> padded("7")
    '0000000000000000000000000000000000000007'
    """
    if len(sequence) > SEQUENCE_DIGITS or not sequence.isdecimal():
        raise MalformedImageError(f"sequence number {sequence!r} is not 1 to {SEQUENCE_DIGITS} digits")
    return sequence.zfill(SEQUENCE_DIGITS)


def is_expiry(record: Record) -> bool:
    """Tell whether a record was made by the TTL process.

    Parameters
    ----------
    record : mapping
        A stream record.

    Returns
    -------
    bool
        True for a deletion by DynamoDB itself.
    """
    identity = record.get("userIdentity") or {}
    return identity.get("type") == "Service" and identity.get("principalId") == _TTL_PRINCIPAL
