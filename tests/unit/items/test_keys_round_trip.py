"""A rendered key gives its values back, whatever they are, and never grows beyond DynamoDB's limits."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamodb_counters._items.key_templates import KeyTemplate, is_hashed
from dynamodb_counters._items.table_schema import MAX_PK_BYTES, MAX_SK_BYTES
from dynamodb_counters.errors import InvalidArgumentError, MalformedImageError

HOSTILE = st.one_of(
    st.text(alphabet="#%~\0\x1f\x7f\x80 09AFaf/+{}é\u0301\U0001f600", max_size=12),
    st.text(max_size=30),
    st.sampled_from(["", "#", "%", "%~", "%23", "%2", "\0", "~", "e\u0301", "é", "a" * 3000, "\U0001f600" * 600]),
)

_PARTITION = KeyTemplate("URL#{url}", MAX_PK_BYTES)
_SORT = KeyTemplate("T#{time}#CID#{clientId}", MAX_SK_BYTES)
_LEADING = KeyTemplate("{first}#{second}#END", MAX_SK_BYTES)


def _escaped(text: str) -> str:
    safe = "".join(f"%{ord(c):02X}" if c in "%#\x7f" or c < " " else c for c in text)
    return safe or "%"


@given(HOSTILE, HOSTILE)
def test_values_come_back_unless_the_key_is_too_long(time: str, client: str) -> None:
    for template, (one, two) in ((_SORT, ("time", "clientId")), (_LEADING, ("first", "second"))):
        key = template.render({one: time, two: client})
        full = template.text.replace(f"{{{one}}}", "\0").replace(f"{{{two}}}", "\1")
        full = "".join({"\0": _escaped(time), "\1": _escaped(client)}.get(c, c) for c in full)

        assert len(key.encode()) <= template.max_bytes
        if len(full.encode()) <= template.max_bytes:
            assert key == full
            assert not is_hashed(key)
            assert template.parse(key) == {one: time, two: client}
        else:
            assert is_hashed(key)
            with pytest.raises(MalformedImageError, match="hash"):
                template.parse(key)


@pytest.mark.parametrize("limit", [MAX_PK_BYTES, MAX_SK_BYTES])
@pytest.mark.parametrize("character", ["a", "é", "€", "\U0001f600", "\0"])
def test_limits_are_kept_to_the_byte(limit: int, character: str) -> None:
    template = KeyTemplate("K#{x}", limit)
    size = len(_escaped(character).encode())
    most, rest = divmod(limit - 2, size)

    longest = template.render({"x": character * most + "b" * rest})
    longer = template.render({"x": character * most + "b" * (rest + 1)})

    assert len(longest.encode()) == limit
    assert not is_hashed(longest)
    assert template.parse(longest) == {"x": character * most + "b" * rest}
    assert is_hashed(longer)
    assert longer.startswith(f"K#{_escaped(character)}{_escaped(character)}")
    # A character that takes several bytes is not cut apart; it may leave up to three bytes unused.
    assert limit - 3 <= len(longer.encode()) <= limit


@pytest.mark.parametrize(
    "value", [None, True, 0.1 + 0.2, b"x", ["x"], {"x"}, Decimal("NaN"), Decimal("Infinity"), "a\ud800", "\udfff"]
)
def test_a_value_that_cannot_stand_in_a_key_is_refused(value: object) -> None:
    with pytest.raises(InvalidArgumentError) as refused:
        _PARTITION.render({"url": value})

    assert refused.value.argument == "url"
    assert refused.value.value is value
    assert refused.value.expected


def test_a_missing_value_is_refused_by_its_name() -> None:
    with pytest.raises(InvalidArgumentError, match="clientId") as refused:
        _SORT.render({"time": "1"})

    assert refused.value.argument == "clientId"


@pytest.mark.parametrize(
    "key", ["", "T#1", "T#1#CID", "X#1#CID#2", "T#1#CID#2#3", "t#1#CID#2", " T#1#CID#2", "T#1#CID#2\n#"]
)
def test_a_key_of_another_layout_does_not_parse(key: str) -> None:
    with pytest.raises(MalformedImageError):
        _SORT.parse(key)


def test_a_key_with_bytes_that_are_no_text_does_not_parse() -> None:
    with pytest.raises(MalformedImageError):
        _PARTITION.parse("URL#%FF")
