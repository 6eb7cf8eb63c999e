"""An erasure refuses what is no choice before it reads or writes anything."""

from __future__ import annotations

from typing import Any

import pytest

from dynamodb_counters import Event, InvalidArgumentError
from dynamodb_counters._erase.eraser import Eraser
from dynamodb_counters._table import Table

VIEW = Event("view", pk="URL#{url}", sk="T#{time}#CID#{client}")
CLIENT: Any = None


@pytest.mark.parametrize(("argument", "choice"), [("counts", ""), ("counts", None), ("uncounted", "keep")])
def test_a_choice_that_there_is_not_is_refused(argument: str, choice: object) -> None:
    choices: dict[str, Any] = {"counts": "keep", argument: choice}
    with pytest.raises(InvalidArgumentError, match=f"invalid {argument}="):
        Eraser(Table("counters", CLIENT), VIEW, {"client": "ann"}).erase(**choices)
