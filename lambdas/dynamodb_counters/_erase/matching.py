"""Which events are to be erased: those whose key fields have the given values, in whatever form a copy holds them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from dynamodb_counters._declarations import Event
from dynamodb_counters._items.attributes import Image, text_reader
from dynamodb_counters._items.escaping import key_text
from dynamodb_counters._items.table_schema import ONCE_SUFFIX, PACK_SUFFIX, TYPE
from dynamodb_counters.errors import InvalidArgumentError, MalformedImageError, UnparsableKeyError


class Wanted:
    """The events of a declaration with certain values in fields of their key."""

    def __init__(self, event: object, values: object) -> None:
        if not isinstance(event, Event):
            raise InvalidArgumentError("event", event, "an Event")
        if not isinstance(values, Mapping) or not values or not values.keys() <= set(event.fields):
            allowed = f"a value for one or more fields of the key: {', '.join(event.fields)}"
            raise InvalidArgumentError("values", values, allowed)
        self.event = event
        self.texts = {name: key_text(name, value) for name, value in values.items()}
        self.chunk_type = event.name + PACK_SUFFIX
        self._types = {event.name, event.name + ONCE_SUFFIX}
        self._readers = [(text_reader(name, literal=True), text) for name, text in self.texts.items()]

    def is_event(self, image: Image) -> bool:
        """Whether an item is one of the events."""
        return image.get(TYPE, {}).get("S") in self._types and self.has_values(image)

    def has_values(self, image: Image) -> bool:
        """Whether typed attributes have the values."""
        try:
            return all(read(image) == text for read, text in self._readers)
        except MalformedImageError:
            return False

    def is_message(self, values: object) -> bool:
        """Whether an event of a message, as parsed from JSON, is one of them."""
        if not isinstance(values, Mapping):
            return False
        try:
            return all(key_text(name, values.get(name)) == text for name, text in self.texts.items())
        except InvalidArgumentError:
            return False

    def is_key(self, pk: str, sk: str) -> bool:
        """Whether a key alone shows that its item is one of the events."""
        event = self.event
        if self.texts.keys() >= set(event.fields):
            return (pk, sk) == (event._pk_template.render(self.texts), event._sk_template.render(self.texts))
        try:
            found = event._pk_template.parse(pk) | event._sk_template.parse(sk)
        except UnparsableKeyError:
            return False
        return all(found[name] == text for name, text in self.texts.items())

    def is_quoted_in(self, text: str) -> bool:
        """Whether a text that cannot be read otherwise names one of the values."""
        return any(re.search(rf"(?<!\w){re.escape(value)}(?!\w)", text) for value in self.texts.values())


def type_of(image: Mapping[str, Any]) -> str:
    return str(image.get(TYPE, {}).get("S", ""))
