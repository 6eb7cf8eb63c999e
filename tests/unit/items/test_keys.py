"""Keys give their values back, whatever they are; templates are refused, or never render the same key."""

from __future__ import annotations

from decimal import Decimal
from itertools import combinations_with_replacement, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamodb_counters._items.keys import KeyTemplate, is_hashed
from dynamodb_counters._items.schema import MAX_PK_BYTES, MAX_SK_BYTES
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
    for template, (name, other) in ((_SORT, ("time", "clientId")), (_LEADING, ("first", "second"))):
        key = template.render({name: time, other: client})
        full = template.text.replace(f"{{{name}}}", "\0").replace(f"{{{other}}}", "\1")
        full = "".join({"\0": _escaped(time), "\1": _escaped(client)}.get(c, c) for c in full)

        assert len(key.encode()) <= template.max_bytes
        if len(full.encode()) <= template.max_bytes:
            assert key == full
            assert not is_hashed(key)
            assert template.parse(key) == {name: time, other: client}
        else:
            assert is_hashed(key)
            with pytest.raises(MalformedImageError, match="hash"):
                template.parse(key)


def test_a_key_of_other_code_is_matched_without_escapes() -> None:
    account = KeyTemplate("ACCOUNT#{account}", MAX_PK_BYTES)

    assert account.match("ACCOUNT#50%") == {"account": "50%"}
    assert account.match("USER#50%") is None


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

    assert (refused.value.argument, refused.value.value is value) == ("url", True)
    assert refused.value.expected


@pytest.mark.parametrize(
    ("template", "key"),
    [
        *((_SORT, key) for key in ("", "T#1", "T#1#CID", "X#1#CID#2", "T#1#CID#2#3", "t#1#CID#2", " T#1#CID#2")),
        (_SORT, "T#1#CID#2\n#"),
        (_PARTITION, "URL#%FF"),
    ],
)
def test_a_key_of_another_layout_or_of_bytes_that_are_no_text_does_not_parse(template: KeyTemplate, key: str) -> None:
    with pytest.raises(MalformedImageError):
        template.parse(key)


_WRONG: list[object] = [
    *("", None, 5, b"URL#{url}"),
    *("URL#{url", "URL#url}", "{{x}}#{a}", "URL#{}", "URL#{0}", "URL#{url!r}", "URL#{url:>8}"),
    *("URL#{u rl}", "URL#{url[0]}", "URL#{.url}", "URL#{url.}", "URL#{#}"),
    *("{a}{b}", "{a}x", "{a}x#{b}", "{a} #{b}", "A#{a}#B#{a}"),
    *("100%#{a}", "A\n#{a}", "A\0#{a}", "A\x7f#{a}", "A\ud800#{a}"),
    *("x" * 1024, "x" * 990 + "#{a}", "é" * 500),
]

_LIMIT = 80


@pytest.mark.parametrize("text", _WRONG)
def test_a_wrong_template_is_refused_by_name_and_value(text: object) -> None:
    with pytest.raises(InvalidArgumentError) as refused:
        KeyTemplate(text, 1024, "sk")  # type: ignore[arg-type]

    assert (refused.value.argument, refused.value.value, bool(refused.value.expected)) == ("sk", text, True)
    assert str(refused.value).startswith(f"invalid sk={text!r:.120}")
    assert str(refused.value).endswith(refused.value.expected)


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("STATISTICS", ()),
        ("#", ()),
        ("{a}", ("a",)),
        ("A{a}", ("a",)),
        ("#{a}#", ("a",)),
        ("A#{a}#{b}#C", ("a", "b")),
        ("é#{client-id}#{_x}", ("client-id", "_x")),
    ],
)
def test_a_right_template_knows_its_fields(text: str, fields: tuple[str, ...]) -> None:
    template = KeyTemplate(text, 1024)
    values = {name: f"value {name}" for name in fields}

    assert template.fields == fields
    assert template.parse(template.render(values)) == values


_VALUES = ["".join(letters) for length in range(4) for letters in product("ab", repeat=length)]


def _keys(template: KeyTemplate) -> frozenset[str]:
    return frozenset(
        template.render(dict(zip(template.fields, values, strict=True)))
        for values in product(_VALUES, repeat=len(template.fields))
    )


def _all_templates() -> list[KeyTemplate]:
    segments = [(prefix, opened) for prefix in ("", "a", "ab", "b") for opened in (False, True)]
    texts = {
        "#".join(prefix + (f"{{f{n}}}" if opened else "") for n, (prefix, opened) in enumerate(chosen))
        for length in (1, 2)
        for chosen in product(segments, repeat=length)
    }
    return [KeyTemplate(text, 1024) for text in sorted(texts) if text]


def test_overlap_is_what_a_search_over_all_short_values_finds() -> None:
    keys = {template: _keys(template) for template in _all_templates()}

    for template, other in combinations_with_replacement(keys, 2):
        expected = not keys[template].isdisjoint(keys[other])
        assert template.overlaps(other) is expected, (template.text, other.text)
        assert other.overlaps(template) is expected, (template.text, other.text)


def test_hashed_keys_collide_neither_with_each_other_nor_with_short_ones() -> None:
    template = KeyTemplate("{a}#{b}", _LIMIT)
    values = ["x" * length + end for length in range(70, 90) for end in ("", "#", "%", "y", "\0")]
    pairs = [*product(values, ["", "#", "x"]), *product(["", "#", "x"], values)]
    keys = {template.render({"a": a, "b": b}) for a, b in pairs}

    assert len(keys) == len(set(pairs))
    assert len({is_hashed(key) for key in keys}) == 2
