"""Whether what a declaration names is among the attributes of its event, and of a kind that it can use."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, Literal, TypeAlias

from dynamodb_counters._declarations.attribute_values import canonical_text, expectation
from dynamodb_counters._declarations.event_attributes import Attribute
from dynamodb_counters._declarations.measures import Count, Measure, TimeWeighted
from dynamodb_counters._items.attributes import LIST_MARK
from dynamodb_counters._items.conditions import Condition
from dynamodb_counters._items.decimals import Number
from dynamodb_counters._items.derived_fields import ORDER, is_time, parts_of
from dynamodb_counters._items.table_schema import is_reserved
from dynamodb_counters.errors import InvalidArgumentError

Kind: TypeAlias = Literal["a number", "a string or number", "a time"]

_NUMBERS: Final = (int, Decimal)
_ANY: Final = Attribute(object)
_TYPES: Final[dict[Kind, tuple[type, ...]]] = {
    "a number": (object, *_NUMBERS),
    "a string or number": (object, str, *_NUMBERS),
    "a time": (object, str, *_NUMBERS),
}


@dataclass(frozen=True, slots=True)
class KnownAttributes:
    """The attributes of one event, by which declarations over it are checked; without any, all is allowed."""

    event: str
    attributes: Mapping[str, Attribute] | None
    always: Collection[str | None]
    """Those that no event lacks, required or not."""

    def require_key(self, argument: str, names: Iterable[str], where: Condition | None = None) -> None:
        """Refuse fields of a key that are no attributes, have no text, or may be missing."""
        for name in names:
            path, derived, default = parts_of(name)
            kind: Kind = (
                "a string or number" if derived in ("", ORDER) else "a time" if is_time(derived) else "a number"
            )
            self.require(argument, name, kind, where, path=path, default=default, way=repr(f"{name}?none"))

    def require_measure(self, argument: str, measure: Measure | TimeWeighted, where: Condition | None) -> None:
        """Refuse to measure an attribute that is no number, or may be missing."""
        if not isinstance(measure, Count):
            self.require(argument, measure.attribute, "a number", where, default=measure.default, way="default=0")

    def require(
        self,
        argument: str,
        name: str,
        kind: Kind,
        where: Condition | None = None,
        *,
        path: str = "",
        default: str | Number | None = None,
        way: str = "",
    ) -> None:
        """Refuse an attribute, at a `path` if not by its name, that is of another kind or may be missing."""
        path, needed = path or name, frozenset[str]() if where is None else where._required
        attribute, optional = self._find(argument, name, path)
        is_no_time = attribute.one_of or (attribute.type is str and attribute.format != "date-time")
        if attribute.type not in _TYPES[kind] or (kind == "a time" and is_no_time):
            raise InvalidArgumentError(argument, name, f"{kind}; {path!r} is {expectation(attribute)}")
        can_default = False
        for part in optional:
            whole = part.removesuffix(LIST_MARK)
            # A default stands for a member's attribute, never for the list.
            is_own = LIST_MARK not in path[len(whole) :]
            can_default |= is_own
            is_there = (is_own and default is not None) or any(f"{each}.".startswith(f"{whole}.") for each in needed)
            if not is_there:
                ways = [way if is_own else "", "" if LIST_MARK in whole else f"where=Attr({whole!r}).exists()"]
                allowed = f"{' or '.join(filter(None, ways))}: {part!r} is not required"
                raise InvalidArgumentError(argument, name, allowed)
        if default is not None and not can_default and attribute is not _ANY:
            raise InvalidArgumentError(argument, name, f"no default: {path!r} is required")

    def key_text(self, path: str, text: str) -> str:
        """The text that a value has in a key; one of another type is refused, but its limits may have been others."""
        attribute, _ = self._find("values", path, path)
        kind = Attribute(attribute.type, format=attribute.format)
        canonical = canonical_text(kind, text)
        if canonical is None:
            raise InvalidArgumentError(path, text, expectation(kind))
        return canonical

    def require_where(self, where: Condition | None) -> None:
        """Refuse a condition on what is no attribute, or that no event can satisfy."""
        for name, operator, operands in () if where is None else where._tests:
            attribute = _ANY if is_reserved(name) else self._find("where", name, name)[0]
            for operand in operands:
                kinds = (bool,) if isinstance(operand, bool) else (str,) if isinstance(operand, str) else _NUMBERS
                if attribute.type not in (object, *kinds):
                    allowed = f"what {name!r} can be compared with: it is {expectation(attribute)}"
                    raise InvalidArgumentError("where", operand, allowed)
                if attribute.one_of and operator in ("eq", "ne") and operand not in attribute.one_of:
                    raise InvalidArgumentError("where", operand, f"what {name!r} can be: {expectation(attribute)}")
                if isinstance(operand, str) and attribute.format and operator in ("eq", "ne"):
                    canonical = canonical_text(Attribute(str, format=attribute.format), operand)
                    if canonical != operand:
                        allowed = expectation(attribute) if canonical is None else repr(canonical)
                        raise InvalidArgumentError("where", operand, f"{allowed}, as {name!r} is stored")

    def _find(self, argument: str, name: str, path: str) -> tuple[Attribute, list[str]]:
        """The attribute at a path, and the parts of the path that an event may lack, from the outermost on."""
        optional = list[str]()
        if self.attributes is None:
            return _ANY, optional
        known: Mapping[str, Attribute] | None = self.attributes
        found, owner, walked = _ANY, self.event, ""
        for marked in path.split("."):
            part = marked.removesuffix(LIST_MARK)
            if known is None and found.type in (dict, object):
                return _ANY, optional  # A map's members are known only if its attributes are declared.
            if known is None:
                raise InvalidArgumentError(argument, name, f"a part of a map; {owner!r} is {expectation(found)}")
            if part not in known:
                raise InvalidArgumentError(argument, name, f"attributes of {owner!r}: {', '.join(known) or 'none'}")
            found, owner = known[part], part
            walked = f"{walked}.{marked}" if walked else marked
            if not found.required and path not in self.always:
                optional.append(walked)
            if part != marked:
                if found.type not in (list, object):
                    raise InvalidArgumentError(argument, name, f"a list; {part!r} is {expectation(found)}")
                found = found.of or _ANY
            known = found.attributes
        return found, optional
