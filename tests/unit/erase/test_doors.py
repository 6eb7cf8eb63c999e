"""An erasure refuses what is no list of queues or buckets, or no choice, before it reads or writes anything."""

from __future__ import annotations

from typing import Any

import pytest

from dynamodb_counters import Event, InvalidArgumentError
from dynamodb_counters._erase.eraser import Eraser
from dynamodb_counters._table import Table

VIEW = Event("view", pk="URL#{url}", sk="T#{time}#CID#{client}")
CLIENT: Any = None


def _eraser(**places: Any) -> Eraser:
    return Eraser(Table("counters", CLIENT), VIEW, {"client": "ann"}, **places)


@pytest.mark.parametrize("places", ["https://queue", "", None, 5, b"queue", [""], [None], ["queue", 1]])
@pytest.mark.parametrize("argument", ["queues", "buckets"])
def test_places_other_than_a_list_of_texts_are_refused(argument: str, places: object) -> None:
    with pytest.raises(InvalidArgumentError, match=f"invalid {argument}=.*: expected a list of texts"):
        _eraser(**{argument: places})


@pytest.mark.parametrize(("argument", "choice"), [("counts", ""), ("counts", None), ("uncounted", "keep")])
def test_a_choice_that_there_is_not_is_refused(argument: str, choice: object) -> None:
    choices: dict[str, Any] = {"counts": "keep", argument: choice}
    with pytest.raises(InvalidArgumentError, match=f"invalid {argument}="):
        _eraser().erase(**choices)
