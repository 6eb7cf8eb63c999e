"""Items that other code writes, as declarations see them: with the fields of their keys as attributes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from dynamodb_counters._declarations import Items
from dynamodb_counters._items.conditions import Image
from dynamodb_counters._items.table_schema import MAX_NUMBER_DIGITS

_NUMBER: Final = re.compile(rf"-?(?=[0-9.]{{1,{MAX_NUMBER_DIGITS}}}$)[0-9]+(\.[0-9]+)?", re.ASCII)


def show_foreign(items: Items) -> Callable[[Image], Image | None] | None:
    """Show an item with the fields of its keys; None if its keys have another form, or there is no form."""
    templates = items._templates
    if not templates:
        return None

    def show(image: Image) -> Image | None:
        shown: dict[str, Mapping[str, Any]] = {**image}
        for name, template in templates:
            value = image.get(name, {})
            found = template.match(text) if (text := value.get("S") or value.get("N")) is not None else None
            if found is None:
                return None
            shown.update((field, typed(text)) for field, text in found.items())
        return shown

    return show


def typed(text: str) -> dict[str, str]:
    """A text that is a number can be read as either."""
    return {"S": text, "N": text} if _NUMBER.fullmatch(text) else {"S": text}
