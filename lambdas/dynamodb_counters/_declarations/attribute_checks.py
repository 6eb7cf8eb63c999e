"""Whether what a declaration names is among the attributes of its event, and of a kind that it can use."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Final

from dynamodb_counters._declarations.attribute_values import expectation, has_text
from dynamodb_counters._declarations.event_attributes import Attribute
from dynamodb_counters._items.attributes import LIST_MARK
from dynamodb_counters._items.conditions import Condition
from dynamodb_counters._items.decimals import Number
from dynamodb_counters._items.derived_fields import parts_of
from dynamodb_counters._items.table_schema import is_reserved
from dynamodb_counters._timeline.tiers import BY_NAME
from dynamodb_counters.errors import InvalidArgumentError

_NUMBERS: Final = (int, Decimal)
_ANY: Final = Attribute(object)
_TIME_FORMATS: Final = (None, "date-time")


class KnownAttributes:
    """The attributes of one event, by which declarations over it are checked; without any, all is allowed.

    No event lacks those that are `always` there, required or not.
    """

    def __init__(self, event: str, attributes: Mapping[str, Attribute] | None, always: Collection[str | None]) -> None:
        self._event = event
        self._attributes = attributes
        self._always = always

    def require_key(self, argument: str, names: Iterable[str], where: Condition | None = None) -> None:
        """Refuse fields of a key that are no attributes, have no text, or may be missing."""
        for name in names:
            path, derived, default = parts_of(name)
            attribute = self._find(argument, name, path)
            if derived in BY_NAME:
                self._require_time(argument, name, attribute)
            elif attribute.type not in ((object, *_NUMBERS) if derived else (str, object, *_NUMBERS)):
                kind = "a number" if derived else "a string or number"
                raise InvalidArgumentError(argument, name, f"{kind}; {self._is(path, attribute)}")
            self._require_there(argument, name, where, default is not None, f"{f'{name}?none'!r}")

    def require_number(
        self, argument: str, name: str, where: Condition | None, *, default: Number | None = None
    ) -> None:
        """Refuse an attribute that is no number, or may be missing."""
        attribute = self._find(argument, name, name)
        if attribute.type not in (object, *_NUMBERS):
            raise InvalidArgumentError(argument, name, f"a number; {self._is(name, attribute)}")
        self._require_there(argument, name, where, default is not None, "default=0")

    def require_time(self, argument: str, name: str, where: Condition | None = None) -> None:
        """Refuse an attribute that is no time, or may be missing."""
        self._require_time(argument, name, self._find(argument, name, name))
        self._require_there(argument, name, where, False, "")

    def require_version(self, name: str) -> None:
        """Refuse an attribute that has no order."""
        attribute = self._find("version", name, name)
        if attribute.type not in (str, object, *_NUMBERS):
            raise InvalidArgumentError("version", name, f"a string or number; {self._is(name, attribute)}")

    def require_text(self, path: str, text: str) -> None:
        """Refuse a text that no value of the attribute's type has in a key; its limits may have been others."""
        attribute = self._find("values", path, path)
        kind = Attribute(attribute.type, format=attribute.format)
        if not has_text(kind, text):
            raise InvalidArgumentError(path, text, expectation(kind))

    def require_where(self, where: Condition | None) -> None:
        """Refuse a condition on what is no attribute, or that no event can satisfy."""
        if where is None or self._attributes is None:
            return
        for name in where._attributes:
            if not is_reserved(name):
                self._find("where", name, name)
        for name, operand in where._comparisons:
            if is_reserved(name):
                continue
            attribute = self._find("where", name, name)
            kinds = (bool,) if isinstance(operand, bool) else (str,) if isinstance(operand, str) else _NUMBERS
            if attribute.type not in (object, *kinds):
                raise InvalidArgumentError(
                    "where", operand, f"what {name!r} can be compared with: it is {expectation(attribute)}"
                )
        for name, equal in _equalities(where):
            attribute = _ANY if is_reserved(name) else self._find("where", name, name)
            if attribute.one_of and equal not in attribute.one_of:
                raise InvalidArgumentError("where", equal, f"what {name!r} can be: {expectation(attribute)}")

    def _require_time(self, argument: str, name: str, attribute: Attribute) -> None:
        is_time = attribute.type in (object, *_NUMBERS) or (attribute.type is str and attribute.format in _TIME_FORMATS)
        if not is_time or attribute.one_of:
            raise InvalidArgumentError(argument, name, f"a time; {self._is(name, attribute)}")

    def _require_there(self, argument: str, name: str, where: Condition | None, is_defaulted: bool, way: str) -> None:
        path, needed = parts_of(name)[0], frozenset[str]() if where is None else where._required
        can_default = False
        for part in self._optional(path):
            whole = part.removesuffix(LIST_MARK)
            # A default stands for a member's attribute, never for the list.
            is_own = LIST_MARK not in path[len(whole) :]
            can_default |= is_own
            if not (is_own and is_defaulted) and not any(f"{each}.".startswith(f"{whole}.") for each in needed):
                ways = [way if is_own else "", "" if LIST_MARK in whole else f"where=Attr({whole!r}).exists()"]
                raise InvalidArgumentError(
                    argument, name, f"{' or '.join(filter(None, ways))}: {part!r} is not required"
                )
        if is_defaulted and not can_default and self._find(argument, name, path) is not _ANY:
            raise InvalidArgumentError(argument, name, f"no default: {path!r} is required")

    def _optional(self, path: str) -> Iterator[str]:
        """The parts of a path that an event may lack, from the outermost on."""
        known, walked = self._attributes, ""
        for marked in () if path in self._always else path.split("."):
            found = None if known is None else known.get(marked.removesuffix(LIST_MARK))
            if found is None:
                return
            walked = f"{walked}.{marked}" if walked else marked
            if not found.required:
                yield walked
            known = (found.of or _ANY).attributes if marked.endswith(LIST_MARK) else found.attributes

    def _find(self, argument: str, name: str, path: str) -> Attribute:
        if self._attributes is None:
            return _ANY
        known: Mapping[str, Attribute] | None = self._attributes
        found, owner = _ANY, self._event
        for marked in path.split("."):
            part = marked.removesuffix(LIST_MARK)
            if known is None and found.type in (dict, object):
                return _ANY  # A map's members are known only if its attributes are declared.
            if known is None:
                raise InvalidArgumentError(argument, name, f"a part of a map; {self._is(owner, found)}")
            if part not in known:
                raise InvalidArgumentError(argument, name, f"attributes of {owner!r}: {', '.join(known) or 'none'}")
            found, owner = known[part], part
            if part != marked:
                if found.type not in (list, object):
                    raise InvalidArgumentError(argument, name, f"a list; {self._is(part, found)}")
                found = found.of or _ANY
            known = found.attributes
        return found

    @staticmethod
    def _is(name: str, attribute: Attribute) -> str:
        return f"{parts_of(name)[0]!r} is {expectation(attribute)}"


def _equalities(condition: Condition) -> Iterable[tuple[str, object]]:
    if condition.attribute is None:
        for part in condition.operands:
            yield from _equalities(part)
    elif condition.operator in ("eq", "ne"):
        yield condition.attribute, condition.operands[0]
